// OrtModelEditorApi: models from scratch, and sessions whose models are changed before they run.
#include <algorithm>
#include <memory>
#include <utility>

#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/graph/graph_view.h"
#include "capi/graph/made_model.h"
#include "capi/options/session_options.h"
#include "capi/session/open_session.h"
#include "capi/session/session_handle.h"
#include "capi/value/element_type.h"
#include "capi/value/tensor_arguments.h"

namespace tenon::capi {
namespace {

// As onnxruntime: smaller tensors are part of the model.
constexpr size_t kLeastExternalBytes = 128;

std::string CanonicalDomain(const char* domain) {
  const std::string name = domain == nullptr ? "" : domain;
  return name == "ai.onnx" ? "" : name;
}

OrtStatus* NewType(const void* argument, OrtTypeInfo** type_info,
                   FunctionRef<Result<ValueType>()> make) noexcept {
  return AtBoundary([&]() -> Status {
    if (argument == nullptr) return InvalidArgument("the type must not be null");
    TENON_RETURN_IF_NULL(type_info);
    TENON_ASSIGN_OR_RETURN(ValueType type, make());
    *type_info = NewHandle<OrtTypeInfo>(std::move(type));
    return OkStatus();
  });
}

Status CheckTexts(const char* const* texts, size_t count, const char* what) {
  if (texts == nullptr && count != 0) return InvalidArgument("{} must not be null", what);
  for (size_t i = 0; i < count; ++i) {
    if (texts[i] == nullptr) return InvalidArgument("{}[{}] must not be null", what, i);
  }
  return OkStatus();
}

// A graph that may be changed.
Result<MadeGraph*> Changing(OrtGraph* graph) {
  TENON_RETURN_IF_NULL(graph);
  if (graph->made == nullptr) return InvalidArgument("a view of a graph cannot be changed");
  graph->view.reset();
  graph->model.reset();
  return graph->made.get();
}

// The graph owns the values from now on, so the caller's pointers to them become null.
OrtStatus* SetValues(OrtGraph* graph, OrtValueInfo** values, size_t count,
                     std::vector<std::unique_ptr<OrtValueInfo>> MadeGraph::*list,
                     bool MadeGraph::*is_set) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_ASSIGN_OR_RETURN(MadeGraph* const made, Changing(graph));
    TENON_RETURN_IF_NULL_ARRAY(values, count);
    for (size_t i = 0; i < count; ++i) {
      if (values[i] == nullptr) return InvalidArgument("value {} must not be null", i);
      if (values[i]->view != nullptr) return InvalidArgument("value {} is one of a view", i);
      if (values[i]->is_added) {
        return InvalidArgument("value '{}' has already been added to a graph", values[i]->name);
      }
      if (std::find(values, values + i, values[i]) != values + i) {
        return InvalidArgument("Duplicate value '{}': it is also at index {}", values[i]->name,
                               std::find(values, values + i, values[i]) - values);
      }
    }
    auto& owned = made->*list;
    owned.clear();
    owned.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      owned.emplace_back(std::exchange(values[i], nullptr))->is_added = true;
    }
    made->*is_set = true;
    return OkStatus();
  });
}

template <class Source>
Status MakeEditedSession(const OrtEnv* env, const Source& source, const OrtSessionOptions* options,
                         OrtSession** out) {
  TENON_RETURN_IF_NULL(env);
  TENON_RETURN_IF_NULL(out);
  const OrtSessionOptions defaults;
  TENON_ASSIGN_OR_RETURN(Model model, LoadModel(source, options == nullptr ? defaults : *options));
  auto handle = std::make_unique<OrtSession>();
  handle->environment = env->shared;
  handle->edited = std::make_unique<EditedModel>(std::move(model));
  *out = handle.release();
  return OkStatus();
}

Status CheckModelHasGraph(const OrtModel* model) {
  TENON_RETURN_IF_NULL(model);
  if (model->graph == nullptr) return InvalidArgument("the model has no graph");
  return OkStatus();
}

}  // namespace

OrtStatus* CreateTensorTypeInfo(const OrtTensorTypeAndShapeInfo* tensor_info,
                                OrtTypeInfo** type_info) noexcept {
  return NewType(tensor_info, type_info,
                 [&]() -> Result<ValueType> { return *Unwrap(tensor_info); });
}

OrtStatus* CreateSparseTensorTypeInfo(const OrtTensorTypeAndShapeInfo* tensor_info,
                                      OrtTypeInfo** type_info) noexcept {
  return NewType(tensor_info, type_info, [&]() -> Result<ValueType> {
    ValueType type = *Unwrap(tensor_info);
    type.kind = Value::Kind::kSparseTensor;
    return type;
  });
}

OrtStatus* CreateMapTypeInfo(ONNXTensorElementDataType map_key_type,
                             const OrtTypeInfo* map_value_type, OrtTypeInfo** type_info) noexcept {
  return NewType(map_value_type, type_info, [&]() -> Result<ValueType> {
    TENON_ASSIGN_OR_RETURN(const DataType key, FromElementType(map_key_type));
    return ValueType::Map(key, *Unwrap(map_value_type));
  });
}

OrtStatus* CreateSequenceTypeInfo(const OrtTypeInfo* sequence_type,
                                  OrtTypeInfo** type_info) noexcept {
  return NewType(sequence_type, type_info, [&]() -> Result<ValueType> {
    return ValueType::Sequence(*Unwrap(sequence_type));
  });
}

OrtStatus* CreateOptionalTypeInfo(const OrtTypeInfo* contained_type,
                                  OrtTypeInfo** type_info) noexcept {
  return NewType(contained_type, type_info, [&]() -> Result<ValueType> {
    return ValueType::Optional(*Unwrap(contained_type));
  });
}

OrtStatus* CreateValueInfo(const char* name, const OrtTypeInfo* type_info,
                           OrtValueInfo** value_info) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(name);
    TENON_RETURN_IF_NULL(type_info);
    TENON_RETURN_IF_NULL(value_info);
    if (*name == '\0') return InvalidArgument("name must not be empty");
    auto info = std::make_unique<OrtValueInfo>();
    info->name = name;
    info->type = *Unwrap(type_info);
    *value_info = info.release();
    return OkStatus();
  });
}

void ReleaseValueInfo(OrtValueInfo* input) noexcept { delete input; }

OrtStatus* CreateNode(const char* operator_name, const char* domain_name, const char* node_name,
                      const char* const* input_names, size_t input_names_len,
                      const char* const* output_names, size_t output_names_len,
                      OrtOpAttr** attributes, size_t attribs_len, OrtNode** node) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(operator_name);
    TENON_RETURN_IF_NULL(node);
    TENON_RETURN_IF_ERROR(CheckTexts(input_names, input_names_len, "input_names"));
    TENON_RETURN_IF_ERROR(CheckTexts(output_names, output_names_len, "output_names"));
    TENON_RETURN_IF_NULL_ARRAY(attributes, attribs_len);
    for (size_t i = 0; i < attribs_len; ++i) {
      if (attributes[i] == nullptr) return InvalidArgument("attributes[{}] must not be null", i);
      if (std::find(attributes, attributes + i, attributes[i]) != attributes + i) {
        return InvalidArgument("Duplicate attributes[{}]: it is also at index {}", i,
                               std::find(attributes, attributes + i, attributes[i]) - attributes);
      }
    }
    auto handle = std::make_unique<OrtNode>();
    handle->made = std::make_unique<Node>();
    handle->node = handle->made.get();
    handle->made->op_type = operator_name;
    handle->made->domain = CanonicalDomain(domain_name);
    handle->made->name = node_name == nullptr ? "" : node_name;
    handle->input_names.assign(input_names, input_names + input_names_len);
    handle->output_names.assign(output_names, output_names + output_names_len);
    handle->made->attributes.reserve(attribs_len);
    for (size_t i = 0; i < attribs_len; ++i) {
      handle->made->attributes.push_back(std::move(*Unwrap(attributes[i])));
      ReleaseOpAttr(std::exchange(attributes[i], nullptr));
    }
    *node = handle.release();
    return OkStatus();
  });
}

void ReleaseNode(OrtNode* input) noexcept { delete input; }

OrtStatus* CreateGraph(OrtGraph** graph) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(graph);
    auto handle = std::make_unique<OrtGraph>();
    handle->made = std::make_unique<MadeGraph>();
    *graph = handle.release();
    return OkStatus();
  });
}

void ReleaseGraph(OrtGraph* input) noexcept { delete input; }

OrtStatus* SetGraphInputs(OrtGraph* graph, OrtValueInfo** inputs, size_t inputs_len) noexcept {
  return SetValues(graph, inputs, inputs_len, &MadeGraph::inputs, &MadeGraph::has_inputs);
}

OrtStatus* SetGraphOutputs(OrtGraph* graph, OrtValueInfo** outputs, size_t outputs_len) noexcept {
  return SetValues(graph, outputs, outputs_len, &MadeGraph::outputs, &MadeGraph::has_outputs);
}

OrtStatus* AddInitializerToGraph(OrtGraph* graph, const char* name, OrtValue* tensor,
                                 bool data_is_external) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_ASSIGN_OR_RETURN(MadeGraph* const made, Changing(graph));
    TENON_RETURN_IF_NULL(name);
    TENON_RETURN_IF_NULL(tensor);
    for (const auto& [known, value] : made->initializers) {
      if (value.get() != Unwrap(tensor)) continue;
      return InvalidArgument("the tensor has already been added as initializer '{}'", known);
    }
    TENON_ASSIGN_OR_RETURN(const Tensor* const held, TensorOf(tensor));
    if (*name == '\0') return InvalidArgument("name must not be empty");
    if (!held->memory().IsHostAccessible()) {
      return NotImplemented("initializer '{}' lies in memory of '{}'", name, held->memory().name);
    }
    const bool is_there =
        std::any_of(made->initializers.begin(), made->initializers.end(),
                    [&](const auto& initializer) { return initializer.first == name; });
    if (is_there) return InvalidArgument("the graph has an initializer of the name '{}'", name);
    if (data_is_external && held->bytes() < kLeastExternalBytes) {
      return InvalidArgument(
          "data_is_external: initializer '{}' has {} bytes, expected at least {}", name,
          held->bytes(), kLeastExternalBytes);
    }
    // In either case the tensor knows the owner of its memory.
    made->initializers.emplace_back(name, Unwrap(tensor));
    return OkStatus();
  });
}

OrtStatus* AddNodeToGraph(OrtGraph* graph, OrtNode* node) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_ASSIGN_OR_RETURN(MadeGraph* const made, Changing(graph));
    TENON_RETURN_IF_NULL(node);
    if (node->made == nullptr) return InvalidArgument("the node is one of a view");
    if (node->is_added) {
      return InvalidArgument("node '{}' has already been added to a graph", node->made->name);
    }
    made->nodes.emplace_back(node)->is_added = true;
    return OkStatus();
  });
}

OrtStatus* CreateModel(const char* const* domain_names, const int* opset_versions,
                       size_t opset_entries_len, OrtModel** model) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_ERROR(CheckTexts(domain_names, opset_entries_len, "domain_names"));
    TENON_RETURN_IF_NULL_ARRAY(opset_versions, opset_entries_len);
    TENON_RETURN_IF_NULL(model);
    auto handle = std::make_unique<OrtModel>();
    for (size_t i = 0; i < opset_entries_len; ++i) {
      if (opset_versions[i] < 1) {
        return InvalidArgument("an opset version is at least 1, got {}", opset_versions[i]);
      }
      handle->opsets.insert_or_assign(CanonicalDomain(domain_names[i]), opset_versions[i]);
    }
    *model = handle.release();
    return OkStatus();
  });
}

void ReleaseModel(OrtModel* input) noexcept { delete input; }

OrtStatus* AddGraphToModel(OrtModel* model, OrtGraph* graph) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(model);
    TENON_RETURN_IF_ERROR(Changing(graph));
    if (model->graph != nullptr) return InvalidArgument("the model has a graph already");
    if (graph->is_added) return InvalidArgument("the graph has already been added to a model");
    model->graph.reset(graph);
    graph->is_added = true;
    return OkStatus();
  });
}

OrtStatus* CreateSessionFromModel(const OrtEnv* env, const OrtModel* model,
                                  const OrtSessionOptions* options, OrtSession** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(out);
    TENON_RETURN_IF_ERROR(CheckModelHasGraph(model));
    if (!model->opsets.contains("")) {
      return InvalidArgument("The opset for the ONNX domain must be explicitly specified");
    }
    TENON_ASSIGN_OR_RETURN(Model made, ModelOf(*model->graph->made, model->opsets));
    auto handle = std::make_unique<OrtSession>();
    handle->environment = env->shared;
    const OrtSessionOptions defaults;
    TENON_RETURN_IF_ERROR(
        StartSession(*handle, std::move(made), options == nullptr ? defaults : *options));
    *out = handle.release();
    return OkStatus();
  });
}

OrtStatus* CreateModelEditorSession(const OrtEnv* env, const ORTCHAR_T* model_path,
                                    const OrtSessionOptions* options, OrtSession** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(model_path);
    return MakeEditedSession(env, std::string(model_path), options, out);
  });
}

OrtStatus* CreateModelEditorSessionFromArray(const OrtEnv* env, const void* model_data,
                                             size_t model_data_length,
                                             const OrtSessionOptions* options,
                                             OrtSession** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(model_data);
    const std::span bytes(static_cast<const std::byte*>(model_data), model_data_length);
    return MakeEditedSession(env, bytes, options, out);
  });
}

OrtStatus* SessionGetOpsetForDomain(const OrtSession* session, const char* domain,
                                    int* opset) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(session);
    TENON_RETURN_IF_NULL(domain);
    TENON_RETURN_IF_NULL(opset);
    const OpsetImports& opsets = session->model().opsets;
    const auto import = opsets.find(CanonicalDomain(domain));
    if (import == opsets.end()) {
      return InvalidArgument("the model imports no version of domain '{}'", domain);
    }
    *opset = import->second;
    return OkStatus();
  });
}

OrtStatus* ApplyModelToModelEditorSession(OrtSession* session, OrtModel* model) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(session);
    TENON_RETURN_IF_ERROR(CheckModelHasGraph(model));
    if (session->edited == nullptr) {
      return InvalidArgument("the session is not one of CreateModelEditorSession, or is finalized");
    }
    TENON_RETURN_IF_ERROR(AddTo(session->edited->model, *model->graph->made, model->opsets));
    session->edited->Describe();
    return OkStatus();
  });
}

OrtStatus* FinalizeModelEditorSession(OrtSession* session, const OrtSessionOptions* options,
                                      OrtPrepackedWeightsContainer* container) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(session);
    if (session->edited == nullptr) {
      TENON_LOG(*session->logger, kError,
                "the session is initialized; no execution provider can be added to it any more");
      return Fail("the session is initialized; it takes no options or execution providers");
    }
    if (container != nullptr) session->shared_weights = container->weights;
    const OrtSessionOptions defaults;
    Model model = std::move(session->edited->model);
    session->edited->model.graph = std::make_unique<Graph>();
    Status status =
        StartSession(*session, std::move(model), options == nullptr ? defaults : *options);
    if (status.ok()) {
      session->edited.reset();
    } else if (model.graph != nullptr) {
      session->edited->model = std::move(model);
    }
    return status;
  });
}

}  // namespace tenon::capi
