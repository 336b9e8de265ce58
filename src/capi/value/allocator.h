// Adapters between OrtAllocator and tenon::Allocator.
#pragma once

#include <onnxruntime_c_api.h>

#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "tensor/stream_allocator.h"

namespace tenon::capi {

// Adapts a client's or a plugin's allocator. Slots that its version lacks are not called, and its
// exceptions are caught. Thread-safe if the allocator is.
class ClientAllocator : public StreamAllocator {
 public:
  // `client` outlives this. `memory`, which is interned, is the memory that it allocates; null: the
  // one that it reports.
  explicit ClientAllocator(OrtAllocator* client, const MemoryInfo* memory = nullptr)
      : client_(client), memory_(memory) {}

  void* Allocate(size_t bytes) override;
  void* AllocateOn(size_t bytes, StreamOrder& stream) override;
  void ReleaseStream(const StreamOrder&) override {}  // the client knows its streams
  // Outside of any pool that the client has.
  virtual void* Reserve(size_t bytes);
  void Free(void* block) override;
  const MemoryInfo& info() const override;
  bool CanShrink() const override;
  Status Shrink() override;
  // The counters of the client; nothing if it has none.
  Status FillStats(OrtKeyValuePairs& pairs) const;

 protected:
  OrtAllocator* client() const { return client_; }

 private:
  OrtAllocator* const client_;
  const MemoryInfo* const memory_;
};

// Allocates through a client's allocator, which must outlive it. If this library made the
// allocator, the original one is returned.
std::shared_ptr<Allocator> FromClient(OrtAllocator* allocator);

// The same with blocks that are aligned as Allocator promises, whatever the client's are. Blocks of
// one must not be freed by the other.
std::shared_ptr<Allocator> AlignedFromClient(OrtAllocator* allocator);

// A new allocator for a client, released with ReleaseAllocator.
OrtAllocator* NewClientAllocator(std::shared_ptr<Allocator> allocator);

// The same for many clients. After ReleaseAllocator it works until the last block that came through
// it is freed and the last value with such a block is released. AllocOnStream respects the stream
// if `is_stream_aware`.
OrtAllocator* NewSharedAllocator(std::shared_ptr<Allocator> allocator, bool is_stream_aware);

// Whether blocks of an allocator from NewSharedAllocator are in use, or something allocates through
// it.
bool IsInUse(const OrtAllocator* shared);

// `bytes` bytes from a client's allocator. Error: kFail if it has none.
Result<void*> AllocateFrom(OrtAllocator* allocator, size_t bytes);

// A null-terminated copy in memory of `allocator`.
Result<char*> CopyString(OrtAllocator* allocator, std::string_view text);

// An array of such copies, each and the array itself to be freed through `allocator`; null for
// none.
Result<char**> CopyStrings(OrtAllocator* allocator, std::span<const std::string_view> texts);

}  // namespace tenon::capi
