// The functions of tenon_training_c_api.h for partial execution.
#pragma once

#include <onnxruntime_c_api.h>

#include <string_view>

namespace tenon::capi {

// Null if no function has this name.
OrtExperimentalFnPtr FindPartialExecutionFunction(std::string_view name);

}  // namespace tenon::capi
