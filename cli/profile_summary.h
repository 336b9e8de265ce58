// Summarizes a trace.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "trace.h"

namespace tenon::cli {

// Averages are over all runs but the first, which finds shapes and plans memory; if there is only
// one run, they are over that. Times are in milliseconds.
//   runs         [{id, start_ms, ms, status}]
//   run_ms       {first, min, median, max}
//   session      [{name, start_ms, ms}]: the session's work except runs
//   operators    of one run, most expensive first: [{op_type, provider, nodes, ms, share, gflops,
//                gbytes}]. share of the run; gflops and gbytes are per second, null if not known
//   nodes        the same of each node: {name, op_type, provider, ms, share, gflops, gbytes,
//   inputs,
//                outputs}
//   outside_ms   of a run, without its nodes
//   memory       see memory_curve.h
//   threads      {node_ms, alone_ms, loop_run_ms, loop_wait_ms, loop_start_ms, helpers}: how the
//                calling thread spent the time of nodes in one run, and [{thread, blocks, nodes,
//                cores}] of the threads that helped, over all runs
nlohmann::ordered_json Summarize(const Trace& trace);

// For a drawing of the trace: {nodes: [[start us, us, index in the summary's nodes, depth, helping
// threads], ...], device: [[start us, us, name, track], ...], tracks, end_us}. It has at most
// `most` nodes.
nlohmann::ordered_json Timeline(const Trace& trace, const nlohmann::ordered_json& summary,
                                size_t most);

}  // namespace tenon::cli
