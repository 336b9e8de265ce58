#include "capi/options/session_options.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "capi/boundary/arguments.h"
#include "capi/boundary/key_value_pairs.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/options/thread_callbacks.h"

namespace tenon::capi {
namespace {

template <class Body>
OrtStatus* Change(OrtSessionOptions* options, Body&& body) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    return body(*options);
  });
}

// Sets one field.
template <class T, class Class, class Base>
OrtStatus* Set(OrtSessionOptions* options, T Class::*field, Base&& value) noexcept {
  return Change(options, [&](OrtSessionOptions& o) {
    if constexpr (std::is_same_v<Class, OrtSessionOptions>) {
      o.*field = value;
    } else {
      o.session.*field = value;
    }
    return OkStatus();
  });
}

// For an entry that stands for a setting with a function of its own.
using SetText = OrtStatus* (*)(OrtSessionOptions*, const char*);

Result<int> IntegerOf(std::string_view text) {
  int number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && stop == text.data() + text.size()) return number;
  return InvalidArgument("expected an integer, got '{}'", text);
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  return lower;
}

Result<bool> FlagOf(std::string_view text) {
  const std::string lower = LowerCase(text);
  if (lower == "1" || lower == "true") return true;
  if (lower == "0" || lower == "false") return false;
  return InvalidArgument("expected 0, 1, true or false, got '{}'", text);
}

template <OrtStatus* (*Set)(OrtSessionOptions*, int) noexcept>
OrtStatus* SetInteger(OrtSessionOptions* options, const char* text) {
  return AtBoundary([&]() -> Status {
    TENON_ASSIGN_OR_RETURN(const int number, IntegerOf(text));
    return TakeOrtStatus(Set(options, number));
  });
}

template <OrtStatus* (*TurnOn)(OrtSessionOptions*) noexcept,
          OrtStatus* (*TurnOff)(OrtSessionOptions*) noexcept>
OrtStatus* SetFlag(OrtSessionOptions* options, const char* text) {
  return AtBoundary([&]() -> Status {
    TENON_ASSIGN_OR_RETURN(const bool is_on, FlagOf(text));
    return TakeOrtStatus(is_on ? TurnOn(options) : TurnOff(options));
  });
}

OrtStatus* SetProfile(OrtSessionOptions* options, const char* prefix) {
  return *prefix == '\0' ? DisableProfiling(options) : EnableProfiling(options, prefix);
}

OrtStatus* SetLevel(OrtSessionOptions* options, const char* text) {
  return AtBoundary([&]() -> Status {
    constexpr std::pair<std::string_view, GraphOptimizationLevel> kLevels[] = {
        {"disable_all", ORT_DISABLE_ALL},
        {"enable_basic", ORT_ENABLE_BASIC},
        {"enable_extended", ORT_ENABLE_EXTENDED},
        {"enable_layout", ORT_ENABLE_LAYOUT},
        {"enable_all", ORT_ENABLE_ALL}};
    for (const auto& [name, level] : kLevels) {
      if (name == LowerCase(text)) return SetOptimizationLevel(level, *options);
    }
    return InvalidArgument(
        "expected disable_all, enable_basic, enable_extended, enable_layout or enable_all");
  });
}

OrtStatus* SetMode(OrtSessionOptions* options, const char* text) {
  const std::string mode = LowerCase(text);
  if (mode == "sequential" || mode == "ort_sequential") {
    return SetSessionExecutionMode(options, ORT_SEQUENTIAL);
  }
  if (mode == "parallel" || mode == "ort_parallel") {
    return SetSessionExecutionMode(options, ORT_PARALLEL);
  }
  return ToOrtStatus(InvalidArgument("expected sequential or parallel"));
}

OrtStatus* SetThreadOwner(OrtSessionOptions* options, const char* text) {
  return AtBoundary([&]() -> Status {
    TENON_ASSIGN_OR_RETURN(const bool is_session, FlagOf(text));
    if (!is_session) return TakeOrtStatus(DisablePerSessionThreads(options));
    if (!options->use_env_threads) return OkStatus();
    return InvalidArgument("the session's own threads have been disabled");
  });
}

OrtStatus* SetDeterminism(OrtSessionOptions* options, const char* text) {
  return AtBoundary([&]() -> Status {
    TENON_ASSIGN_OR_RETURN(const bool is_on, FlagOf(text));
    return TakeOrtStatus(SetDeterministicCompute(options, is_on));
  });
}

struct TypedEntry {
  std::string_view key;
  SetText set;
};
constexpr TypedEntry kTypedEntries[] = {
    {"session.intra_op_num_threads", SetInteger<SetIntraOpNumThreads>},
    {"session.inter_op_num_threads", SetInteger<SetInterOpNumThreads>},
    {"session.enable_cpu_mem_arena", SetFlag<EnableCpuMemArena, DisableCpuMemArena>},
    {"session.enable_mem_pattern", SetFlag<EnableMemPattern, DisableMemPattern>},
    {"session.log_id", SetSessionLogId},
    {"session.log_severity_level", SetInteger<SetSessionLogSeverityLevel>},
    {"session.log_verbosity_level", SetInteger<SetSessionLogVerbosityLevel>},
    {"session.enable_profiling", SetProfile},
    {"session.graph_optimization_level", SetLevel},
    {"session.optimized_model_filepath", SetOptimizedModelFilePath},
    {"session.execution_mode", SetMode},
    {"session.use_per_session_threads", SetThreadOwner},
    {"session.use_deterministic_compute", SetDeterminism},
};

// onnxruntime's bounds of entries.
constexpr size_t kLongestKey = 1024, kLongestValue = 8192;

Status CheckLength(std::string_view what, std::string_view text, size_t longest) {
  if (text.size() <= longest) return OkStatus();
  return InvalidArgument("{} is longer than maximum length: {} bytes, got {}", what, longest,
                         text.size());
}

}  // namespace

OrtStatus* CreateSessionOptions(OrtSessionOptions** options) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    *options = new OrtSessionOptions();
    return OkStatus();
  });
}

OrtStatus* CloneSessionOptions(const OrtSessionOptions* in_options,
                               OrtSessionOptions** out_options) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(in_options);
    TENON_RETURN_IF_NULL(out_options);
    *out_options = new OrtSessionOptions(*in_options);
    return OkStatus();
  });
}

void ReleaseSessionOptions(OrtSessionOptions* input) noexcept { delete input; }

OrtStatus* SetOptimizedModelFilePath(OrtSessionOptions* options,
                                     const ORTCHAR_T* optimized_model_filepath) noexcept {
  return Change(options, [&](OrtSessionOptions& o) -> Status {
    TENON_RETURN_IF_NULL(optimized_model_filepath);
    o.session.optimized_model_path = optimized_model_filepath;
    return OkStatus();
  });
}

OrtStatus* SetSessionExecutionMode(OrtSessionOptions* options,
                                   ExecutionMode execution_mode) noexcept {
  return Change(options, [&](OrtSessionOptions& o) -> Status {
    const int mode = execution_mode;
    if (mode != ORT_SEQUENTIAL && mode != ORT_PARALLEL) {
      return InvalidArgument("there is no execution mode {}", mode);
    }
    o.session.is_parallel = mode == ORT_PARALLEL;
    return OkStatus();
  });
}

OrtStatus* GetSessionExecutionMode(const OrtSessionOptions* options, ExecutionMode* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL(out);
    *out = options->session.is_parallel ? ORT_PARALLEL : ORT_SEQUENTIAL;
    return OkStatus();
  });
}

OrtStatus* EnableProfiling(OrtSessionOptions* options,
                           const ORTCHAR_T* profile_file_prefix) noexcept {
  return Change(options, [&](OrtSessionOptions& o) -> Status {
    TENON_RETURN_IF_NULL(profile_file_prefix);
    o.profile_prefix = profile_file_prefix;
    return OkStatus();
  });
}

OrtStatus* DisableProfiling(OrtSessionOptions* options) noexcept {
  return Set(options, &OrtSessionOptions::profile_prefix, "");
}

OrtStatus* EnableMemPattern(OrtSessionOptions* options) noexcept {
  return Set(options, &SessionOptions::plans_memory, true);
}

OrtStatus* DisableMemPattern(OrtSessionOptions* options) noexcept {
  return Set(options, &SessionOptions::plans_memory, false);
}

OrtStatus* GetMemPatternEnabled(const OrtSessionOptions* options, int* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL(out);
    *out = options->session.plans_memory ? 1 : 0;
    return OkStatus();
  });
}

OrtStatus* EnableCpuMemArena(OrtSessionOptions* options) noexcept {
  return Set(options, &OrtSessionOptions::use_cpu_arena, true);
}

OrtStatus* DisableCpuMemArena(OrtSessionOptions* options) noexcept {
  return Set(options, &OrtSessionOptions::use_cpu_arena, false);
}

OrtStatus* SetSessionLogId(OrtSessionOptions* options, const char* logid) noexcept {
  return Change(options, [&](OrtSessionOptions& o) -> Status {
    TENON_RETURN_IF_NULL(logid);
    o.session.log_id = logid;
    return OkStatus();
  });
}

OrtStatus* SetSessionLogVerbosityLevel(OrtSessionOptions* options,
                                       int session_log_verbosity_level) noexcept {
  return Set(options, &SessionOptions::log_verbosity, session_log_verbosity_level);
}

OrtStatus* SetSessionLogSeverityLevel(OrtSessionOptions* options,
                                      int session_log_severity_level) noexcept {
  return Change(options, [&](OrtSessionOptions& o) -> Status {
    if (session_log_severity_level < -1 || session_log_severity_level > ORT_LOGGING_LEVEL_FATAL) {
      return InvalidArgument("there is no logging level {}", session_log_severity_level);
    }
    o.session.severity.reset();
    if (session_log_severity_level >= 0) {
      o.session.severity = static_cast<Severity>(session_log_severity_level);
    }
    return OkStatus();
  });
}

OrtStatus* SetUserLoggingFunction(OrtSessionOptions* options,
                                  OrtLoggingFunction user_logging_function,
                                  void* user_logging_param) noexcept {
  return Change(options, [&](OrtSessionOptions& o) -> Status {
    TENON_RETURN_IF_NULL(user_logging_function);
    o.client_logger = {user_logging_function, user_logging_param};
    return OkStatus();
  });
}

Status SetOptimizationLevel(const GraphOptimizationLevel& level, OrtSessionOptions& options) {
  const int number = level;
  switch (number) {
    case ORT_DISABLE_ALL:
    case ORT_ENABLE_BASIC:
    case ORT_ENABLE_EXTENDED:
    case ORT_ENABLE_LAYOUT:
    case ORT_ENABLE_ALL:
      options.session.optimization_level = static_cast<OptimizationLevel>(number);
      return OkStatus();
  }
  return InvalidArgument("there is no graph optimization level {}", number);
}

OrtStatus* SetSessionGraphOptimizationLevel(
    OrtSessionOptions* options, GraphOptimizationLevel graph_optimization_level) noexcept {
  return Change(options, [&](OrtSessionOptions& o) {
    return SetOptimizationLevel(graph_optimization_level, o);
  });
}

OrtStatus* SetIntraOpNumThreads(OrtSessionOptions* options, int intra_op_num_threads) noexcept {
  return Change(options, [&](OrtSessionOptions& o) -> Status {
    TENON_RETURN_IF_ERROR(CheckThreadCount(intra_op_num_threads));
    o.session.intra_op_threads = intra_op_num_threads;
    return OkStatus();
  });
}

OrtStatus* SetInterOpNumThreads(OrtSessionOptions* options, int inter_op_num_threads) noexcept {
  return Change(options, [&](OrtSessionOptions& o) -> Status {
    TENON_RETURN_IF_ERROR(CheckThreadCount(inter_op_num_threads));
    o.inter_op_threads = inter_op_num_threads;
    return OkStatus();
  });
}

OrtStatus* DisablePerSessionThreads(OrtSessionOptions* options) noexcept {
  return Set(options, &OrtSessionOptions::use_env_threads, true);
}

OrtStatus* SessionOptionsSetCustomCreateThreadFn(
    OrtSessionOptions* options, OrtCustomCreateThreadFn ort_custom_create_thread_fn) noexcept {
  return Change(options, [&](OrtSessionOptions& o) -> Status {
    TENON_RETURN_IF_NULL(ort_custom_create_thread_fn);
    o.session.thread_callbacks.create = CreateCallback(ort_custom_create_thread_fn);
    return OkStatus();
  });
}

OrtStatus* SessionOptionsSetCustomThreadCreationOptions(
    OrtSessionOptions* options, void* ort_custom_thread_creation_options) noexcept {
  return Change(options, [&](OrtSessionOptions& o) {
    o.session.thread_callbacks.options = ort_custom_thread_creation_options;
    return OkStatus();
  });
}

OrtStatus* SessionOptionsSetCustomJoinThreadFn(
    OrtSessionOptions* options, OrtCustomJoinThreadFn ort_custom_join_thread_fn) noexcept {
  return Change(options, [&](OrtSessionOptions& o) -> Status {
    TENON_RETURN_IF_NULL(ort_custom_join_thread_fn);
    o.session.thread_callbacks.join = JoinCallback(ort_custom_join_thread_fn);
    return OkStatus();
  });
}

OrtStatus* AddFreeDimensionOverride(OrtSessionOptions* options, const char* dim_denotation,
                                    int64_t dim_value) noexcept {
  return Change(options, [&](OrtSessionOptions& o) -> Status {
    TENON_RETURN_IF_NULL(dim_denotation);
    o.session.free_dimensions_by_denotation.insert_or_assign(dim_denotation, dim_value);
    return OkStatus();
  });
}

OrtStatus* AddFreeDimensionOverrideByName(OrtSessionOptions* options, const char* dim_name,
                                          int64_t dim_value) noexcept {
  return Change(options, [&](OrtSessionOptions& o) -> Status {
    TENON_RETURN_IF_NULL(dim_name);
    o.session.free_dimensions.insert_or_assign(dim_name, dim_value);
    return OkStatus();
  });
}

OrtStatus* SetDeterministicCompute(OrtSessionOptions* options, bool value) noexcept {
  return Set(options, &OrtSessionOptions::is_deterministic, value);
}

OrtStatus* SessionOptionsSetLoadCancellationFlag(OrtSessionOptions* options, bool cancel) noexcept {
  return Change(options, [&](OrtSessionOptions& o) {
    *o.cancel_load = cancel;
    return OkStatus();
  });
}

OrtStatus* AddSessionConfigEntry(OrtSessionOptions* options, const char* config_key,
                                 const char* config_value) noexcept {
  return Change(options, [&](OrtSessionOptions& o) -> Status {
    TENON_RETURN_IF_NULL(config_key);
    TENON_RETURN_IF_NULL(config_value);
    if (*config_key == '\0') return InvalidArgument("config_key must not be empty");
    TENON_RETURN_IF_ERROR(CheckLength("Config key", config_key, kLongestKey));
    TENON_RETURN_IF_ERROR(CheckLength("Config value", config_value, kLongestValue));
    for (const TypedEntry& entry : kTypedEntries) {
      if (entry.key != config_key) continue;
      return std::move(TakeOrtStatus(entry.set(options, config_value)))
          .WithContext(Format("AddSessionConfigEntry: {} = '{}'", config_key, config_value));
    }
    o.session.config.insert_or_assign(config_key, config_value);
    return OkStatus();
  });
}

OrtStatus* HasSessionConfigEntry(const OrtSessionOptions* options, const char* config_key,
                                 int* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL(config_key);
    TENON_RETURN_IF_NULL(out);
    *out = options->session.config.contains(std::string_view(config_key)) ? 1 : 0;
    return OkStatus();
  });
}

OrtStatus* GetSessionConfigEntry(const OrtSessionOptions* options, const char* config_key,
                                 char* config_value, size_t* size) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL(config_key);
    TENON_RETURN_IF_NULL(size);
    const auto entry = options->session.config.find(std::string_view(config_key));
    if (entry == options->session.config.end()) {
      return InvalidArgument("there is no session config entry '{}'", config_key);
    }
    const size_t needed = entry->second.size() + 1;
    const size_t room = std::exchange(*size, needed);
    if (config_value == nullptr) return OkStatus();
    if (room < needed) {
      return InvalidArgument("session config entry '{}' needs {} bytes, got {}", config_key, needed,
                             room);
    }
    std::memcpy(config_value, entry->second.c_str(), needed);
    return OkStatus();
  });
}

OrtStatus* GetSessionOptionsConfigEntries(const OrtSessionOptions* options,
                                          OrtKeyValuePairs** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL(out);
    *out = new OrtKeyValuePairs(options->session.config);
    return OkStatus();
  });
}

}  // namespace tenon::capi
