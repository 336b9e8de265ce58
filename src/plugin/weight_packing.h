// Packing of a kernel's constants by the plugin that made it.
#pragma once

#include <onnxruntime_ep_c_api.h>

#include <memory>
#include <string>
#include <vector>

#include "capi/packed_weights.h"
#include "runtime/kernel_info.h"

// Passed to PrePackWeight; valid during the call.
struct OrtSharedPrePackedWeightCache {
  std::shared_ptr<OrtAllocator> allocator;  // which the buffers are from
  std::shared_ptr<tenon::capi::PackedWeight> stored;
};

namespace tenon::plugin {

// Hands constants to a kernel and keeps what it stored for sharing.
class WeightPacking {
 public:
  // `shared` is where sessions share what kernels store; null: the session shares nothing, and its
  // kernels get no cache. `key` tells kernels apart whose equal buffers mean other things.
  WeightPacking(std::string key, std::shared_ptr<capi::PackedWeights> shared);

  // Offers every constant input of the node to the kernel; says to `info` which of them it packed.
  Status PackConstants(OrtKernelImpl& kernel, KernelInfo& info);

 private:
  Status Pack(OrtKernelImpl& kernel, KernelInfo& info, size_t input);
  Status UseShared(OrtKernelImpl& kernel, size_t input,
                   std::shared_ptr<const capi::PackedWeight> made);

  const std::string key_;
  const std::shared_ptr<capi::PackedWeights> shared_;
  // What packed weights come from; lives until the last of them is freed.
  const std::shared_ptr<OrtAllocator> allocator_;
  std::vector<std::shared_ptr<const capi::PackedWeight>> used_;
};

}  // namespace tenon::plugin
