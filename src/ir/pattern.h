// Patterns of nodes, for rewrite rules.
//
//   const Pattern x = Any("x");
//   Op("Mul", {x, Op("Sigmoid", {x})})              // x * sigmoid(x), the factors in any order
//   Op("Mul", {OpOf({"Add", "Sub"}, {x, Scalar(1)}).As("sum"), Constant("scale")})
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace tenon {

// A pattern of a value. Immutable; copies share. Each function below makes one. Names are not
// copied, so they must be literals.
class Pattern {
 public:
  // Refinements of a node pattern; each returns the refined copy.

  // Binds the node to a name, with which a rule reads its attributes.
  Pattern As(std::string_view node_name) const;
  // The node's domain; ai.onnx by default.
  Pattern In(std::string_view domain) const;
  // The attribute, or its default in the schema, has this value.
  Pattern With(std::string_view attribute, int64_t value) const;
  Pattern With(std::string_view attribute, std::string_view value) const;
  Pattern Where(std::function<bool(const Node&)> condition) const;
  // Inputs after those of the pattern may be present. Otherwise they must be absent.
  Pattern WithMoreInputs() const;
  // The node's outputs may have uses outside the match; the node then stays for them. Otherwise a
  // pattern with such a node inside does not match.
  Pattern Shared() const;
  // The value is this output of the node, not the first.
  Pattern Output(size_t index) const;

 private:
  friend Pattern Any(std::string_view);
  friend Pattern Maybe(std::string_view);
  friend Pattern Constant(std::string_view, std::function<bool(const Tensor&)>);
  friend Pattern Scalar(double);
  friend Pattern Scalar(std::string_view);
  friend Pattern ExactScalar(double);
  friend Pattern OneOf(std::vector<Pattern>);
  friend Pattern OpOf(std::vector<std::string_view>, std::vector<Pattern>);
  friend void CollectOperators(const Pattern&, std::set<std::string_view>&);
  friend class Matcher;
  friend class RuleSet;

  enum class Kind { kAny, kMaybe, kConstant, kScalar, kOneOf, kNode };
  struct Spec;
  explicit Pattern(std::shared_ptr<const Spec> spec) : spec_(std::move(spec)) {}
  template <class Edit>
  Pattern Refined(Edit edit) const;

  std::shared_ptr<const Spec> spec_;
};

// Any value, bound to a name. A name that occurs twice is the same value both times.
Pattern Any(std::string_view name);
// The same, or an absent optional input.
Pattern Maybe(std::string_view name);
// A dense constant that satisfies the condition.
Pattern Constant(std::string_view name, std::function<bool(const Tensor&)> condition = nullptr);
// A constant with one element, which does not raise the rank of the other operand: near `value`
// (see IsScalarNear), or any, bound to a name.
Pattern Scalar(double value);
Pattern Scalar(std::string_view name);
// Exactly `value`, for rules that remove an operation.
Pattern ExactScalar(double value);
// The first pattern that matches.
Pattern OneOf(std::vector<Pattern> alternatives);
// A node of this operator with these inputs, at most 16. The two inputs of a commutative operator,
// such as Add, are tried in both orders.
Pattern Op(std::string_view op_type, std::vector<Pattern> inputs);
// The same for any of several operators, of which some may be commutative.
Pattern OpOf(std::vector<std::string_view> op_types, std::vector<Pattern> inputs);

// Adds the operators of a pattern's nodes.
void CollectOperators(const Pattern& pattern, std::set<std::string_view>& op_types);

}  // namespace tenon
