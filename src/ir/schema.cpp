#include "ir/schema.h"

#include <algorithm>

namespace tenon {

const OpAttribute* OpSchema::FindAttribute(std::string_view attribute_name) const {
  const auto found = std::lower_bound(
      attributes.begin(), attributes.end(), attribute_name,
      [](const OpAttribute& a, std::string_view wanted) { return a.name < wanted; });
  return found != attributes.end() && found->name == attribute_name ? &*found : nullptr;
}

const OpTypeConstraint* OpSchema::FindConstraint(std::string_view constraint_name) const {
  for (const OpTypeConstraint& constraint : constraints) {
    if (constraint.name == constraint_name) return &constraint;
  }
  return nullptr;
}

}  // namespace tenon
