// Checks of inputs and their shapes, with which a shape function rejects contradictions.
#pragma once

#include "ir/shape_context.h"

namespace tenon {

// Whether two dimensions may be the same.
inline bool MayEqual(const Dim& a, const Dim& b) {
  return !a.is_number() || !b.is_number() || a == b;
}

// The same of all dimensions, and equal ranks.
bool MayEqual(const SymbolicShape& a, const SymbolicShape& b);

// Checks that all inputs from `first` on are present; the schema lets one of many be absent. Error:
// kInvalidArgument.
Status CheckInputsAreThere(const ShapeContext& context, size_t first);

// Checks that input `i` has this shape; an absent input passes, and so do unknown sizes. Error:
// kInvalidArgument naming both shapes.
Status CheckInputShape(const ShapeContext& context, size_t i, const SymbolicShape& expected);

// The same of the number of its elements.
Status CheckElementCount(const ShapeContext& context, size_t i, const Dim& count);

// Checks that input `i` has this element type, or none that is known.
Status CheckElementType(const ShapeContext& context, size_t i, DataType type);

// Checks that inputs `first` to `last`, if they are floats, are all of doubles or none is: a kernel
// computes in one type, and narrower ones are widened to float at most.
Status CheckDoubles(const ShapeContext& context, size_t first, size_t last);

}  // namespace tenon
