// The parts of a pattern.
#pragma once

#include "ir/pattern.h"

namespace tenon {

struct Pattern::Spec {
  Kind kind = Kind::kAny;
  std::string_view name;  // of the value, or of the node
  std::function<bool(const Tensor&)> tensor_condition;
  std::optional<double> scalar;
  bool is_exact = false;  // of `scalar`
  std::vector<Pattern> alternatives;

  std::vector<std::string_view> op_types;  // those that commute come last
  std::string_view domain;
  std::vector<Pattern> inputs;
  std::vector<std::function<bool(const Node&)>> node_conditions;
  size_t commutative_from = 0;  // the first of op_types whose inputs may be swapped
  bool takes_more_inputs = false;
  bool is_shared = false;
  size_t output = 0;
};

}  // namespace tenon
