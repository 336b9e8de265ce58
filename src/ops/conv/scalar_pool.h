// Scalar pools for the types that kernels/conv/pool_planar.h does not support.
#pragma once

#include "kernels/conv/pool_planar.h"
#include "ops/conv/general_window.h"

namespace tenon {

// Plane `plane` of a pool with the dimensions, kind and indices of `args`, whose pointers to floats
// are not used. T is double, or int8_t or uint8_t for kMax only.
template <class T>
void ScalarPoolPlane(const kernels::PoolPlanarArgs& args, const T* in, T* out, size_t plane);

// The same over any number of axes, for float too; the dimensions are those of `window`.
template <class T>
void PoolGeneralPlane(const GeneralWindow& window, const kernels::PoolPlanarArgs& args, const T* in,
                      T* out, size_t plane);

}  // namespace tenon
