// Models whose compiled parts are nodes of the operator EPContext (com.microsoft, version 1).
#pragma once

#include <onnxruntime_c_api.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/string_map.h"
#include "capi/graph/graph_view.h"
#include "ir/model.h"

struct OrtSessionOptions;

namespace tenon::capi {

// The metadata entry of a compiled model with one provider's compatibility information.
std::string CompatibilityKey(std::string_view provider);

// Whether the node is of the operator EPContext.
bool IsContextNode(const Node& node);

// Collects the parts that the plugins of one session contribute to its compiled model.
class ContextModel {
 public:
  // A provider's compatibility information for a graph that it compiles; "" for none.
  using Describe = std::function<Result<std::string>(const Graph& graph)>;

  // Adds a provider.
  void AddProvider(std::string name, Describe describe);
  // Takes the node that replaces the fused node of that name. Error: kFail for null, a node that
  // was not made with OrtModelEditorApi, and one of another operator.
  Status AddNode(const std::string& provider, const std::string& fused, OrtNode* node);
  bool has_nodes() const { return !nodes_.empty(); }

  // Keeps the model, and the providers' information about it, before they get any node.
  Status Begin(const Model& optimized);
  // The compiled model: `partitioned` with context nodes in place of fused ones; the model from
  // Begin if nothing was compiled. Error: kFail for a context node that reads or makes values that
  // do not exist.
  Result<Model> Finish(const Model& partitioned) const;

 private:
  struct ReleaseNode {
    void operator()(OrtNode* node) const;
  };

  Status PutNodesInto(Graph& graph) const;
  Status Replace(Graph& graph, NodeId fused, const OrtNode& by) const;

  std::vector<std::pair<std::string, Describe>> providers_;
  std::map<std::string, std::unique_ptr<OrtNode, ReleaseNode>> nodes_;  // by fused node
  Metadata compatibility_;
  Model plain_;
};

// The default path of the compiled model for a model at `model_path`: "model.onnx" becomes
// "model_ctx.onnx".
std::string DefaultContextPath(const std::string& model_path);

// Adds a sink that writes a compiled model if the entries "ep.context_*" request one and the
// options have no sink yet. Error: kFail if its file exists already or if there is no path for it.
Status PrepareContextModel(const std::string& model_path, OrtSessionOptions& options);

// A copy of `options` for one session, whose providers take part in a context model if it has a
// sink for one. Null if `options` need no copy.
std::shared_ptr<OrtSessionOptions> WithContextModel(const OrtSessionOptions& options);

}  // namespace tenon::capi
