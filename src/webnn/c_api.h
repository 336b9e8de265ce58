// The functions of tenon_webnn_c_api.h.
#pragma once

#include <onnxruntime_c_api.h>

#include <string_view>

namespace tenon::webnn {

// Null if no function has this name.
OrtExperimentalFnPtr FindFunction(std::string_view name);

}  // namespace tenon::webnn
