// The provider "WebNNExecutionProvider": claims what a context of WebNN runs, and makes one
// yielding node of each partition. Whoever runs the plan builds and dispatches the graphs: see
// barrier_run.h.
#pragma once

#include <memory>
#include <string_view>

#include "base/string_map.h"
#include "runtime/provider.h"

namespace tenon::webnn {

inline constexpr std::string_view kProviderName = "WebNNExecutionProvider";

// Options:
//   limits               the JSON text of the context's opSupportLimits()
//   excluded_partitions  names of the first nodes of partitions whose nodes others shall run, one a
//                        line
// Error: kInvalidArgument for options that it does not take, for no limits or for text that has
// none.
Result<std::unique_ptr<ExecutionProvider>> MakeProvider(const StringMap& options);

}  // namespace tenon::webnn
