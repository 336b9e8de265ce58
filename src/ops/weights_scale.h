// Factors of a convolution's weights, one for each output channel, that a normalization or scale
// after it left behind. They wait in an attribute of its node, so that whoever packs the weights
// multiplies as it does so: the model's weights are not copied when a session is created.
#pragma once

#include <span>
#include <string_view>

#include "base/status.h"
#include "ir/graph.h"
#include "tensor/tensor.h"

namespace tenon {

// Floats, as many as the weights have output channels; only at nodes with constant float weights.
constexpr std::string_view kWeightsScale = "weights_scale";

// Writes channels [begin, end) of `weights`, [channels, ...] floats aligned or not, times their
// factors to where they are in `scaled`, which has the size of the weights.
void ScaleChannels(const Tensor& weights, std::span<const float> factors, size_t begin, size_t end,
                   float* scaled);

// Multiplies the weights of all Conv and FusedConv that are left with factors, whose kernels read
// the weights as they are; other operators keep theirs. Error: no memory.
Status FoldWeightScales(Graph& graph);

}  // namespace tenon
