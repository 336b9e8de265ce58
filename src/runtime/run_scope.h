// What all steps of one run share, subgraphs included.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>

#include "base/status.h"
#include "base/thread_pool.h"
#include "runtime/failed_node.h"

namespace tenon {

class Logger;
struct Node;
class NodeDump;
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
  // The run ends with an error soon after this becomes true; may be null.
  const std::atomic<bool>* terminate = nullptr;
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::chrono::milliseconds timeout{};  // from which the deadline was computed
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

  // Shows what the steps read and make; null: nothing is shown. With a dump, memory is not planned,
  // so that each step runs and each value lasts until its last reader.
  NodeDump* dump = nullptr;

  // Receives the text of a node's failure; may be null.
  const Logger* logger = nullptr;
  // Receives which node failed; may be null.
  FailedNode* failed = nullptr;

  // Ok while the run may go on with `next`, which the error names.
  Status CheckStop(const Node& next) const;
};

}  // namespace tenon
