// The events of one run of one node: <n>_fence_before, <n>_kernel_time, <n>_fence_after.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/node_trace.h"
#include "runtime/trace_event.h"

namespace tenon {

inline constexpr size_t kEventsPerNode = 3;

void AppendNodeEvents(const NodeTrace& trace, int64_t process, std::vector<TraceEvent>& events);

}  // namespace tenon
