// The runtime's streams.
#pragma once

#include "api.h"
#include "device.h"
#include "device_trace.h"

namespace cuda {

struct Stream : OrtSyncStreamImpl {
  // `trace` may be null: a stream of no session.
  static Result<Stream*> Create(Device& device, DeviceTrace* trace);
  ~Stream();

  // The stream that this provider made; null for none.
  static Stream* Of(const OrtSyncStream* stream);

  Device& device;
  CUstream stream;
  DeviceTrace* trace;

 private:
  Stream(Device& device, CUstream stream, DeviceTrace* trace);
};

}  // namespace cuda
