// The functions of tenon_training_c_api.h about on-device training.
#pragma once

#include <onnxruntime_c_api.h>

#include <string_view>

namespace tenon::capi {

// Null if no function has this name.
OrtExperimentalFnPtr FindTrainingQuery(std::string_view name);

}  // namespace tenon::capi
