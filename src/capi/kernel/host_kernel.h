// Control flow that the host runs for a plugin: kernels of If, Loop and Scan.
#pragma once

#include <onnxruntime_ep_c_api.h>

namespace tenon::capi {

// Whether the host made the kernel. All its inputs and outputs are then in the host's memory.
bool IsHostKernel(const OrtKernelImpl& kernel);

}  // namespace tenon::capi
