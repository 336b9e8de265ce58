// OrtGraph and OrtModel: graphs that clients look at.
#pragma once

#include <onnxruntime_c_api.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capi/graph/made_graph.h"
#include "ir/model.h"

namespace tenon::capi {
class GraphView;
}  // namespace tenon::capi

// Either made by a client or a view.
struct OrtGraph {
  OrtGraph();
  ~OrtGraph();

  std::unique_ptr<tenon::capi::MadeGraph> made;
  bool is_added = false;  // to a model, which owns it
  // Of the view of a subgraph that is not part of another view: a view with the node that owns it.
  std::unique_ptr<OrtGraph> outer;
  // Of a made graph: its view for clients, until it changes again.
  mutable std::unique_ptr<tenon::Model> model;
  mutable std::unique_ptr<tenon::capi::GraphView> view;
};

struct OrtModel {
  tenon::OpsetImports opsets;
  std::unique_ptr<OrtGraph> graph;
};

namespace tenon::capi {

// The handles of a graph: of all of it or of some of its nodes. The graph must not change
// meanwhile.
class GraphView {
 public:
  // `nodes`: the visible ones; null: all. `parent`: the node that has the graph as its subgraph, or
  // null. `provider`: the name of the provider that has the nodes which have one.
  GraphView(const OrtGraph& handle, const Graph& graph, const Model& model, const OrtNode* parent,
            const std::string& provider = "", const std::vector<NodeId>* nodes = nullptr);
  ~GraphView();

  struct Use {
    const OrtNode* node;
    int64_t input;  // -1: by a subgraph
  };
  struct Subgraph {
    const char* attribute;
    const OrtGraph* graph;
  };

  const OrtGraph& handle() const { return handle_; }
  const Graph& graph() const { return graph_; }
  const Model& model() const { return model_; }
  const OrtNode* parent() const { return parent_; }
  const std::string& provider() const { return provider_; }
  const std::vector<const OrtValueInfo*>& inputs() const { return inputs_; }
  const std::vector<const OrtValueInfo*>& outputs() const { return outputs_; }
  const std::vector<const OrtValueInfo*>& initializers() const { return initializers_; }
  // In topological order.
  const std::vector<const OrtNode*>& nodes() const { return node_list_; }

  // Null for kNone.
  const OrtValueInfo* value(ValueId id) const;
  // Null for nodes that are not visible.
  const OrtNode* node(NodeId id) const;
  // The value itself, or that of an outer graph which it stands for.
  const ValueInfo& Origin(ValueId id) const;
  // Whether the value is an initializer, of this graph or an outer one, that no caller replaces.
  bool IsConstant(ValueId id) const;
  std::vector<Use> UsesOf(ValueId id) const;
  // Outer values that the node's subgraphs read.
  std::vector<const OrtValueInfo*> ImplicitInputsOf(const Node& node) const;
  std::vector<Subgraph> SubgraphsOf(const Node& node) const;

 private:
  void SeeNodes(const std::vector<NodeId>* nodes);
  void SeeWholeInterface();
  void SeePartialInterface();
  void AddInput(ValueId id);
  void AddOutput(ValueId id);

  const OrtGraph& handle_;
  const Graph& graph_;
  const Model& model_;
  const OrtNode* const parent_;
  const std::string provider_;
  std::deque<OrtValueInfo> values_;  // by ValueId
  std::map<NodeId, OrtNode> nodes_;
  std::map<const Graph*, std::unique_ptr<OrtGraph>> subgraphs_;
  std::vector<const OrtValueInfo*> inputs_, outputs_, initializers_;
  std::vector<const OrtNode*> node_list_;
};

// The view of a graph. For one that a client makes, it is the view of its present state. Error: the
// reason why it is not a valid graph.
Result<const GraphView*> ViewOfGraph(const OrtGraph* graph);

}  // namespace tenon::capi
