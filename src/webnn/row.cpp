#include "webnn/row.h"

#include "ir/contrib_schema.h"

namespace tenon::webnn {

#define FAMILY(name) extern const std::span<const Row> k##name##Family;
#include "webnn/families.inc"
#undef FAMILY

std::span<const std::span<const Row>> Families() {
  static const std::span<const Row> families[] = {
#define FAMILY(name) k##name##Family,
#include "webnn/families.inc"
#undef FAMILY
  };
  return families;
}

const Row* FindRow(std::string_view domain, std::string_view op) {
  for (const std::span<const Row> family : Families()) {
    for (const Row& row : family) {
      if (row.op == op && row.domain == domain) return &row;
    }
  }
  return nullptr;
}

const Row* FindRow(const Node& node) {
  return FindRow(node.domain == contrib::kInternalNhwc ? "" : node.domain, node.op_type);
}

}  // namespace tenon::webnn
