// The functions of tenon_c_api.h that set and get many strings.
#pragma once

#include <onnxruntime_c_api.h>

#include <cstddef>

namespace tenon::capi {

OrtStatus* StringTensorSet(OrtValue* value, size_t first, const char* const* texts,
                           const size_t* sizes, size_t count) noexcept;
OrtStatus* StringTensorGet(const OrtValue* value, size_t first, const char** texts, size_t* sizes,
                           size_t count) noexcept;

}  // namespace tenon::capi
