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

class EpSource;

// Thread-safe.
class SharedAllocators {
 public:
  SharedAllocators() = default;
  ~SharedAllocators();
  SharedAllocators(const SharedAllocators&) = delete;
  SharedAllocators& operator=(const SharedAllocators&) = delete;

  // Registers a client's allocator, which outlives its registration, in place of one that came with
  // a library. Error: kInvalidArgument if its memory has another, or if it is an arena.
  Status Register(OrtAllocator* client);
  // Registers an allocator of ours, and returns its handle, which the registry owns; one that the
  // memory has is replaced if `replace`, else an error.
  Result<OrtAllocator*> Create(std::shared_ptr<Allocator> allocator, bool replace,
                               const EpSource* source = nullptr);
  // Registers an allocator that comes with a library, unless the memory has one.
  void AddDefault(std::shared_ptr<Allocator> allocator, const EpSource* source);
  // Takes back all that `source` made.
  void RemoveOf(const EpSource& source);
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
    const EpSource* source;  // of a plugin's; such may be replaced by a client's
    std::shared_ptr<Allocator> allocator;
  };
  std::vector<Entry>::const_iterator FindEntry(const MemoryInfo& memory) const;
  void Erase(std::vector<Entry>::const_iterator entry);

  mutable Mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace tenon::capi
