// The tables that clients call, for what this library calls of theirs: operators and plugins.
#pragma once

#include <onnxruntime_c_api.h>

namespace tenon::capi {

// Where clients begin. OrtGetApiBase, which is called before anything else, says what it is: the
// tables know all functions of the library, and no function should need them all to be linked.
void SetClientApi(const OrtApiBase& base);
const OrtApiBase& ClientApi();

}  // namespace tenon::capi
