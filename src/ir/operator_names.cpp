#include "ir/operator_names.h"

#include "ir/schema.h"

namespace tenon {

std::vector<std::string> OperatorNames(std::string_view domain) {
  std::vector<std::string> names;
  for (const OpSchema& schema : AllSchemas()) {
    const bool is_new = names.empty() || names.back() != schema.name;
    if (schema.domain == domain && is_new) names.emplace_back(schema.name);
  }
  return names;
}

}  // namespace tenon
