// What a run says of itself when it is over, to those who ask for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/mutex.h"

namespace tenon {

struct RunReport {
  uint64_t run_id = 0;  // counts the runs of the session
  std::chrono::microseconds duration{0};
  uint32_t attempts = 0;
  // Whether the run was tried again on a session without the provider that failed.
  bool used_fallback = false;
  // Why it was not, after a provider had failed; else "".
  std::string reason;

  // {"run_id":n,"duration_us":n,"attempts":n,"fallback":b,"reason":".."}
  std::string ToJson() const;
};

// The report of the last run that was given this. Thread-safe.
class RunReports {
 public:
  void Set(RunReport report) {
    const MutexLock lock(mutex_);
    last_ = std::move(report);
  }
  RunReport last() const {
    const MutexLock lock(mutex_);
    return last_;
  }

 private:
  mutable Mutex mutex_;
  RunReport last_;
};

}  // namespace tenon
