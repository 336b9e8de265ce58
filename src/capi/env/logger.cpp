// OrtLogger: the log of kernels and providers.
#include <string>

#include "base/logging.h"
#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"

namespace tenon::capi {

OrtStatus* Logger_LogMessage(const OrtLogger* logger, OrtLoggingLevel log_severity_level,
                             const char* message, const ORTCHAR_T* file_path, int line_number,
                             const char* func_name) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(logger);
    TENON_RETURN_IF_NULL(message);
    TENON_RETURN_IF_NULL(file_path);
    TENON_RETURN_IF_NULL(func_name);
    const int level = log_severity_level;
    if (level < ORT_LOGGING_LEVEL_VERBOSE || level > ORT_LOGGING_LEVEL_FATAL) {
      return InvalidArgument("there is no logging level {}", level);
    }
    const auto severity = static_cast<Severity>(level);
    if (!Unwrap(logger)->IsEnabled(severity)) return OkStatus();
    const std::string location = internal::CodeLocation(file_path, line_number, func_name);
    Unwrap(logger)->Log(severity, "client", location.c_str(), message);
    return OkStatus();
  });
}

OrtStatus* Logger_GetLoggingSeverityLevel(const OrtLogger* logger, OrtLoggingLevel* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(logger);
    TENON_RETURN_IF_NULL(out);
    *out = static_cast<OrtLoggingLevel>(Unwrap(logger)->severity());
    return OkStatus();
  });
}

}  // namespace tenon::capi
