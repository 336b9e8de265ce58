#include "ir/schema.h"

#include <algorithm>
#include <utility>

namespace tenon {
namespace {

struct DomainVersion {
  std::string_view domain;
  int32_t version;
};

// clang-format off
#include "ir/schema_data.inc"
#include "ir/schema_functions.inc"
#include "ir/schema_table.inc"
// clang-format on

// Orders schemas of one operator together, and operators of one domain together.
struct ByOperator {
  using Key = std::pair<std::string_view, std::string_view>;  // domain, name
  static Key KeyOf(const OpSchema& schema) { return {schema.domain, schema.name}; }
  bool operator()(const OpSchema& a, const Key& b) const { return KeyOf(a) < b; }
  bool operator()(const Key& a, const OpSchema& b) const { return a < KeyOf(b); }
};

}  // namespace

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

const OpSchema* FindSchema(std::string_view domain, std::string_view name, int32_t version) {
  const OpSchema* found = nullptr;
  for (const OpSchema& schema : SchemasOf(domain, name)) {
    if (schema.since <= version) found = &schema;
  }
  return found;
}

std::span<const OpSchema> AllSchemas() { return kSchemas; }

std::span<const OpSchema> SchemasOf(std::string_view domain, std::string_view name) {
  const auto [first, last] = std::equal_range(std::begin(kSchemas), std::end(kSchemas),
                                              ByOperator::Key{domain, name}, ByOperator());
  return {first, last};
}

int32_t NewestOpset(std::string_view domain) {
  for (const DomainVersion& newest : kNewestOpsets) {
    if (newest.domain == domain) return newest.version;
  }
  return 0;
}

}  // namespace tenon
