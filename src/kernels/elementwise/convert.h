// Casts between element types: Cast-13 on dense arrays that do not overlap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/elementwise/cast_type.h"

namespace tenon::kernels {

// The function that converts x[i] to y[i] for i in [0, n). To a narrower float type it rounds to
// nearest even, overflow gives infinity, and NaN stays NaN (from 64-bit types to 16 bits through
// float). Integers wrap around. Floats are truncated; a value that does not fit (in 32 bits for
// targets of at most 32 bits, else in 64) gives an unspecified result. To bool: whether the value
// differs from 0, which NaN does. May be called from several threads at once.
CastFunction FindCast(CastType from, CastType to);

// The commonest casts by name. Bits are the same on every target.
void Float16ToFloat(const uint16_t* x, float* y, size_t n);
void FloatToFloat16(const float* x, uint16_t* y, size_t n);
void Bfloat16ToFloat(const uint16_t* x, float* y, size_t n);
void FloatToBfloat16(const float* x, uint16_t* y, size_t n);

// How many elements are worth a task of their own.
inline constexpr size_t kCastGrain = 32768;

}  // namespace tenon::kernels
