// YieldOp of com.microsoft divides a training graph into two halves. Its inputs are the results of
// the forward half, for the caller. Its outputs are the gradients that the caller passes to the
// backward half.
#include <algorithm>

#include "ops/framework/stateful_kernel.h"

namespace tenon {
namespace {

struct YieldAttrs {
  // Indices of inputs that have no gradient.
  std::vector<int64_t> non_differentiable;
  // Indices of inputs whose gradient has the input's full shape; others may be a single zero.
  std::vector<int64_t> full_shape;
  static constexpr auto Fields() {
    return std::tuple(Field("non_differentiable_outputs", &YieldAttrs::non_differentiable),
                      Field("full_shape_outputs", &YieldAttrs::full_shape));
  }
};

bool Holds(const std::vector<int64_t>& indices, size_t i) {
  return std::find(indices.begin(), indices.end(), static_cast<int64_t>(i)) != indices.end();
}

Status CheckIndices(std::string_view name, const std::vector<int64_t>& indices, size_t inputs) {
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0 || indices[i] >= static_cast<int64_t>(inputs)) {
      return InvalidArgument("{}: expected indices of the {} inputs, got {}", name, inputs,
                             indices[i]);
    }
    if (std::count(indices.begin(), indices.end(), indices[i]) > 1) {
      return InvalidArgument("{}: index {} is there twice", name, indices[i]);
    }
  }
  return OkStatus();
}

Status CheckYield(const YieldAttrs& attrs, size_t inputs, size_t outputs) {
  TENON_RETURN_IF_ERROR(
      CheckIndices("non_differentiable_outputs", attrs.non_differentiable, inputs));
  TENON_RETURN_IF_ERROR(CheckIndices("full_shape_outputs", attrs.full_shape, inputs));
  const size_t without = attrs.non_differentiable.size();
  if (inputs == outputs + without) return OkStatus();
  return InvalidArgument(
      "expected {} outputs for {} inputs, {} of which are non-differentiable, got {}",
      inputs - without, inputs, without, outputs);
}

// The gradient of the i-th differentiable input has its element type, and its shape if an attribute
// says so.
Status InferYield(const YieldAttrs& attrs, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(CheckYield(attrs, context.input_count(), context.output_count()));
  size_t output = 0;
  for (size_t i = 0; i < context.input_count(); ++i) {
    if (Holds(attrs.non_differentiable, i)) continue;
    ValueType type = context.InputType(i);
    if (!Holds(attrs.full_shape, i)) type.shape.reset();
    TENON_RETURN_IF_ERROR(context.SetOutputType(output++, std::move(type)));
  }
  return OkStatus();
}

class YieldKernel final : public StatefulKernel<InferYield> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    return CheckYield(attrs_, info.input_count(), info.output_count());
  }

  Status Run(KernelContext&) const override {
    return Fail(
        "it is where a run is cut in two: its outputs are supplied by who runs the graph in "
        "parts, and nothing computes them");
  }
};

constexpr OpRow kRows[] = {
    OpClass<YieldKernel>(
        "YieldOp", {.domain = "com.microsoft", .traits = {.is_stateful = true, .yields = true}}),
};

}  // namespace

TENON_OP_FAMILY(Yield, kRows);

}  // namespace tenon
