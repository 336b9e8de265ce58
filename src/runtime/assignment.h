// Which provider runs which nodes of a model.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tenon {

// Names one node of the model.
struct NodeLabel {
  std::string name, domain, op_type;
};
// The nodes that were fused, by the name of the fused node.
using FusedNodes = std::map<std::string, std::vector<NodeLabel>>;

// A node that a provider runs, or the nodes that it fused into one.
struct AssignedGroup {
  int32_t provider;
  std::vector<NodeLabel> nodes;
};
using Assignment = std::vector<AssignedGroup>;

}  // namespace tenon
