// What all sessions of a process share: the logger, the threads, packed weights, and, if they want
// to, the memory of their runs.
#pragma once

#include <memory>
#include <string>

#include "base/logging.h"
#include "base/thread_pool.h"
#include "runtime/data_transfer.h"
#include "runtime/shared_weights.h"
#include "tensor/best_fit_arena.h"
#include "tensor/lasting_memory.h"

namespace tenon {

struct EnvironmentOptions {
  std::string log_id = "tenon";
  Severity severity = Severity::kWarning;
  LogSink sink = StderrSink();
  ThreadPoolOptions threads;
};

// Outlives its sessions. Thread-safe.
class Environment {
 public:
  explicit Environment(EnvironmentOptions options = {})
      : logger_(std::move(options.log_id), options.severity, 0, options.sink),
        threads_(std::move(options.threads)) {}

  Logger& logger() { return logger_; }
  ThreadPool& threads() { return threads_; }
  // Copies between memories for all sessions, and for callers without one.
  DataTransfers& transfers() { return transfers_; }
  // Packed weights of all sessions that name no other place for theirs.
  const std::shared_ptr<SharedWeights>& shared_weights() const { return shared_weights_; }
  // The memory of sessions that run in turns: of values, and of slabs and scratch.
  const std::shared_ptr<Allocator>& shared_memory() const { return shared_memory_; }
  const std::shared_ptr<Allocator>& shared_work_memory() const { return shared_work_memory_; }

 private:
  // Blocks are cut to size, so that any session can use what another one freed.
  static std::shared_ptr<Allocator> MakeSharedMemory() {
    return std::make_shared<BestFitArena>(
        SharedWorkMemory(), ArenaConfig{.extend = ArenaConfig::Extend::kSameAsRequested,
                                        .max_dead_bytes = 0,
                                        .shrinks_first = true});
  }

  Logger logger_;
  ThreadPool threads_;
  DataTransfers transfers_;
  const std::shared_ptr<SharedWeights> shared_weights_ = std::make_shared<SharedWeights>();
  // Slabs lie apart from values, which live longer and would cut the place of the next slab to
  // pieces.
  const std::shared_ptr<Allocator> shared_memory_ = MakeSharedMemory();
  const std::shared_ptr<Allocator> shared_work_memory_ = MakeSharedMemory();
};

}  // namespace tenon
