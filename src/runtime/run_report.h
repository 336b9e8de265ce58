// The report of a run.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "runtime/run_meter.h"

namespace tenon {

struct RunReport {
  uint64_t run_id = 0;  // counts the runs of the session
  std::chrono::microseconds duration{0};
  uint32_t attempts = 0;
  // Whether the run was repeated on a session without the provider that failed.
  bool used_fallback = false;
  // Why it was not repeated after a provider had failed; else "".
  std::string reason;

  // The measurements of the last attempt.
  uint64_t nodes = 0;  // executed nodes; those of inner graphs count each time
  std::vector<RunMeter::Provider> providers;
  std::vector<RunMeter::Location> memory;

  // Sets the fields of the last attempt.
  void SetMeasured(const RunMeter& meter) {
    nodes = meter.nodes();
    providers = meter.providers();
    memory = meter.locations();
  }

  // {"run_id":n,"duration_us":n,"attempts":n,"fallback":b,"reason":"..","nodes":n,
  //  "providers":[{"name":"..","nodes":n,"time_us":n}],
  //  "memory":[{"location":"..","device_id":n,"peak_bytes":n,"static_bytes":n,"dynamic_bytes":n}]}
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
