// Functions of 256 values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::kernels {

// y[i] = table[x[i]] for i < n; y may be x. `table` has 256 elements. Thread-safe.
void LookUpInt8(const uint8_t* table, const uint8_t* x, size_t n, uint8_t* y);

// The same for rows of n elements, `x_stride` and `y_stride` apart.
void LookUpInt8Rows(const uint8_t* table, const uint8_t* x, size_t x_stride, size_t rows, size_t n,
                    uint8_t* y, size_t y_stride);

}  // namespace tenon::kernels
