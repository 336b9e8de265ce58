// Which nodes of a model became one.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tenon {

// What a node of the model is called.
struct NodeLabel {
  std::string name, domain, op_type;
};
// The nodes that became one, by the name of that one.
using FusedNodes = std::map<std::string, std::vector<NodeLabel>>;

}  // namespace tenon
