// The functions of tenon_c_api.h that report on sessions and runs.
#pragma once

#include <onnxruntime_c_api.h>

#include <string_view>

namespace tenon::capi {

// Null if no function has this name.
OrtExperimentalFnPtr FindReportFunction(std::string_view name);

}  // namespace tenon::capi
