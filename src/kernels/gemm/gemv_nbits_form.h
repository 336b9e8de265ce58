// What the forms of integer products of few rows share, and how gemv_nbits_int8.cpp calls them.
#pragma once

#include "kernels/gemm/gemv_nbits.h"

namespace tenon::kernels {

// A unit of 128 elements is 64 bytes of the matrix. x is arranged alike: first the 64 even
// elements, which meet the low halves of these bytes, then the odd ones, which meet the high
// halves. Each 16 bytes of a vector belong to one block, as the smallest block has 32 elements.
inline constexpr size_t kNBitsUnit = 128;
inline constexpr size_t kNBitsUnitBytes = kNBitsUnit / 2;
// Of 32 bits: the sums of a unit, each of 4 even elements and 4 odd ones.
inline constexpr size_t kNBitsUnitSums = 16;
// How many bits one of three parts has beside the sign.
inline constexpr int kNBitsPartBits = 7;
// Bytes between what is read and what is fetched from memory for later, at least.
inline constexpr size_t kLeastNBitsAhead = 8192;

inline size_t NBitsUnits(const NBitsMatrix& w) {
  return (w.blocks() * w.block_size + kNBitsUnit - 1) / kNBitsUnit;
}

// x as it is arranged: units of bytes, first all of the most significant part; for each block the
// sum of its elements; for each unit and lane of a vector of sums the scale, and what the sum
// starts from: minus the usual zero point, half the range, times the elements.
struct NBitsByteVector {
  int8_t* bytes;
  size_t part_bytes;
  float* sums;
  float* scales;
  int32_t* starts;
};

// The zero points of a row times the scales times the sums of x.
float NBitsZeroPointSum(const NBitsMatrix& w, const NBitsByteVector& x, size_t row);

// The most vectors that are multiplied together.
inline constexpr size_t kMostNBitsVectors = 4;

struct NBitsGemmForm {
  // See MostInt8NBitsVectors.
  size_t most_vectors_of_one, most_vectors_of_three;
  // Fills v, which is zero.
  void (*arrange)(const NBitsMatrix& w, NBitsParts parts, const float* x, const NBitsByteVector& v);
  // Rows [first, first + count) of the matrix times kMostNBitsVectors vectors, or one:
  // y[v * stride + row].
  void (*run)(const NBitsMatrix& w, NBitsParts parts, const NBitsByteVector* x, size_t vectors,
              size_t first, size_t count, float* y, size_t stride);
};
extern const NBitsGemmForm kVnniNBitsGemm, kAvx2NBitsGemm;

}  // namespace tenon::kernels
