// A node that a plugin compiled.
#pragma once

#include <onnxruntime_ep_c_api.h>

#include <memory>

#include "capi/kernel/kernel_info.h"
#include "runtime/kernel.h"
#include "runtime/kernel_info.h"

namespace tenon::plugin {

// Makes the plugin's state for the node. `compute` outlives the kernel; `logger` and `config` are
// the session's.
Result<std::unique_ptr<Kernel>> MakeComputeKernel(OrtNodeComputeInfo* compute,
                                                  const KernelInfo& info, const Logger& logger,
                                                  const StringMap& config);

}  // namespace tenon::plugin
