#include "runtime/provider.h"

#include <utility>

#include "ir/graph.h"
#include "runtime/profiler.h"
#include "runtime/stream.h"

namespace tenon {

FusedNode::FusedNode(NodeId node, std::unique_ptr<Graph> graph)
    : id(node), body(std::move(graph)) {}
FusedNode::FusedNode(FusedNode&&) noexcept = default;
FusedNode& FusedNode::operator=(FusedNode&&) noexcept = default;
FusedNode::~FusedNode() = default;

Status ExecutionProvider::Compile(const Graph&, std::vector<FusedNode>) {
  return NotImplemented("{} cannot compile nodes that it fuses", name());
}

std::unique_ptr<ProviderProfiler> ExecutionProvider::CreateProfiler() { return nullptr; }

Result<std::unique_ptr<Stream>> ExecutionProvider::CreateStream() {
  return NotImplemented("{} has no streams", name());
}

}  // namespace tenon
