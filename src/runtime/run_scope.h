// What all steps of one run share, subgraphs included.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <span>

#include "base/status.h"
#include "base/thread_pool.h"
#include "runtime/failed_node.h"
#include "tensor/memory_info.h"

namespace tenon {

class Profiler;
class RunMeter;
class StreamSet;

struct RunScope {
  ThreadPool* threads = nullptr;
  // The run ends with an error soon after this becomes true; may be null.
  const std::atomic<bool>* terminate = nullptr;
  std::optional<std::chrono::steady_clock::time_point> deadline;
  // Where the caller wants fetches that it gives no tensor for, one per fetch; null entries, and
  // all if it is empty: the CPU's memory.
  std::span<const MemoryInfo* const> fetch_memory;
  // Depth of control flow around the plan.
  int depth = 0;
  // The streams of the run; null: those of the outermost plan's frame.
  StreamSet* streams = nullptr;

  // Records what the steps do; null: nobody does.
  Profiler* profiler = nullptr;
  // Of the session, for the profiler.
  uint32_t session_id = 0;
  // Counts what the steps do; null: nobody does.
  RunMeter* meter = nullptr;

  // Learns which node failed; may be null.
  FailedNode* failed = nullptr;

  // Ok while the run may go on.
  Status CheckStop() const;
};

}  // namespace tenon
