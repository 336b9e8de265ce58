// Moves nodes of a graph into a separate graph.
#pragma once

#include <memory>
#include <span>

#include "ir/graph.h"

namespace tenon {

struct Extraction {
  // The node that replaces the others, without attributes and schema.
  NodeId call = NodeId::kNone;
  // The nodes, with copies of their attributes. Its first inputs and its outputs are those of
  // `call`; its initializers are the constants that the nodes read, shared with the graph.
  std::unique_ptr<Graph> body;
};

struct ExtractionSpec {
  std::string op_type;
  std::string domain;
  std::string name;
  int32_t provider = kNoProvider;
  // Constants are also inputs of the call, after the others. Otherwise only the body has them.
  bool constants_are_inputs = true;
};

// Replaces `nodes` by one. Its inputs are the outside values that they read, in the order of their
// first use; its outputs are the values that other nodes, or the graph's caller, read. Errors:
// kInvalidGraph, with the graph unchanged, for an empty list, a node that is not in the graph or is
// there twice, and for a node outside on a path from one of them to another.
Result<Extraction> ExtractNodes(Graph& graph, std::span<const NodeId> nodes,
                                const ExtractionSpec& spec);

// Undoes ExtractNodes.
Status PutBack(Graph& graph, const Extraction& extraction);

}  // namespace tenon
