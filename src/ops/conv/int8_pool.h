// Pools of int8 and uint8 planes, computed as floats: float has kernels and represents every
// element exactly.
#pragma once

#include "kernels/conv/pool_planar.h"
#include "ops/framework/quantized_int8.h"

namespace tenon {

// A pool without indices of input 0 into output 0, with the dimensions of `args`, whose pointers
// are not used.
Status PoolBytes(const kernels::PoolPlanarArgs& args, const Int8Quantization& of_x,
                 const Int8Quantization& of_y, KernelContext& context);

}  // namespace tenon
