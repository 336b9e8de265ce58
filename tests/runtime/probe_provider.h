// A provider that fails on request, and otherwise runs the CPU provider's kernels.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/string_map.h"
#include "runtime/provider.h"

namespace tenon {

struct ProbeOptions {
  std::string name = "ProbeExecutionProvider";
  // Operators of ai.onnx that it takes.
  std::set<std::string, std::less<>> ops = {"Add"};
  // Where it fails: "run", "create", "compile", "start", "end" (of a run) or "" for nowhere.
  std::string fails_in;
  StatusCode code = StatusCode::kEpFail;
  // The number of calls that fail before all others succeed; negative: all fail.
  int failures = 1;
  // Whether its kernels' memory is one that the host cannot reach.
  bool has_memory = false;
  // Receives "run <op>", "session_end <reason>" and "release", from any thread; may be null.
  std::function<void(const std::string&)> on_event;

  // Options by name: ops, fail, code, failures, memory=1, and log, a file that events are added to.
  static ProbeOptions From(std::string name, const StringMap& options);
};

std::unique_ptr<ExecutionProvider> MakeProbeProvider(ProbeOptions options);

// The memory of a probe that has one; it is in fact the host's.
const MemoryInfo& ProbeMemory();

}  // namespace tenon
