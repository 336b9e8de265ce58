// Traces of sessions and of single runs.
#include "capi/boundary/arguments.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/options/run_options.h"
#include "capi/session/session_handle.h"
#include "capi/value/allocator.h"
#include "runtime/profiler.h"

namespace tenon::capi {

OrtStatus* SessionEndProfiling(OrtSession* session, OrtAllocator* allocator, char** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_ERROR(CheckReady(session));
    TENON_RETURN_IF_NULL(allocator);
    TENON_RETURN_IF_NULL(out);
    TENON_ASSIGN_OR_RETURN(const std::string path, session->session->current().EndProfiling());
    TENON_ASSIGN_OR_RETURN(*out, CopyString(allocator, path));
    return OkStatus();
  });
}

OrtStatus* SessionGetProfilingStartTimeNs(const OrtSession* session, uint64_t* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_ERROR(CheckReady(session));
    TENON_RETURN_IF_NULL(out);
    const Profiler* const profiler = session->session->current().profiler().get();
    *out = profiler == nullptr ? 0 : static_cast<uint64_t>(profiler->start_ns());
    return OkStatus();
  });
}

OrtStatus* RunOptionsEnableProfiling(OrtRunOptions* options,
                                     const ORTCHAR_T* profile_file_prefix) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL(profile_file_prefix);
    options->run.profile_prefix = profile_file_prefix;
    return OkStatus();
  });
}

OrtStatus* RunOptionsDisableProfiling(OrtRunOptions* options) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    options->run.profile_prefix.reset();
    return OkStatus();
  });
}

}  // namespace tenon::capi
