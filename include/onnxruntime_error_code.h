// The codes of errors. Part of onnxruntime_c_api.h.
#pragma once

// Put after the name of an enumeration. Its values may then be any int in C++, as in C, so that a
// number that is no enumerator can be passed and refused.
#ifdef __cplusplus
#define ORT_ENUM_TYPE : int
#else
#define ORT_ENUM_TYPE
#endif

#ifdef __cplusplus
extern "C" {
#endif

// What kind of error a status is.
typedef enum OrtErrorCode ORT_ENUM_TYPE {
  ORT_OK = 0,
  ORT_FAIL = 1,
  ORT_INVALID_ARGUMENT = 2,
  ORT_NO_SUCHFILE = 3,
  ORT_NO_MODEL = 4,
  ORT_ENGINE_ERROR = 5,
  ORT_RUNTIME_EXCEPTION = 6,
  ORT_INVALID_PROTOBUF = 7,
  ORT_MODEL_LOADED = 8,
  ORT_NOT_IMPLEMENTED = 9,
  ORT_INVALID_GRAPH = 10,
  ORT_EP_FAIL = 11,
  ORT_MODEL_LOAD_CANCELED = 12,
  ORT_MODEL_REQUIRES_COMPILATION = 13,
  ORT_NOT_FOUND = 14,
  ORT_DEVICE_RESET = 15,
} OrtErrorCode;

#ifdef __cplusplus
}
#endif
