// The assignment of nodes to providers, in the ABI's form.
#pragma once

#include <onnxruntime_c_api.h>

#include <deque>
#include <string>
#include <vector>

struct OrtEpAssignedNode {
  std::string name;
  std::string domain;
  std::string op_type;
};

struct OrtEpAssignedSubgraph {
  std::string ep_name;
  std::deque<OrtEpAssignedNode> nodes;
  std::vector<const OrtEpAssignedNode*> node_handles;
};

namespace tenon {
class Session;
}  // namespace tenon

namespace tenon::capi {

// Subgraphs in the order of their providers: the nodes of the model that a provider fused into one,
// or a node that was assigned alone, as it was before its provider rewrote its nodes.
class AssignedNodes {
 public:
  void Record(const Session& session);
  bool is_recorded() const { return is_recorded_; }
  const std::vector<const OrtEpAssignedSubgraph*>& subgraphs() const { return handles_; }

 private:
  bool is_recorded_ = false;
  std::deque<OrtEpAssignedSubgraph> subgraphs_;
  std::vector<const OrtEpAssignedSubgraph*> handles_;
};

}  // namespace tenon::capi
