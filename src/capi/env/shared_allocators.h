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

  // Registers a client's allocator, which outlives its registration, in place of any other of its
  // memory. Error: kInvalidArgument if it is an arena.
  Status Register(OrtAllocator* client);
  // Registers an allocator of this library, in place of any other of its memory, and returns its
  // handle, which the registry owns.
  OrtAllocator* Create(std::shared_ptr<Allocator> allocator,
                       const std::shared_ptr<EpSource>& source = nullptr);
  // Registers an allocator from a plugin library, unless the memory has one.
  void AddDefault(std::shared_ptr<Allocator> allocator, const std::shared_ptr<EpSource>& source);
  // Releases the memory's allocator if AddDefault added it: plugins may keep one allocator with its
  // options as long as there is a user. It is made again if no other one is registered.
  void ReleaseDefault(const MemoryInfo& memory);
  // Removes all allocators that `source` made.
  void RemoveOf(const EpSource& source);
  // Error: kInvalidArgument if the memory has none.
  Status Remove(const MemoryInfo& memory);
  // Null if the memory has none. A default allocator that a client's has replaced is made again
  // when that is removed.
  OrtAllocator* Find(const MemoryInfo& memory);
  // The allocator from which sessions take memory; null if the memory has none.
  std::shared_ptr<Allocator> FindForSessions(const MemoryInfo& memory);

  // The number of allocators of `source`, and whether one of them is in use.
  struct Holdings {
    size_t count = 0;
    bool are_in_use = false;
  };
  Holdings HoldingsOf(const EpSource& source) const;

  // The process ends: allocators from plugin libraries are neither used nor released any more.
  void Abandon();

 private:
  struct Entry {
    const MemoryInfo* memory;
    OrtAllocator* handle;
    std::weak_ptr<EpSource> source;        // of a plugin's; a client's may replace it
    std::shared_ptr<Allocator> of_client;  // null: the handle is ours
    bool is_of_plugin = false;
    bool is_default = false;
  };
  // A default allocator that was released for another.
  struct Displaced {
    const MemoryInfo* memory;
    std::weak_ptr<EpSource> source;
  };
  std::vector<Entry>::const_iterator FindEntry(const MemoryInfo& memory) const;
  void Erase(std::vector<Entry>::const_iterator entry);
  void Restore(const MemoryInfo& memory);
  // An allocator of this library, of `source` if that is not null.
  void Add(const MemoryInfo& memory, std::shared_ptr<Allocator> allocator,
           const std::shared_ptr<EpSource>& source);

  mutable Mutex mutex_;
  std::vector<Entry> entries_;
  std::vector<Displaced> displaced_;
};

}  // namespace tenon::capi
