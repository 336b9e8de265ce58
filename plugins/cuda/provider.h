// The provider of one session.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "compiled_graph.h"
#include "device.h"
#include "device_trace.h"
#include "options.h"
#include "run_recorder.h"

namespace cuda {

// Minor version of the runtime's ABI; set before any provider is made.
extern uint32_t runtime_version;

struct Provider : OrtEp {
  // `device` outlives the provider, `logger` is the session's.
  Provider(Device& device, Options options, const OrtLogger* logger);
  ~Provider();

  // Finishes the device's work and reads its times, so that they reach the session's trace.
  OrtStatus* OnSessionEnd();
  Status Synchronize();

  Context context;
  Target target;
  DeviceTrace trace;
  RunRecorder recorder;
};

}  // namespace cuda
