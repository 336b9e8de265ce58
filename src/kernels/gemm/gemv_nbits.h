// Vectors times matrices whose elements have 2, 4 or 8 bits in blocks with scales and zero points:
// the core of com.microsoft MatMulNBits-1 for few rows.
//
//   y[j] = sum over k of x[k] * (w[j][k] - zero[j][k / block]) * scale[j][k / block] + bias[j]
//
// No function here allocates, locks, or starts a thread; all are thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/unaligned.h"

namespace tenon::kernels {

struct NBitsMatrix {
  size_t k = 0;           // elements of a row
  size_t bits = 4;        // 2, 4 or 8
  size_t block_size = 0;  // a power of two of at least 16; a row's last block is whole in memory
  // [n][blocks][block_size * bits / 8], the first element in the lowest bits.
  const uint8_t* data = nullptr;
  const float* scales = nullptr;  // [n][blocks], at any address, as they lie in a model file
  // [n][zero_stride], packed as the elements are; or floats, [n][blocks]; or, if both are null,
  // half the range of the elements.
  const uint8_t* zero_points = nullptr;
  size_t zero_stride = 0;  // in bytes
  const float* float_zero_points = nullptr;

  size_t blocks() const { return (k + block_size - 1) / block_size; }
  float Scale(size_t row, size_t block) const {
    return LoadUnaligned(scales + row * blocks() + block);
  }
  float ZeroPoint(size_t row, size_t block) const {
    if (float_zero_points) return float_zero_points[row * blocks() + block];
    if (zero_points == nullptr) return static_cast<float>(1u << (bits - 1));
    const size_t bit = block * bits;
    const unsigned byte = zero_points[row * zero_stride + bit / 8];
    return static_cast<float>(byte >> (bit % 8) & ((1u << bits) - 1));
  }
};

// Floats that ArrangeNBitsVector writes.
size_t ArrangedNBitsSize(const NBitsMatrix& w);
// Puts x, [k], into the order in which the elements of a row are unpacked, under ActiveTarget().
void ArrangeNBitsVector(const NBitsMatrix& w, const float* x, float* arranged);

// Elements [first, first + count) of y. bias: [n] or null.
void RunNBitsGemv(const NBitsMatrix& w, const float* arranged, const float* bias, size_t first,
                  size_t count, float* y);

// The same for m vectors in integers, for a matrix of 4 bits if the machine has int8 dot products,
// or AVX2:
// the elements of a block are rounded to 8 bits, or to 22 bits, which are three parts of 8. An
// element is then off by at most 2^-22 of the greatest of its block. Two parts, 16 bits, are
// for many rows: gemm_nbits.h.
enum class NBitsParts : size_t { kOne = 1, kTwo = 2, kThree = 3 };
bool HasInt8NBitsGemm(const NBitsMatrix& w);
// Up to so many vectors this is faster than unpacking the weights first, to bytes or floats; 0
// where there are no integers. parts: one or three.
size_t MostInt8NBitsVectors(NBitsParts parts);
// Bytes that ArrangeNBitsBytes writes to `arranged`, aligned to 64; a multiple of 64.
size_t ArrangedNBitsBytes(const NBitsMatrix& w, NBitsParts parts);
void ArrangeNBitsBytes(const NBitsMatrix& w, NBitsParts parts, const float* x, std::byte* arranged);
// Columns [first, first + count) of y, [m, n], from m arranged vectors one after the other.
void RunInt8NBitsGemm(const NBitsMatrix& w, NBitsParts parts, const std::byte* arranged, size_t m,
                      const float* bias, size_t first, size_t count, float* y, size_t n);

// Row `row` as floats; writes whole blocks, blocks() * block_size elements.
void UnpackNBitsRow(const NBitsMatrix& w, size_t row, float* out);

}  // namespace tenon::kernels
