// Shape inference that needs more than a node: that of operators which a table of functions cannot
// know before it runs.
#pragma once

#include "ir/shape_context.h"

namespace tenon {

// A table that infers the nodes for which Find gives no function itself.
class OtherShapes : public ShapeFunctionTable {
 public:
  // As a ShapeFunction; sets types and shapes of outputs where it can.
  virtual Status InferOther(const Node& node, ShapeContext& context) const = 0;
};

}  // namespace tenon
