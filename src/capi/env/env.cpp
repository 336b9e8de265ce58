#include "capi/env/env.h"

#include <onnxruntime_env_config_keys.h>

#include <memory>
#include <string>
#include <utility>

#include "base/exception_barrier.h"
#include "base/mutex.h"
#include "base/process_end.h"
#include "capi/boundary/arguments.h"
#include "capi/boundary/key_value_pairs.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"

namespace tenon::capi {
namespace {

// All environments of a process are one: the first call sets it up, and the last release destroys
// it.
constinit Mutex env_mutex;
constinit OrtEnv* process_env = nullptr;

Status CheckSeverity(int level) {
  if (level >= ORT_LOGGING_LEVEL_VERBOSE && level <= ORT_LOGGING_LEVEL_FATAL) return OkStatus();
  return InvalidArgument(
      "expected a valid logging severity level value from the OrtLoggingLevel enumeration, got {}",
      level);
}

struct EnvSettings {
  int severity = ORT_LOGGING_LEVEL_WARNING;
  const char* log_id = nullptr;
  OrtLoggingFunction logging_function = nullptr;
  void* logging_param = nullptr;
  const OrtThreadingOptions* threads = nullptr;
  const OrtKeyValuePairs* config = nullptr;
};

std::unique_ptr<OrtEnv> MakeEnv(const EnvSettings& settings) {
  std::unique_ptr<ClientLogger> client_logger;
  EnvironmentOptions options;
  options.log_id = settings.log_id;
  options.severity = static_cast<Severity>(settings.severity);
  if (settings.logging_function != nullptr) {
    client_logger = std::make_unique<ClientLogger>(
        ClientLogger{settings.logging_function, settings.logging_param});
    options.sink = client_logger->Sink();
  }
  if (settings.threads != nullptr) options.threads = settings.threads->threads;
  auto env = std::make_unique<OrtEnv>();
  StringMap config;
  if (settings.config != nullptr) config = settings.config->entries();
  env->shared = std::make_shared<SharedEnvironment>(std::move(client_logger), std::move(config),
                                                    std::move(options));
  return env;
}

Status ReferEnv(const EnvSettings& settings, OrtEnv** out) {
  TENON_RETURN_IF_NULL(out);
  if (settings.log_id == nullptr) {
    return InvalidArgument(
        "logid must not be null: expected a valid (non-null) log identifier string");
  }
  TENON_RETURN_IF_ERROR(CheckSeverity(settings.severity));
  const MutexLock lock(env_mutex);
  if (process_env == nullptr) process_env = MakeEnv(settings).release();
  ++process_env->references;
  *out = process_env;
  return OkStatus();
}

}  // namespace

// The environment's own references to the library do not count as uses.
Status SharedEnvironment::CheckIsIdle(std::string_view name) {
  TENON_ASSIGN_OR_RETURN(const EpRegistry::Holdings own, eps.HoldingsOf(name));
  int64_t own_allocators = 0;
  bool is_busy = false;
  for (const auto& source : own.sources) {
    const SharedAllocators::Holdings holdings = allocators.HoldingsOf(*source);
    own_allocators += static_cast<int64_t>(holdings.count);
    is_busy |= holdings.are_in_use;
  }
  const auto has_more = [&](LibraryObject kind, int64_t than) {
    return own.uses->Count(kind) > than;
  };
  is_busy |= has_more(LibraryObject::kAllocator, own_allocators) ||
             has_more(LibraryObject::kDataTransfer, static_cast<int64_t>(own.transfers));
  for (const LibraryObject kind :
       {LibraryObject::kProvider, LibraryObject::kStream, LibraryObject::kProfiler,
        LibraryObject::kImporter, LibraryObject::kResource}) {
    is_busy |= has_more(kind, 0);
  }
  if (!is_busy) return OkStatus();
  return Fail("library '{}' is in use: alive are {}, some of which are the environment's own", name,
              own.uses->Describe());
}

Status SharedEnvironment::UnregisterLibrary(std::string_view name) {
  if (IsProcessEnding()) return OkStatus();
  const StringMap config = Config();
  const auto policy = config.find(std::string_view("tenon.unregister_busy_library"));
  if (policy != config.end() && policy->second == "error") {
    TENON_RETURN_IF_ERROR(CheckIsIdle(name));
  }
  TENON_ASSIGN_OR_RETURN(RegisteredLibrary taken, eps.Take(name));
  if (AllowsVirtual(name)) CountVirtual(-1);
  Leave(std::move(taken));
  return OkStatus();
}

void SharedEnvironment::Leave(RegisteredLibrary library) {
  for (const auto& device : library.devices) allocators.RemoveOf(*device->source);
  for (const auto& transfer : library.transfers) environment.transfers().Remove(transfer.get());
  library.transfers.clear();
  library.devices.clear();
  const std::weak_ptr<void> code = std::exchange(library.library, nullptr);
  if (code.expired()) return;
  (void)HasMemoryFor([&] {
    TENON_LOG(environment.logger(), kWarning,
              "library '{}' is still used; it is unloaded when the last user goes. Alive: {}",
              library.name, library.uses->Describe());
  });
}

SharedEnvironment::~SharedEnvironment() {
  if (IsProcessEnding()) {
    allocators.Abandon();
    eps.Abandon();
    return;
  }
  // Busy libraries are removed too: their users keep the code.
  while (auto library = eps.TakeLast()) Leave(std::move(*library));
}

StringMap SharedEnvironment::Config() const {
  const MutexLock lock(mutex_);
  StringMap config = entries_;
  if (virtual_libraries_ > 0) config.insert_or_assign(kOrtEnvAllowVirtualDevices, "1");
  return config;
}

void SharedEnvironment::CountVirtual(int change) {
  const MutexLock lock(mutex_);
  virtual_libraries_ += change;
}

StringMap EnvironmentConfig() {
  const MutexLock lock(env_mutex);
  return process_env == nullptr ? StringMap() : process_env->shared->Config();
}

OrtStatus* CreateEnv(OrtLoggingLevel log_severity_level, const char* logid, OrtEnv** out) noexcept {
  return AtBoundary(
      [&] { return ReferEnv({.severity = log_severity_level, .log_id = logid}, out); });
}

OrtStatus* CreateEnvWithCustomLogger(OrtLoggingFunction logging_function, void* logger_param,
                                     OrtLoggingLevel log_severity_level, const char* logid,
                                     OrtEnv** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(logging_function);
    return ReferEnv({log_severity_level, logid, logging_function, logger_param}, out);
  });
}

OrtStatus* CreateEnvWithGlobalThreadPools(OrtLoggingLevel log_severity_level, const char* logid,
                                          const OrtThreadingOptions* tp_options,
                                          OrtEnv** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(tp_options);
    return ReferEnv({.severity = log_severity_level, .log_id = logid, .threads = tp_options}, out);
  });
}

OrtStatus* CreateEnvWithCustomLoggerAndGlobalThreadPools(
    OrtLoggingFunction logging_function, void* logger_param, OrtLoggingLevel log_severity_level,
    const char* logid, const OrtThreadingOptions* tp_options, OrtEnv** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(logging_function);
    TENON_RETURN_IF_NULL(tp_options);
    return ReferEnv({log_severity_level, logid, logging_function, logger_param, tp_options}, out);
  });
}

OrtStatus* CreateEnvWithOptions(const OrtEnvCreationOptions* options, OrtEnv** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    constexpr uint32_t kFirstWithOptions = 24;
    if (options->version < kFirstWithOptions) {
      return InvalidArgument("options must have version set equal to ORT_API_VERSION, got {}",
                             options->version);
    }
    return ReferEnv(
        {options->logging_severity_level, options->log_id, options->custom_logging_function,
         options->custom_logging_param, options->threading_options, options->config_entries},
        out);
  });
}

void ReleaseEnv(OrtEnv* input) noexcept {
  if (input == nullptr) return;
  std::unique_ptr<OrtEnv> last;
  const MutexLock lock(env_mutex);
  if (--input->references > 0) return;
  process_env = nullptr;
  last.reset(input);
}

OrtStatus* UpdateEnvWithCustomLogLevel(OrtEnv* ort_env,
                                       OrtLoggingLevel log_severity_level) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ort_env);
    TENON_RETURN_IF_ERROR(CheckSeverity(log_severity_level));
    ort_env->shared->environment.logger().set_severity(static_cast<Severity>(log_severity_level));
    return OkStatus();
  });
}

OrtStatus* EnableTelemetryEvents(const OrtEnv*) noexcept { return nullptr; }

OrtStatus* DisableTelemetryEvents(const OrtEnv*) noexcept { return nullptr; }

OrtStatus* SetLanguageProjection(const OrtEnv*, OrtLanguageProjection) noexcept { return nullptr; }

}  // namespace tenon::capi
