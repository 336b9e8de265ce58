// Queues of the device as the runtime's streams.
#pragma once

#include "api.h"
#include "device.h"
#include "device_trace.h"

namespace opencl {

struct Stream : OrtSyncStreamImpl {
  // `trace` may be null: a stream of no session.
  static Result<Stream*> Create(const Device& device, DeviceTrace* trace);
  ~Stream();

  // The queue of a stream that this provider made; null for none.
  static Stream* Of(const OrtSyncStream* stream);

  cl_command_queue queue;
  DeviceTrace* trace;

 private:
  Stream(cl_command_queue queue, DeviceTrace* trace);
};

}  // namespace opencl
