// Products of many rows with a matrix of 2, 4 or 8 bits: the core of com.microsoft MatMulNBits-1
// in integers: the rows are rounded to 8, 16 or 22 bits, each block with a scale of its own. An
// element is then off by at most 2^-8, 2^-16 or 2^-22 of the greatest of its block; the last is as
// exact as floats are. For a few rows see gemv_nbits.h.
//
// Only where the machine has int8 dot products, or AVX2. No function here allocates, locks, or
// starts a thread; all are thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gemm/gemv_nbits.h"

namespace tenon::kernels {

// Whether there are such products for a matrix and rows of so many parts: more than one need blocks
// whose sums fit 32 bits. Nothing else below may be called otherwise.
bool HasInt8NBitsPanels(const NBitsMatrix& w, NBitsParts parts);

// Rounded rows, in memory that is aligned to 64.
class Int8NBitsRows {
 public:
  // A multiple of 64.
  static size_t Bytes(const NBitsMatrix& w, NBitsParts parts, size_t m);

  // m: more than MostInt8NBitsVectors(NBitsParts::kOne).
  Int8NBitsRows(const NBitsMatrix& w, NBitsParts parts, size_t m, std::byte* memory);

  // Rounds row i, x: [k]. A row with infinities or NaN makes products that are not finite.
  void Set(const NBitsMatrix& w, size_t i, const float* x) const;

  NBitsParts parts() const { return parts_; }
  size_t count() const { return count_; }
  size_t stride() const { return stride_; }
  // Row i, block by block, each in the order of the unpacked weights, with zeros up to its end. Of
  // several parts the upper bytes come first.
  const int8_t* bytes(size_t i) const { return bytes_ + i * stride_; }
  const float* scales(size_t i) const { return scales_ + i * blocks_; }  // [blocks]
  // What the sums of a block start from: minus the sum of its bytes, by half the range of the
  // weights if they have no zero points. [blocks][parts], as the instruction set wants it.
  const int32_t* starts(size_t i) const {
    return starts_ + i * blocks_ * static_cast<size_t>(parts_);
  }

 private:
  NBitsParts parts_;
  size_t count_, blocks_, stride_;
  int8_t* bytes_;
  float* scales_;
  int32_t* starts_;
};

// Columns of the product that are computed together, from weights unpacked to bytes.
inline constexpr size_t kNBitsPanelColumns = 32;
// Bytes of the unpacked weights; a multiple of 64.
size_t NBitsPanelBytes(const NBitsMatrix& w);
// Columns [first, first + kNBitsPanelColumns), as far as there are any, of y, [rows, n].
// bias: [n] or null. scratch: NBitsPanelBytes, aligned to 64, with any content.
void RunNBitsPanel(const NBitsMatrix& w, const Int8NBitsRows& rows, const float* bias, size_t first,
                   float* y, size_t n, std::byte* scratch);

}  // namespace tenon::kernels
