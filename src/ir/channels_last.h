// Operators on images in two forms: the standard's, with the channels as axis 1 (NCHW), and that of
// domain com.ms.internal.nhwc, with the channels as the last axis (NHWC). Both have the same
// weights.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"
#include "ir/permutation.h"

namespace tenon {

// Whether a node of the standard can have the other form: its operator has one, its image has a
// known rank of 3 or more, and no output depends on the order of the axes, as positions in
// MaxPool's `Indices` do. Of a Resize, sizes and scales must be constants.
bool MayPutChannelsLast(const Graph& graph, const Node& node);

// Whether a node has the channels-last form and can be given the standard's.
bool MayPutChannelsFirst(const Graph& graph, const Node& node);

// Changes the form of nodes in one graph, with Transposes around them.
class ChannelLayout {
 public:
  // Settle may move Transposes across `nodes`, and remove those among them.
  ChannelLayout(Graph& graph, std::span<const NodeId> nodes);

  // Converts the node, which must be able to have the form. Values keep their ids and types.
  void PutChannelsLast(NodeId id) { Turn(id, true); }
  void PutChannelsFirst(NodeId id) { Turn(id, false); }

  // Moves the added Transposes after nodes that accept any order of axes (Relu, Add, Concat), and
  // removes pairs that cancel each other.
  void Settle();

 private:
  enum class Role : uint8_t { kNone, kGiven, kAdded };

  Role RoleOf(NodeId id) const;
  void Turn(NodeId id, bool to_last);
  void TurnResize(Node& node, const Permutation& permutation);
  ValueId Transposed(ValueId value, const Permutation& permutation, const Node& neighbour);
  void TransposeOutput(Node& node, const Permutation& permutation);
  void AddTranspose(ValueId from, ValueId to, const Permutation& permutation,
                    const Node& neighbour);
  const Node* InnerTranspose(ValueId value, Role least) const;
  Permutation CommonPermutation(const Node& node) const;
  void SinkInto(Node& node);
  void MergeWithInner(Node& transpose);
  void DropUnused();

  Graph& graph_;
  std::vector<Role> roles_;  // by node
};

// Gives the nodes of `graph` itself that no provider owns the standard's form, if they can have it,
// and settles. Returns their number.
size_t PutUnownedChannelsFirst(Graph& graph);

}  // namespace tenon
