// The execution providers in this library besides the CPU's.
#pragma once

#include <onnxruntime_c_api.h>

#include <memory>
#include <span>
#include <string_view>

#include "base/string_map.h"
#include "runtime/provider.h"

namespace tenon::capi {

inline constexpr std::string_view kCpuProviderName = "CPUExecutionProvider";

struct BuiltInProvider {
  std::string_view name;
  // A provider for one session. Error: kInvalidArgument for unknown options.
  Result<std::unique_ptr<ExecutionProvider>> (*make)(const StringMap& options);
};

// Most preferred first. A build that has more providers defines this function itself.
std::span<const BuiltInProvider> BuiltInProviders();

// Functions outside the tables that come with these providers; null if none has this name. Defined
// together with BuiltInProviders.
OrtExperimentalFnPtr FindBuiltInFunction(std::string_view name);

// The provider of that name, which may lack "ExecutionProvider" at its end. Null if there is none.
const BuiltInProvider* FindBuiltInProvider(std::string_view name);

// All names, the CPU's last, joined by ", ".
std::string AvailableProviderNames();

}  // namespace tenon::capi
