// Factors of a convolution's weights, one for each output channel, from a normalization or scale
// after it. They are stored in an attribute of its node and applied when the weights are packed, so
// that creating a session does not copy the model's weights.
#pragma once

#include <string_view>

#include "base/status.h"
#include "ir/graph.h"

namespace tenon {

inline constexpr TypeSet kFoldableWeights = {DataType::kFloat, DataType::kFloat16};

// Floats, as many as the weights have output channels; only at nodes with constant weights of these
// types.
constexpr std::string_view kWeightsScale = "weights_scale";

// Multiplies the weights of all remaining Conv and FusedConv with factors, whose kernels read the
// weights in place; other operators keep theirs. Those with float16 weights lose their schema,
// which has operands of one type. Error: no memory.
Status FoldWeightScales(Graph& graph);

}  // namespace tenon
