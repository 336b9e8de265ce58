// Packing of a kernel's constants by the plugin that made it.
#pragma once

#include <onnxruntime_ep_c_api.h>

#include <memory>
#include <string>
#include <vector>

#include "capi/kernel/packed_weights.h"
#include "runtime/kernel_info.h"

// Passed to PrePackWeight; valid during the call.
struct OrtSharedPrePackedWeightCache {
  std::shared_ptr<OrtAllocator> allocator;  // which the buffers are from
  std::shared_ptr<tenon::capi::PackedWeight> stored;
};

namespace tenon::plugin {

// Passes constants to a kernel and keeps the packed weights that it stores for sharing.
class WeightPacking {
 public:
  // `shared` is the store of packed weights of all sessions; null: the session shares nothing, and
  // its kernels get no cache. `key` distinguishes kernels whose equal buffers have different
  // meanings.
  WeightPacking(std::string key, std::shared_ptr<capi::PackedWeights> shared);

  // Offers every constant input of the node to the kernel; tells `info` which of them it packed.
  Status PackConstants(OrtKernelImpl& kernel, KernelInfo& info);

 private:
  Status Pack(OrtKernelImpl& kernel, KernelInfo& info, size_t input);
  Status UseShared(OrtKernelImpl& kernel, size_t input,
                   std::shared_ptr<const capi::PackedWeight> made);

  const std::string key_;
  const std::shared_ptr<capi::PackedWeights> shared_;
  // The source of packed weights; lives until the last of them is freed.
  const std::shared_ptr<OrtAllocator> allocator_;
  std::vector<std::shared_ptr<const capi::PackedWeight>> used_;
};

}  // namespace tenon::plugin
