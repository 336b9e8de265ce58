// What all steps of one run share, subgraphs included.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "base/stop_signal.h"
#include "base/thread_pool.h"
#include "runtime/failed_node.h"

namespace tenon {

class Logger;
struct Node;
class NodeDump;
class NvtxRanges;
struct Progress;
class Profiler;
class RunMeter;
class StreamSet;

// The position of a subgraph that runs inside another graph.
struct SubgraphPlace {
  const Node* node = nullptr;            // holds the subgraph
  size_t index = 0;                      // of the node's subgraphs
  const SubgraphPlace* outer = nullptr;  // of the graph that holds the node; null: the main graph

  // "then_branch of If node 'choose' in body of Loop node 'repeat'".
  std::string ToString() const;
};

struct RunScope {
  ThreadPool* threads = nullptr;
  // The run ends with an error soon after this is set; may be null.
  const StopSignal* stop = nullptr;
  // Called before each step of the main graph, and at its end; may be null.
  const Progress* progress = nullptr;
  // Which graph is running; null: the main graph.
  const SubgraphPlace* place = nullptr;
  // The streams of the run; null: those of the outermost plan's frame.
  StreamSet* streams = nullptr;

  // Records what the steps do; null: nothing is recorded.
  Profiler* profiler = nullptr;
  // The session's id, for the profiler.
  uint32_t session_id = 0;
  // Counts what the steps do; null: nothing is counted.
  RunMeter* meter = nullptr;

  // Marks the nodes for NVIDIA's tools; null: nothing is marked.
  NvtxRanges* nvtx = nullptr;

  // Whether the memory of the run's values may be planned. If not, each value has memory of its
  // own.
  bool plans_memory = true;

  // Shows what the steps read and make; null: nothing is shown. With a dump, memory is not planned,
  // so that each step runs and each value lasts until its last reader.
  NodeDump* dump = nullptr;

  // For the kernels; null: the session's.
  const Logger* logger = nullptr;
  // Receives the text of a node's failure; may be null.
  const Logger* failure_logger = nullptr;
  // Receives which node failed; may be null.
  FailedNode* failed = nullptr;

  // Ok while the run may go on with `next`, which the error names.
  Status CheckStop(const Node& next) const;
  // Whether a loop has left out a part of its work. Then the run must end.
  bool WasCut() const { return stop != nullptr && stop->has_cut(); }
  // Why the run ends: "the run passed its deadline of 20 ms in Conv-11 node 'first'".
  Status Stopped(std::string_view where, const Node& node) const;
};

}  // namespace tenon
