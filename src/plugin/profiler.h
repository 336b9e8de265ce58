// Profilers of plugins, and the events that they report.
#pragma once

#include <onnxruntime_ep_c_api.h>

#include <memory>
#include <string>
#include <vector>

#include "base/logging.h"
#include "plugin/made.h"
#include "runtime/profiler.h"
#include "runtime/trace_event.h"

struct OrtProfilingEvent {
  tenon::TraceEvent event;
};

// Passed to EndProfiling; valid during the call.
struct OrtProfilingEventsContainer {
  std::vector<tenon::TraceEvent>& events;
};

namespace tenon::plugin {

// Takes ownership of the plugin's profiler; null, with a warning, if it cannot be used. `owner`
// keeps the plugin loaded. `outlives_provider`: see ProviderProfiler.
std::unique_ptr<ProviderProfiler> AdoptProfiler(Made<OrtEpProfilerImpl> impl,
                                                std::shared_ptr<void> owner, bool outlives_provider,
                                                const std::string& provider, const Logger& logger);

}  // namespace tenon::plugin
