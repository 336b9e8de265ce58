#include "ir/unknown_operator.h"

#include <string_view>
#include <vector>

#include "base/text.h"
#include "ir/schema.h"

namespace tenon {
namespace {

// The operators of `domain` that the table knows, sorted.
std::vector<std::string> OperatorNames(std::string_view domain) {
  std::vector<std::string> names;
  for (const OpSchema& schema : AllSchemas()) {
    const bool is_new = names.empty() || names.back() != schema.name;
    if (schema.domain == domain && is_new) names.emplace_back(schema.name);
  }
  return names;
}

}  // namespace

std::string WhyUnknown(const Node& node) {
  const std::string_view domain = node.domain.empty() ? "ai.onnx" : std::string_view(node.domain);
  if (const auto versions = SchemasOf(node.domain, node.op_type); !versions.empty()) {
    return Format("exists since opset {} of domain '{}'; the model imports opset {}",
                  versions.front().since, domain, node.opset);
  }
  return Format("{}:{}(-1) is not a registered function/op{}", domain, node.op_type,
                DidYouMean(node.op_type, OperatorNames(node.domain)));
}

StatusCode CodeOfUnknown(const Node& node) {
  // Others have names that begin alike, as ai.onnx.contrib.
  const bool is_of_onnx = node.domain.empty() || (node.domain.starts_with("ai.onnx") &&
                                                  !OperatorNames(node.domain).empty());
  return is_of_onnx ? StatusCode::kInvalidGraph : StatusCode::kFail;
}

}  // namespace tenon
