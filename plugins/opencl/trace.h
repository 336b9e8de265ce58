// When the device did what, for the traces of sessions.
#pragma once

#include <chrono>
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
  // What began at or after `start`; recording ends with the last profiler.
  std::vector<Record> Stop(std::chrono::nanoseconds start);

 private:
  struct Pending {
    std::string name;
    cl_event event;
  };
  void ReadTimes();

  const Device& device_;
  mutable std::mutex mutex_;
  int profilers_ = 0;
  std::chrono::nanoseconds device_to_host_{0};
  std::vector<Pending> pending_;
  std::vector<Record> records_;
};

// The profiler of a session or of a run.
struct Profiler : OrtEpProfilerImpl {
  explicit Profiler(Trace& trace);

  Trace& trace;
  std::chrono::nanoseconds start{0};
  bool is_started = false;
};

}  // namespace opencl
