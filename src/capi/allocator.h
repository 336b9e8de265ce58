// OrtAllocator and tenon::Allocator, each as the other.
#pragma once

#include <onnxruntime_c_api.h>

#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "tensor/stream_allocator.h"

namespace tenon::capi {

// A client's or a plugin's allocator as ours. Slots that its version does not have are not called,
// and what it throws is caught. Thread-safe as far as it is.
class ClientAllocator : public StreamAllocator {
 public:
  // `client` outlives this. `memory`, which is interned, is what it gives; null: what it says.
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
  // What the client counts; nothing if it does not.
  Status FillStats(OrtKeyValuePairs& pairs) const;

 protected:
  OrtAllocator* client() const { return client_; }

 private:
  OrtAllocator* const client_;
  const MemoryInfo* const memory_;
};

// What allocates through a client's allocator, which must outlive it. An allocator that this
// library made gives what is behind it.
std::shared_ptr<Allocator> FromClient(OrtAllocator* allocator);

// The same with blocks that are aligned as Allocator promises, whatever the client's are; blocks of
// the one are not those of the other.
std::shared_ptr<Allocator> AlignedFromClient(OrtAllocator* allocator);

// A new allocator for a client, released with ReleaseAllocator.
OrtAllocator* NewClientAllocator(std::shared_ptr<Allocator> allocator);

// The same for many clients: after ReleaseAllocator it works until the last block that came through
// it is freed, and the last value with such a block is gone. AllocOnStream heeds the stream if
// `is_stream_aware`.
OrtAllocator* NewSharedAllocator(std::shared_ptr<Allocator> allocator, bool is_stream_aware);

// Whether somebody has blocks of an allocator that NewSharedAllocator made, or allocates through
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
