// Which provider runs which node.
#pragma once

#include <memory>
#include <span>

#include "base/logging.h"
#include "runtime/provider.h"

namespace tenon {

// Asks each provider in turn which of the nodes that nobody owns it wants, subgraphs included, and
// sets Node::provider. A node that nobody wants keeps -1.
// A provider whose GetCapability fails is logged and gets nothing of that graph.
Status AssignNodes(Graph& graph, std::span<const std::unique_ptr<ExecutionProvider>> providers,
                   const Logger& logger);

// Error kNotImplemented naming the first node without an owner, and why nobody could take it.
Status CheckAllAssigned(const Graph& graph);

}  // namespace tenon
