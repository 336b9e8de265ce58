// Which nodes of a model were fused into one.
#pragma once

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

}  // namespace tenon
