// Replaces capi/options/built_in_providers.cpp in a library with WebNN, which links this file
// separately.
#include "capi/options/built_in_providers.h"
#include "webnn/c_api.h"
#include "webnn/provider.h"

namespace tenon::capi {

std::span<const BuiltInProvider> BuiltInProviders() {
  static constexpr BuiltInProvider kProviders[] = {
      {webnn::kProviderName, &webnn::MakeProvider},
  };
  return kProviders;
}

OrtExperimentalFnPtr FindBuiltInFunction(std::string_view name) {
  return webnn::FindFunction(name);
}

}  // namespace tenon::capi
