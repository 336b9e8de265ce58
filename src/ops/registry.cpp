#include "ops/registry.h"

#include <algorithm>
#include <vector>

namespace tenon {

#define FAMILY(name) extern const std::span<const OpRow> k##name##Family;
#include "ops/families.inc"
#undef FAMILY

namespace {

bool Before(const OpRow* a, const OpRow* b) {
  if (a->name != b->name) return a->name < b->name;
  if (a->options.domain != b->options.domain) return a->options.domain < b->options.domain;
  return a->options.since < b->options.since;
}

// Sorted by name, domain, since. Built at the first use, in some ten microseconds.
const std::vector<const OpRow*>& SortedRows() {
  static const auto* const sorted = [] {
    auto* rows = new std::vector<const OpRow*>();
    for (const std::span<const OpRow> family : OpFamilies()) {
      for (const OpRow& row : family) rows->push_back(&row);
    }
    std::sort(rows->begin(), rows->end(), Before);
    return rows;
  }();
  return *sorted;
}

// The element type that decides which row an operator has.
DataType PrimaryType(const Graph& graph, const Node& node, size_t typed_input) {
  if (node.has_input(typed_input)) {
    return graph.value(node.inputs[typed_input]).type.element_type;
  }
  if (node.has_output(0)) return graph.value(node.outputs[0]).type.element_type;
  return DataType::kUndefined;
}

class RowShapeFunctions final : public ShapeFunctionTable {
 public:
  ShapeFunction Find(const Node& node) const override {
    const OpRow* row = FindOpRow(node.domain, node.op_type, node.opset, DataType::kUndefined);
    return row ? row->infer : nullptr;
  }
};

}  // namespace

std::span<const std::span<const OpRow>> OpFamilies() {
#define FAMILY(name) k##name##Family,
  static const std::span<const OpRow> families[] = {
#include "ops/families.inc"
  };
#undef FAMILY
  return families;
}

const OpRow* FindOpRow(std::string_view domain, std::string_view op_type, int32_t opset,
                       DataType type) {
  OpRow key;
  key.name = op_type;
  key.options.domain = domain;
  key.options.since = 0;
  const auto& rows = SortedRows();
  const OpRow* best = nullptr;
  for (auto row = std::lower_bound(rows.begin(), rows.end(), &key, Before);
       row != rows.end() && (*row)->name == op_type && (*row)->options.domain == domain; ++row) {
    if ((*row)->options.since > opset) break;
    // A later row replaces all earlier ones; rows of one version may split the types among them.
    const bool same_version = best && best->options.since == (*row)->options.since;
    const bool takes_type = type == DataType::kUndefined || (*row)->options.types.Contains(type);
    if (takes_type) {
      best = *row;
    } else if (!same_version) {
      best = nullptr;
    }
  }
  return best;
}

const OpRow* FindOpRow(const Graph& graph, const Node& node) {
  const OpRow* any = FindOpRow(node.domain, node.op_type, node.opset, DataType::kUndefined);
  if (any == nullptr) return nullptr;
  return FindOpRow(node.domain, node.op_type, node.opset,
                   PrimaryType(graph, node, any->options.typed_input));
}

const ShapeFunctionTable& OpShapeFunctions() {
  static const auto* const table = new RowShapeFunctions();
  return *table;
}

}  // namespace tenon
