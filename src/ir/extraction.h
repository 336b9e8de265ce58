// Moves nodes of a graph into a graph of their own.
#pragma once

#include <memory>
#include <span>

#include "ir/graph.h"

namespace tenon {

struct Extraction {
  // The node that stands for the others, without attributes and schema.
  NodeId call = NodeId::kNone;
  // The nodes, with copies of their attributes. Its inputs are the first of `call`, its outputs
  // those of `call`; its initializers are the constants that the nodes read, shared with the graph.
  std::unique_ptr<Graph> body;
};

struct ExtractionSpec {
  std::string op_type;
  std::string domain;
  std::string name;
  int32_t provider = -1;
  // Constants are inputs of the call, too, after the others. Else they are the body's alone.
  bool constants_are_inputs = true;
};

// Replaces `nodes` by one. Its inputs are the values from outside that they read, in the order of
// their first use; its outputs those that others, or the graph's caller, read.
// Errors: kInvalidGraph, with the graph as it was, for an empty list, a node that is not in the
// graph or is there twice, and for a node outside that reads what one of them makes and makes what
// another one reads.
Result<Extraction> ExtractNodes(Graph& graph, std::span<const NodeId> nodes,
                                const ExtractionSpec& spec);

// Undoes ExtractNodes.
Status PutBack(Graph& graph, const Extraction& extraction);

}  // namespace tenon
