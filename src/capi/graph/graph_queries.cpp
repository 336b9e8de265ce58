// Queries of clients and providers about graphs, nodes and values.
#include <algorithm>
#include <memory>
#include <utility>

#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/graph/external_initializer.h"
#include "capi/graph/graph_view.h"
#include "capi/graph/metadata.h"
#include "ir/schema.h"

namespace tenon::capi {
namespace {

// Runs `body` on the view of a graph.
template <class Body>
OrtStatus* OfGraph(const OrtGraph* graph, const void* out, Body&& body) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(graph);
    TENON_RETURN_IF_NULL(out);
    TENON_ASSIGN_OR_RETURN(const GraphView* const view, ViewOfGraph(graph));
    return body(*view);
  });
}

template <class Body>
OrtStatus* OfNode(const OrtNode* node, const void* out, Body&& body) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(node);
    TENON_RETURN_IF_NULL(out);
    return body(*node->node);
  });
}

// The same for properties that only nodes in graphs have.
template <class Body>
OrtStatus* OfPlacedNode(const OrtNode* node, const void* out, Body&& body) noexcept {
  return OfNode(node, out, [&](const Node& held) -> Status {
    if (node->view == nullptr) return InvalidArgument("the node has been made, and is in no graph");
    return body(held, *node->view);
  });
}

template <class Body>
OrtStatus* OfPlacedValue(const OrtValueInfo* value, const void* out, Body&& body) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(value);
    TENON_RETURN_IF_NULL(out);
    if (value->view == nullptr) {
      return InvalidArgument("value '{}' has been made, and is in no graph", value->name);
    }
    return body(value->view->graph().value(value->id), *value->view);
  });
}

// Represents an array of `count` entries in the checks above: without entries it may be null.
const void* Room(const void* array, size_t count) {
  static constexpr char kNoEntries = 0;
  return count == 0 ? &kNoEntries : array;
}

// Copies a list of handles into the client's array, which may have more room.
template <class List, class Out>
Status CopyHandles(const List& list, Out* out, size_t count) {
  if (count < list.size()) {
    return InvalidArgument("there are {} of them, got room for {}", list.size(), count);
  }
  std::copy(list.begin(), list.end(), out);
  return OkStatus();
}

using ValueList = const std::vector<const OrtValueInfo*>& (GraphView::*)() const;

OrtStatus* GetCount(const OrtGraph* graph, ValueList values, size_t* out) noexcept {
  return OfGraph(graph, out, [&](const GraphView& view) -> Status {
    *out = (view.*values)().size();
    return OkStatus();
  });
}

OrtStatus* GetList(const OrtGraph* graph, ValueList values, const OrtValueInfo** out,
                   size_t count) noexcept {
  return OfGraph(graph, Room(out, count), [&](const GraphView& view) -> Status {
    return CopyHandles((view.*values)(), out, count);
  });
}

OrtStatus* GetText(const OrtNode* node, std::string Node::*field, const char** out) noexcept {
  return OfNode(node, out, [&](const Node& held) -> Status {
    *out = (held.*field).c_str();
    return OkStatus();
  });
}

std::vector<const OrtValueInfo*> HandlesOf(const GraphView& view, const std::vector<ValueId>& ids) {
  std::vector<const OrtValueInfo*> handles;
  for (const ValueId id : ids) handles.push_back(view.value(id));
  return handles;
}

}  // namespace

OrtStatus* GetValueInfoName(const OrtValueInfo* value_info, const char** name) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(value_info);
    TENON_RETURN_IF_NULL(name);
    *name = value_info->name.c_str();
    return OkStatus();
  });
}

OrtStatus* GetValueInfoTypeInfo(const OrtValueInfo* value_info,
                                const OrtTypeInfo** type_info) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(value_info);
    TENON_RETURN_IF_NULL(type_info);
    *type_info = Wrap<OrtTypeInfo>(&value_info->type);
    return OkStatus();
  });
}

OrtStatus* ValueInfo_GetValueProducer(const OrtValueInfo* value_info, const OrtNode** producer_node,
                                      size_t* producer_output_index) noexcept {
  return OfPlacedValue(value_info, producer_node,
                       [&](const ValueInfo& info, const GraphView& view) -> Status {
                         *producer_node = view.node(info.producer);
                         if (producer_output_index != nullptr) {
                           *producer_output_index = static_cast<size_t>(info.output_index);
                         }
                         return OkStatus();
                       });
}

OrtStatus* ValueInfo_GetValueNumConsumers(const OrtValueInfo* value_info,
                                          size_t* num_consumers) noexcept {
  return OfPlacedValue(value_info, num_consumers,
                       [&](const ValueInfo&, const GraphView& view) -> Status {
                         *num_consumers = view.UsesOf(value_info->id).size();
                         return OkStatus();
                       });
}

OrtStatus* ValueInfo_GetValueConsumers(const OrtValueInfo* value_info, const OrtNode** nodes,
                                       int64_t* input_indices, size_t num_consumers) noexcept {
  return OfPlacedValue(value_info, Room(nodes, num_consumers),
                       [&](const ValueInfo&, const GraphView& view) -> Status {
                         TENON_RETURN_IF_NULL_ARRAY(input_indices, num_consumers);
                         const std::vector<GraphView::Use> uses = view.UsesOf(value_info->id);
                         if (num_consumers < uses.size()) {
                           return InvalidArgument("there are {} consumers, got room for {}",
                                                  uses.size(), num_consumers);
                         }
                         for (size_t i = 0; i < uses.size(); ++i) {
                           nodes[i] = uses[i].node;
                           input_indices[i] = uses[i].input;
                         }
                         return OkStatus();
                       });
}

OrtStatus* ValueInfo_GetInitializerValue(const OrtValueInfo* value_info,
                                         const OrtValue** initializer_value) noexcept {
  return OfPlacedValue(
      value_info, initializer_value, [&](const ValueInfo&, const GraphView& view) -> Status {
        const Value& initializer = view.Origin(value_info->id).initializer;
        *initializer_value = initializer.has_value() ? Wrap<OrtValue>(&initializer) : nullptr;
        return OkStatus();
      });
}

OrtStatus* ValueInfo_GetExternalInitializerInfo(const OrtValueInfo* value_info,
                                                OrtExternalInitializerInfo** info) noexcept {
  return OfPlacedValue(value_info, info, [&](const ValueInfo&, const GraphView& view) -> Status {
    const Value& initializer = view.Origin(value_info->id).initializer;
    *info = initializer.is_tensor()
                ? NewExternalInitializerInfo(view.model(), initializer.tensor()).release()
                : nullptr;
    return OkStatus();
  });
}

OrtStatus* ValueInfo_IsRequiredGraphInput(const OrtValueInfo* value_info,
                                          bool* is_required_graph_input) noexcept {
  return OfPlacedValue(
      value_info, is_required_graph_input, [&](const ValueInfo& info, const GraphView&) -> Status {
        *is_required_graph_input = value_info->is_view_input && !info.initializer.has_value();
        return OkStatus();
      });
}

OrtStatus* ValueInfo_IsOptionalGraphInput(const OrtValueInfo* value_info,
                                          bool* is_optional_graph_input) noexcept {
  return OfPlacedValue(
      value_info, is_optional_graph_input, [&](const ValueInfo&, const GraphView& view) -> Status {
        *is_optional_graph_input =
            view.Origin(value_info->id).initializer.has_value() && !view.IsConstant(value_info->id);
        return OkStatus();
      });
}

OrtStatus* ValueInfo_IsGraphOutput(const OrtValueInfo* value_info, bool* is_graph_output) noexcept {
  return OfPlacedValue(value_info, is_graph_output,
                       [&](const ValueInfo&, const GraphView&) -> Status {
                         *is_graph_output = value_info->is_view_output;
                         return OkStatus();
                       });
}

OrtStatus* ValueInfo_IsConstantInitializer(const OrtValueInfo* value_info,
                                           bool* is_constant_initializer) noexcept {
  return OfPlacedValue(value_info, is_constant_initializer,
                       [&](const ValueInfo&, const GraphView& view) -> Status {
                         *is_constant_initializer = view.IsConstant(value_info->id);
                         return OkStatus();
                       });
}

OrtStatus* ValueInfo_IsFromOuterScope(const OrtValueInfo* value_info,
                                      bool* is_from_outer_scope) noexcept {
  return OfPlacedValue(
      value_info, is_from_outer_scope, [&](const ValueInfo&, const GraphView& view) -> Status {
        const std::vector<Capture>& captures = view.graph().captures;
        *is_from_outer_scope =
            std::any_of(captures.begin(), captures.end(),
                        [&](const Capture& capture) { return capture.inner == value_info->id; });
        return OkStatus();
      });
}

OrtStatus* Graph_GetName(const OrtGraph* graph, const char** graph_name) noexcept {
  return OfGraph(graph, graph_name, [&](const GraphView& view) -> Status {
    *graph_name = view.graph().name.c_str();
    return OkStatus();
  });
}

OrtStatus* Graph_GetModelPath(const OrtGraph* graph, const ORTCHAR_T** model_path) noexcept {
  return OfGraph(graph, model_path, [&](const GraphView& view) -> Status {
    *model_path = view.model().path.c_str();
    return OkStatus();
  });
}

OrtStatus* Graph_GetModelMetadata(const OrtGraph* graph, OrtModelMetadata** out) noexcept {
  return OfGraph(graph, out, [&](const GraphView& view) -> Status {
    *out = NewModelMetadata(view.model());
    return OkStatus();
  });
}

OrtStatus* Graph_GetOnnxIRVersion(const OrtGraph* graph, int64_t* onnx_ir_version) noexcept {
  return OfGraph(graph, onnx_ir_version, [&](const GraphView& view) -> Status {
    *onnx_ir_version = view.model().ir_version;
    return OkStatus();
  });
}

OrtStatus* Graph_GetNumOperatorSets(const OrtGraph* graph, size_t* num_operator_sets) noexcept {
  return OfGraph(graph, num_operator_sets, [&](const GraphView& view) -> Status {
    *num_operator_sets = view.model().opsets.size();
    return OkStatus();
  });
}

OrtStatus* Graph_GetOperatorSets(const OrtGraph* graph, const char** domains,
                                 int64_t* opset_versions, size_t num_operator_sets) noexcept {
  return OfGraph(graph, Room(domains, num_operator_sets), [&](const GraphView& view) -> Status {
    TENON_RETURN_IF_NULL_ARRAY(opset_versions, num_operator_sets);
    const OpsetImports& opsets = view.model().opsets;
    if (num_operator_sets < opsets.size()) {
      return InvalidArgument("there are {} operator sets, got room for {}", opsets.size(),
                             num_operator_sets);
    }
    size_t i = 0;
    for (const auto& [domain, version] : opsets) {
      domains[i] = domain.c_str();
      opset_versions[i++] = version;
    }
    return OkStatus();
  });
}

OrtStatus* Graph_GetNumInputs(const OrtGraph* graph, size_t* num_inputs) noexcept {
  return GetCount(graph, &GraphView::inputs, num_inputs);
}
OrtStatus* Graph_GetInputs(const OrtGraph* graph, const OrtValueInfo** inputs,
                           size_t num_inputs) noexcept {
  return GetList(graph, &GraphView::inputs, inputs, num_inputs);
}
OrtStatus* Graph_GetNumOutputs(const OrtGraph* graph, size_t* num_outputs) noexcept {
  return GetCount(graph, &GraphView::outputs, num_outputs);
}
OrtStatus* Graph_GetOutputs(const OrtGraph* graph, const OrtValueInfo** outputs,
                            size_t num_outputs) noexcept {
  return GetList(graph, &GraphView::outputs, outputs, num_outputs);
}
OrtStatus* Graph_GetNumInitializers(const OrtGraph* graph, size_t* num_initializers) noexcept {
  return GetCount(graph, &GraphView::initializers, num_initializers);
}
OrtStatus* Graph_GetInitializers(const OrtGraph* graph, const OrtValueInfo** initializers,
                                 size_t num_initializers) noexcept {
  return GetList(graph, &GraphView::initializers, initializers, num_initializers);
}

OrtStatus* Graph_GetNumNodes(const OrtGraph* graph, size_t* num_nodes) noexcept {
  return OfGraph(graph, num_nodes, [&](const GraphView& view) -> Status {
    *num_nodes = view.nodes().size();
    return OkStatus();
  });
}

OrtStatus* Graph_GetNodes(const OrtGraph* graph, const OrtNode** nodes, size_t num_nodes) noexcept {
  return OfGraph(graph, Room(nodes, num_nodes), [&](const GraphView& view) -> Status {
    return CopyHandles(view.nodes(), nodes, num_nodes);
  });
}

OrtStatus* Graph_GetParentNode(const OrtGraph* graph, const OrtNode** node) noexcept {
  return OfGraph(graph, node, [&](const GraphView& view) -> Status {
    *node = view.parent();
    return OkStatus();
  });
}

OrtStatus* Graph_GetGraphView(const OrtGraph* src_graph, const OrtNode** nodes, size_t num_nodes,
                              OrtGraph** dst_graph) noexcept {
  return OfGraph(src_graph, dst_graph, [&](const GraphView& view) -> Status {
    TENON_RETURN_IF_NULL(nodes);
    if (num_nodes == 0) return InvalidArgument("a view needs a node");
    std::vector<NodeId> ids;
    for (size_t i = 0; i < num_nodes; ++i) {
      if (nodes[i] == nullptr || nodes[i]->view != &view) {
        return InvalidArgument("nodes[{}] is no node of the graph", i);
      }
      ids.push_back(nodes[i]->node->id);
    }
    auto part = std::make_unique<OrtGraph>();
    part->view = std::make_unique<GraphView>(*part, view.graph(), view.model(), view.parent(),
                                             view.provider(), &ids);
    *dst_graph = part.release();
    return OkStatus();
  });
}

OrtStatus* Node_GetId(const OrtNode* node, size_t* node_id) noexcept {
  return OfPlacedNode(node, node_id, [&](const Node& held, const GraphView&) -> Status {
    *node_id = Index(held.id);
    return OkStatus();
  });
}

OrtStatus* Node_GetName(const OrtNode* node, const char** node_name) noexcept {
  return GetText(node, &Node::name, node_name);
}
OrtStatus* Node_GetOperatorType(const OrtNode* node, const char** operator_type) noexcept {
  return GetText(node, &Node::op_type, operator_type);
}
OrtStatus* Node_GetDomain(const OrtNode* node, const char** domain_name) noexcept {
  return GetText(node, &Node::domain, domain_name);
}

OrtStatus* Node_GetSinceVersion(const OrtNode* node, int* since_version) noexcept {
  return OfNode(node, since_version, [&](const Node& held) -> Status {
    *since_version = held.schema != nullptr ? held.schema->since : held.opset;
    return OkStatus();
  });
}

OrtStatus* Node_GetNumInputs(const OrtNode* node, size_t* num_inputs) noexcept {
  return OfNode(node, num_inputs, [&](const Node& held) -> Status {
    *num_inputs = node->made ? node->input_names.size() : held.inputs.size();
    return OkStatus();
  });
}

OrtStatus* Node_GetInputs(const OrtNode* node, const OrtValueInfo** inputs,
                          size_t num_inputs) noexcept {
  return OfPlacedNode(node, Room(inputs, num_inputs),
                      [&](const Node& held, const GraphView& view) -> Status {
                        return CopyHandles(HandlesOf(view, held.inputs), inputs, num_inputs);
                      });
}

OrtStatus* Node_GetNumOutputs(const OrtNode* node, size_t* num_outputs) noexcept {
  return OfNode(node, num_outputs, [&](const Node& held) -> Status {
    *num_outputs = node->made ? node->output_names.size() : held.outputs.size();
    return OkStatus();
  });
}

OrtStatus* Node_GetOutputs(const OrtNode* node, const OrtValueInfo** outputs,
                           size_t num_outputs) noexcept {
  return OfPlacedNode(node, Room(outputs, num_outputs),
                      [&](const Node& held, const GraphView& view) -> Status {
                        return CopyHandles(HandlesOf(view, held.outputs), outputs, num_outputs);
                      });
}

OrtStatus* Node_GetNumImplicitInputs(const OrtNode* node, size_t* num_implicit_inputs) noexcept {
  return OfPlacedNode(node, num_implicit_inputs,
                      [&](const Node& held, const GraphView& view) -> Status {
                        *num_implicit_inputs = view.ImplicitInputsOf(held).size();
                        return OkStatus();
                      });
}

OrtStatus* Node_GetImplicitInputs(const OrtNode* node, const OrtValueInfo** implicit_inputs,
                                  size_t num_implicit_inputs) noexcept {
  return OfPlacedNode(node, Room(implicit_inputs, num_implicit_inputs),
                      [&](const Node& held, const GraphView& view) -> Status {
                        return CopyHandles(view.ImplicitInputsOf(held), implicit_inputs,
                                           num_implicit_inputs);
                      });
}

OrtStatus* Node_GetNumAttributes(const OrtNode* node, size_t* num_attributes) noexcept {
  return OfNode(node, num_attributes, [&](const Node& held) -> Status {
    *num_attributes = held.attributes.size() + node->defaults.size();
    return OkStatus();
  });
}

OrtStatus* Node_GetAttributes(const OrtNode* node, const OrtOpAttr** attributes,
                              size_t num_attributes) noexcept {
  return OfNode(node, Room(attributes, num_attributes), [&](const Node& held) -> Status {
    std::vector<const OrtOpAttr*> handles;
    for (const auto* const list : {&held.attributes, &node->defaults}) {
      for (const Attribute& attribute : *list) handles.push_back(Wrap<OrtOpAttr>(&attribute));
    }
    return CopyHandles(handles, attributes, num_attributes);
  });
}

OrtStatus* Node_GetAttributeByName(const OrtNode* node, const char* attribute_name,
                                   const OrtOpAttr** attribute) noexcept {
  return OfNode(node, attribute, [&](const Node& held) -> Status {
    TENON_RETURN_IF_NULL(attribute_name);
    *attribute = nullptr;
    for (const auto* const list : {&held.attributes, &node->defaults}) {
      for (const Attribute& found : *list) {
        if (found.name != attribute_name) continue;
        *attribute = Wrap<OrtOpAttr>(&found);
        return OkStatus();
      }
    }
    const bool is_unset = held.schema != nullptr && held.schema->FindAttribute(attribute_name);
    if (is_unset) return OkStatus();
    return NotFound("{} has no attribute '{}'", held.op_type, attribute_name);
  });
}

OrtStatus* Node_GetNumSubgraphs(const OrtNode* node, size_t* num_subgraphs) noexcept {
  return OfNode(node, num_subgraphs, [&](const Node& held) -> Status {
    *num_subgraphs = held.Subgraphs().size();
    return OkStatus();
  });
}

OrtStatus* Node_GetSubgraphs(const OrtNode* node, const OrtGraph** subgraphs, size_t num_subgraphs,
                             const char** attribute_names) noexcept {
  return OfPlacedNode(node, Room(subgraphs, num_subgraphs),
                      [&](const Node& held, const GraphView& view) -> Status {
                        const std::vector<GraphView::Subgraph> all = view.SubgraphsOf(held);
                        if (num_subgraphs < all.size()) {
                          return InvalidArgument("there are {} subgraphs, got room for {}",
                                                 all.size(), num_subgraphs);
                        }
                        for (size_t i = 0; i < all.size(); ++i) {
                          subgraphs[i] = all[i].graph;
                          if (attribute_names != nullptr) attribute_names[i] = all[i].attribute;
                        }
                        return OkStatus();
                      });
}

OrtStatus* Node_GetGraph(const OrtNode* node, const OrtGraph** graph) noexcept {
  return OfNode(node, graph, [&](const Node&) -> Status {
    *graph = node->view == nullptr ? nullptr : &node->view->handle();
    return OkStatus();
  });
}

OrtStatus* Node_GetEpName(const OrtNode* node, const char** out) noexcept {
  return OfNode(node, out, [&](const Node& held) -> Status {
    *out = node->view == nullptr || held.provider < 0 ? "" : node->view->provider().c_str();
    return OkStatus();
  });
}

}  // namespace tenon::capi
