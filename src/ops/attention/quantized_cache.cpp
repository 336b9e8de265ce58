#include "ops/attention/quantized_cache.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/elementwise/convert.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/narrow_types.h"

namespace tenon {
namespace {

// NaN becomes the least value.
int RoundedTo(float x, int least, int most) {
  const float rounded = std::nearbyint(x);
  if (!(rounded > static_cast<float>(least))) return least;
  return static_cast<int>(std::min(rounded, static_cast<float>(most)));
}

bool IsPacked(CacheCoding coding) {
  return coding == CacheCoding::kInt4 || coding == CacheCoding::kFloat4;
}

size_t BytesOfElement(CacheCoding coding) {
  switch (coding) {
    case CacheCoding::kFloat8:
      return sizeof(float);
    case CacheCoding::kFloat16:
    case CacheCoding::kBfloat16:
      return sizeof(uint16_t);
    default:
      return 1;
  }
}

}  // namespace

Result<CacheCoding> CacheCodingOf(DataType stored, std::string_view quantization,
                                  std::string_view type) {
  if (quantization != "PER_CHANNEL" && quantization != "PER_TENSOR" && quantization != "NONE") {
    return InvalidArgument("expected a cache quantized NONE, PER_TENSOR or PER_CHANNEL, got '{}'",
                           quantization);
  }
  const bool has_bytes = stored == DataType::kInt8 || stored == DataType::kUint8;
  if (quantization == "NONE") {
    if (!has_bytes && stored != DataType::kFloat8e4m3fn) return CacheCoding::kNone;
    return InvalidArgument("expected a cache of {} to be quantized PER_TENSOR or PER_CHANNEL",
                           DataTypeName(stored));
  }
  if (stored == DataType::kUint8) {
    if (type.empty() || type == "int4") return CacheCoding::kInt4;
    if (type == "float4e2m1") return CacheCoding::kFloat4;
    return InvalidArgument("expected a cache of bytes to hold int4 or float4e2m1, got '{}'", type);
  }
  // A float8 cache is widened before a kernel gets it, so it is one of floats.
  const std::string_view own = has_bytes ? "int8" : "float8e4m3fn";
  const bool fits = has_bytes || stored == DataType::kFloat8e4m3fn || stored == DataType::kFloat;
  if (!fits || (!type.empty() && type != own)) {
    return InvalidArgument("expected a quantized cache of int8, uint8 or float8e4m3fn, got {} '{}'",
                           DataTypeName(stored), type);
  }
  return has_bytes ? CacheCoding::kInt8 : CacheCoding::kFloat8;
}

Result<CacheCoding> CheckCacheCoding(const ShapeContext& context, size_t cache, size_t scale,
                                     std::string_view quantization, std::string_view type,
                                     const Dim& channels) {
  const bool has_cache = context.HasInput(cache);
  const DataType stored = has_cache ? context.ElementType(cache) : DataType::kFloat;
  TENON_ASSIGN_OR_RETURN(const CacheCoding coding, CacheCodingOf(stored, quantization, type));
  if (coding == CacheCoding::kNone) return coding;
  if (!has_cache || !context.HasInput(scale)) {
    return InvalidArgument("a quantized cache needs inputs {} and {}", cache, scale);
  }
  const bool is_per_channel = quantization == "PER_CHANNEL";
  TENON_RETURN_IF_ERROR(CheckElementCount(context, scale, is_per_channel ? channels : Dim(1)));
  return coding;
}

Dim CodedSize(CacheCoding coding, const Dim& size) {
  return IsPacked(coding) ? CeilDiv(size, 2) : size;
}

CacheCoder::CacheCoder(CacheCoding coding, const Tensor& cache, const Tensor* scale, size_t size)
    : coding_(coding),
      scale_(scale ? scale->data<float>() : nullptr),
      is_per_channel_(scale && scale->size() != 1),
      size_(size),
      row_bytes_(static_cast<size_t>(cache.shape().back()) * BytesOfElement(coding)) {}

uint8_t CacheCoder::BitsOf(float value, float scale) const {
  const float steps = scale == 0 ? 0 : value / scale;
  switch (coding_) {
    case CacheCoding::kInt8:
      return static_cast<uint8_t>(RoundedTo(steps, -128, 127));
    case CacheCoding::kInt4:
      return static_cast<uint8_t>(RoundedTo(steps, -8, 7) + 8);
    case CacheCoding::kFloat4:
      return EncodeNarrowFloat(DataType::kFloat4e2m1, steps, true);
    default:
      return EncodeNarrowFloat(DataType::kFloat8e4m3fn, steps, true);
  }
}

float CacheCoder::StepsOf(uint8_t bits) const {
  switch (coding_) {
    case CacheCoding::kInt8:
      return static_cast<int8_t>(bits);
    case CacheCoding::kInt4:
      return static_cast<float>(bits) - 8;
    case CacheCoding::kFloat4:
      return static_cast<float>(DecodeNarrowFloat(DataType::kFloat4e2m1, bits));
    default:
      return static_cast<float>(DecodeNarrowFloat(DataType::kFloat8e4m3fn, bits));
  }
}

void CacheCoder::Decode(const std::byte* row, size_t head, float* values) const {
  if (coding_ == CacheCoding::kFloat16) {
    return kernels::Float16ToFloat(reinterpret_cast<const uint16_t*>(row), values, size_);
  }
  if (coding_ == CacheCoding::kBfloat16) {
    return kernels::Bfloat16ToFloat(reinterpret_cast<const uint16_t*>(row), values, size_);
  }
  const auto* bytes = reinterpret_cast<const uint8_t*>(row);
  for (size_t i = 0; i < size_; ++i) {
    float steps = 0;
    if (coding_ == CacheCoding::kFloat8) {
      std::memcpy(&steps, row + i * sizeof(float), sizeof(float));
    } else {
      steps = StepsOf(IsPacked(coding_) ? UnpackBits(bytes, i, 4) : bytes[i]);
    }
    values[i] = steps * ScaleOf(head, i);
  }
}

void CacheCoder::Round(float* values, size_t head) const {
  constexpr size_t kPiece = 256;
  uint16_t stored[kPiece];
  if (coding_ == CacheCoding::kFloat16 || coding_ == CacheCoding::kBfloat16) {
    const bool is_float16 = coding_ == CacheCoding::kFloat16;
    for (size_t i = 0; i < size_; i += kPiece) {
      const size_t n = std::min(kPiece, size_ - i);
      (is_float16 ? kernels::FloatToFloat16 : kernels::FloatToBfloat16)(values + i, stored, n);
      (is_float16 ? kernels::Float16ToFloat : kernels::Bfloat16ToFloat)(stored, values + i, n);
    }
    return;
  }
  for (size_t i = 0; i < size_; ++i) {
    const float scale = ScaleOf(head, i);
    values[i] = StepsOf(BitsOf(values[i], scale)) * scale;
  }
}

void CacheCoder::Encode(const float* values, size_t head, std::byte* row) const {
  if (coding_ == CacheCoding::kFloat16) {
    return kernels::FloatToFloat16(values, reinterpret_cast<uint16_t*>(row), size_);
  }
  if (coding_ == CacheCoding::kBfloat16) {
    return kernels::FloatToBfloat16(values, reinterpret_cast<uint16_t*>(row), size_);
  }
  auto* bytes = reinterpret_cast<uint8_t*>(row);
  if (IsPacked(coding_)) std::fill_n(bytes, row_bytes_, uint8_t{0});
  for (size_t i = 0; i < size_; ++i) {
    const uint8_t bits = BitsOf(values[i], ScaleOf(head, i));
    if (coding_ == CacheCoding::kFloat8) {
      const float steps = StepsOf(bits);
      std::memcpy(row + i * sizeof(float), &steps, sizeof(float));
    } else if (IsPacked(coding_)) {
      PackBits(bytes, i, 4, bits);
    } else {
      bytes[i] = bits;
    }
  }
}

}  // namespace tenon
