// What the fusions of quantized operators share: results with an activation, which bounds them,
// before a QuantizeLinear.
#pragma once

#include <cstdint>
#include <optional>
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

// The value that the pattern names "bias", one number for each of `channels` sums of products of A
// and B, as integers of their scale times `factor`; nothing if it is unknown, or so large that a
// sum might not fit 32 bits. Channels whose weights are all but zero have such a bias, in steps
// that are all but zero, too: it is cut where no result can tell.
std::optional<std::vector<int32_t>> IntegerBias(const Match& match, int64_t channels,
                                                double factor = 1);
// Whether there is one, or there is no bias.
bool HasIntegerBias(const Match& match, int64_t channels, double factor = 1);

}  // namespace tenon
