// Concat: tensors joined along an axis.
#include "ops/framework/element.h"
#include "ops/framework/op_row.h"
#include "ops/framework/strided_copy.h"

namespace tenon {
namespace {

// Concat-13. Only Concat-1 has a default axis, which its schema does not state.
struct ConcatAttrs {
  int64_t axis = 1;
  static constexpr auto Fields() { return std::tuple(Field("axis", &ConcatAttrs::axis)); }
};

Status MergeOffAxis(const SymbolicShape& shape, size_t input, size_t axis, SymbolicShape& output) {
  if (shape.rank() != output.rank()) {
    return InvalidArgument("input {}: expected rank {} as of input 0 {}, got {}", input,
                           output.rank(), output, shape);
  }
  for (size_t i = 0; i < shape.rank(); ++i) {
    if (i == axis) {
      output[i] = output[i] + shape[i];
    } else if (!output[i].is_number()) {
      output[i] = shape[i].is_unknown() ? output[i] : shape[i];
    } else if (shape[i].is_number() && !(shape[i] == output[i])) {
      return InvalidArgument(
          "input {}: expected size {} of axis {} as in the inputs before, got {}", input, output[i],
          i, shape);
    }
  }
  return OkStatus();
}

// The elements of integer vectors that are joined; unknown ones are unknown dimensions.
void FollowElements(ShapeContext& context, const SymbolicShape& output) {
  if (output.rank() != 1) return;
  Dims joined;
  for (size_t i = 0; i < context.input_count(); ++i) {
    auto dims = context.KnownDims(i);
    if (!dims) {
      const Result<SymbolicShape> shape = context.Input(i);
      constexpr int64_t kMostUnknown = 64;
      if (!shape || !(*shape)[0].is_number() || (*shape)[0].value() > kMostUnknown) return;
      dims.emplace(static_cast<size_t>((*shape)[0].value()), Dim::Unknown());
    }
    joined.insert(joined.end(), dims->begin(), dims->end());
  }
  context.SetOutputDims(0, std::move(joined));
}

Status InferConcat(const ConcatAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape output, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, output.rank()));
  for (size_t i = 1; i < context.input_count(); ++i) {
    TENON_ASSIGN_OR_RETURN(const SymbolicShape shape, context.Input(i));
    TENON_RETURN_IF_ERROR(MergeOffAxis(shape, i, axis, output));
  }
  FollowElements(context, output);
  return context.SetOutput(0, std::move(output));
}

Status RunConcat(const ConcatAttrs& attrs, KernelContext& context) {
  Tensor& output = context.Output(0);
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, output.rank()));
  const int64_t outer = output.shape().Product(0, axis);
  const int64_t output_row = output.shape().Product(axis, output.rank());
  const size_t element_bytes = DataTypeBits(output.type()) / 8;
  auto* target = static_cast<char*>(output.raw());
  for (size_t i = 0; i < context.input_count(); ++i) {
    const Tensor& input = context.Input(i);
    const int64_t row = input.shape().Product(axis, input.rank());
    StridedCopy copy(output.type());
    TENON_RETURN_IF_ERROR(copy.AddAxis(outer, row, output_row));
    TENON_RETURN_IF_ERROR(copy.AddAxis(row, 1, 1));
    const bool is_there = input.raw() == target;
    if (!is_there) TENON_RETURN_IF_ERROR(copy.Run(input.raw(), target, context.threads()));
    target += static_cast<size_t>(row) * element_bytes;
  }
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferConcat, RunConcat>(
        "Concat", {.since = 1, .types = kWholeByteTypes, .traits = {.joins_inputs = true}}),
};

}  // namespace

TENON_OP_FAMILY(Concat, kRows);

}  // namespace tenon
