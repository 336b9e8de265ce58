#include "ir/value_names.h"

#include <algorithm>

namespace tenon {

ValueNames::ValueNames(const Graph& graph, const ValueNames* outer)
    : outer_(outer), names_(graph.value_count()) {
  const auto value = [&](size_t i) -> const ValueInfo& {
    return graph.value(static_cast<ValueId>(i));
  };
  for (const Capture& capture : graph.captures) Assign(capture.inner, (*outer)[capture.outer]);
  if (outer == nullptr) {
    for (size_t i = 0; i < names_.size(); ++i) {
      const bool is_known_outside = value(i).is_input || value(i).initializer.has_value();
      if (is_known_outside) Assign(static_cast<ValueId>(i), value(i).name);
    }
    NameOutputs(graph);
  }
  for (size_t i = 0; i < names_.size(); ++i) {
    if (names_[i].empty()) Assign(static_cast<ValueId>(i), Unused(value(i).name));
  }
  if (outer != nullptr) NameInnerOutputs(graph);
}

const std::string& ValueNames::operator[](ValueId id) const {
  static const std::string& none = *new std::string();
  return id == ValueId::kNone ? none : names_[Index(id)];
}

bool ValueNames::IsTaken(const std::string& name) const {
  return taken_.contains(name) || (outer_ != nullptr && outer_->IsTaken(name));
}

void ValueNames::Assign(ValueId id, std::string name) {
  taken_.insert(name);
  names_[Index(id)] = std::move(name);
}

std::string ValueNames::Unused(std::string_view hint) const {
  const std::string stem(hint.empty() ? "value" : hint);
  std::string candidate = stem;
  for (size_t n = names_.size(); IsTaken(candidate); ++n) candidate = Format("{}_{}", stem, n);
  return candidate;
}

void ValueNames::NameOutputs(const Graph& graph) {
  for (const GraphOutput& output : graph.outputs()) {
    const bool is_free = names_[Index(output.value)].empty() && !IsTaken(output.name);
    if (is_free) Assign(output.value, output.name);
    const bool needs_identity = names_[Index(output.value)] != output.name;
    if (needs_identity) taken_.insert(output.name);
    outputs_.push_back({output.name, needs_identity});
  }
}

void ValueNames::NameInnerOutputs(const Graph& graph) {
  std::unordered_set<std::string> given;
  for (const Capture& capture : graph.captures) given.insert(names_[Index(capture.inner)]);
  for (const GraphOutput& output : graph.outputs()) {
    const std::string& name = (*this)[output.value];
    const bool is_new = given.insert(name).second;
    outputs_.push_back({is_new ? name : Unused(output.name), !is_new});
    taken_.insert(outputs_.back().name);
  }
}

}  // namespace tenon
