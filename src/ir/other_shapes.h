// Shape inference that needs more than a node, for operators that are not in a static table of
// functions.
#pragma once

#include "ir/shape_context.h"

namespace tenon {

// A table that infers nodes for which Find returns no function.
class OtherShapes : public ShapeFunctionTable {
 public:
  // A ShapeFunction; sets types and shapes of outputs if it can.
  virtual Status InferOther(const Node& node, ShapeContext& context) const = 0;
};

}  // namespace tenon
