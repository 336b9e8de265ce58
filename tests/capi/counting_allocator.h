// An allocator of a client.
#pragma once

#include <onnxruntime_cxx_api.h>

#include <cstdlib>

namespace tenon::test {

// Counts its blocks.
class CountingAllocator : public OrtAllocator {
 public:
  CountingAllocator() : OrtAllocator{} {
    version = ORT_API_VERSION;
    OrtAllocator::Alloc = [](OrtAllocator* self, size_t size) {
      ++static_cast<CountingAllocator*>(self)->blocks;
      return std::malloc(size);
    };
    OrtAllocator::Free = [](OrtAllocator* self, void* block) {
      --static_cast<CountingAllocator*>(self)->blocks;
      std::free(block);
    };
    OrtAllocator::Info = [](const OrtAllocator* self) -> const OrtMemoryInfo* {
      return static_cast<const CountingAllocator*>(self)->info_;
    };
  }
  int blocks = 0;

 private:
  Ort::MemoryInfo info_ = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
};

}  // namespace tenon::test
