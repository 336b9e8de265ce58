#include "ops/framework/registry.h"

#include <bit>
#include <functional>
#include <limits>
#include <vector>

#include "ir/graph.h"

namespace tenon {

#define FAMILY(name) extern const std::span<const OpRow> k##name##Family;
#include "ops/framework/families.inc"
#undef FAMILY

namespace {

// The rows of all families by operator: a hash table of lists. Made at the first use, in some ten
// microseconds.
class RowTable {
 public:
  struct Entry {
    const OpRow* row;
    Entry* later;  // of the same operator, with the same or a greater since; null at the end
  };

  RowTable() {
    size_t count = 0;
    for (const std::span<const OpRow> family : OpFamilies()) count += family.size();
    entries_.reserve(count);
    places_.resize(std::bit_ceil(2 * count));
    for (const std::span<const OpRow> family : OpFamilies()) {
      for (const OpRow& row : family) Add(row);
    }
  }

  // The operator's entry with the least since; null if it has none.
  const Entry* Find(std::string_view domain, std::string_view op_type) const {
    return places_[PlaceOf(domain, op_type)];
  }

 private:
  // The place where the operator is, or would be.
  size_t PlaceOf(std::string_view domain, std::string_view op_type) const {
    const size_t mask = places_.size() - 1;
    size_t place = std::hash<std::string_view>()(op_type) & mask;
    while (places_[place] && !IsOf(*places_[place]->row, domain, op_type)) {
      place = (place + 1) & mask;
    }
    return place;
  }

  static bool IsOf(const OpRow& row, std::string_view domain, std::string_view op_type) {
    return row.name == op_type && row.options.domain == domain;
  }

  void Add(const OpRow& row) {
    Entry** link = &places_[PlaceOf(row.options.domain, row.name)];
    while (*link && (*link)->row->options.since <= row.options.since) link = &(*link)->later;
    entries_.push_back({&row, *link});
    *link = &entries_.back();
  }

  std::vector<Entry> entries_;  // never reallocated
  std::vector<Entry*> places_;  // a power of two
};

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
#include "ops/framework/families.inc"
  };
#undef FAMILY
  return families;
}

const OpRow* FindOpRow(std::string_view domain, std::string_view op_type, int32_t opset,
                       DataType type) {
  static const auto* const table = new RowTable();
  const OpRow* best = nullptr;
  for (const RowTable::Entry* entry = table->Find(domain, op_type); entry; entry = entry->later) {
    const OpRow* const row = entry->row;
    if (row->options.since > opset) break;
    // A later row replaces all earlier ones; rows of one version may split the types among them.
    const bool same_version = best && best->options.since == row->options.since;
    const bool takes_type = type == DataType::kUndefined || row->options.types.Contains(type);
    if (takes_type) {
      best = row;
    } else if (!same_version) {
      best = nullptr;
    }
  }
  return best;
}

bool HasOpRow(std::string_view domain, std::string_view op_type, DataType type) {
  return FindOpRow(domain, op_type, std::numeric_limits<int32_t>::max(), type) != nullptr;
}

DataType TypeOfRow(const Graph& graph, const Node& node) {
  const OpRow* any = FindOpRow(node.domain, node.op_type, node.opset, DataType::kUndefined);
  if (any == nullptr) return DataType::kUndefined;
  const size_t input = any->options.typed_input;
  if (node.has_input(input)) return graph.value(node.inputs[input]).type.element_type;
  return node.has_output(0) ? graph.value(node.outputs[0]).type.element_type : DataType::kUndefined;
}

const OpRow* FindOpRow(const Graph& graph, const Node& node) {
  const OpRow* any = FindOpRow(node.domain, node.op_type, node.opset, DataType::kUndefined);
  if (any == nullptr) return nullptr;
  const DataType type = TypeOfRow(graph, node);
  const OpRow* const row =
      FindOpRow(node.domain, node.op_type, node.opset,
                type == DataType::kUndefined ? DataType::kFloat : type);  // in nearly all cases
  return row == nullptr && type == DataType::kUndefined ? any : row;
}

const ShapeFunctionTable& OpShapeFunctions() {
  static const auto* const table = new RowShapeFunctions();
  return *table;
}

}  // namespace tenon
