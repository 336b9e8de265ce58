// The shape functions of a session: the built-in ones and those that its providers add.
#pragma once

#include <vector>

#include "ir/shape_context.h"

namespace tenon {

class JoinedShapes final : public ShapeFunctionTable {
 public:
  explicit JoinedShapes(const ShapeFunctionTable* first) : tables_{first} {}
  // Both tables must outlive this object.
  void Add(const ShapeFunctionTable* table) { tables_.push_back(table); }
  bool IsJoined() const { return tables_.size() > 1; }

  // The shape function in the first table that knows the node.
  ShapeFunction Find(const Node& node) const override {
    for (const ShapeFunctionTable* const table : tables_) {
      if (const ShapeFunction function = table->Find(node)) return function;
    }
    return nullptr;
  }

 private:
  std::vector<const ShapeFunctionTable*> tables_;
};

}  // namespace tenon
