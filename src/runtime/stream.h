// Streams (queues) of a device, and marks in them.
#pragma once

#include <memory>

#include "base/status.h"
#include "tensor/memory_info.h"
#include "tensor/stream_allocator.h"

namespace tenon {

class Stream;

// A mark in a stream, to wait for. Used once: Activate, then any number of waits.
class Notification {
 public:
  virtual ~Notification() = default;
  // Sets the mark after the work that its stream has been given so far.
  virtual Status Activate() = 0;
  // Work that `consumer` is given after this call starts after the mark. Does not block.
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
  // Called after the run that used the stream.
  virtual Status OnRunEnd() { return OkStatus(); }
};

// Work that `consumer` (null: the host) does after this call sees the work that `producer` was
// given.
Status WaitFor(Stream& producer, Stream* consumer);

}  // namespace tenon
