// Checks of inputs and their shapes by which a shape function rejects what does not fit together.
#pragma once

#include "ir/shape_context.h"

namespace tenon {

// Whether two dimensions may be the same.
inline bool MayEqual(const Dim& a, const Dim& b) {
  return !a.is_number() || !b.is_number() || a == b;
}

// The same of all dimensions, and equal ranks.
bool MayEqual(const SymbolicShape& a, const SymbolicShape& b);

// That no input from `first` on is left out, as one of many may be by the schema. Error:
// kInvalidArgument.
Status CheckInputsAreThere(const ShapeContext& context, size_t first);

// That input `i` has this shape; an input that is left out passes, and so does what is not known.
// Error: kInvalidArgument naming both shapes.
Status CheckInputShape(const ShapeContext& context, size_t i, const SymbolicShape& expected);

// The same of the number of its elements.
Status CheckElementCount(const ShapeContext& context, size_t i, const Dim& count);

}  // namespace tenon
