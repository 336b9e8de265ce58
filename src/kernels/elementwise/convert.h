// Casts between element types: Cast-13 on dense arrays that do not overlap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/elementwise/cast_type.h"

namespace tenon::kernels {

// The function for y[i] = x[i], converted, for i in [0, n). To a narrower float type: to nearest
// even, overflow to infinity, NaN stays NaN (from 64-bit types to 16 bits by way of float).
// Integers wrap around; floats are truncated, and what does not fit (32 bits for targets of at most
// 32 bits, else 64) gives an unspecified value. To bool: whether it differs from 0, NaN does. May
// be called from several threads at once.
CastFunction FindCast(CastType from, CastType to);

// The commonest ones by name. Bits are the same on every target.
void Float16ToFloat(const uint16_t* x, float* y, size_t n);
void FloatToFloat16(const float* x, uint16_t* y, size_t n);
void Bfloat16ToFloat(const uint16_t* x, float* y, size_t n);
void FloatToBfloat16(const float* x, uint16_t* y, size_t n);

// Elements that are worth a task of their own.
inline constexpr size_t kCastGrain = 32768;

}  // namespace tenon::kernels
