// The allocators that sessions of an environment may share, one for each memory.
#pragma once

#include <onnxruntime_c_api.h>

#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "tensor/allocator.h"

namespace tenon::capi {

// Thread-safe.
class SharedAllocators {
 public:
  SharedAllocators() = default;
  ~SharedAllocators();
  SharedAllocators(const SharedAllocators&) = delete;
  SharedAllocators& operator=(const SharedAllocators&) = delete;

  // Registers a client's allocator, which outlives its registration. Error: kInvalidArgument if
  // its memory has one.
  Status Register(OrtAllocator* client);
  // Registers an allocator of ours, and returns its handle, which the registry owns; one that the
  // memory has is replaced if `replace`, else an error.
  Result<OrtAllocator*> Create(std::shared_ptr<Allocator> allocator, bool replace);
  // Error: kInvalidArgument if the memory has none.
  Status Remove(const MemoryInfo& memory);
  // Null if the memory has none.
  OrtAllocator* Find(const MemoryInfo& memory) const;
  // What sessions take memory from, null if the memory has no allocator.
  std::shared_ptr<Allocator> FindForSessions(const MemoryInfo& memory) const;

 private:
  struct Entry {
    const MemoryInfo* memory;
    OrtAllocator* handle;
    bool is_ours;
    std::shared_ptr<Allocator> allocator;
  };
  std::vector<Entry>::const_iterator FindEntry(const MemoryInfo& memory) const;

  mutable Mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace tenon::capi
