// The CPU: runs every operator that has a row.
#pragma once

#include <memory>

#include "runtime/provider.h"

namespace tenon {

// "CPUExecutionProvider".
std::unique_ptr<ExecutionProvider> MakeCpuProvider();

}  // namespace tenon
