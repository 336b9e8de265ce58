#include "capi/open_session.h"

#include <utility>

#include "capi/assigned_nodes.h"
#include "capi/select_devices.h"
#include "ir/onnx_reader.h"
#include "ops/cpu_provider.h"
#include "ops/registry.h"
#include "runtime/config.h"

namespace tenon::capi {
namespace {

ReadOptions ReadOptionsOf(const OrtSessionOptions& options) {
  const StringMap& config = options.session.config;
  const auto folder = config.find("session.model_external_initializers_file_folder_path");
  return {.external_data_folder = folder == config.end() ? "" : folder->second,
          .external_files = options.external_files,
          .initializers = options.initializers};
}

Status CheckExpected(const Model& model, const OrtSessionOptions& options) {
  for (const std::string& name : options.expected_initializers) {
    const ValueId id = model.graph->FindValue(name);
    if (id != ValueId::kNone && model.graph->value(id).initializer.has_value()) continue;
    return InvalidArgument("the model has no initializer '{}'", name);
  }
  return OkStatus();
}

Status CheckNotCanceled(const OrtSessionOptions& options) {
  if (!*options.cancel_load) return OkStatus();
  return Status(StatusCode::kModelLoadCanceled, "loading the model was canceled");
}

template <class Source>
Result<Model> Load(const Source& read, const OrtSessionOptions& options) {
  TENON_RETURN_IF_ERROR(CheckNotCanceled(options));
  TENON_ASSIGN_OR_RETURN(Model model, read(ReadOptionsOf(options)));
  TENON_RETURN_IF_ERROR(CheckExpected(model, options));
  return model;
}

// What the handle's options say to a session; `handle` keeps what they point to.
SessionOptions OptionsFor(const OrtSessionOptions& options, OrtSession& handle) {
  SessionOptions result = options.session;
  if (options.use_env_threads) {
    result.intra_op_threads = 0;
    result.thread_callbacks = {};
  }
  if (options.client_logger.function != nullptr) {
    handle.client_logger = std::make_unique<ClientLogger>(options.client_logger);
    result.log_sink = handle.client_logger->Sink();
  }
  return result;
}

SessionParts PartsFor(OrtSession& handle, const SessionOptions& options) {
  SessionParts parts;
  parts.shape_functions = &OpShapeFunctions();
  if (handle.custom_ops) {
    parts.providers.push_back(handle.custom_ops->MakeProvider());
    parts.shape_functions = handle.custom_ops.get();
  }
  parts.providers.push_back(MakeCpuProvider());
  if (ConfigFlag(options.config, "session.use_env_allocators", false)) {
    parts.memory = handle.environment->allocators.FindForSessions(CpuMemory());
  }
  return parts;
}

}  // namespace

Result<Model> LoadModel(const std::string& path, const OrtSessionOptions& options) {
  return Load([&](const ReadOptions& read) { return ReadModel(path, read); }, options);
}

Result<Model> LoadModel(std::span<const std::byte> bytes, const OrtSessionOptions& options) {
  return Load([&](const ReadOptions& read) { return ReadModel(bytes, nullptr, read); }, options);
}

Status StartSession(OrtSession& handle, Model model, const OrtSessionOptions& options) {
  TENON_RETURN_IF_ERROR(CheckNotCanceled(options));
  TENON_RETURN_IF_ERROR(SelectDevices(options, model));
  Environment& environment = handle.environment->environment;
  SessionOptions session_options = OptionsFor(options, handle);
  handle.custom_ops = CustomOps::For(options, session_options, environment);
  SessionParts parts = PartsFor(handle, session_options);
  if (!options.profile_prefix.empty()) {
    TENON_ASSIGN_OR_RETURN(
        parts.profiler,
        Profiler::Open(options.profile_prefix, session_options.config, environment.logger()));
  }
  const bool records_assignment =
      ConfigFlag(session_options.config, "session.record_ep_graph_assignment_info", false);
  TENON_ASSIGN_OR_RETURN(
      handle.session,
      Session::Create(environment, std::move(model), std::move(session_options), std::move(parts)));
  if (records_assignment) handle.assigned_nodes.Record(*handle.session);
  return CheckNotCanceled(options);
}

}  // namespace tenon::capi
