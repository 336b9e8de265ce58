#include "capi/session/open_session.h"

#include <sys/stat.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "capi/env/ep_device.h"
#include "capi/env/ep_source.h"
#include "capi/graph/context_model.h"
#include "capi/options/built_in_providers.h"
#include "capi/session/assigned_nodes.h"
#include "capi/session/select_devices.h"
#include "ir/onnx_reader.h"
#include "ops/cpu_provider.h"
#include "ops/framework/registry.h"
#include "runtime/config.h"
#include "runtime/dim_names.h"
#include "runtime/profiler.h"
#include "runtime/run_verifier.h"

namespace tenon::capi {
namespace {

constexpr std::string_view kUseEnvAllocators = "session.use_env_allocators";
constexpr std::string_view kLoadingArray = "model_loading_array";

// Whether the client promised that the bytes of a model, and of its files in memory, outlive the
// session.
bool DoBytesOutlive(const StringMap& config) {
  return ConfigFlag(config, "tenon.model_bytes_outlive_session", false);
}

Result<ReadOptions> ReadOptionsOf(const OrtSessionOptions& options) {
  const StringMap& config = options.session.config;
  const auto folder = config.find("session.model_external_initializers_file_folder_path");
  TENON_ASSIGN_OR_RETURN(const ModelFormat format,
                         ConfigModelFormat(config, "session.load_model_format"));
  ReadOptions read = {
      .format = format,
      .external_data_folder = folder == config.end() ? "" : folder->second,
      .access = ConfigFlag(config, "tenon.maps_files", true) ? FileAccess::kMap : FileAccess::kCopy,
      .external_files = options.external_files,
      .do_external_files_stay = DoBytesOutlive(config),
      .initializers = options.initializers};
  for (const OrtCustomOpDomain* const domain : options.custom_op_domains) {
    read.other_domains.push_back(domain->name);
  }
  // Devices that are selected for the model may bring operators.
  read.takes_any_domain = options.device_policy.has_value() || options.select_devices != nullptr;
  return read;
}

// As in ONNX Runtime, the working directory is the folder of a model in memory if none is named.
ReadOptions InMemory(ReadOptions read) {
  if (read.external_data_folder.empty()) read.external_data_folder = ".";
  return read;
}

std::shared_ptr<void> OwnedByClient(std::span<const std::byte> bytes) {
  return {std::shared_ptr<void>(), const_cast<std::byte*>(bytes.data())};
}

// What keeps the bytes of a model alive: null, so that they are copied, unless the client promised
// that they outlive the session. As in ONNX Runtime, its own promise is for the ORT format alone.
std::shared_ptr<void> OwnerOf(std::span<const std::byte> bytes, const ReadOptions& read,
                              const StringMap& config) {
  if (DoBytesOutlive(config)) return OwnedByClient(bytes);
  const bool is_ort = read.format == ModelFormat::kOrt ||
                      (read.format == ModelFormat::kUnspecified && HasOrtIdentifier(bytes));
  const bool outlive = ConfigFlag(config, "session.use_ort_model_bytes_directly", false) &&
                       ConfigFlag(config, "session.use_ort_model_bytes_for_initializers", false);
  return is_ort && outlive ? OwnedByClient(bytes) : nullptr;
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

// event  the name in the trace of this thread's work, if there is one
// bytes  of the model's file, for the client's progress function
template <class Source>
Result<Model> Load(std::string_view event, uint64_t bytes, const Source& read,
                   const OrtSessionOptions& options) {
  const TraceSpan span(TraceContext::CurrentProfiler(), TraceCategory::kSession, event);
  TENON_RETURN_IF_ERROR(CheckNotCanceled(options));
  TENON_ASSIGN_OR_RETURN(const ReadOptions read_options, ReadOptionsOf(options));
  const Progress& progress = options.session.progress;
  TENON_RETURN_IF_ERROR(progress.Report("read", 0, bytes));
  TENON_ASSIGN_OR_RETURN(Model model, read(read_options));
  TENON_RETURN_IF_ERROR(progress.Report("read", bytes, bytes));
  TENON_RETURN_IF_ERROR(CheckExpected(model, options));
  return model;
}

// The session's settings from the handle's options; `handle` keeps the objects that they point to.
SessionOptions OptionsFor(const OrtSessionOptions& options, OrtSession& handle) {
  SessionOptions result = options.session;
  if (options.use_env_threads) {
    result.intra_op_threads = 0;
    result.thread_callbacks = {};
  } else {
    result.work_callbacks = handle.work_callbacks;
  }
  if (options.client_logger.function != nullptr) {
    if (handle.client_logger == nullptr) {
      handle.client_logger = std::make_unique<ClientLogger>(options.client_logger);
    }
    result.log_sink = handle.client_logger->Sink();
  }
  return result;
}

const ProviderChoice* FindChoice(const OrtSessionOptions& options, const std::string& name) {
  const auto found =
      std::find_if(options.providers.begin(), options.providers.end(),
                   [&](const ProviderChoice& choice) { return choice.name == name; });
  return found == options.providers.end() ? nullptr : &*found;
}

// Whether a model with compatibility information suits the devices of that provider.
Status CheckCompiledModel(const std::vector<const OrtEpDevice*>& devices,
                          const OrtSessionOptions& options, const Model& model,
                          const Logger& logger) {
  const std::string& provider = devices.front()->ep_name;
  const auto info = model.metadata.find(CompatibilityKey(provider));
  if (info == model.metadata.end()) return OkStatus();
  TENON_ASSIGN_OR_RETURN(
      const OrtCompiledModelCompatibility fits,
      devices.front()->source->CheckCompatibility(devices, info->second.c_str()));
  switch (fits) {
    case OrtCompiledModelCompatibility_EP_NOT_APPLICABLE:
    case OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL:
      return OkStatus();
    case OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION:
      if (ConfigFlag(options.session.config, "session.fail_on_suboptimal_compiled_model", false)) {
        return Fail("the compiled model suits {} badly and should be compiled again", provider);
      }
      TENON_LOG(logger, kWarning, "the compiled model suits {} badly and should be compiled again",
                provider);
      return OkStatus();
    default:
      return Fail("{} cannot use the compiled model, which was made for '{}'", provider,
                  info->second);
  }
}

Result<std::unique_ptr<ExecutionProvider>> MakeProvider(const std::string& name, OrtSession& handle,
                                                        const OrtSessionOptions& options,
                                                        const Model& model) {
  const ProviderChoice* const choice = FindChoice(options, name);
  if (choice != nullptr && !choice->devices.empty()) {
    const std::vector<const OrtEpDevice*>& devices = choice->devices;
    // Devices are used only while their library is registered. A session may be created again for a
    // fallback long after the client requested it.
    for (const OrtEpDevice* const device : devices) {
      TENON_RETURN_IF_ERROR(handle.environment->eps.CheckDevice(device));
    }
    TENON_RETURN_IF_ERROR(CheckCompiledModel(devices, options, model, *handle.logger));
    OrtSessionOptions given = options;
    given.packed_weights = handle.packed_weights;
    given.custom_ops = handle.custom_ops.get();
    return devices.front()->source->MakeProvider(
        devices, given, model, *handle.logger,
        handle.shares_allocators ? &handle.environment->allocators : nullptr);
  }
  const BuiltInProvider* const built_in = FindBuiltInProvider(name);
  if (built_in == nullptr) return nullptr;
  return built_in->make(choice == nullptr ? StringMap() : choice->options);
}

// There will be no session for providers that were made for it.
void TellNoSession(std::vector<std::unique_ptr<ExecutionProvider>>& providers,
                   const Logger& logger) {
  for (; !providers.empty(); providers.pop_back()) {
    const Status status = providers.back()->OnSessionEnd({.reason = SessionEndReason::kInitFailed});
    if (status.ok()) continue;
    TENON_LOG(logger, kError, "{} failed at the end of its session: {}", providers.back()->name(),
              status.message());
  }
}

Result<SessionParts> PartsFor(OrtSession& handle, const OrtSessionOptions& options,
                              const Model& model, const std::vector<std::string>& providers) {
  SessionParts parts;
  parts.shape_functions = &OpShapeFunctions();
  parts.shared_weights = handle.shared_weights;
  if (handle.custom_ops) {
    parts.providers.push_back(handle.custom_ops->MakeProvider());
    parts.shape_functions = handle.custom_ops.get();
  }
  for (const std::string& name : providers) {
    Result<std::unique_ptr<ExecutionProvider>> provider =
        MakeProvider(name, handle, options, model);
    if (!provider) {
      TellNoSession(parts.providers, *handle.logger);
      return Failure(std::move(provider.error()));
    }
    if (*provider != nullptr) parts.providers.push_back(std::move(*provider));
  }
  parts.providers.push_back(MakeCpuProvider());
  parts.is_last_implicit = !options.has_cpu_provider;
  if (parts.is_last_implicit) {
    TENON_LOG(*handle.logger, kInfo, "{} is implicitly added", kCpuProviderName);
  }
  if (handle.shares_allocators) {
    parts.memory = handle.environment->allocators.FindForSessions(CpuMemory());
  }
  return parts;
}

std::vector<std::string> ProviderNames(const OrtSessionOptions& options) {
  std::vector<std::string> names;
  for (const ProviderChoice& choice : options.providers) names.push_back(choice.name);
  names.emplace_back(kCpuProviderName);
  return names;
}

Status CheckFallback(const FallbackOptions& fallback, const OrtSessionOptions& options) {
  for (const std::string& name : fallback.providers) {
    if (name == kCpuProviderName || FindBuiltInProvider(name) != nullptr) continue;
    if (FindChoice(options, name) != nullptr) continue;
    return InvalidArgument("tenon.ep_fail_fallback.providers: expected some of {}, got '{}'",
                           AvailableProviderNames(), name);
  }
  return OkStatus();
}

// Null if the options want none.
Result<std::shared_ptr<Profiler>> OpenProfiler(const OrtSession& handle,
                                               const OrtSessionOptions& options) {
  if (options.profile_prefix.empty()) return nullptr;
  return Profiler::Open(options.profile_prefix, options.session.config,
                        handle.environment->environment.logger());
}

// Makes the sessions of a handle: the first from `model`, the second from the model that `reload`
// reads.
struct Builder {
  Result<std::unique_ptr<Session>> operator()(const SessionRequest& request) const {
    std::shared_ptr<Profiler> profiler = request.profiler;
    if (profiler == nullptr) profiler = std::exchange(handle.profiler, nullptr);
    if (profiler == nullptr && !request.most_rewrites) {
      TENON_ASSIGN_OR_RETURN(profiler, OpenProfiler(handle, *options));
    }
    // Only the first session writes the compiled model.
    std::shared_ptr<const OrtSessionOptions> wanted = options;
    const bool is_first = *model != nullptr;
    if (!is_first) {
      const TraceScope context(profiler.get(), "load");
      TENON_ASSIGN_OR_RETURN(*model, Reload());
    } else if (auto with_context = WithContextModel(*options)) {
      wanted = std::move(with_context);
    }
    SessionOptions session_options = OptionsFor(*wanted, handle);
    if (!is_first) session_options.progress = {};
    session_options.equal_names_are_equal_sizes = request.equal_names_are_equal_sizes;
    if (request.most_rewrites) {
      session_options.config["tenon.rewrite_limit"] = std::to_string(*request.most_rewrites);
      session_options.rewrites = request.rewrites;
      session_options.optimized_model_path.clear();
    }
    TENON_ASSIGN_OR_RETURN(SessionParts parts,
                           PartsFor(handle, *wanted, **model, request.providers));
    Environment& environment = handle.environment->environment;
    parts.failed = request.failed;
    parts.profiler = std::move(profiler);
    const std::unique_ptr<Model> taken = std::move(*model);
    return Session::Create(environment, std::move(*taken), std::move(session_options),
                           std::move(parts));
  }

  Result<std::unique_ptr<Model>> Reload() const {
    TENON_ASSIGN_OR_RETURN(Model again, reload());
    return std::make_unique<Model>(std::move(again));
  }

  OrtSession& handle;
  std::shared_ptr<const OrtSessionOptions> options;
  std::shared_ptr<std::unique_ptr<Model>> model;
  ModelLoader reload;
};

// Models from memory that are larger are not copied for the sake of feeds that may never come.
constexpr size_t kLargestKeptModel = size_t{16} << 20;

bool WantsFallback(const OrtSessionOptions& options) {
  return FallbackOptions::From(options.session.config).is_on;
}

bool WantsVerifier(const OrtSessionOptions& options) {
  return ConfigFlag(options.session.config, "tenon.verify", false);
}

// Whether a run may feed axes of equal names with different sizes.
bool MayDistrustNames(const OrtSessionOptions& options, const Model& model) {
  return !ConfigFlag(options.session.config, "tenon.strict_dim_names", false) &&
         options.external_files.empty() && HasEqualDimNames(*model.graph);
}

std::shared_ptr<std::vector<std::byte>> CopyBytes(std::span<const std::byte> bytes) {
  return std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
}

// The options, and the files in memory that they refer to.
struct KeptOptions {
  explicit KeptOptions(const OrtSessionOptions& wanted) : options(wanted) {
    options.session.progress = {};  // the client's lives until the first session is made
    if (DoBytesOutlive(options.session.config)) return;
    for (auto& [name, bytes] : options.external_files) {
      bytes = *files.emplace_back(CopyBytes(bytes));
    }
  }

  OrtSessionOptions options;
  std::vector<std::shared_ptr<std::vector<std::byte>>> files;
};

// The options for a session: the client's, with the selected devices. A session that is never made
// a second time is created at once, so the client's options live long enough.
Result<std::shared_ptr<const OrtSessionOptions>> KeepOptions(const OrtSessionOptions& options,
                                                             const Model& model,
                                                             const FallbackOptions& fallback,
                                                             const OrtSession& handle) {
  TENON_ASSIGN_OR_RETURN(std::vector<ProviderChoice> chosen,
                         SelectDevices(options, model, *handle.environment));
  const bool makes_context = ConfigFlag(options.session.config, "ep.context_enable", false);
  const bool may_follow = fallback.is_on || !fallback.trusts_dim_names || WantsVerifier(options);
  if (chosen.empty() && !may_follow && !makes_context) {
    return std::shared_ptr<const OrtSessionOptions>(std::shared_ptr<void>(), &options);
  }
  auto kept = std::make_shared<OrtSessionOptions>(options);
  TENON_RETURN_IF_ERROR(PrepareContextModel(model.path, *kept));
  for (ProviderChoice& choice : chosen) {
    for (const OrtEpDevice* const device : choice.devices) {
      AddDeviceOptions(*device, false, kept->session.config);
    }
    TENON_RETURN_IF_ERROR(AddCustomOpDomains(*choice.devices.front(), *kept));
    kept->providers.push_back(std::move(choice));
  }
  return kept;
}

// A session without plugins cannot run what one of them compiled.
Status CheckContextNodes(const Model& model, const OrtSessionOptions& options) {
  if (!options.providers.empty()) return OkStatus();
  for (size_t i = 0; i < model.graph->node_capacity(); ++i) {
    const Node* const node = model.graph->FindNode(static_cast<NodeId>(i));
    if (node == nullptr || !IsContextNode(*node)) continue;
    const Attribute* const source = node->FindAttribute("source");
    const auto* const maker = source == nullptr ? nullptr : source->get<std::string>();
    return Status(
        StatusCode::kNotImplemented,
        Format("{}: EPContext node generated by '{}' is not compatible with any execution "
               "provider added to the session. The session has [{}].",
               node->Describe(), maker == nullptr ? "" : *maker, kCpuProviderName));
  }
  return OkStatus();
}

}  // namespace

Result<Model> LoadModel(const std::string& path, const OrtSessionOptions& options) {
  struct stat info = {};
  if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    return InvalidArgument(
        "'{}' is a directory: expected a model's file; a model package is opened with the model "
        "package API",
        path);
  }
  return Load(
      "model_loading_uri", static_cast<uint64_t>(info.st_size),
      [&](const ReadOptions& read) { return ReadModel(path, read); }, options);
}

Result<Model> LoadModel(std::span<const std::byte> bytes, const OrtSessionOptions& options) {
  return Load(
      kLoadingArray, bytes.size(),
      [&](const ReadOptions& read) {
        return ReadModel(bytes, OwnerOf(bytes, read, options.session.config), InMemory(read));
      },
      options);
}

Result<Model> LoadInTrace(OrtSession& handle, const OrtSessionOptions& options,
                          FunctionRef<Result<Model>()> load) {
  TENON_ASSIGN_OR_RETURN(handle.profiler, OpenProfiler(handle, options));
  const TraceScope context(handle.profiler.get(), "load");
  return load();
}

ModelLoader LoaderFor(const std::string& path, const OrtSessionOptions& options,
                      const Model& model) {
  if (!WantsFallback(options) && !WantsVerifier(options) && !MayDistrustNames(options, model)) {
    return nullptr;
  }
  return [path, kept = std::make_shared<KeptOptions>(options)] {
    return LoadModel(path, kept->options);
  };
}

ModelLoader LoaderFor(std::span<const std::byte> bytes, const OrtSessionOptions& options,
                      const Model& model) {
  const bool keeps_model =
      ConfigFlag(options.session.config, "tenon.ep_fail_fallback.keep_model", true);
  const bool may_distrust_names =
      MayDistrustNames(options, model) && bytes.size() <= kLargestKeptModel;
  const bool is_needed =
      WantsVerifier(options) || (WantsFallback(options) ? keeps_model : may_distrust_names);
  if (!is_needed) return nullptr;
  auto kept = std::make_shared<KeptOptions>(options);
  if (DoBytesOutlive(options.session.config)) {
    return [bytes, kept = std::move(kept)] { return LoadModel(bytes, kept->options); };
  }
  return [content = CopyBytes(bytes), kept = std::move(kept)] {
    return Load(
        kLoadingArray, content->size(),
        [&](const ReadOptions& read) { return ReadModel(*content, content, InMemory(read)); },
        kept->options);
  };
}

Status StartSession(OrtSession& handle, Model&& model, const OrtSessionOptions& options,
                    ModelLoader reload) {
  TENON_RETURN_IF_ERROR(CheckNotCanceled(options));
  TENON_RETURN_IF_ERROR(ChooseInstructionSet(options.session.config));
  handle.shares_allocators = ConfigFlag(options.session.config, kUseEnvAllocators, false);
  FallbackOptions fallback = FallbackOptions::From(options.session.config);
  fallback.has_model = reload != nullptr;
  fallback.trusts_dim_names = reload == nullptr || !MayDistrustNames(options, model);
  TENON_ASSIGN_OR_RETURN(const auto kept, KeepOptions(options, model, fallback, handle));
  TENON_RETURN_IF_ERROR(CheckFallback(fallback, *kept));
  TENON_RETURN_IF_ERROR(CheckContextNodes(model, *kept));
  if (!kept->use_env_threads) handle.work_callbacks = handle.environment->work_callbacks();
  const SessionOptions session_options = OptionsFor(*kept, handle);
  const Logger& logger = handle.environment->environment.logger();
  handle.logger = std::make_unique<Logger>(
      session_options.log_id.empty() ? logger.id() : session_options.log_id,
      session_options.severity.value_or(logger.severity()), session_options.log_verbosity,
      session_options.log_sink.value_or(logger.sink()));
  TENON_ASSIGN_OR_RETURN(handle.custom_ops,
                         CustomOps::For(*kept, session_options, handle.environment->environment));
  auto first = std::make_shared<std::unique_ptr<Model>>(std::make_unique<Model>(std::move(model)));
  const bool can_reload = reload != nullptr;
  const Builder builder{handle, kept, first, std::move(reload)};
  Result<std::unique_ptr<FallbackSession>> session =
      FallbackSession::Create(std::move(fallback), ProviderNames(*kept), builder);
  if (!session) {
    if (*first != nullptr) model = std::move(**first);
    return std::move(session.error());
  }
  handle.session = std::move(*session);
  if (can_reload) {
    TENON_ASSIGN_OR_RETURN(
        auto verifier, RunVerifier::Make(options.session.config, ProviderNames(*kept), builder));
    handle.session->SetVerifier(std::move(verifier));
  }
  const bool records_assignment =
      ConfigFlag(options.session.config, "session.record_ep_graph_assignment_info", false);
  if (records_assignment) handle.assigned_nodes.Record(handle.session->first());
  return CheckNotCanceled(options);
}

}  // namespace tenon::capi
