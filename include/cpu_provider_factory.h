// Settings of the CPU provider, which every session has.
#pragma once

#include "onnxruntime_c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

// use_arena not 0: keep freed memory in an arena for the next run; this is the default.
ORT_EXPORT ORT_API_STATUS(OrtSessionOptionsAppendExecutionProvider_CPU, OrtSessionOptions* options,
                          int use_arena);

#ifdef __cplusplus
}
#endif
