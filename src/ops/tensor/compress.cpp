// Compress: the elements, or slices along an axis, that a condition selects.
#include <algorithm>

#include "base/block_pool.h"
#include "ops/framework/element.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// Compress-11; without `axis` the input is flattened. Elements beyond the condition are dropped,
// and what the condition has beyond the elements is not used, as in onnxruntime.
struct CompressAttrs {
  std::optional<int64_t> axis;
  static constexpr auto Fields() { return std::tuple(Field("axis", &CompressAttrs::axis)); }
};

Status InferCompress(const CompressAttrs& attrs, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(context.InputOfRank(1, 1));
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  if (!attrs.axis) return context.SetOutput(0, {Dim::Unknown()});
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(*attrs.axis, shape.rank()));
  shape[axis] = Dim::Unknown();
  return context.SetOutput(0, std::move(shape));
}

Status RunCompress(const CompressAttrs& attrs, KernelContext& context) {
  const Tensor& input = context.Input(0);
  const std::span<const bool> condition = context.Input(1).values<bool>();
  if (context.Input(1).rank() != 1) {
    return InvalidArgument("input 1: expected rank 1, got {}", context.Input(1).shape());
  }
  const Shape& shape = input.shape();
  Shape result = {0};
  size_t axis = 0;
  int64_t length = input.size(), inner = 1;
  if (attrs.axis) {
    TENON_ASSIGN_OR_RETURN(axis, NormalizeAxis(*attrs.axis, shape.rank()));
    result = shape;
    length = shape[axis];
    inner = shape.Product(axis + 1, shape.rank());
  }
  const auto used = std::min(condition.size(), static_cast<size_t>(length));
  const auto selected = std::count(condition.begin(), condition.begin() + used, true);
  result[axis] = selected;
  TENON_ASSIGN_OR_RETURN(Tensor * output, context.AllocateOutput(0, input.type(), result));
  if (output->size() == 0) return OkStatus();
  const auto outer = static_cast<size_t>(output->size() / (selected * inner));
  // Where the selected elements of a slice begin, if there are several slices.
  PooledVector<int64_t> starts;
  for (size_t i = 0; i < used && outer > 1; ++i) {
    if (condition[i]) starts.push_back(static_cast<int64_t>(i) * inner);
  }
  VisitElement(input.type(), [&](auto element) {
    using T = decltype(element);
    const size_t grain = CopyGrain(static_cast<size_t>(selected * inner) * sizeof(T));
    context.threads().ParallelFor(outer, grain, [&](size_t begin, size_t end) {
      T* to = output->data<T>() + static_cast<int64_t>(begin) * selected * inner;
      for (size_t o = begin; o < end; ++o) {
        const T* from = input.data<T>() + static_cast<int64_t>(o) * length * inner;
        for (const int64_t start : starts) {
          if (inner == 1) {
            *to++ = from[start];
          } else {
            to = std::copy_n(from + start, inner, to);
          }
        }
        for (size_t i = 0; i < used && outer == 1; ++i) {
          if (condition[i]) to = std::copy_n(from + static_cast<int64_t>(i) * inner, inner, to);
        }
      }
    });
  });
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferCompress, RunCompress>(
        "Compress", {.since = 9, .types = kWholeByteTypes, .traits = {.allocates_outputs = true}}),
};

}  // namespace

TENON_OP_FAMILY(Compress, kRows);

}  // namespace tenon
