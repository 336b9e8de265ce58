// If and Loop: subgraphs run on a condition.
#include <algorithm>

#include "ops/families.h"

namespace tenon {
namespace {

// Which of Node::Subgraphs() the attribute holds.
Result<size_t> SubgraphIndex(const Node& node, std::string_view attribute) {
  size_t index = 0;
  for (const Attribute& held : node.attributes) {
    if (held.name == attribute && held.type() == AttributeType::kGraph) return index;
    if (held.type() == AttributeType::kGraph) ++index;
    if (const auto* graphs = held.get<std::vector<std::unique_ptr<Graph>>>()) {
      index += graphs->size();
    }
  }
  return InvalidArgument("attribute '{}' is required and missing", attribute);
}

Result<bool> ConditionOf(const Tensor& condition) {
  if (condition.type() != DataType::kBool || condition.size() != 1) {
    return InvalidArgument("expected a condition of one bool, got {} {}",
                           DataTypeName(condition.type()), condition.shape());
  }
  return *static_cast<const uint8_t*>(condition.raw()) != 0;
}

// What is known of a value that may come from either of two graphs.
ValueType CommonType(const ValueType& a, const ValueType& b) {
  if (!a.is_tensor() || !b.is_tensor()) return a.kind == b.kind ? a : ValueType();
  const DataType element = a.element_type == b.element_type ? a.element_type : DataType::kUndefined;
  if (!a.shape || !b.shape || a.shape->rank() != b.shape->rank()) return ValueType::Tensor(element);
  SymbolicShape shape = *a.shape;
  for (size_t i = 0; i < shape.rank(); ++i) {
    if (!(shape[i] == (*b.shape)[i])) shape[i] = Dim::Unknown();
  }
  return ValueType::Tensor(element, std::move(shape));
}

// If-1 to If-25: the outputs may differ in shape.
Status InferIf(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const std::vector<ValueType> on_true,
                         context.InferSubgraph("then_branch", {}));
  TENON_ASSIGN_OR_RETURN(const std::vector<ValueType> on_false,
                         context.InferSubgraph("else_branch", {}));
  const size_t outputs = context.output_count();
  if (on_true.size() < outputs || on_false.size() < outputs) {
    return InvalidArgument("expected {} outputs of both branches, got {} and {}", outputs,
                           on_true.size(), on_false.size());
  }
  for (size_t i = 0; i < outputs; ++i) {
    TENON_RETURN_IF_ERROR(context.SetOutputType(i, CommonType(on_true[i], on_false[i])));
  }
  return OkStatus();
}

Status SetOutputs(std::vector<Value>& values, size_t first, KernelContext& context) {
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
    std::vector<Value> outputs;
    TENON_RETURN_IF_ERROR(context.Subgraph(condition ? then_ : else_).Run({}, outputs));
    return SetOutputs(outputs, 0, context);
  }

 private:
  size_t then_ = 0;
  size_t else_ = 0;
};

// Loop-1 to Loop-25. Values carried around may change their shapes; outputs that are collected get
// a new first axis.
Status InferLoop(const NoAttrs&, ShapeContext& context) {
  const size_t carried = context.input_count() < 2 ? 0 : context.input_count() - 2;
  std::vector<ValueType> inputs = {ValueType::Tensor(DataType::kInt64, SymbolicShape()),
                                   ValueType::Tensor(DataType::kBool, SymbolicShape())};
  for (size_t i = 0; i < carried; ++i) {
    ValueType type = context.InputType(i + 2);
    type.shape.reset();
    inputs.push_back(std::move(type));
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
      // After no iteration at all it is the input.
      type = CommonType(type, context.InputType(i + 2));
    } else if (type.shape) {
      std::vector<Dim> dims = type.shape->dims();
      dims.insert(dims.begin(), Dim::Unknown());
      type.shape = SymbolicShape(std::move(dims));
    }
    TENON_RETURN_IF_ERROR(context.SetOutputType(i, std::move(type)));
  }
  return OkStatus();
}

// Joins tensors of one type and shape along a new first axis.
Result<Tensor*> Stack(std::span<const Tensor> parts, size_t output, KernelContext& context) {
  Shape shape({static_cast<int64_t>(parts.size())});
  for (const int64_t dim : parts[0].shape()) shape.Append(dim);
  TENON_ASSIGN_OR_RETURN(Tensor * stacked, context.AllocateOutput(output, parts[0].type(), shape));
  auto* target = static_cast<char*>(stacked->raw());
  for (size_t i = 0; i < parts.size(); ++i) {
    const Tensor& part = parts[i];
    if (part.type() != parts[0].type() || !(part.shape() == parts[0].shape())) {
      return InvalidArgument("output {}: expected {} {} from each iteration, got {} {}", output,
                             DataTypeName(parts[0].type()), parts[0].shape(),
                             DataTypeName(part.type()), part.shape());
    }
    if (part.type() == DataType::kString) {
      std::copy_n(part.data<std::string>(), part.size(),
                  stacked->data<std::string>() + static_cast<int64_t>(i) * part.size());
    } else {
      std::copy_n(static_cast<const char*>(part.raw()), part.bytes(), target + i * part.bytes());
    }
  }
  return stacked;
}

class LoopKernel final : public StatefulKernel<InferLoop> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_ASSIGN_OR_RETURN(body_, SubgraphIndex(info.node(), "body"));
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
    std::vector<Value> state(carried_);
    for (size_t i = 0; i < carried_; ++i) {
      if (context.HasInput(i + 2)) state[i] = context.InputValue(i + 2);
    }
    std::vector<std::vector<Tensor>> collected(context.output_count() - carried_);
    for (int64_t trip = 0; trip < trips && goes_on; ++trip) {
      if (context.cancelled()) return Fail("the run was terminated");
      TENON_ASSIGN_OR_RETURN(goes_on, RunBody(trip, state, collected, context));
    }
    for (size_t i = 0; i < carried_; ++i) {
      if (!context.HasOutput(i)) continue;
      TENON_RETURN_IF_ERROR(SetCarried(i, state[i], context));
    }
    return StackCollected(collected, context);
  }

 private:
  Result<bool> RunBody(int64_t trip, std::vector<Value>& state,
                       std::vector<std::vector<Tensor>>& collected, KernelContext& context) const {
    std::vector<Value> inputs = {Tensor::Of<int64_t>({}, {trip}), Tensor::Of<bool>({}, {true})};
    inputs.insert(inputs.end(), state.begin(), state.end());
    std::vector<Value> outputs;
    TENON_RETURN_IF_ERROR(context.Subgraph(body_).Run(inputs, outputs));
    if (outputs.size() != 1 + carried_ + collected.size() || !outputs[0].is_tensor()) {
      return InvalidArgument("expected a condition and {} outputs of the body, got {} outputs",
                             carried_ + collected.size(), outputs.size());
    }
    for (size_t i = 0; i < carried_; ++i) state[i] = std::move(outputs[i + 1]);
    for (size_t i = 0; i < collected.size(); ++i) {
      const Value& value = outputs[1 + carried_ + i];
      if (!value.is_tensor()) return InvalidArgument("output {}: expected tensors", carried_ + i);
      collected[i].push_back(value.tensor());
    }
    return ConditionOf(outputs[0].tensor());
  }

  // A value that was only handed through is an input, whose memory is not this node's to give.
  Status SetCarried(size_t i, Value& value, KernelContext& context) const {
    const bool is_input = context.HasInput(i + 2) && value.is_tensor() &&
                          context.InputValue(i + 2).is_tensor() &&
                          value.tensor().raw() == context.Input(i + 2).raw();
    if (!is_input) {
      context.SetOutput(i, std::move(value));
      return OkStatus();
    }
    TENON_ASSIGN_OR_RETURN(Tensor copy, value.tensor().Clone());
    context.SetOutput(i, std::move(copy));
    return OkStatus();
  }

  Status StackCollected(std::vector<std::vector<Tensor>>& collected, KernelContext& context) const {
    for (size_t i = 0; i < collected.size(); ++i) {
      const size_t output = carried_ + i;
      if (!context.HasOutput(output)) continue;
      if (collected[i].empty()) {
        TENON_RETURN_IF_ERROR(AllocateEmpty(empty_types_[i], output, context));
      } else {
        TENON_RETURN_IF_ERROR(Stack(collected[i], output, context));
      }
    }
    return OkStatus();
  }

  // After no iteration: unknown dimensions are 0 too.
  static Status AllocateEmpty(const ValueType& type, size_t output, KernelContext& context) {
    Shape shape({0});
    for (size_t i = 1; type.shape && i < type.shape->rank(); ++i) {
      shape.Append((*type.shape)[i].number().value_or(0));
    }
    const DataType element =
        type.element_type == DataType::kUndefined ? DataType::kFloat : type.element_type;
    TENON_RETURN_IF_ERROR(context.AllocateOutput(output, element, shape));
    return OkStatus();
  }

  size_t body_ = 0;
  size_t carried_ = 0;
  std::vector<ValueType> empty_types_;
};

constexpr KernelTraits kControlTraits = {.allocates_outputs = true};

constexpr OpRow kRows[] = {
    OpClass<IfKernel>("If", {.since = 1, .types = {DataType::kBool}, .traits = kControlTraits}),
    OpClass<LoopKernel>("Loop", {.since = 1, .traits = kControlTraits}),
};

}  // namespace

const std::span<const OpRow> kControlFlowFamily = kRows;

}  // namespace tenon
