// The tables that clients call, for code of this library that calls clients' operators and plugins.
#pragma once

#include <onnxruntime_c_api.h>

namespace tenon::capi {

// The entry point of clients. OrtGetApiBase, which is called before anything else, sets it: the
// tables refer to all functions of the library, and a function that uses ClientApi should not link
// them all.
void SetClientApi(const OrtApiBase& base);
const OrtApiBase& ClientApi();

}  // namespace tenon::capi
