// The CPU: runs every operator that has a row.
#pragma once

#include <memory>

#include "base/status.h"
#include "base/string_map.h"
#include "runtime/provider.h"

namespace tenon {

// "CPUExecutionProvider".
std::unique_ptr<ExecutionProvider> MakeCpuProvider();

// Obeys the entry tenon.instruction_set of a session, if it has one: the process's CPU providers
// all use that instruction set. Errors: kInvalidArgument, this machine does not have it, or one was
// made before that uses another.
Status ChooseInstructionSet(const StringMap& config);

}  // namespace tenon
