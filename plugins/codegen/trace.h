// When a device did what, for the traces of sessions.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "api.h"

namespace codegen {

// The work of one provider while any profiler is on. A provider derives its own, which knows the
// device's clock. Thread-safe.
class Trace {
 public:
  virtual ~Trace() = default;

  bool is_active() const;
  // Begins to record, for one more profiler.
  Status Start();
  // Waits for the recorded work and reads its times.
  void Flush();
  // An event of the host begins or has ended on the calling thread: work is launched in it.
  static void StartEvent(uint64_t id);
  void StopEvent(uint64_t id, const char* name);

  // Work of the device, by the host's steady clock.
  struct Record {
    std::string name;
    std::chrono::nanoseconds start;
    std::chrono::nanoseconds duration;
    uint64_t cause = 0;  // the id of the host's event that it was launched in; 0: in none
  };
  // What began at or after `start`, and the names of what caused it; recording ends with the last
  // profiler.
  struct Records {
    std::vector<Record> all;
    std::map<uint64_t, std::string> causes;
  };
  Records Stop(std::chrono::nanoseconds start);

  static std::chrono::nanoseconds Now() {
    return std::chrono::steady_clock::now().time_since_epoch();
  }

 protected:
  // Relates the device's clock to the host's.
  virtual Status Calibrate() = 0;
  // Waits for the work that is pending and adds its records. Called with mutex() held.
  virtual void ReadTimes() = 0;

  std::mutex& mutex() const { return mutex_; }
  // With mutex() held: the event of this thread that work is launched in now, and a record's place.
  uint64_t CurrentCause();
  void AddRecord(Record record) { records_.all.push_back(std::move(record)); }

 private:
  mutable std::mutex mutex_;
  int profilers_ = 0;
  Records records_;
};

// The profiler of a session or of a run.
struct Profiler : OrtEpProfilerImpl {
  // `provider` is its name, a constant.
  Profiler(Trace& trace, const char* provider);

  Trace& trace;
  const char* provider;
  std::chrono::nanoseconds start{0};
  bool is_started = false;
};

}  // namespace codegen
