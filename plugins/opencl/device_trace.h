// When an OpenCL device did what.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "device.h"
#include "trace.h"

namespace opencl {

class DeviceTrace : public Trace {
 public:
  explicit DeviceTrace(const Device& device) : device_(device) {}
  ~DeviceTrace() override;

  // Takes `event` over, whose times are read when its work is done.
  void Add(std::string name, cl_event event);

 private:
  struct Pending {
    std::string name;
    cl_event event;
    uint64_t cause;
  };
  Status Calibrate() override;
  void ReadTimes() override;

  const Device& device_;
  std::chrono::nanoseconds device_to_host_{0};
  std::vector<Pending> pending_;
};

}  // namespace opencl
