// ReverseSequence: reverses the first elements of each sequence of a batch.
#include <algorithm>

#include "ops/framework/element.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// ReverseSequence-10.
struct ReverseSequenceAttrs {
  int64_t batch_axis = 1;
  int64_t time_axis = 0;
  static constexpr auto Fields() {
    return std::tuple(Field("batch_axis", &ReverseSequenceAttrs::batch_axis),
                      Field("time_axis", &ReverseSequenceAttrs::time_axis));
  }
};

Status InferReverseSequence(const ReverseSequenceAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape lengths, context.InputOfRank(1, 1));
  const bool is_pair = (attrs.batch_axis == 0 && attrs.time_axis == 1) ||
                       (attrs.batch_axis == 1 && attrs.time_axis == 0);
  if (!is_pair) {
    return InvalidArgument("expected batch_axis and time_axis to be 0 and 1, got {} and {}",
                           attrs.batch_axis, attrs.time_axis);
  }
  if (shape.rank() < 2) return InvalidArgument("input 0: expected rank >= 2, got {}", shape);
  const Dim& batch = shape[static_cast<size_t>(attrs.batch_axis)];
  if (batch.is_number() && lengths[0].is_number() && !(batch == lengths[0])) {
    return InvalidArgument("input 1: expected {} lengths, one per sequence, got {}", batch,
                           lengths[0]);
  }
  return context.SetOutput(0, std::move(shape));
}

Status RunReverseSequence(const ReverseSequenceAttrs& attrs, KernelContext& context) {
  const Tensor& input = context.Input(0);
  const Shape& shape = input.shape();
  const bool batch_first = attrs.batch_axis == 0;
  const int64_t steps = shape[batch_first ? 1 : 0];
  const std::span<const int64_t> lengths = context.Input(1).values<int64_t>();
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 0 || lengths[i] > steps) {
      return InvalidArgument("input 1: expected lengths in [0, {}], got {} at {}", steps,
                             lengths[i], i);
    }
  }
  if (input.size() == 0) return OkStatus();
  const int64_t row = shape.Product(2, shape.rank());
  VisitElement(input.type(), [&](auto element) {
    using T = decltype(element);
    context.threads().ParallelFor(
        static_cast<size_t>(shape[0] * shape[1]), CopyGrain(static_cast<size_t>(row) * sizeof(T)),
        [&](size_t begin, size_t end) {
          const T* x = input.data<T>();
          T* y = context.Output(0).data<T>();
          int64_t first = static_cast<int64_t>(begin) / shape[1];
          int64_t second = static_cast<int64_t>(begin) % shape[1];
          for (auto i = static_cast<int64_t>(begin); i < static_cast<int64_t>(end); ++i) {
            const int64_t length = lengths[static_cast<size_t>(batch_first ? first : second)];
            const int64_t step = batch_first ? second : first;
            const int64_t source = step < length ? length - 1 - step : step;
            const int64_t from =
                batch_first ? first * shape[1] + source : source * shape[1] + second;
            if (row == 1) {
              y[i] = x[from];
            } else {
              std::copy_n(x + from * row, row, y + i * row);
            }
            if (++second == shape[1]) {
              second = 0;
              ++first;
            }
          }
        });
  });
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferReverseSequence, RunReverseSequence>("ReverseSequence",
                                                 {.since = 10, .types = kWholeByteTypes}),
};

}  // namespace

TENON_OP_FAMILY(ReverseSequence, kRows);

}  // namespace tenon
