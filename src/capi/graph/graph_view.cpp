#include "capi/graph/graph_view.h"

#include <algorithm>
#include <set>

#include "capi/boundary/arguments.h"
#include "capi/graph/made_model.h"
#include "ir/default_attribute.h"

OrtGraph::OrtGraph() = default;
OrtGraph::~OrtGraph() = default;

namespace tenon::capi {
namespace {

std::vector<Attribute> DefaultAttributesOf(const Node& node) {
  std::vector<Attribute> defaults;
  if (node.schema == nullptr) return defaults;
  for (const OpAttribute& formal : node.schema->attributes) {
    if (!formal.has_default || node.FindAttribute(formal.name) != nullptr) continue;
    defaults.push_back(DefaultOf(formal));
  }
  return defaults;
}

}  // namespace

GraphView::GraphView(const OrtGraph& handle, const Graph& graph, const Model& model,
                     const OrtNode* parent, const std::string& provider,
                     const std::vector<NodeId>* nodes)
    : handle_(handle), graph_(graph), model_(model), parent_(parent), provider_(provider) {
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
    handle.defaults = DefaultAttributesOf(*handle.node);
    node_list_.push_back(&handle);
    for (const Graph* const subgraph : graph_.node(id).Subgraphs()) {
      auto child = std::make_unique<OrtGraph>();
      child->view = std::make_unique<GraphView>(*child, *subgraph, model_, &handle, provider_);
      subgraphs_.emplace(subgraph, std::move(child));
    }
  }
}

void GraphView::SeeWholeInterface() {
  for (const ValueId id : graph_.inputs) AddInput(id);
  for (const GraphOutput& output : graph_.outputs()) AddOutput(output.value);
  for (const OrtValueInfo& info : values_) {
    if (graph_.value(info.id).initializer.has_value()) initializers_.push_back(&info);
  }
}

void GraphView::AddInput(ValueId id) {
  values_[Index(id)].is_view_input = true;
  inputs_.push_back(value(id));
}

void GraphView::AddOutput(ValueId id) {
  values_[Index(id)].is_view_output = true;
  outputs_.push_back(value(id));
}

// The values that the visible nodes read and do not make, those of the graph's inputs at their
// places among these, and values of theirs that other nodes read.
void GraphView::SeePartialInterface() {
  std::set<ValueId> known;
  std::vector<std::pair<size_t, ValueId>> inputs;
  const auto see = [&](ValueId id) {
    if (id == ValueId::kNone || !known.insert(id).second) return;
    const ValueInfo& info = graph_.value(id);
    if (info.initializer.has_value()) initializers_.push_back(value(id));
    if (IsConstant(id) || node(info.producer) != nullptr) return;
    const auto place = std::find(graph_.inputs.begin(), graph_.inputs.end(), id);
    inputs.emplace_back(place == graph_.inputs.end()
                            ? inputs.size()
                            : static_cast<size_t>(place - graph_.inputs.begin()),
                        id);
  };
  for (const OrtNode* const handle : node_list_) {
    for (const ValueId id : handle->node->inputs) see(id);
    for (const OrtValueInfo* const implicit : ImplicitInputsOf(*handle->node)) see(implicit->id);
    for (const ValueId id : handle->node->outputs) {
      if (id == ValueId::kNone) continue;
      const ValueInfo& info = graph_.value(id);
      const bool leaves = info.output_uses > 0 ||
                          std::any_of(info.consumers.begin(), info.consumers.end(),
                                      [&](NodeId consumer) { return node(consumer) == nullptr; });
      if (leaves) AddOutput(id);
    }
  }
  std::stable_sort(inputs.begin(), inputs.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [place, id] : inputs) AddInput(id);
}

const OrtValueInfo* GraphView::value(ValueId id) const {
  return id == ValueId::kNone ? nullptr : &values_[Index(id)];
}

const OrtNode* GraphView::node(NodeId id) const {
  const auto found = nodes_.find(id);
  return found == nodes_.end() ? nullptr : &found->second;
}

const ValueInfo& GraphView::Origin(ValueId id) const {
  const auto capture = std::find_if(graph_.captures.begin(), graph_.captures.end(),
                                    [&](const Capture& held) { return held.inner == id; });
  if (parent_ == nullptr || capture == graph_.captures.end()) return graph_.value(id);
  return parent_->view->Origin(capture->outer);
}

bool GraphView::IsConstant(ValueId id) const {
  // Since this version of the format a caller may replace an initializer that is an input as well.
  constexpr int64_t kFirstWithDefaults = 4;
  const ValueInfo& origin = Origin(id);
  return origin.initializer.has_value() &&
         (!origin.is_input || model_.ir_version < kFirstWithDefaults);
}

std::vector<GraphView::Use> GraphView::UsesOf(ValueId id) const {
  std::vector<Use> uses;
  std::set<NodeId> known;
  for (const NodeId consumer : graph_.value(id).consumers) {
    const OrtNode* const handle = node(consumer);
    if (handle == nullptr || !known.insert(consumer).second) continue;
    const std::vector<ValueId>& inputs = handle->node->inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == id) uses.push_back({handle, static_cast<int64_t>(i)});
    }
    const std::vector<const OrtValueInfo*> implicit = ImplicitInputsOf(*handle->node);
    if (std::find(implicit.begin(), implicit.end(), value(id)) != implicit.end()) {
      uses.push_back({handle, -1});
    }
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
