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
                               const std::shared_ptr<EpSource>& source = nullptr);
  // Registers an allocator that comes with a library, unless the memory has one.
  void AddDefault(std::shared_ptr<Allocator> allocator, const std::shared_ptr<EpSource>& source);
  // Takes back all that `source` made.
  void RemoveOf(const EpSource& source);
  // Error: kInvalidArgument if the memory has none.
  Status Remove(const MemoryInfo& memory);
  // Null if the memory has none. A default allocator that a client's took the place of, and which
  // is gone, is made anew.
  OrtAllocator* Find(const MemoryInfo& memory);
  // What sessions take memory from, null if the memory has no allocator.
  std::shared_ptr<Allocator> FindForSessions(const MemoryInfo& memory);

  // How many allocators of `source` there are, and whether somebody uses one of them.
  struct Holdings {
    size_t count = 0;
    bool are_in_use = false;
  };
  Holdings HoldingsOf(const EpSource& source) const;

  // The process ends: what came with libraries is neither used nor released any more.
  void Abandon();

 private:
  struct Entry {
    const MemoryInfo* memory;
    OrtAllocator* handle;
    std::weak_ptr<EpSource> source;        // of a plugin's; such may be replaced by a client's
    std::shared_ptr<Allocator> of_client;  // null: the handle is ours
    bool is_of_plugin = false;
  };
  // A default allocator that a client's took the place of.
  struct Displaced {
    const MemoryInfo* memory;
    std::weak_ptr<EpSource> source;
  };
  std::vector<Entry>::const_iterator FindEntry(const MemoryInfo& memory) const;
  void Erase(std::vector<Entry>::const_iterator entry);
  void Restore(const MemoryInfo& memory);
  // An allocator of ours, of `source` if that is not null.
  void Add(const MemoryInfo& memory, std::shared_ptr<Allocator> allocator,
           const std::shared_ptr<EpSource>& source);

  mutable Mutex mutex_;
  std::vector<Entry> entries_;
  std::vector<Displaced> displaced_;
};

}  // namespace tenon::capi
