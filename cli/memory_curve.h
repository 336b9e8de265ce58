// The memory of a session over time, and its contents at the peak.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "trace.h"

namespace tenon::cli {

// One entry per device:
//   device      "CPU:0"
//   curve       [[ms, bytes], ...] of what was in use, a new entry wherever it changes; thinned
//               out to what a chart can show, highest points kept
//   reserved    the same of what arenas held
//   peak        {bytes, ms, phase, run, count, blocks} when most was in use; the `count` blocks,
//               largest first: {bytes, node, op_type, tensor, what, phase}. `what` is "output",
//               "working memory", "plan or model output" (the memory of all values of a run at
//               once, or what the caller gets) or "kept" (from before the run); `tensor` is the
//               type and shape of an output
//   first_run   the same as `peak` within the first run, when each value has a block of its own;
//               null if that is the peak
nlohmann::ordered_json MemoryOverTime(const Trace& trace);

}  // namespace tenon::cli
