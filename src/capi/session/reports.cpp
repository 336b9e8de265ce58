#include "capi/session/reports.h"

#include "capi/boundary/arguments.h"
#include "capi/boundary/experimental.h"
#include "capi/boundary/status.h"
#include "capi/options/run_options.h"
#include "capi/session/session_handle.h"
#include "capi/value/allocator.h"
#include "tenon_c_api.h"

namespace tenon::capi {
namespace {

OrtStatus* SessionGetFallbackReport(const OrtSession* session, OrtAllocator* allocator,
                                    char** json) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_ERROR(CheckReady(session));
    TENON_RETURN_IF_NULL(allocator);
    TENON_RETURN_IF_NULL(json);
    TENON_ASSIGN_OR_RETURN(*json, CopyString(allocator, session->session->report().ToJson()));
    return OkStatus();
  });
}

OrtStatus* RunGetReport(const OrtRunOptions* options, OrtAllocator* allocator,
                        char** json) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL(allocator);
    TENON_RETURN_IF_NULL(json);
    if (options->run.reports == nullptr) {
      return InvalidArgument("run config 'tenon.run_report' was not set to \"1\"");
    }
    TENON_ASSIGN_OR_RETURN(*json, CopyString(allocator, options->reports.last().ToJson()));
    return OkStatus();
  });
}

}  // namespace

OrtExperimentalFnPtr FindReportFunction(std::string_view name) {
  if (name == TENON_SESSION_GET_FALLBACK_REPORT) return Untyped(&SessionGetFallbackReport);
  if (name == TENON_RUN_GET_REPORT) return Untyped(&RunGetReport);
  return nullptr;
}

}  // namespace tenon::capi
