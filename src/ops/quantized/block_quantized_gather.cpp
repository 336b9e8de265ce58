// GatherBlockQuantized of com.microsoft: rows picked by indices from weights that are quantized in
// blocks.
#include <algorithm>

#include "base/arithmetic.h"
#include "ops/framework/element.h"
#include "ops/framework/element_conversion.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/indices.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

enum Input : size_t { kData, kIndices, kScales, kZeroPoints };

// GatherBlockQuantized-1. Data of uint8 hold 8 / bits elements in a byte, along the last axis, and
// so do their zero points.
struct BlockGatherAttrs {
  int64_t bits = 4, block_size = 128, gather_axis = 0, quantize_axis = 1;
  static constexpr auto Fields() {
    using A = BlockGatherAttrs;
    return std::tuple(Field("bits", &A::bits), Field("block_size", &A::block_size),
                      Field("gather_axis", &A::gather_axis),
                      Field("quantize_axis", &A::quantize_axis));
  }
  // Elements in a byte of data of this type that count as one.
  int64_t packing(DataType type) const { return type == DataType::kUint8 ? 8 / bits : 1; }
};

[[gnu::cold]] Status InferBlockGather(const BlockGatherAttrs& attrs, ShapeContext& context) {
  if (attrs.bits != 2 && attrs.bits != 4 && attrs.bits != 8) {
    return InvalidArgument("attribute 'bits': expected 2, 4 or 8, got {}", attrs.bits);
  }
  if (attrs.block_size < 16 || (attrs.block_size & (attrs.block_size - 1)) != 0) {
    return InvalidArgument("attribute 'block_size': expected a power of 2 from 16 on, got {}",
                           attrs.block_size);
  }
  TENON_ASSIGN_OR_RETURN(SymbolicShape data, context.Input(kData));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape indices, context.Input(kIndices));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape scales, context.InputOfRank(kScales, data.rank()));
  TENON_ASSIGN_OR_RETURN(const size_t gather, NormalizeAxis(attrs.gather_axis, data.rank()));
  TENON_ASSIGN_OR_RETURN(const size_t quantize, NormalizeAxis(attrs.quantize_axis, data.rank()));
  const int64_t packing = attrs.packing(context.ElementType(kData));
  if (packing > 1) {
    if (quantize + 1 != data.rank() || gather == quantize) {
      return InvalidArgument(
          "expected quantize_axis to be the last of {} and not gather_axis, got "
          "{} and {}",
          data, attrs.quantize_axis, attrs.gather_axis);
    }
    data[quantize] = data[quantize] * Dim(packing);
  }
  for (size_t i = 0; i < data.rank(); ++i) {
    const Dim blocks = i == quantize ? CeilDiv(data[i], Dim(attrs.block_size)) : data[i];
    if (!MayEqual(scales[i], blocks)) {
      return InvalidArgument("input 2: expected {} scales along axis {}, got {}", blocks, i,
                             scales);
    }
  }
  if (context.HasInput(kZeroPoints)) {
    TENON_ASSIGN_OR_RETURN(const SymbolicShape zeros,
                           context.InputOfRank(kZeroPoints, data.rank()));
    for (size_t i = 0; i < data.rank(); ++i) {
      const Dim wanted = i == quantize ? CeilDiv(scales[i], Dim(packing)) : scales[i];
      if (!MayEqual(zeros[i], wanted)) {
        return InvalidArgument("input 3: expected {} zero points along axis {}, got {}", wanted, i,
                               zeros);
      }
    }
  }
  SymbolicShape y;
  for (size_t i = 0; i < gather; ++i) y.Append(data[i]);
  for (const Dim& dim : indices) y.Append(dim);
  for (size_t i = gather + 1; i < data.rank(); ++i) y.Append(data[i]);
  const DataType type = context.ElementType(kScales);
  return type == DataType::kUndefined ? context.SetOutput(0, std::move(y))
                                      : context.SetOutput(0, std::move(y), type);
}

// The values of elements by their position in the unpacked data.
class BlockWeights {
 public:
  BlockWeights(const BlockGatherAttrs& attrs, size_t quantize, const KernelContext& context)
      : data_(context.Input(kData)),
        scales_(context.Input(kScales)),
        bits_(data_.type() == DataType::kUint8 ? static_cast<size_t>(attrs.bits) : 0),
        block_size_(static_cast<size_t>(attrs.block_size)) {
    const Shape& shape = data_.shape();
    axis_ = static_cast<size_t>(shape[quantize] * attrs.packing(data_.type()));
    inner_ = static_cast<size_t>(shape.Product(quantize + 1, shape.rank()));
    blocks_ = static_cast<size_t>(scales_.shape()[quantize]);
    if (context.HasInput(kZeroPoints)) zero_points_ = &context.Input(kZeroPoints);
    if (bits_ > 0) default_zero_ = static_cast<double>(1 << (bits_ - 1));
  }

  double At(size_t position) const {
    const size_t i = position % inner_, a = position / inner_ % axis_;
    const size_t outer = position / inner_ / axis_, block = a / block_size_;
    const size_t at = (outer * blocks_ + block) * inner_ + i;
    double zero = default_zero_, scale = 0, value = 0;
    LoadElements(scales_, at, 1, &scale);
    if (bits_ > 0) {
      value = UnpackBits(data_.data<uint8_t>(), position, bits_);
      if (zero_points_) {
        const size_t row_bytes = CeilDiv(blocks_ * bits_, size_t{8});
        zero = UnpackBits(zero_points_->data<uint8_t>() + outer * row_bytes, block, bits_);
      }
    } else {
      LoadElements(data_, position, 1, &value);
      if (zero_points_) LoadElements(*zero_points_, at, 1, &zero);
    }
    return (value - zero) * scale;
  }

 private:
  const Tensor& data_;
  const Tensor& scales_;
  const Tensor* zero_points_ = nullptr;
  const size_t bits_;  // of packed data; 0: the type says it
  const size_t block_size_;
  size_t axis_ = 1, inner_ = 1, blocks_ = 1;
  double default_zero_ = 0;
};

Status RunBlockGather(const BlockGatherAttrs& attrs, KernelContext& context) {
  const Tensor& data = context.Input(kData);
  const Tensor& indices = context.Input(kIndices);
  Tensor& y = context.Output(0);
  TENON_ASSIGN_OR_RETURN(const size_t gather, NormalizeAxis(attrs.gather_axis, data.rank()));
  TENON_ASSIGN_OR_RETURN(const size_t quantize, NormalizeAxis(attrs.quantize_axis, data.rank()));
  TENON_RETURN_IF_ERROR(CheckIndices(indices, data.shape()[gather], gather));
  if (y.size() == 0) return OkStatus();
  const BlockWeights weights(attrs, quantize, context);
  const auto dim = static_cast<size_t>(data.shape()[gather]);
  const auto inner = static_cast<size_t>(data.shape().Product(gather + 1, data.rank()) *
                                         attrs.packing(data.type()));
  const auto count = static_cast<size_t>(indices.size());
  VisitIndices(indices, [&](const auto* picks) {
    context.threads().ParallelFor(
        static_cast<size_t>(y.size()), 4096, [&](size_t begin, size_t end) {
          for (size_t i = begin; i < end; ++i) {
            const size_t pick = i / inner % count, outer = i / inner / count;
            const double value =
                weights.At((outer * dim + WrapIndex(picks[pick], dim)) * inner + i % inner);
            StoreElements(&value, i, 1, {}, y);
          }
        });
  });
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferBlockGather, RunBlockGather>(
        "GatherBlockQuantized",
        {.domain = "com.microsoft",
         .types = {DataType::kUint8, DataType::kUint4, DataType::kInt4, DataType::kFloat8e4m3fn,
                   DataType::kFloat8e4m3fnuz, DataType::kFloat8e5m2, DataType::kFloat8e5m2fnuz,
                   DataType::kFloat4e2m1}}),
};

}  // namespace

TENON_OP_FAMILY(BlockQuantizedGather, kRows);

}  // namespace tenon
