// When a CUDA device did what.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "device.h"
#include "trace.h"

namespace cuda {

class DeviceTrace : public Trace {
 public:
  explicit DeviceTrace(Device& device) : device_(device) {}
  ~DeviceTrace() override;

  // The start of work that is about to be queued on the stream; null if no profiler is on.
  CUevent Begin(CUstream stream);
  // Takes `begin` over, which may be null: the work has been queued.
  void End(std::string name, CUevent begin, CUstream stream);

 private:
  struct Pending {
    std::string name;
    CUevent begin;
    CUevent end;
    uint64_t cause;
  };
  Status Calibrate() override;
  void ReadTimes() override;

  Device& device_;
  CUevent origin_ = nullptr;  // whose time is known on both clocks
  std::chrono::nanoseconds origin_time_{0};
  std::vector<Pending> pending_;
};

}  // namespace cuda
