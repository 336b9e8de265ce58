// The function tables of the C ABI.
#pragma once

#include <onnxruntime_c_api.h>

namespace tenon::capi {

// The table for clients of ORT_API_VERSION `version`. It is the same for all known versions, since
// tables only grow at the end. Null, with a line on the standard error stream, for other versions.
const OrtApi* GetApi(uint32_t version) noexcept;

// The entry point of clients: the two functions here.
extern const OrtApiBase kApiBase;

// "1.30.0".
const char* GetVersionString() noexcept;

}  // namespace tenon::capi
