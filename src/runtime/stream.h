// Queues of a device, and marks in them.
#pragma once

#include <memory>

#include "base/status.h"
#include "tensor/memory_info.h"
#include "tensor/stream_allocator.h"

namespace tenon {

class Stream;

// A point in a stream that others wait for. Used once: Activate, then any number of waits.
class Notification {
 public:
  virtual ~Notification() = default;
  // Marks the end of the work that its stream has been given so far.
  virtual Status Activate() = 0;
  // Work that `consumer` is given from now on starts after the mark. Does not block.
  virtual Status WaitOnDevice(Stream& consumer) = 0;
  // Blocks until the device reaches the mark.
  virtual Status WaitOnHost() = 0;
};

// Work that a device does in order. Serves one run at a time.
class Stream : public StreamOrder {
 public:
  virtual const MemoryInfo& device() const = 0;
  // The device's own stream object, e.g. a command queue; null if it has none.
  virtual void* handle() const { return nullptr; }
  virtual Result<std::unique_ptr<Notification>> CreateNotification() = 0;
  // Blocks until all work that the stream was given is done.
  virtual Status Flush() = 0;
  // The run that used the stream is over.
  virtual Status OnRunEnd() { return OkStatus(); }
};

// What follows on `consumer` (null: on the host) sees the work that `producer` has been given.
Status WaitFor(Stream& producer, Stream* consumer);

}  // namespace tenon
