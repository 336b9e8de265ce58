// Split and Resize of images [N, C, H, W] in other layouts.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Whether the node is a Split along the channels all of whose outputs are used.
bool IsChannelSplit(const Node& node);

// Gives a Split of images pieces of these sizes along `axis` of the layout.
void SplitAt(Graph& graph, Node& node, int64_t axis, const std::vector<int64_t>& sizes);

// Whether the node is a Resize along H and W alone whose scales or sizes are constant.
bool IsSpatialResize(const Graph& graph, const Node& node);

// Makes such a node one of a layout whose axes H and W are `height_axis` and the next one.
void ResizeAt(Graph& graph, Node& node, int64_t height_axis);

}  // namespace tenon
