// Caches of keys or values in fewer bits: int8, float8e4m3fn, and int4 or float4e2m1 packed two to
// a byte, the first in the low bits, where a value is the stored one times a scale; float16 and
// bfloat16, which have no scale.
#pragma once

#include <string_view>

#include "ir/shape_context.h"
#include "tensor/tensor.h"

namespace tenon {

enum class CacheCoding : uint8_t {
  kNone,  // floats as they are
  kInt8,
  kInt4,    // the value plus 8
  kFloat4,  // e2m1
  kFloat8,  // e4m3fn, which a kernel gets widened to floats
  kFloat16,
  kBfloat16,
};

// The coding of a cache with this element type: `quantization` is NONE, PER_TENSOR or PER_CHANNEL;
// `type` names the elements or is empty, which means int4 if there are two in a byte. Errors:
// kInvalidArgument for other texts and for contradictions. kNone for float16 and bfloat16, which
// only kernels that get such a cache as it is tell from float.
Result<CacheCoding> CacheCodingOf(DataType stored, std::string_view quantization,
                                  std::string_view type);

// The same for input `cache`, with its scale, input `scale`: 1 element, or `channels` of them.
Result<CacheCoding> CheckCacheCoding(const ShapeContext& context, size_t cache, size_t scale,
                                     std::string_view quantization, std::string_view type,
                                     const Dim& channels);

// Elements of the cache for a head of `size` values.
Dim CodedSize(CacheCoding coding, const Dim& size);

// Rows of one head in the cache's coding.
class CacheCoder {
 public:
  // `scale` has 1 or heads * size elements, row for row; it is null where the coding has none.
  CacheCoder(CacheCoding coding, const Tensor& cache, const Tensor* scale, size_t size);

  size_t row_bytes() const { return row_bytes_; }
  void Decode(const std::byte* row, size_t head, float* values) const;
  void Encode(const float* values, size_t head, std::byte* row) const;
  // Replaces a row by the result of decoding its encoding.
  void Round(float* values, size_t head) const;

 private:
  uint8_t BitsOf(float value, float scale) const;
  float StepsOf(uint8_t bits) const;
  float ScaleOf(size_t head, size_t i) const {
    return scale_[is_per_channel_ ? head * size_ + i : 0];
  }

  CacheCoding coding_;
  const float* scale_;
  bool is_per_channel_;
  size_t size_, row_bytes_;
};

}  // namespace tenon
