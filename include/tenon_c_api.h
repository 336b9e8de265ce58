// What Tenon offers beyond the C ABI of ONNX Runtime. The rules of onnxruntime_c_api.h hold.
#pragma once

#include "onnxruntime_c_api.h"

// The newest table that this header declares.
#define TENON_API_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

// New versions add slots at the end and change none.
typedef struct TenonApi {
  // Version of the library, as in "0.1.0". Static.
  ORT_API_T(const char*, GetVersionString, void);
} TenonApi;

// The table of the given version, null if this library is older than that. Static.
ORT_EXPORT const TenonApi* ORT_API_CALL TenonGetApi(uint32_t version) NO_EXCEPTION;

#ifdef __cplusplus
}
#endif
