#include "ir/gradient_rules.h"

#include <array>
#include <numeric>

namespace tenon {

Int::operator Attribute() const { return Attribute(name, value); }

std::vector<Attribute> Attributes(Int first) { return Attributes(Attribute(first)); }

std::vector<Attribute> Attributes(Int first, Int second) {
  return Attributes(Attribute(first), Attribute(second));
}

std::vector<Attribute> Attributes(Attribute first) {
  std::vector<Attribute> all;
  all.push_back(std::move(first));
  return all;
}

std::vector<Attribute> Attributes(Attribute first, Attribute second) {
  std::vector<Attribute> all = Attributes(std::move(first));
  all.push_back(std::move(second));
  return all;
}

std::vector<Attribute> Attributes(Attribute first, Attribute second, Attribute third) {
  std::vector<Attribute> all = Attributes(std::move(first), std::move(second));
  all.push_back(std::move(third));
  return all;
}

std::vector<Attribute> AttributesBut(const Node& node,
                                     std::initializer_list<std::string_view> left_out) {
  std::vector<Attribute> kept;
  for (const Attribute& attribute : node.attributes) {
    const bool is_left_out =
        std::find(left_out.begin(), left_out.end(), attribute.name) != left_out.end();
    if (!is_left_out) kept.push_back(CloneAttribute(attribute));
  }
  return kept;
}

ValueId Add(Builder& b, ValueId x, ValueId y) { return b.Op("Add", {x, y}); }
ValueId Sub(Builder& b, ValueId x, ValueId y) { return b.Op("Sub", {x, y}); }
ValueId Mul(Builder& b, ValueId x, ValueId y) { return b.Op("Mul", {x, y}); }
ValueId Div(Builder& b, ValueId x, ValueId y) { return b.Op("Div", {x, y}); }
ValueId Square(Builder& b, ValueId x) { return Mul(b, x, x); }

ValueId Where(Builder& b, ValueId condition, ValueId x, ValueId y) {
  return b.Op("Where", {condition, x, y});
}

ValueId Times(Builder& b, ValueId value, double factor) {
  return Mul(b, value, b.Scalar(factor, value));
}

ValueId Plus(Builder& b, ValueId value, double term) {
  return Add(b, value, b.Scalar(term, value));
}

ValueId SumTo(Builder& b, const Inputs& in, ValueId gradient, ValueId operand) {
  return b.SumTo(gradient, operand, b.ShapeOf(in.y()));
}

ValueId Integer(Builder& b, int64_t value) { return b.Integers(std::array<int64_t, 1>{value}); }

ValueId ReshapeLike(Builder& b, ValueId value, ValueId like) {
  return b.Shaped(value, b.Op("Shape", {like}));
}

ValueId SumOver(Builder& b, ValueId value, std::span<const int64_t> axes, bool keeps) {
  if (axes.empty()) return value;
  return b.Op("ReduceSum", {value, b.Integers(axes)}, Attributes(Int("keepdims", keeps)));
}

ValueId MeanOver(Builder& b, ValueId value, std::span<const int64_t> axes) {
  constexpr int32_t kFirstWithAxesAsInput = 18;
  if (axes.empty()) return value;
  if (b.opset() >= kFirstWithAxesAsInput) return b.Op("ReduceMean", {value, b.Integers(axes)});
  return b.Op("ReduceMean", {value},
              Attributes(Attribute("axes", std::vector<int64_t>(axes.begin(), axes.end()))));
}

std::vector<int64_t> AxesBetween(int64_t begin, int64_t end) {
  std::vector<int64_t> axes(static_cast<size_t>(std::max<int64_t>(0, end - begin)));
  std::iota(axes.begin(), axes.end(), begin);
  return axes;
}

ValueId Joined(Builder& b, std::span<const ValueId> parts, int64_t axis) {
  return b.Op("Concat", parts, Attributes(Int("axis", axis)));
}

ValueId Joined(Builder& b, std::initializer_list<ValueId> parts, int64_t axis) {
  return Joined(b, std::span(parts.begin(), parts.size()), axis);
}

ValueId Transposed(Builder& b, ValueId value, std::vector<int64_t> order) {
  return b.Op("Transpose", {value}, Attributes(Attribute("perm", std::move(order))));
}

ValueId Unsqueezed(Builder& b, ValueId value, int64_t axis) {
  return b.Op("Unsqueeze", {value, Integer(b, axis)});
}

ValueId SizeOf(Builder& b, ValueId value, int64_t axis) {
  return b.Op("Gather", {b.Op("Shape", {value}), Integer(b, axis)});
}

ValueId Sizes(Builder& b, ValueId value, int64_t first, int64_t last) {
  return b.Op("Slice", {b.Op("Shape", {value}), Integer(b, first), Integer(b, last)});
}

ValueId NumbersTo(Builder& b, ValueId count) {
  return b.Op("Range", {b.IntegerScalar(0), count, b.IntegerScalar(1)});
}

ValueId Numbers(Builder& b, ValueId value, int64_t axis) {
  return NumbersTo(b, b.Op("Gather", {b.Op("Shape", {value}), b.IntegerScalar(axis)}));
}

ValueId AlongAxis(Builder& b, ValueId value, int64_t axis, int64_t rank) {
  std::vector<int64_t> sizes(static_cast<size_t>(rank), 1);
  sizes[static_cast<size_t>(axis)] = -1;
  return b.Op("Reshape", {value, b.Integers(sizes)});
}

Result<Gradients> OfComposition(
    Builder& b, const Inputs& in,
    FunctionRef<std::vector<ValueId>(const std::vector<ValueId>& inputs)> compute) {
  std::vector<ValueId> inputs = in.node.inputs, xs;
  std::vector<std::string> names;
  for (ValueId& input : inputs) {
    if (input == ValueId::kNone || !in.Needs(input)) continue;
    // What leads to dy is not differentiated.
    input = b.Op("Identity", {input});
    b.graph().value(input).type =
        b.graph().value(in.x(static_cast<size_t>(&input - inputs.data()))).type;
    xs.push_back(input);
    names.push_back(b.graph().value(input).name);
  }
  const std::vector<ValueId> outputs = compute(inputs);
  TENON_RETURN_IF_ERROR(CheckOnlyFirst(in, outputs.size()));
  ValueId loss = ValueId::kNone;
  for (size_t i = 0; i < std::min(outputs.size(), in.output_gradients.size()); ++i) {
    const ValueId slope = in.output_gradients[i];
    if (slope == ValueId::kNone) continue;
    const ValueId part =
        b.Op("ReduceSum", {Mul(b, outputs[i], slope)}, Attributes(Int("keepdims", 0)));
    loss = loss == ValueId::kNone ? part : Add(b, loss, part);
  }
  const std::string y = b.graph().value(loss).name;
  const Gradients found =
      b.Ops("Gradient", xs, xs.size(),
            Attributes(Attribute("xs", std::move(names)), Attribute("y", y)), kTraining);
  Gradients all(in.node.inputs.size(), ValueId::kNone);
  size_t next = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (in.x(i) == ValueId::kNone || !in.Needs(in.x(i))) continue;
    b.graph().value(found[next]).type = b.graph().value(in.x(i)).type;
    all[i] = found[next++];
  }
  return all;
}

Result<int64_t> RankOf(const Builder& b, const Inputs& in, ValueId value) {
  const SymbolicShape* shape = b.ShapeOf(value);
  if (shape != nullptr) return static_cast<int64_t>(shape->rank());
  return NotImplemented("{}-{} ({}) has no gradient yet if the rank of its input is unknown",
                        in.node.op_type, in.node.opset, in.node.Describe());
}

Status CheckOnlyFirst(const Inputs& in, size_t first) {
  for (size_t i = first; i < in.output_gradients.size(); ++i) {
    if (in.output_gradients[i] == ValueId::kNone) continue;
    return NotImplemented("{}-{} ({}) has no gradient yet for its output {}", in.node.op_type,
                          in.node.opset, in.node.Describe(), i);
  }
  return OkStatus();
}

Status CheckWithout(Builder& b, const Inputs& in, size_t i, const char* name) {
  if (in.x(i) == ValueId::kNone) return OkStatus();
  return NotImplemented("{}-{} ({}) has no gradient yet with {}: expected no input {}, got '{}'",
                        in.node.op_type, in.node.opset, in.node.Describe(), name, i,
                        b.graph().value(in.x(i)).name);
}

GradientRule FindGradientRule(const Node& node) {
  static const std::span<const NamedGradientRule> kFamilies[] = {
      ElementGradients(),   ActivationGradients(), ShapeGradients(),     ReductionGradients(),
      ProductGradients(),   PoolGradients(),       LayerGradients(),     ImageGradients(),
      SampledGradients(),   ControlGradients(),    SignalGradients(),    QuantizedGradients(),
      RecurrentGradients(), ComposedGradients(),   AttentionGradients(), StateGradients()};
  for (const std::span<const NamedGradientRule> family : kFamilies) {
    const auto found = std::find_if(family.begin(), family.end(), [&](const auto& known) {
      return known.op_type == node.op_type && known.domain == node.domain;
    });
    if (found != family.end()) return node.opset >= found->since ? found->rule : nullptr;
  }
  return nullptr;
}

}  // namespace tenon
