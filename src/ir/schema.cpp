#include "ir/schema.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "ir/contrib_schema.h"

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

}  // namespace

namespace contrib {
namespace {

#include "ir/contrib_attention_schemas.inc"
#include "ir/contrib_fused_schemas.inc"
#include "ir/contrib_generation_schemas.inc"
#include "ir/contrib_quantized_schemas.inc"
#include "ir/contrib_standard_schemas.inc"
#include "ir/contrib_tensor_schemas.inc"
// Behind the quantized ones, some of which it repeats.
#include "ir/contrib_nhwc_schemas.inc"

constexpr std::span<const OpSchema> kTables[] = {
    kAttentionSchemas, kFusedSchemas,  kGenerationSchemas,     kNhwcSchemas,
    kQuantizedSchemas, kTensorSchemas, kContribStandardSchemas};

constexpr bool HasNhwcForm(const OpSchema& schema) {
  return schema.domain.empty() &&
         std::ranges::find(kNhwcNames, schema.name) != std::end(kNhwcNames);
}

constexpr OpSchema NhwcForm(OpSchema schema) {
  schema.function_body = {};
  return InDomain(kInternalNhwc, schema);
}

}  // namespace
}  // namespace contrib

namespace {

constexpr size_t kSchemaCount = [] {
  size_t count = std::size(kSchemas) +
                 static_cast<size_t>(std::ranges::count_if(kSchemas, contrib::HasNhwcForm));
  for (const auto table : contrib::kTables) count += table.size();
  return count;
}();

// All tables, sorted by domain, name, since.
constexpr auto kAllSchemas = [] {
  std::array<OpSchema, kSchemaCount> all;
  auto end = std::ranges::copy(kSchemas, all.begin()).out;
  for (const OpSchema& schema : kSchemas) {
    if (contrib::HasNhwcForm(schema)) *end++ = contrib::NhwcForm(schema);
  }
  for (const auto table : contrib::kTables) end = std::ranges::copy(table, end).out;
  std::ranges::sort(all, {}, [](const OpSchema& schema) {
    return std::tuple(schema.domain, schema.name, schema.since);
  });
  return all;
}();

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

std::span<const OpSchema> AllSchemas() { return kAllSchemas; }

std::span<const OpSchema> SchemasOf(std::string_view domain, std::string_view name) {
  const auto [first, last] = std::equal_range(kAllSchemas.begin(), kAllSchemas.end(),
                                              ByOperator::Key{domain, name}, ByOperator());
  return {first, last};
}

int32_t NewestOpset(std::string_view domain) {
  for (const DomainVersion& newest : kNewestOpsets) {
    if (newest.domain == domain) return newest.version;
  }
  if (domain == contrib::kMicrosoft) return 1;
  // Its versions are the standard's.
  if (domain == contrib::kInternalNhwc) return NewestOpset("");
  return 0;
}

}  // namespace tenon
