// Operators that only scale and shift each channel of an image: normalizations by given statistics,
// and constants per channel.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace tenon {

// y = scale x + shift per channel.
struct ChannelAffine {
  std::vector<double> scale, shift;
};

// Whether the tensor is there and has `size` floats in one axis.
bool IsFloatVector(const Tensor* tensor, int64_t size);

// Of a BatchNormalization of so many channels whose other inputs are constants, if it does not
// compute statistics.
std::optional<ChannelAffine> AffineOfNormalization(const Graph& graph, const Node& node,
                                                   int64_t channels);

// One number per channel from a float constant that broadcasts to [N, channels, ...] of `rank`
// along the channels alone, e.g. of shape [channels, 1, 1].
std::optional<std::vector<double>> PerChannel(const Tensor& constant, size_t rank,
                                              int64_t channels);

// Of any node that does nothing else to its input of `image`, which has so many channels and `rank`
// axes.
std::optional<ChannelAffine> AffineOf(const Graph& graph, const Node& node, size_t image,
                                      size_t rank, int64_t channels);

}  // namespace tenon
