#include "allocator.h"

#include <algorithm>
#include <string>

#include "stream.h"

namespace cuda {

DeviceAllocator::DeviceAllocator(const OrtMemoryInfo* memory_info, Device& memory_device)
    : OrtAllocator{}, info(memory_info), device(memory_device) {
  version = kAbiVersion;
  static constexpr auto kCount = [](DeviceAllocator* me, const Result<void*>& block) -> void* {
    if (!block.ok()) return nullptr;
    ++me->allocations;
    ++me->blocks;
    return *block;
  };
  Alloc = [](OrtAllocator* self, size_t size) noexcept -> void* {
    auto* me = static_cast<DeviceAllocator*>(self);
    return kCount(me, me->device.Allocate(size));
  };
  AllocOnStream = [](OrtAllocator* self, size_t size,
                     OrtSyncStream* sync_stream) noexcept -> void* {
    auto* me = static_cast<DeviceAllocator*>(self);
    const Stream* stream = Stream::Of(sync_stream);
    if (!stream || stream->device.number() != me->device.number()) return me->Alloc(self, size);
    return kCount(me, me->device.Allocate(size, stream->stream));
  };
  Free = [](OrtAllocator* self, void* address) noexcept {
    if (!address) return;
    auto* me = static_cast<DeviceAllocator*>(self);
    me->device.Free(address);
    --me->blocks;
  };
  Info = [](const OrtAllocator* self) noexcept {
    return static_cast<const DeviceAllocator*>(self)->info;
  };
  Shrink = [](OrtAllocator* self) noexcept -> OrtStatus* {
    static_cast<DeviceAllocator*>(self)->device.Trim();
    return nullptr;
  };
  GetStats = [](const OrtAllocator* self, OrtKeyValuePairs** out) noexcept -> OrtStatus* {
    return Guarded([&]() -> OrtStatus* {
      const auto* me = static_cast<const DeviceAllocator*>(self);
      ort->CreateKeyValuePairs(out);
      ort->AddKeyValuePair(*out, "NumAllocs", std::to_string(me->allocations).c_str());
      ort->AddKeyValuePair(*out, "NumBlocks", std::to_string(me->blocks).c_str());
      return nullptr;
    });
  };
}

PinnedAllocator::PinnedAllocator(const OrtMemoryInfo* memory_info, Device& memory_device)
    : OrtAllocator{}, info(memory_info), device(memory_device) {
  version = kAbiVersion;
  Alloc = [](OrtAllocator* self, size_t size) noexcept -> void* {
    void* address = nullptr;
    if (!static_cast<PinnedAllocator*>(self)->device.MakeCurrent().ok()) return nullptr;
    const CUresult error = Cu().cuMemHostAlloc(&address, std::max<size_t>(size, 1), 0);
    return error == CUDA_SUCCESS ? address : nullptr;
  };
  Free = [](OrtAllocator* self, void* address) noexcept {
    if (address && static_cast<PinnedAllocator*>(self)->device.MakeCurrent().ok()) {
      Cu().cuMemFreeHost(address);
    }
  };
  Info = [](const OrtAllocator* self) noexcept {
    return static_cast<const PinnedAllocator*>(self)->info;
  };
}

}  // namespace cuda
