// The providers in the library that the tests of fallbacks link, in place of a plugin's.
#include "capi/options/built_in_providers.h"
#include "runtime/probe_provider.h"

namespace tenon::capi {

std::span<const BuiltInProvider> BuiltInProviders() {
  static constexpr BuiltInProvider kProviders[] = {
      {"ProbeExecutionProvider",
       [](const StringMap& options) -> Result<std::unique_ptr<ExecutionProvider>> {
         return MakeProbeProvider(ProbeOptions::From("ProbeExecutionProvider", options));
       }},
      {"SecondProbeExecutionProvider",
       [](const StringMap& options) -> Result<std::unique_ptr<ExecutionProvider>> {
         return MakeProbeProvider(ProbeOptions::From("SecondProbeExecutionProvider", options));
       }},
  };
  return kProviders;
}

OrtExperimentalFnPtr FindBuiltInFunction(std::string_view) { return nullptr; }

}  // namespace tenon::capi
