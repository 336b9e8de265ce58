// Moves regions of a graph into another layout of images.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace tenon {

enum class LayoutRole {
  kConv,
  kMaxPool,
  kAveragePool,
  kGlobalAveragePool,
  kAsItIs,
  kChannelAffine,  // see ops/conv/channel_affine.h; its image is the first of `inputs`
  kConcat,
  kSplit,  // along the channels
  kResize  // along H and W
};

// How a node can work in the layout.
struct LayoutCandidate {
  LayoutRole role = LayoutRole::kAsItIs;
  std::vector<size_t> inputs;  // those that must be in the layout; the others stay
  double gain = 0;             // estimated, in nanoseconds of one run
  size_t outputs = 1;          // that will be in the layout: all that are used
};

// A layout and the operators that work in it. Standard images are [N, C, H, W].
class ImageLayout {
 public:
  virtual ~ImageLayout() = default;

  // For names of values and for RewriteLimit.
  virtual std::string_view name() const = 0;

  // The form of `node` in the layout, or nothing. `is_there` says whether a value will be available
  // in the layout.
  virtual std::optional<LayoutCandidate> Find(
      const Graph& graph, const Node& node, const std::function<bool(ValueId)>& is_there) const = 0;

  // Estimated nanoseconds to change the layout of a value of this type once.
  virtual double ReorderCost(const ValueType& standard) const = 0;

  // The type of a value in the layout.
  virtual ValueType TypeOf(const ValueType& standard) const = 0;

  // Makes the node, whose inputs are in the layout, the operator for its role there. `standard`:
  // the type of its first output before.
  virtual void Convert(Graph& graph, Node& node, const LayoutCandidate& candidate,
                       const ValueType& standard) const = 0;

  // Operator, domain, opset and attributes of the nodes that bring a value of this type into the
  // layout, and back.
  virtual NodeSpec ReorderInto(const ValueType& standard) const = 0;
  virtual NodeSpec ReorderBack(const ValueType& standard) const = 0;
};

// Converts nodes of `provider` in `graph` and its subgraphs. A region of connected nodes is
// converted if the estimated gain exceeds the cost of the reorders at its borders. Types must have
// been inferred; those of new values are set.
void UseLayout(Graph& graph, int32_t provider, const ImageLayout& layout);

}  // namespace tenon
