// The provider "WebNNExecutionProvider": claims the nodes that a WebNN context can run, and makes
// one yielding node of each partition. The caller that runs the plan builds and dispatches the
// graphs: see barrier_run.h.
#pragma once

#include <memory>
#include <string_view>

#include "base/string_map.h"
#include "runtime/provider.h"

namespace tenon::webnn {

inline constexpr std::string_view kProviderName = "WebNNExecutionProvider";

// Options:
//   limits               the JSON text of the context's opSupportLimits()
//   excluded_partitions  names of the first nodes of partitions that other providers run, one per
//                        line
// Error: kInvalidArgument for unknown options, and for missing or invalid limits.
Result<std::unique_ptr<ExecutionProvider>> MakeProvider(const StringMap& options);

}  // namespace tenon::webnn
