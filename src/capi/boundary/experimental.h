// The experimental functions, each under its name without a version.
#pragma once

#include <onnxruntime_experimental_c_api.h>

namespace tenon::capi {

#define ORT_EXPERIMENTAL_API(since, type, name, ...) type name(__VA_ARGS__) noexcept;
#include <onnxruntime_experimental_c_api.inc>
#undef ORT_EXPERIMENTAL_API

}  // namespace tenon::capi
