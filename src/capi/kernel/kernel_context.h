// OrtKernelContext: one call of a custom operator's kernel.
#pragma once

#include <onnxruntime_c_api.h>

#include <memory>
#include <vector>

#include "base/stop_signal.h"
#include "capi/kernel/kernel_info.h"
#include "runtime/kernel_context.h"

struct OrtKernelContext {
  tenon::KernelContext& context;
  const tenon::capi::NodeDescription& node;
  // Element types of the outputs, where they are known.
  const std::vector<tenon::DataType>& output_types;
  // The input whose elements an output begins with, or -1.
  const std::vector<int>& aliases;
  // kNone until the kernel asks for it; shares the memory. Asking for a bound output is const.
  mutable std::vector<tenon::Value> outputs;
  std::vector<std::shared_ptr<void>> scratch;
  // The client relies on its loops, and on those of the operators that it calls.
  tenon::StopScope whole{nullptr};
};
