// SequenceMap: a subgraph applied to each element of a sequence.
#include <utility>

#include "ops/control/subgraphs.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/stateful_kernel.h"

namespace tenon {
namespace {

// SequenceMap-17. Inputs that are sequences provide their elements, tensors themselves.
Status InferMap(const NoAttrs&, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(CheckInputsAreThere(context, 0));
  std::vector<ValueType> inputs;
  for (size_t i = 0; i < context.input_count(); ++i) {
    ValueType type = context.InputType(i);
    if (type.kind == Value::Kind::kSequence) type = type.held ? *type.held : ValueType();
    inputs.push_back(std::move(type));
  }
  TENON_ASSIGN_OR_RETURN(std::vector<ValueType> outputs,
                         context.InferSubgraph("body", std::move(inputs)));
  if (outputs.size() < context.output_count()) {
    return InvalidArgument("expected {} outputs of the body, got {}", context.output_count(),
                           outputs.size());
  }
  for (size_t i = 0; i < context.output_count(); ++i) {
    TENON_RETURN_IF_ERROR(context.SetOutputType(i, ValueType::Sequence(std::move(outputs[i]))));
  }
  return OkStatus();
}

class MapKernel final : public StatefulKernel<InferMap> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_ASSIGN_OR_RETURN(body_, SubgraphIndex(info.node(), "body"));
    for (size_t i = 0; i < info.output_count(); ++i) {
      const ValueType& type = info.OutputType(i);
      element_types_.push_back(type.held ? type.held->element_type : DataType::kUndefined);
    }
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    TENON_RETURN_IF_ERROR(CheckLengths(context));
    const size_t count = context.InputValue(0).sequence().elements.size();
    std::vector<std::shared_ptr<Sequence>> outputs;
    for (const DataType type : element_types_) {
      outputs.push_back(std::make_shared<Sequence>());
      outputs.back()->element_type = type;
      outputs.back()->elements.reserve(count);
    }
    SubgraphRunner& body = context.Subgraph(body_);
    RunValues inputs(context.input_count()), results;
    for (size_t element = 0; element < count; ++element) {
      for (size_t i = 0; i < inputs.size(); ++i) {
        const Value& input = context.InputValue(i);
        inputs[i] =
            input.kind() == Value::Kind::kSequence ? input.sequence().elements[element] : input;
      }
      TENON_RETURN_IF_ERROR(body.Run(inputs, results));
      TENON_RETURN_IF_ERROR(Append(results, outputs));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (context.HasOutput(i)) context.SetOutput(i, std::move(outputs[i]));
    }
    return OkStatus();
  }

 private:
  static Status CheckLengths(const KernelContext& context) {
    for (size_t i = 0; i < context.input_count(); ++i) {
      const Value& input = context.InputValue(i);
      const bool is_sequence = input.kind() == Value::Kind::kSequence;
      if (i == 0 && !is_sequence) {
        return InvalidArgument("input 0: expected a sequence, got a {}",
                               ValueKindName(input.kind()));
      }
      const size_t count = context.InputValue(0).sequence().elements.size();
      if (is_sequence && input.sequence().elements.size() != count) {
        return InvalidArgument("input {}: expected a sequence of {} elements as input 0, got {}", i,
                               count, input.sequence().elements.size());
      }
    }
    return OkStatus();
  }

  static Status Append(RunValues& results, std::vector<std::shared_ptr<Sequence>>& outputs) {
    if (results.size() < outputs.size()) {
      return InvalidArgument("expected {} outputs of the body, got {}", outputs.size(),
                             results.size());
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!results[i].is_tensor()) {
        return InvalidArgument("output {}: expected a tensor from the body, got a {}", i,
                               ValueKindName(results[i].kind()));
      }
      outputs[i]->element_type = results[i].tensor().type();
      outputs[i]->elements.push_back(std::move(results[i]));
    }
    return OkStatus();
  }

  size_t body_ = 0;
  std::vector<DataType> element_types_;
};

constexpr OpRow kRows[] = {
    OpClass<MapKernel>("SequenceMap", {.since = 17, .traits = {.allocates_outputs = true}}),
};

}  // namespace

TENON_OP_FAMILY(SequenceMap, kRows);

}  // namespace tenon
