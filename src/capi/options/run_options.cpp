#include "capi/options/run_options.h"

#include "capi/boundary/arguments.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "runtime/config.h"

namespace tenon::capi {

OrtStatus* CreateRunOptions(OrtRunOptions** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(out);
    *out = new OrtRunOptions();
    return OkStatus();
  });
}

void ReleaseRunOptions(OrtRunOptions* input) noexcept { delete input; }

OrtStatus* RunOptionsSetRunLogVerbosityLevel(OrtRunOptions* options,
                                             int log_verbosity_level) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    options->run.log_verbosity = log_verbosity_level;
    return OkStatus();
  });
}

OrtStatus* RunOptionsSetRunLogSeverityLevel(OrtRunOptions* options,
                                            int log_severity_level) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    if (log_severity_level < -1 || log_severity_level > ORT_LOGGING_LEVEL_FATAL) {
      return InvalidArgument("there is no logging level {}", log_severity_level);
    }
    options->run.severity.reset();
    if (log_severity_level >= 0) {
      options->run.severity = static_cast<Severity>(log_severity_level);
    }
    return OkStatus();
  });
}

OrtStatus* RunOptionsSetRunTag(OrtRunOptions* options, const char* run_tag) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL(run_tag);
    options->run.tag = run_tag;
    return OkStatus();
  });
}

OrtStatus* RunOptionsGetRunLogVerbosityLevel(const OrtRunOptions* options,
                                             int* log_verbosity_level) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL(log_verbosity_level);
    *log_verbosity_level = options->run.log_verbosity;
    return OkStatus();
  });
}

OrtStatus* RunOptionsGetRunLogSeverityLevel(const OrtRunOptions* options,
                                            int* log_severity_level) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL(log_severity_level);
    const std::optional<Severity> severity = options->run.severity;
    *log_severity_level = severity ? static_cast<int>(*severity) : -1;
    return OkStatus();
  });
}

OrtStatus* RunOptionsGetRunTag(const OrtRunOptions* options, const char** run_tag) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL(run_tag);
    *run_tag = options->run.tag.c_str();
    return OkStatus();
  });
}

OrtStatus* RunOptionsSetTerminate(OrtRunOptions* options) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    options->terminate = true;
    return OkStatus();
  });
}

OrtStatus* RunOptionsUnsetTerminate(OrtRunOptions* options) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    options->terminate = false;
    return OkStatus();
  });
}

OrtStatus* AddRunConfigEntry(OrtRunOptions* options, const char* config_key,
                             const char* config_value) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL(config_key);
    TENON_RETURN_IF_NULL(config_value);
    if (*config_key == '\0') return InvalidArgument("config_key must not be empty");
    StringMap& config = options->run.config;
    config.insert_or_assign(config_key, config_value);
    constexpr std::string_view kTimeout = "tenon.run_timeout_ms";
    if (config_key == kTimeout) {
      using std::chrono::milliseconds, std::chrono::nanoseconds;
      TENON_ASSIGN_OR_RETURN(const size_t timeout, ConfigCount(config, kTimeout, 0));
      constexpr auto kMost = std::chrono::duration_cast<milliseconds>(nanoseconds::max());
      options->run.timeout = milliseconds(std::min(timeout, static_cast<size_t>(kMost.count())));
    }
    const bool wants_report = ConfigFlag(config, "tenon.run_report", false);
    options->run.reports = wants_report ? &options->reports : nullptr;
    return OkStatus();
  });
}

const char* GetRunConfigEntry(const OrtRunOptions* options, const char* config_key) noexcept {
  if (options == nullptr || config_key == nullptr) return nullptr;
  const StringMap& config = options->run.config;
  const auto entry = config.find(std::string_view(config_key));
  return entry == config.end() ? nullptr : entry->second.c_str();
}

}  // namespace tenon::capi
