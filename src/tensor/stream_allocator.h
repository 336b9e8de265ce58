// Allocators that know which stream works on a block.
#pragma once

#include "tensor/allocator.h"

namespace tenon {

// An allocator's view of a stream: how far other streams have waited for it.
class StreamOrder {
 public:
  virtual ~StreamOrder() = default;
  // Grows with every mark in the stream that other streams can wait for.
  virtual uint64_t sync_id() const { return 0; }
  // The sync id of `producer` up to which this stream has waited; 0: never.
  virtual uint64_t WaitedFor(const StreamOrder& producer) const {
    (void)producer;
    return 0;
  }
};

// Allocates blocks for the work of streams. A block that is freed while its stream still works on
// it is given only to later work of that stream, or of one that has since waited for it.
class StreamAllocator : public Allocator {
 public:
  // As Allocate; for `stream` until the block is freed or the stream is released.
  virtual void* AllocateOn(size_t bytes, StreamOrder& stream) = 0;
  // Work on the stream is over: any caller may get its blocks. Called before the stream is
  // destroyed.
  virtual void ReleaseStream(const StreamOrder& stream) = 0;
};

}  // namespace tenon
