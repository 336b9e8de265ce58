// If and Loop: subgraphs run on a condition.
#include <algorithm>
#include <utility>

#include "ir/graph.h"
#include "ops/control/subgraphs.h"
#include "ops/framework/stateful_kernel.h"

namespace tenon {
namespace {

// If-1 to If-25: the outputs may differ in shape.
Status InferIf(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const std::vector<ValueType> on_true,
                         context.InferSubgraph("then_branch", {}));
  TENON_ASSIGN_OR_RETURN(const std::vector<ValueType> on_false,
                         context.InferSubgraph("else_branch", {}));
  const size_t outputs = context.output_count();
  const auto condition = context.KnownDims(0);
  if (on_true.size() < outputs || on_false.size() < outputs) {
    return InvalidArgument("expected {} outputs of both branches, got {} and {}", outputs,
                           on_true.size(), on_false.size());
  }
  for (size_t i = 0; i < outputs; ++i) {
    if (condition && condition->size() == 1 && (*condition)[0].is_number()) {
      const bool is_true = (*condition)[0].value() != 0;
      TENON_RETURN_IF_ERROR(context.SetOutputType(i, is_true ? on_true[i] : on_false[i]));
      continue;
    }
    TENON_ASSIGN_OR_RETURN(ValueType type, JoinTypes(on_true[i], on_false[i], i));
    TENON_RETURN_IF_ERROR(context.SetOutputType(i, std::move(type)));
  }
  return OkStatus();
}

Status SetOutputs(RunValues& values, size_t first, KernelContext& context) {
  if (values.size() < first + context.output_count()) {
    return InvalidArgument("expected {} outputs of the subgraph, got {}",
                           first + context.output_count(), values.size());
  }
  for (size_t i = 0; i < context.output_count(); ++i) {
    if (context.HasOutput(i)) context.SetOutput(i, std::move(values[first + i]));
  }
  return OkStatus();
}

class IfKernel final : public StatefulKernel<InferIf> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_ASSIGN_OR_RETURN(then_, SubgraphIndex(info.node(), "then_branch"));
    TENON_ASSIGN_OR_RETURN(else_, SubgraphIndex(info.node(), "else_branch"));
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    TENON_ASSIGN_OR_RETURN(const bool condition, ConditionOf(context.Input(0)));
    RunValues outputs;
    TENON_RETURN_IF_ERROR(context.Subgraph(condition ? then_ : else_).Run({}, outputs));
    return SetOutputs(outputs, 0, context);
  }

 private:
  size_t then_ = 0;
  size_t else_ = 0;
};

// The shape of body inputs 0 and 1, an iteration's number and the condition: scalars, or [1] where
// the body declares an axis, as some exporters do.
Shape OneElement(const Graph& body, size_t input) {
  const bool is_declared = input < body.inputs.size();
  const auto* shape = is_declared ? &body.value(body.inputs[input]).type.shape : nullptr;
  return shape != nullptr && *shape && (*shape)->rank() > 0 ? Shape({1}) : Shape();
}

// Loop-1 to Loop-25. Values carried around may change their shapes; outputs that are collected get
// a new first axis.
Status InferLoop(const NoAttrs&, ShapeContext& context) {
  const size_t carried = context.input_count() < 2 ? 0 : context.input_count() - 2;
  TENON_ASSIGN_OR_RETURN(const size_t index, SubgraphIndex(context.node(), "body"));
  const Graph& body = *context.node().Subgraphs()[index];
  std::vector<ValueType> inputs = {ValueType::Tensor(DataType::kInt64, OneElement(body, 0)),
                                   ValueType::Tensor(DataType::kBool, OneElement(body, 1))};
  for (size_t i = 0; i < carried; ++i) {
    inputs.push_back(WithoutShapes(context.InputType(i + 2)));
  }
  TENON_ASSIGN_OR_RETURN(const std::vector<ValueType> outputs,
                         context.InferSubgraph("body", std::move(inputs)));
  if (outputs.size() < context.output_count() + 1) {
    return InvalidArgument("expected {} outputs of the body, got {}", context.output_count() + 1,
                           outputs.size());
  }
  for (size_t i = 0; i < context.output_count(); ++i) {
    ValueType type = outputs[i + 1];
    if (i < carried) {
      // Without any iteration it is the input.
      TENON_ASSIGN_OR_RETURN(type, JoinTypes(context.InputType(i + 2), type, i));
    } else if (type.shape) {
      Dims dims = type.shape->dims();
      dims.insert(dims.begin(), Dim::Unknown());
      type.shape = SymbolicShape(std::move(dims));
    }
    TENON_RETURN_IF_ERROR(context.SetOutputType(i, std::move(type)));
  }
  return OkStatus();
}

// Joins tensors of one type and shape along a new first axis.
Status Stack(std::span<const Value> parts, size_t output, KernelContext& context) {
  const Tensor& first = parts[0].tensor();
  Shape shape({static_cast<int64_t>(parts.size())});
  for (const int64_t dim : first.shape()) shape.Append(dim);
  TENON_ASSIGN_OR_RETURN(Tensor * stacked, context.AllocateOutput(output, first.type(), shape));
  for (size_t i = 0; i < parts.size(); ++i) {
    CopyElements(parts[i].tensor(), static_cast<int64_t>(i) * first.size(), *stacked);
  }
  return OkStatus();
}

// Counts the iterations of a loop in a tensor that it shares with the body, unless the body keeps
// the tensor.
class IterationNumber {
 public:
  IterationNumber(const KernelContext& context, const Shape& shape)
      : context_(context), shape_(shape) {}

  Result<Value> At(int64_t iteration) {
    if (value_.is_shared() || !value_.has_value()) {
      TENON_ASSIGN_OR_RETURN(value_, context_.AllocateTensor(DataType::kInt64, shape_));
    }
    *value_.tensor().data<int64_t>() = iteration;
    return value_;
  }

 private:
  const KernelContext& context_;
  const Shape& shape_;
  Value value_;
};

class LoopKernel final : public StatefulKernel<InferLoop> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_ASSIGN_OR_RETURN(body_, SubgraphIndex(info.node(), "body"));
    const Graph& body = *info.node().Subgraphs()[body_];
    number_shape_ = OneElement(body, 0);
    condition_shape_ = OneElement(body, 1);
    carried_ = info.input_count() < 2 ? 0 : info.input_count() - 2;
    if (info.output_count() < carried_) {
      return InvalidArgument("expected at least {} outputs, one for each value carried, got {}",
                             carried_, info.output_count());
    }
    for (size_t i = carried_; i < info.output_count(); ++i) {
      empty_types_.push_back(info.OutputType(i));
    }
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    int64_t trips = INT64_MAX;
    if (context.HasInput(0)) {
      TENON_ASSIGN_OR_RETURN(const Shape count, IntegersOf(context.Input(0)));
      if (count.rank() != 1) return InvalidArgument("input 0: expected one trip count");
      trips = count[0];
    }
    bool goes_on = true;
    if (context.HasInput(1)) {
      TENON_ASSIGN_OR_RETURN(goes_on, ConditionOf(context.Input(1)));
    }
    State state(context, number_shape_);
    TENON_ASSIGN_OR_RETURN(state.condition,
                           context.AllocateTensor(DataType::kBool, condition_shape_));
    *state.condition.tensor().data<bool>() = true;
    state.inputs.resize(2 + carried_);
    state.outputs.resize(1 + carried_);
    state.spare.resize(carried_);
    for (size_t i = 0; i < carried_; ++i) {
      if (context.HasInput(i + 2)) state.outputs[i + 1] = context.InputValue(i + 2);
    }
    state.collected.resize(context.output_count() - carried_);
    SubgraphRunner& body = context.Subgraph(body_);
    for (int64_t trip = 0; trip < trips && goes_on; ++trip) {
      TENON_ASSIGN_OR_RETURN(goes_on, RunBody(trip, state, body));
    }
    for (size_t i = 0; i < carried_; ++i) {
      if (!context.HasOutput(i)) continue;
      TENON_ASSIGN_OR_RETURN(Value value, Retain(state.outputs[i + 1]));
      context.SetOutput(i, std::move(value));
    }
    return StackCollected(state.collected, context);
  }

 private:
  struct State {
    State(const KernelContext& context, const Shape& number_shape)
        : number(context, number_shape) {}

    IterationNumber number;
    Value condition;    // true
    RunValues inputs;   // of the body: number, condition, values carried
    RunValues outputs;  // of the body: condition, values carried, values collected
    // Tensors that were inputs of the last iteration: the next one can write into them.
    RunValues spare;
    PooledVector<RunValues> collected;
  };

  // A false condition also ends the loop if the node has no condition as an input. The standard's
  // text would ignore it, but models are made for engines that do not.
  Result<bool> RunBody(int64_t trip, State& state, SubgraphRunner& body) const {
    TENON_ASSIGN_OR_RETURN(state.inputs[0], state.number.At(trip));
    state.inputs[1] = state.condition;
    for (size_t i = 0; i < carried_; ++i) {
      state.inputs[i + 2] = std::exchange(state.outputs[i + 1], std::move(state.spare[i]));
      if (state.inputs[i + 2].is_tensor()) state.spare[i] = state.inputs[i + 2];
    }
    TENON_RETURN_IF_ERROR(body.Run(state.inputs, state.outputs));
    RunValues& outputs = state.outputs;
    if (outputs.size() != 1 + carried_ + state.collected.size() || !outputs[0].is_tensor()) {
      return InvalidArgument("expected a condition and {} outputs of the body, got {} outputs",
                             carried_ + state.collected.size(), outputs.size());
    }
    for (size_t i = 0; i < state.collected.size(); ++i) {
      RunValues& collected = state.collected[i];
      Value& value = outputs[1 + carried_ + i];
      if (!value.is_tensor()) return InvalidArgument("output {}: expected tensors", carried_ + i);
      if (!collected.empty()) {
        TENON_RETURN_IF_ERROR(CheckSameAs(collected[0].tensor(), value, carried_ + i));
      }
      collected.push_back(std::move(value));
    }
    return ConditionOf(outputs[0].tensor());
  }

  Status StackCollected(const PooledVector<RunValues>& collected, KernelContext& context) const {
    for (size_t i = 0; i < collected.size(); ++i) {
      const size_t output = carried_ + i;
      if (!context.HasOutput(output)) continue;
      if (!collected[i].empty()) {
        TENON_RETURN_IF_ERROR(Stack(collected[i], output, context));
        continue;
      }
      const ValueType& type = empty_types_[i];
      const DataType element =
          type.element_type == DataType::kUndefined ? DataType::kFloat : type.element_type;
      TENON_RETURN_IF_ERROR(context.AllocateOutput(output, element, EmptyShape(type, 0)));
    }
    return OkStatus();
  }

  size_t body_ = 0;
  size_t carried_ = 0;
  Shape number_shape_, condition_shape_;
  std::vector<ValueType> empty_types_;
};

constexpr KernelTraits kControlTraits = {.allocates_outputs = true};

constexpr OpRow kRows[] = {
    OpClass<IfKernel>("If", {.since = 1, .types = {DataType::kBool}, .traits = kControlTraits}),
    OpClass<LoopKernel>("Loop", {.since = 1, .traits = kControlTraits}),
};

}  // namespace

TENON_OP_FAMILY(ControlFlow, kRows);

}  // namespace tenon
