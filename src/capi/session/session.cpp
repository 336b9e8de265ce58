// Sessions: creating them and querying their inputs, outputs and metadata.
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/graph/metadata.h"
#include "capi/options/session_options.h"
#include "capi/session/open_session.h"
#include "capi/session/session_handle.h"
#include "capi/value/allocator.h"

namespace tenon::capi {
namespace {

void LetGo(OrtSession* session) noexcept {
  if (session->holders.fetch_sub(1) == 1) delete session;
}

// `source` is a path or the bytes of a model; `container` may be null.
template <class Source>
Status MakeSession(const OrtEnv* env, const Source& source, const OrtSessionOptions* options,
                   const OrtPrepackedWeightsContainer* container, OrtSession** out) {
  TENON_RETURN_IF_NULL(env);
  TENON_RETURN_IF_NULL(out);
  auto handle = std::make_unique<OrtSession>();
  handle->environment = env->shared;
  if (container != nullptr) {
    handle->shared_weights = container->weights;
    handle->packed_weights = container->packed;
  }
  const OrtSessionOptions defaults;
  if (options == nullptr) options = &defaults;
  TENON_ASSIGN_OR_RETURN(
      Model model, LoadInTrace(*handle, *options, [&] { return LoadModel(source, *options); }));
  ModelLoader reload = LoaderFor(source, *options, model);
  TENON_RETURN_IF_ERROR(StartSession(*handle, std::move(model), *options, std::move(reload)));
  *out = handle.release();
  return OkStatus();
}

using Values = const std::vector<SessionValue>& (OrtSession::*)() const;

OrtStatus* GetCount(const OrtSession* session, Values values, size_t* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(session);
    TENON_RETURN_IF_NULL(out);
    *out = (session->*values)().size();
    return OkStatus();
  });
}

OrtStatus* GetName(const OrtSession* session, Values values, const char* what, size_t index,
                   OrtAllocator* allocator, char** value) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(session);
    TENON_RETURN_IF_NULL(allocator);
    TENON_RETURN_IF_NULL(value);
    const auto& list = (session->*values)();
    TENON_RETURN_IF_ERROR(CheckIndex(index, list.size(), what));
    TENON_ASSIGN_OR_RETURN(*value, CopyString(allocator, list[index].name));
    return OkStatus();
  });
}

OrtStatus* GetType(const OrtSession* session, Values values, const char* what, size_t index,
                   OrtTypeInfo** type_info) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(session);
    TENON_RETURN_IF_NULL(type_info);
    const auto& list = (session->*values)();
    TENON_RETURN_IF_ERROR(CheckIndex(index, list.size(), what));
    *type_info = NewHandle<OrtTypeInfo>(list[index].type);
    return OkStatus();
  });
}

}  // namespace

EditedModel::EditedModel(Model read) : model(std::move(read)) { Describe(); }

void EditedModel::Describe() {
  inputs.clear();
  outputs.clear();
  overridable_initializers.clear();
  for (const ValueId id : model.graph->inputs) {
    const ValueInfo& info = model.graph->value(id);
    auto& list = info.initializer.has_value() ? overridable_initializers : inputs;
    list.push_back({info.name, info.type});
  }
  for (const GraphOutput& output : model.graph->outputs()) {
    outputs.push_back({output.name, model.graph->value(output.value).type});
  }
}

Status CheckReady(const OrtSession* session) {
  TENON_RETURN_IF_NULL(session);
  if (session->session == nullptr) {
    return InvalidArgument("the session is still edited; call FinalizeModelEditorSession first");
  }
  return OkStatus();
}

std::shared_ptr<OrtSession> Hold(OrtSession* session) {
  session->holders.fetch_add(1);
  return {session, LetGo};
}

OrtStatus* CreateSession(const OrtEnv* env, const ORTCHAR_T* model_path,
                         const OrtSessionOptions* options, OrtSession** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(model_path);
    return MakeSession(env, std::string(model_path), options, nullptr, out);
  });
}

OrtStatus* CreateSessionFromArray(const OrtEnv* env, const void* model_data,
                                  size_t model_data_length, const OrtSessionOptions* options,
                                  OrtSession** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL_ARRAY(model_data, model_data_length);
    // Protobuf's bound, so a greater length is a mistake.
    constexpr size_t kMostBytes = std::numeric_limits<int32_t>::max();
    if (model_data_length > kMostBytes) {
      return InvalidArgument("model_data_length: {} bytes exceed the maximum supported size of {}",
                             model_data_length, kMostBytes);
    }
    const std::span bytes(static_cast<const std::byte*>(model_data), model_data_length);
    return MakeSession(env, bytes, options, nullptr, out);
  });
}

void ReleaseSession(OrtSession* input) noexcept {
  if (input == nullptr) return;
  if (input->is_released.exchange(true)) {
    if (input->logger == nullptr) return;
    TENON_LOG(*input->logger, kError,
              "ReleaseSession failed (code {}): the session is being released already",
              static_cast<int>(StatusCode::kFail));
    return;
  }
  // The callback of an asynchronous run may release the session; the run still finishes.
  if (!input->tasks.AfterTasks([input] { LetGo(input); })) LetGo(input);
}

OrtStatus* CreatePrepackedWeightsContainer(OrtPrepackedWeightsContainer** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(out);
    *out = new OrtPrepackedWeightsContainer;
    return OkStatus();
  });
}

void ReleasePrepackedWeightsContainer(OrtPrepackedWeightsContainer* input) noexcept {
  delete input;
}

OrtStatus* CreateSessionWithPrepackedWeightsContainer(const OrtEnv* env,
                                                      const ORTCHAR_T* model_path,
                                                      const OrtSessionOptions* options,
                                                      OrtPrepackedWeightsContainer* container,
                                                      OrtSession** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(model_path);
    return MakeSession(env, std::string(model_path), options, container, out);
  });
}

OrtStatus* CreateSessionFromArrayWithPrepackedWeightsContainer(
    const OrtEnv* env, const void* model_data, size_t model_data_length,
    const OrtSessionOptions* options, OrtPrepackedWeightsContainer* container,
    OrtSession** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL_ARRAY(model_data, model_data_length);
    const std::span bytes(static_cast<const std::byte*>(model_data), model_data_length);
    return MakeSession(env, bytes, options, container, out);
  });
}

OrtStatus* SessionGetInputCount(const OrtSession* session, size_t* out) noexcept {
  return GetCount(session, &OrtSession::inputs, out);
}

OrtStatus* SessionGetOutputCount(const OrtSession* session, size_t* out) noexcept {
  return GetCount(session, &OrtSession::outputs, out);
}

OrtStatus* SessionGetOverridableInitializerCount(const OrtSession* session, size_t* out) noexcept {
  return GetCount(session, &OrtSession::overridable_initializers, out);
}

OrtStatus* SessionGetInputTypeInfo(const OrtSession* session, size_t index,
                                   OrtTypeInfo** type_info) noexcept {
  return GetType(session, &OrtSession::inputs, "inputs", index, type_info);
}

OrtStatus* SessionGetOutputTypeInfo(const OrtSession* session, size_t index,
                                    OrtTypeInfo** type_info) noexcept {
  return GetType(session, &OrtSession::outputs, "outputs", index, type_info);
}

OrtStatus* SessionGetOverridableInitializerTypeInfo(const OrtSession* session, size_t index,
                                                    OrtTypeInfo** type_info) noexcept {
  return GetType(session, &OrtSession::overridable_initializers, "overridable initializers", index,
                 type_info);
}

OrtStatus* SessionGetInputName(const OrtSession* session, size_t index, OrtAllocator* allocator,
                               char** value) noexcept {
  return GetName(session, &OrtSession::inputs, "inputs", index, allocator, value);
}

OrtStatus* SessionGetOutputName(const OrtSession* session, size_t index, OrtAllocator* allocator,
                                char** value) noexcept {
  return GetName(session, &OrtSession::outputs, "outputs", index, allocator, value);
}

OrtStatus* SessionGetOverridableInitializerName(const OrtSession* session, size_t index,
                                                OrtAllocator* allocator, char** value) noexcept {
  return GetName(session, &OrtSession::overridable_initializers, "overridable initializers", index,
                 allocator, value);
}

OrtStatus* SessionGetModelMetadata(const OrtSession* session, OrtModelMetadata** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(session);
    TENON_RETURN_IF_NULL(out);
    *out = NewModelMetadata(session->model());
    return OkStatus();
  });
}

OrtStatus* SetEpDynamicOptions(OrtSession* sess, const char* const* keys, const char* const* values,
                               size_t kv_len) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_ERROR(CheckReady(sess));
    TENON_RETURN_IF_NULL(keys);
    TENON_RETURN_IF_NULL(values);
    if (kv_len == 0) return InvalidArgument("there are no options");
    StringMap changed;
    for (size_t i = 0; i < kv_len; ++i) {
      if (keys[i] == nullptr || values[i] == nullptr) {
        return InvalidArgument("key and value of option {} must not be null", i);
      }
      changed.insert_or_assign(keys[i], values[i]);
    }
    Status first;
    for (const auto& provider : sess->session->providers()) {
      Status status = provider->SetDynamicOptions(changed);
      if (first.ok()) first = std::move(status);
    }
    return first;
  });
}

OrtStatus* Session_GetEpGraphAssignmentInfo(const OrtSession* session,
                                            const OrtEpAssignedSubgraph* const** ep_subgraphs,
                                            size_t* num_ep_subgraphs) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ep_subgraphs);
    TENON_RETURN_IF_NULL(num_ep_subgraphs);
    TENON_RETURN_IF_ERROR(CheckReady(session));
    if (!session->assigned_nodes.is_recorded()) {
      return Fail(
          "Session configuration entry 'session.record_ep_graph_assignment_info' must be set to "
          "\"1\"");
    }
    *ep_subgraphs = session->assigned_nodes.subgraphs().data();
    *num_ep_subgraphs = session->assigned_nodes.subgraphs().size();
    return OkStatus();
  });
}

OrtStatus* SessionReleaseCapturedGraph(OrtSession* session, int graph_annotation_id) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_ERROR(CheckReady(session));
    return session->session->current().ReleaseCapturedGraph(graph_annotation_id);
  });
}

OrtStatus* CreateAllocator(const OrtSession* session, const OrtMemoryInfo* mem_info,
                           OrtAllocator** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_ERROR(CheckReady(session));
    TENON_RETURN_IF_NULL(mem_info);
    TENON_RETURN_IF_NULL(out);
    for (const auto& provider : session->session->providers()) {
      std::shared_ptr<Allocator> allocator = provider->allocator();
      if (!allocator->info().SameDevice(*Unwrap(mem_info))) continue;
      if (session->shares_allocators) {
        OrtAllocator* const known = session->environment->allocators.Find(*Unwrap(mem_info));
        if (known != nullptr) allocator = FromClient(known);
      }
      *out = NewClientAllocator(std::move(allocator));
      return OkStatus();
    }
    return InvalidArgument("no provider of the session allocates memory of '{}', device {}",
                           Unwrap(mem_info)->name, Unwrap(mem_info)->device_id);
  });
}

}  // namespace tenon::capi
