// When the device did what, for the traces of sessions.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "api.h"
#include "device.h"

namespace opencl {

// Work of the device, by the host's steady clock.
struct Record {
  std::string name;
  std::chrono::nanoseconds start;
  std::chrono::nanoseconds duration;
  uint64_t cause = 0;  // the id of the host's event that it was launched in; 0: in none
};

// The events of one provider while any profiler is on. Thread-safe.
class Trace {
 public:
  explicit Trace(const Device& device) : device_(device) {}
  ~Trace();

  bool is_active() const;
  // Begins to record, for one more profiler.
  Status Start();
  // Takes `event` over, whose times are read when its work is done.
  void Add(std::string name, cl_event event);
  // Waits for the recorded work and reads its times.
  void Flush();
  // An event of the host begins or has ended on the calling thread: work is launched in it.
  static void StartEvent(uint64_t id);
  void StopEvent(uint64_t id, const char* name);
  // What began at or after `start`, and the names of what caused it; recording ends with the last
  // profiler.
  struct Records {
    std::vector<Record> all;
    std::map<uint64_t, std::string> causes;
  };
  Records Stop(std::chrono::nanoseconds start);

 private:
  struct Pending {
    std::string name;
    cl_event event;
    uint64_t cause;
  };
  void ReadTimes();

  const Device& device_;
  mutable std::mutex mutex_;
  int profilers_ = 0;
  std::chrono::nanoseconds device_to_host_{0};
  std::vector<Pending> pending_;
  Records records_;
};

// The profiler of a session or of a run.
struct Profiler : OrtEpProfilerImpl {
  explicit Profiler(Trace& trace);

  Trace& trace;
  std::chrono::nanoseconds start{0};
  bool is_started = false;
};

}  // namespace opencl
