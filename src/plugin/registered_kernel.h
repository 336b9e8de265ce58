// A kernel that a plugin made for one node.
#pragma once

#include <memory>

#include "base/logging.h"
#include "base/string_map.h"
#include "capi/kernel/packed_weights.h"
#include "plugin/kernel_def.h"
#include "runtime/kernel.h"
#include "runtime/kernel_info.h"

namespace tenon::plugin {

// Whose kernels are made: a provider of a session, which outlives them.
struct KernelOwner {
  OrtEp* ep;
  const Logger& logger;  // the session's
  const StringMap& config;
  // Where packed weights are shared; null: nowhere.
  std::shared_ptr<capi::PackedWeights> packed_weights;
};

// Calls `create` and hands the constants to the kernel for packing. Everything but `info` outlives
// the kernel.
Result<std::unique_ptr<Kernel>> MakeRegisteredKernel(const OrtKernelDef& def,
                                                     OrtKernelCreateFunc create, void* state,
                                                     KernelInfo& info, const KernelOwner& owner);

}  // namespace tenon::plugin
