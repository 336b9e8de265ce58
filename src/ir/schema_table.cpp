// The tables of all schemas, and how one is found.
#include <algorithm>
#include <array>
#include <bit>
#include <tuple>

#include "ir/contrib_schema.h"
#include "ir/schema.h"

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
#include "ir/contrib_training_schemas.inc"
// After the quantized ones, some of which it repeats.
#include "ir/contrib_nhwc_schemas.inc"

constexpr std::span<const OpSchema> kTables[] = {
    kAttentionSchemas, kFusedSchemas,  kGenerationSchemas, kNhwcSchemas,
    kQuantizedSchemas, kTensorSchemas, kTrainingSchemas,   kContribStandardSchemas};

constexpr bool HasNhwcForm(const OpSchema& schema) {
  return schema.domain.empty() && std::find(std::begin(kNhwcNames), std::end(kNhwcNames),
                                            schema.name) != std::end(kNhwcNames);
}

constexpr OpSchema NhwcForm(OpSchema schema) {
  schema.function_body = {};
  return InDomain(kInternalNhwc, schema);
}

}  // namespace
}  // namespace contrib

namespace {

constexpr size_t kSchemaCount = [] {
  size_t count =
      std::size(kSchemas) + static_cast<size_t>(std::count_if(
                                std::begin(kSchemas), std::end(kSchemas), contrib::HasNhwcForm));
  for (const auto table : contrib::kTables) count += table.size();
  return count;
}();

// All tables, sorted by domain, name, since.
constexpr auto kAllSchemas = [] {
  std::array<OpSchema, kSchemaCount> all;
  auto end = std::copy(std::begin(kSchemas), std::end(kSchemas), all.begin());
  for (const OpSchema& schema : kSchemas) {
    if (contrib::HasNhwcForm(schema)) *end++ = contrib::NhwcForm(schema);
  }
  for (const auto table : contrib::kTables) end = std::copy(table.begin(), table.end(), end);
  const auto key = [](const OpSchema& schema) {
    return std::tuple(schema.domain, schema.name, schema.since);
  };
  std::sort(all.begin(), all.end(),
            [&](const OpSchema& a, const OpSchema& b) { return key(a) < key(b); });
  return all;
}();

constexpr uint32_t HashOf(std::string_view name) {
  uint32_t hash = 0x811c9dc5;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x01000193;
  return hash;
}

// The schemas of one operator in kAllSchemas; none for an empty entry of a hash table.
struct OperatorVersions {
  uint16_t first = 0, count = 0;
};
static_assert(kSchemaCount <= UINT16_MAX);

constexpr bool IsSameOperator(const OpSchema& a, const OpSchema& b) {
  return a.name == b.name && a.domain == b.domain;
}

// At least two places for each operator.
constexpr size_t kOperatorPlaces = std::bit_ceil(2 * kSchemaCount);

// By name: an operator is in the first free entry from its hash on.
constexpr auto kOperators = [] {
  std::array<OperatorVersions, kOperatorPlaces> places;
  for (uint16_t first = 0, end = 0; first < kSchemaCount; first = end) {
    end = first;
    while (end < kSchemaCount && IsSameOperator(kAllSchemas[first], kAllSchemas[end])) ++end;
    size_t place = HashOf(kAllSchemas[first].name) % kOperatorPlaces;
    while (places[place].count > 0) place = (place + 1) % kOperatorPlaces;
    places[place] = {first, static_cast<uint16_t>(end - first)};
  }
  return places;
}();

}  // namespace

const OpSchema* FindSchema(std::string_view domain, std::string_view name, int32_t version) {
  const OpSchema* found = nullptr;
  for (const OpSchema& schema : SchemasOf(domain, name)) {
    if (schema.since <= version) found = &schema;
  }
  return found;
}

std::span<const OpSchema> AllSchemas() { return kAllSchemas; }

std::span<const OpSchema> SchemasOf(std::string_view domain, std::string_view name) {
  size_t place = HashOf(name) % kOperatorPlaces;
  for (; kOperators[place].count > 0; place = (place + 1) % kOperatorPlaces) {
    const OpSchema* const first = &kAllSchemas[kOperators[place].first];
    if (first->name == name && first->domain == domain) return {first, kOperators[place].count};
  }
  return {};
}

int32_t NewestOpset(std::string_view domain) {
  for (const DomainVersion& newest : kNewestOpsets) {
    if (newest.domain == domain) return newest.version;
  }
  if (domain == contrib::kMicrosoft || domain == contrib::kTenon) return 1;
  // Its versions are the standard's.
  if (domain == contrib::kInternalNhwc) return NewestOpset("");
  return 0;
}

}  // namespace tenon
