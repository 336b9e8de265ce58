#include "ir/pattern_spec.h"

#include <algorithm>
#include <functional>

#include "ir/schema.h"

namespace tenon {
namespace {

bool IsCommutative(std::string_view op_type) {
  constexpr std::string_view kCommutative[] = {"Add", "And", "Equal", "Max", "Min",
                                               "Mul", "Or",  "Sum",   "Xor"};
  return std::find(std::begin(kCommutative), std::end(kCommutative), op_type) !=
         std::end(kCommutative);
}

const OpAttribute* FormalOf(const Node& node, std::string_view attribute) {
  const OpAttribute* formal = node.schema ? node.schema->FindAttribute(attribute) : nullptr;
  return formal && formal->has_default ? formal : nullptr;
}

}  // namespace

template <class Edit>
Pattern Pattern::Refined(Edit edit) const {
  auto refined = std::make_shared<Spec>(*spec_);
  edit(*refined);
  return Pattern(std::move(refined));
}

Pattern Pattern::As(std::string_view node_name) const {
  return Refined([&](Spec& spec) { spec.name = node_name; });
}
Pattern Pattern::In(std::string_view domain) const {
  return Refined([&](Spec& spec) { spec.domain = domain; });
}
Pattern Pattern::Where(std::function<bool(const Node&)> condition) const {
  return Refined([&](Spec& spec) { spec.node_conditions.push_back(std::move(condition)); });
}
Pattern Pattern::With(std::string_view attribute, int64_t value) const {
  return Where([attribute, value](const Node& node) {
    const OpAttribute* formal = FormalOf(node, attribute);
    // Without a default, nothing equals an absent attribute.
    return node.GetInt(attribute, formal ? formal->default_int : ~value) == value;
  });
}
Pattern Pattern::With(std::string_view attribute, std::string_view value) const {
  return Where([attribute, value](const Node& node) {
    const OpAttribute* formal = FormalOf(node, attribute);
    if (!formal && !node.FindAttribute(attribute)) return false;
    return node.GetString(attribute, formal ? formal->default_string : "") == value;
  });
}
Pattern Pattern::WithMoreInputs() const {
  return Refined([](Spec& spec) { spec.takes_more_inputs = true; });
}
Pattern Pattern::Shared() const {
  return Refined([](Spec& spec) { spec.is_shared = true; });
}
Pattern Pattern::Output(size_t index) const {
  return Refined([index](Spec& spec) { spec.output = index; });
}

Pattern Any(std::string_view name) {
  return Pattern(
      std::make_shared<Pattern::Spec>(Pattern::Spec{.kind = Pattern::Kind::kAny, .name = name}));
}
Pattern Maybe(std::string_view name) {
  return Pattern(
      std::make_shared<Pattern::Spec>(Pattern::Spec{.kind = Pattern::Kind::kMaybe, .name = name}));
}
Pattern Constant(std::string_view name, std::function<bool(const Tensor&)> condition) {
  return Pattern(std::make_shared<Pattern::Spec>(Pattern::Spec{
      .kind = Pattern::Kind::kConstant, .name = name, .tensor_condition = std::move(condition)}));
}
Pattern Scalar(double value) {
  return Pattern(std::make_shared<Pattern::Spec>(
      Pattern::Spec{.kind = Pattern::Kind::kScalar, .scalar = value}));
}
Pattern Scalar(std::string_view name) {
  return Pattern(
      std::make_shared<Pattern::Spec>(Pattern::Spec{.kind = Pattern::Kind::kScalar, .name = name}));
}
Pattern ExactScalar(double value) {
  return Scalar(value).Refined([](Pattern::Spec& spec) { spec.is_exact = true; });
}
Pattern OneOf(std::vector<Pattern> alternatives) {
  return Pattern(std::make_shared<Pattern::Spec>(
      Pattern::Spec{.kind = Pattern::Kind::kOneOf, .alternatives = std::move(alternatives)}));
}
Pattern Op(std::string_view op_type, std::vector<Pattern> inputs) {
  return OpOf({op_type}, std::move(inputs));
}
Pattern OpOf(std::vector<std::string_view> op_types, std::vector<Pattern> inputs) {
  Pattern::Spec spec{.kind = Pattern::Kind::kNode};
  const auto commutative =
      std::stable_partition(op_types.begin(), op_types.end(), std::not_fn(IsCommutative));
  spec.commutative_from =
      inputs.size() == 2 ? static_cast<size_t>(commutative - op_types.begin()) : op_types.size();
  spec.op_types = std::move(op_types);
  spec.inputs = std::move(inputs);
  return Pattern(std::make_shared<Pattern::Spec>(std::move(spec)));
}

void CollectOperators(const Pattern& pattern, std::set<std::string_view>& op_types) {
  const Pattern::Spec& spec = *pattern.spec_;
  op_types.insert(spec.op_types.begin(), spec.op_types.end());
  for (const Pattern& input : spec.inputs) CollectOperators(input, op_types);
  for (const Pattern& alternative : spec.alternatives) CollectOperators(alternative, op_types);
}

}  // namespace tenon
