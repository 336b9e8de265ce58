// Control flow that the host runs for a plugin: kernels of If, Loop and Scan.
#pragma once

#include <onnxruntime_ep_c_api.h>

namespace tenon::capi {

// Whether the kernel is one that the host made. All its inputs and outputs are the host's.
bool IsHostKernel(const OrtKernelImpl& kernel);

}  // namespace tenon::capi
