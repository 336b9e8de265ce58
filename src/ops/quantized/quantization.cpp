#include "ops/quantized/quantization.h"

#include <cmath>

#include "base/arithmetic.h"
#include "ops/framework/expected_shape.h"

namespace tenon {
namespace {

// The quantized axis. A vector has only one, whatever the attribute's default says.
Result<size_t> QuantizedAxis(int64_t axis, size_t rank) {
  if (rank == 1 && axis == 1) return size_t{0};
  return NormalizeAxis(axis, rank);
}

bool IsOneElement(const SymbolicShape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim == Dim(1); });
}

}  // namespace

std::optional<kernels::QuantizedType> QuantizedTypeOf(DataType type) {
  switch (type) {
    case DataType::kUint8:
      return kernels::QuantizedType::kUint8;
    case DataType::kInt8:
      return kernels::QuantizedType::kInt8;
    case DataType::kUint16:
      return kernels::QuantizedType::kUint16;
    case DataType::kInt16:
      return kernels::QuantizedType::kInt16;
    case DataType::kInt32:
      return kernels::QuantizedType::kInt32;
    default:
      return std::nullopt;
  }
}

std::optional<IntegerRange> IntegerRangeOf(DataType type) {
  constexpr TypeSet kSigned = {DataType::kInt2, DataType::kInt4, DataType::kInt8, DataType::kInt16,
                               DataType::kInt32};
  constexpr TypeSet kUnsigned = {DataType::kUint2, DataType::kUint4, DataType::kUint8,
                                 DataType::kUint16, DataType::kUint32};
  const auto bits = static_cast<int>(DataTypeBits(type));
  if (kSigned.Contains(type)) {
    const int64_t half = int64_t{1} << (bits - 1);
    return IntegerRange{-half, half - 1};
  }
  if (kUnsigned.Contains(type)) return IntegerRange{0, (int64_t{1} << bits) - 1};
  return std::nullopt;
}

DynamicQuantization QuantizationOfRange(const kernels::FloatRange& range) {
  DynamicQuantization found;
  if (range.min != range.max) found.scale = (range.max - range.min) / 255.0f;
  // fmax returns 0 if the quotient is NaN.
  const float zero_point = std::fmin(255.0f, std::fmax(0.0f, 0.0f - range.min / found.scale));
  found.zero_point = static_cast<uint8_t>(std::nearbyint(zero_point));
  return found;
}

size_t DynamicRangeBytes(size_t n) {
  return std::max<size_t>(1, CeilDiv(n, kernels::kQuantizeGrain)) * sizeof(kernels::FloatRange);
}

DynamicQuantization FindDynamicQuantization(std::span<const float> x, void* memory,
                                            ThreadPool& threads) {
  auto* const ranges = static_cast<kernels::FloatRange*>(memory);
  ranges[0] = {0, 0};
  threads.ParallelFor(x.size(), kernels::kQuantizeGrain, [&](size_t begin, size_t end) {
    ranges[begin / kernels::kQuantizeGrain] = kernels::RangeWithZero(x.data() + begin, end - begin);
  });
  kernels::FloatRange range = ranges[0];
  for (size_t i = 1; i < CeilDiv(x.size(), kernels::kQuantizeGrain); ++i) {
    range = {std::min(range.min, ranges[i].min), std::max(range.max, ranges[i].max)};
  }
  return QuantizationOfRange(range);
}

void QuantizeDynamically(std::span<const float> x, const DynamicQuantization& found, uint8_t* y,
                         ThreadPool& threads) {
  const int32_t zero_point = found.zero_point;
  threads.ParallelFor(x.size(), kernels::kQuantizeGrain, [&](size_t begin, size_t end) {
    kernels::Quantize(x.data() + begin, end - begin, {&found.scale, &zero_point, false},
                      kernels::QuantizedType::kUint8, y + begin);
  });
}

void FakeQuantizeDynamically(std::span<const float> x, const DynamicQuantization& found, float* y,
                             ThreadPool& threads) {
  const int32_t zero_point = found.zero_point;
  const kernels::QuantizationRun run = {&found.scale, &zero_point, false};
  constexpr auto kType = kernels::QuantizedType::kUint8;
  threads.ParallelFor(x.size(), kernels::kQuantizeGrain, [&](size_t begin, size_t end) {
    uint8_t bytes[1024];
    for (size_t i = begin; i < end; i += std::size(bytes)) {
      const size_t n = std::min(std::size(bytes), end - i);
      kernels::Quantize(x.data() + i, n, run, kType, bytes);
      kernels::Dequantize(bytes, n, run, kType, y + i);
    }
  });
}

Status ScaleLayout::Check(const SymbolicShape& x, const SymbolicShape& scales, int64_t axis,
                          int64_t block_size) {
  if (block_size < 0) return InvalidArgument("expected block_size >= 0, got {}", block_size);
  if (block_size == 0 && IsOneElement(scales)) return OkStatus();
  if (scales.rank() == 0) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const size_t at, QuantizedAxis(axis, x.rank()));
  bool fits = true;
  if (block_size == 0) {
    fits = scales.rank() == 1 && MayEqual(scales[0], x[at]);
  } else {
    fits = scales.rank() == x.rank();
    for (size_t i = 0; fits && i < x.rank(); ++i) {
      fits = MayEqual(scales[i], i == at ? CeilDiv(x[i], Dim(block_size)) : x[i]);
    }
  }
  if (fits) return OkStatus();
  return InvalidArgument("input 1: scales {} do not fit input 0 {} with axis {} and block_size {}",
                         scales, x, axis, block_size);
}

Result<ScaleLayout> ScaleLayout::Make(const Shape& x, const Shape& scales, int64_t axis,
                                      int64_t block_size) {
  ScaleLayout layout;
  const bool is_blocked = block_size > 0 && scales.rank() > 0;
  if (!is_blocked && scales.NumElements() == 1) {
    layout.inner_ = static_cast<size_t>(std::max<int64_t>(x.NumElements(), 1));
    return layout;
  }
  TENON_ASSIGN_OR_RETURN(const size_t at, QuantizedAxis(axis, x.rank()));
  layout.dim_ = static_cast<size_t>(x[at]);
  layout.inner_ = static_cast<size_t>(x.Product(at + 1, x.rank()));
  layout.axis_stride_ = 1;
  if (is_blocked) {
    layout.block_ = static_cast<size_t>(block_size);
    layout.axis_stride_ = layout.inner_;
    layout.outer_stride_ = static_cast<size_t>(scales.Product(at, scales.rank()));
    layout.inner_stride_ = 1;
  }
  return layout;
}

}  // namespace tenon
