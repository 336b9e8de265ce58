#include "capi/graph/graph_view.h"

#include <algorithm>
#include <set>

#include "capi/boundary/arguments.h"
#include "capi/graph/made_model.h"

OrtGraph::OrtGraph() = default;
OrtGraph::~OrtGraph() = default;

namespace tenon::capi {

GraphView::GraphView(const OrtGraph& handle, const Graph& graph, const Model& model,
                     const OrtNode* parent, const std::vector<NodeId>* nodes)
    : handle_(handle), graph_(graph), model_(model), parent_(parent) {
  for (size_t i = 0; i < graph.value_count(); ++i) {
    const auto id = static_cast<ValueId>(i);
    values_.push_back({graph.value(id).name, graph.value(id).type, this, id});
  }
  SeeNodes(nodes);
  if (nodes == nullptr) {
    SeeWholeInterface();
  } else {
    SeePartialInterface();
  }
}

GraphView::~GraphView() = default;

void GraphView::SeeNodes(const std::vector<NodeId>* nodes) {
  const Result<std::vector<NodeId>> order = graph_.TopologicalOrder();
  if (!order) return;
  for (const NodeId id : *order) {
    const bool is_seen =
        nodes == nullptr || std::find(nodes->begin(), nodes->end(), id) != nodes->end();
    if (!is_seen) continue;
    OrtNode& handle = nodes_[id];
    handle.node = &graph_.node(id);
    handle.view = this;
    node_list_.push_back(&handle);
    for (const Graph* const subgraph : graph_.node(id).Subgraphs()) {
      auto child = std::make_unique<OrtGraph>();
      child->view = std::make_unique<GraphView>(*child, *subgraph, model_, &handle);
      subgraphs_.emplace(subgraph, std::move(child));
    }
  }
}

void GraphView::SeeWholeInterface() {
  for (const ValueId id : graph_.inputs) inputs_.push_back(value(id));
  for (const GraphOutput& output : graph_.outputs()) outputs_.push_back(value(output.value));
  for (const OrtValueInfo& info : values_) {
    if (graph_.value(info.id).initializer.has_value()) initializers_.push_back(&info);
  }
}

// The values that the visible nodes read and do not make, and those of theirs that other nodes
// read.
void GraphView::SeePartialInterface() {
  std::set<ValueId> known;
  for (const OrtNode* const handle : node_list_) {
    for (const ValueId id : handle->node->inputs) {
      if (id == ValueId::kNone || !known.insert(id).second) continue;
      const ValueInfo& info = graph_.value(id);
      if (info.initializer.has_value()) {
        initializers_.push_back(value(id));
      } else if (node(info.producer) == nullptr) {
        inputs_.push_back(value(id));
      }
    }
    for (const ValueId id : handle->node->outputs) {
      if (id == ValueId::kNone) continue;
      const ValueInfo& info = graph_.value(id);
      const bool leaves = info.output_uses > 0 ||
                          std::any_of(info.consumers.begin(), info.consumers.end(),
                                      [&](NodeId consumer) { return node(consumer) == nullptr; });
      if (leaves) outputs_.push_back(value(id));
    }
  }
}

const OrtValueInfo* GraphView::value(ValueId id) const {
  return id == ValueId::kNone ? nullptr : &values_[Index(id)];
}

const OrtNode* GraphView::node(NodeId id) const {
  const auto found = nodes_.find(id);
  return found == nodes_.end() ? nullptr : &found->second;
}

std::vector<GraphView::Use> GraphView::UsesOf(ValueId id) const {
  std::vector<Use> uses;
  std::set<NodeId> known;
  for (const NodeId consumer : graph_.value(id).consumers) {
    const OrtNode* const handle = node(consumer);
    if (handle == nullptr || !known.insert(consumer).second) continue;
    const std::vector<ValueId>& inputs = handle->node->inputs;
    const size_t before = uses.size();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == id) uses.push_back({handle, static_cast<int64_t>(i)});
    }
    if (uses.size() == before) uses.push_back({handle, -1});
  }
  return uses;
}

std::vector<const OrtValueInfo*> GraphView::ImplicitInputsOf(const Node& owner) const {
  std::vector<const OrtValueInfo*> implicit;
  for (const Graph* const subgraph : owner.Subgraphs()) {
    for (const Capture& capture : subgraph->captures) {
      const OrtValueInfo* const outer = value(capture.outer);
      if (std::find(implicit.begin(), implicit.end(), outer) == implicit.end()) {
        implicit.push_back(outer);
      }
    }
  }
  return implicit;
}

std::vector<GraphView::Subgraph> GraphView::SubgraphsOf(const Node& owner) const {
  std::vector<Subgraph> subgraphs;
  for (const Attribute& attribute : owner.attributes) {
    if (const auto* const held = attribute.get<std::unique_ptr<Graph>>()) {
      subgraphs.push_back({attribute.name.c_str(), subgraphs_.at(held->get()).get()});
    } else if (const auto* const list = attribute.get<std::vector<std::unique_ptr<Graph>>>()) {
      for (const auto& held_graph : *list) {
        subgraphs.push_back({attribute.name.c_str(), subgraphs_.at(held_graph.get()).get()});
      }
    }
  }
  return subgraphs;
}

Result<const GraphView*> ViewOfGraph(const OrtGraph* graph) {
  TENON_RETURN_IF_NULL(graph);
  if (graph->view == nullptr) {
    // The graph alone does not know which operator sets its model imports.
    TENON_ASSIGN_OR_RETURN(Model model, ModelOf(*graph->made, {}));
    graph->model = std::make_unique<Model>(std::move(model));
    graph->view = std::make_unique<GraphView>(*graph, *graph->model->graph, *graph->model, nullptr);
  }
  return graph->view.get();
}

}  // namespace tenon::capi
