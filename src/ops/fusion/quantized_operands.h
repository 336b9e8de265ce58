// What the fusions of quantized operators share: results with an activation, which bounds them,
// before a QuantizeLinear.
#pragma once

#include <vector>

#include "ir/quantized_patterns.h"
#include "ops/fusion/fusion.h"

namespace tenon {

// A QuantizeLinear of `x`, also of an activation of it: see Bounded.
std::vector<Pattern> QuantizedOrActivated(const Pattern& x);

// Whether the root is a QuantizeLinear to int8 or uint8 with one scale, and the activation, if
// there is one, is Relu or Clip: the results are then bounded.
bool QuantizesOrBounds(const Match& match);
// `y`, quantized and saturated, within those bounds.
ValueId Bounded(Replacement& r, ValueId y);

}  // namespace tenon
