// What the library makes: providers, memory, copies and streams for the CUDA devices found.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api.h"
#include "device.h"

namespace cuda {

struct Factory : OrtEpFactory {
  // Finds the devices. That there are none is no error: the log says why.
  static Result<std::unique_ptr<Factory>> Create(const OrtLogger* logger);
  ~Factory();

  OrtStatus* PairDevices(const OrtHardwareDevice* const* hardware, size_t count,
                         OrtEpDevice** found, size_t capacity, size_t* found_count);
  OrtStatus* MakeProvider(const OrtKeyValuePairs* metadata, const OrtSessionOptions* options,
                          const OrtLogger* logger, OrtEp** out);
  OrtStatus* MakeAllocator(const OrtMemoryInfo* info, OrtAllocator** out);
  // The device of this number. Error: there is none, or it did not start.
  Result<Device*> Find(size_t number) const;

  std::vector<std::unique_ptr<Device>> devices;  // null where one did not start

 private:
  Factory();
  Status CreateMemoryInfos();

  struct MemoryInfos {
    OrtMemoryInfo* device = nullptr;
    OrtMemoryInfo* pinned = nullptr;
  };
  std::vector<MemoryInfos> memory_infos_;  // by device
};

}  // namespace cuda
