// Factors of a convolution's weights, one for each output channel, that a normalization or scale
// after it left behind. They wait in an attribute of its node, so that whoever packs the weights
// multiplies as it does so: the model's weights are not copied when a session is created.
#pragma once

#include <string_view>

#include "base/status.h"
#include "ir/graph.h"

namespace tenon {

// Floats, as many as the weights have output channels; only at nodes with constant float weights.
constexpr std::string_view kWeightsScale = "weights_scale";

// Multiplies the weights of all Conv and FusedConv that are left with factors, whose kernels read
// the weights as they are; other operators keep theirs. Error: no memory.
Status FoldWeightScales(Graph& graph);

}  // namespace tenon
