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

  std::vector<std::string_view> op_types;
  std::string_view domain;
  std::vector<Pattern> inputs;
  std::vector<std::function<bool(const Node&)>> node_conditions;
  bool is_commutative = false;
  bool takes_more_inputs = false;
  bool is_shared = false;
  size_t output = 0;
};

}  // namespace tenon
