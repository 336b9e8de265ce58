#include "capi/options/built_in_providers.h"

namespace tenon::capi {

// Alone in this file, so that a library with its own providers links without it.
std::span<const BuiltInProvider> BuiltInProviders() { return {}; }
OrtExperimentalFnPtr FindBuiltInFunction(std::string_view) { return nullptr; }

}  // namespace tenon::capi
