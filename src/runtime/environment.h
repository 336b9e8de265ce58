// What all sessions of a process share: the logger, the threads, packed weights.
#pragma once

#include <memory>
#include <string>

#include "base/logging.h"
#include "base/thread_pool.h"
#include "runtime/data_transfer.h"
#include "runtime/shared_weights.h"

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

 private:
  Logger logger_;
  ThreadPool threads_;
  DataTransfers transfers_;
  const std::shared_ptr<SharedWeights> shared_weights_ = std::make_shared<SharedWeights>();
};

}  // namespace tenon
