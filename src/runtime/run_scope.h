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

// A subgraph that runs inside of another graph.
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
  std::chrono::milliseconds timeout{};  // that led to the deadline
  // Where the graph that runs is; null: it is the main graph.
  const SubgraphPlace* place = nullptr;
  // The streams of the run; null: those of the outermost plan's frame.
  StreamSet* streams = nullptr;

  // Records what the steps do; null: nobody does.
  Profiler* profiler = nullptr;
  // Of the session, for the profiler.
  uint32_t session_id = 0;
  // Counts what the steps do; null: nobody does.
  RunMeter* meter = nullptr;

  // Shows what the steps read and make; null: nobody looks. Memory is not planned then, so that
  // each step runs and each value lasts until its last reader.
  NodeDump* dump = nullptr;

  // Gets the text of a node's failure; may be null.
  const Logger* logger = nullptr;
  // Learns which node failed; may be null.
  FailedNode* failed = nullptr;

  // Ok while the run may go on with `next`, which the error names.
  Status CheckStop(const Node& next) const;
};

}  // namespace tenon
