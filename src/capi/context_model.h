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
#include "capi/graph_view.h"
#include "ir/model.h"

struct OrtSessionOptions;

namespace tenon::capi {

// The metadata entry of a compiled model that says what it was compiled for, for one provider.
std::string CompatibilityKey(std::string_view provider);

// Whether the node is of the operator EPContext.
bool IsContextNode(const Node& node);

// What the plugins of one session contribute to its compiled model while it is made.
class ContextModel {
 public:
  // What a provider says of a graph that it compiles, to know the compiled model again; "" for
  // nothing.
  using Describe = std::function<Result<std::string>(const Graph& graph)>;

  // Names a provider that takes part.
  void AddProvider(std::string name, Describe describe);
  // Takes the node that stands for the fused node of that name. Error: kFail for null, a node that
  // was not made with OrtModelEditorApi, and one of another operator.
  Status AddNode(const std::string& provider, const std::string& fused, OrtNode* node);
  bool has_nodes() const { return !nodes_.empty(); }

  // Remembers the model, and what the providers say of it, before they get any node.
  Status Begin(const Model& optimized);
  // The compiled model: `partitioned` with context nodes in the place of fused ones; what Begin was
  // given if nothing was compiled. Error: kFail for a context node that reads or makes other values
  // than there are.
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

// Where the compiled model of a model at `model_path` goes by default: "model.onnx" becomes
// "model_ctx.onnx".
std::string DefaultContextPath(const std::string& model_path);

// Has the options write a compiled model where their entries "ep.context_*" want one and they have
// no sink yet. Error: kFail if its file exists already or there is no place for it.
Status PrepareContextModel(const std::string& model_path, OrtSessionOptions& options);

// A copy of `options` for one session, whose providers take part in a context model if it has a
// sink for one. Null if `options` need no copy.
std::shared_ptr<OrtSessionOptions> WithContextModel(const OrtSessionOptions& options);

}  // namespace tenon::capi
