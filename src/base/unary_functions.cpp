#include "base/unary_functions.h"

namespace tenon {
std::optional<UnaryOp> FindUnaryOp(std::string_view name) {
  for (size_t i = 0; i < kUnaryOpCount; ++i) {
    const auto op = static_cast<UnaryOp>(i);
    if (InfoOf(op).name == name) return op;
  }
  return std::nullopt;
}

std::optional<UnaryOp> FindUnaryOperator(std::string_view domain, std::string_view op_type) {
  if (domain.empty()) {
    const std::optional<UnaryOp> op = FindUnaryOp(op_type);
    return op && InfoOf(*op).is_operator ? op : std::nullopt;
  }
  if (domain != "com.microsoft") return std::nullopt;
  for (const UnaryAlias& alias : kUnaryAliases) {
    if (alias.op_type == op_type) return alias.op;
  }
  return std::nullopt;
}

}  // namespace tenon
