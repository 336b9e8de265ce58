// A kernel that a plugin made for one node.
#pragma once

#include <memory>

#include "plugin/kernel_registry.h"

namespace tenon::plugin {

// Calls `create` and hands the constants to the kernel for packing. Everything but `info` outlives
// the kernel.
Result<std::unique_ptr<Kernel>> MakeRegisteredKernel(const OrtKernelDef& def,
                                                     OrtKernelCreateFunc create, void* state,
                                                     KernelInfo& info, const KernelOwner& owner);

}  // namespace tenon::plugin
