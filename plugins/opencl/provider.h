// The provider of one session.
#pragma once

#include <memory>
#include <string>

#include "compiled_graph.h"
#include "device.h"
#include "device_trace.h"

namespace opencl {

struct Provider : OrtEp {
  // `device` outlives the provider, `logger` is the session's.
  Provider(Device& device, const OrtLogger* logger);

  // Finishes the device's work and reads its times, so that they reach the session's trace.
  OrtStatus* OnSessionEnd();

  Device& device;
  const OrtLogger* logger;
  DeviceTrace trace;
};

}  // namespace opencl
