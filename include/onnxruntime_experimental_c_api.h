// Functions outside the stable tables, which GetExperimentalFunction finds by name. They may change
// or disappear in any release.
//
//   OrtExperimental_OrtApi_ExperimentalApiTest_SinceV28_Fn test =
//       (OrtExperimental_OrtApi_ExperimentalApiTest_SinceV28_Fn)api->GetExperimentalFunction(
//           kOrtExperimental_OrtApi_ExperimentalApiTest_SinceV28_FnName);
//
// onnxruntime_experimental_c_api.inc lists the functions and says what they do.
#pragma once

#include "onnxruntime_c_api.h"

ORT_RUNTIME_CLASS(ModelPackageOptions);
ORT_RUNTIME_CLASS(ModelPackageContext);
ORT_RUNTIME_CLASS(ModelPackageComponentContext);
ORT_RUNTIME_CLASS(EpContextConfig);

// Stores the data of that name in the client's way. `buffer` is valid during the call only. May be
// called from several threads at once.
typedef OrtStatus*(ORT_API_CALL* OrtWriteNamedBufferFunc)(void* state, const char* name,
                                                          const void* buffer,
                                                          size_t buffer_num_bytes);

// Gives the data of that name, in memory from `allocator`. May be called from several threads at
// once.
typedef OrtStatus*(ORT_API_CALL* OrtReadNamedBufferFunc)(void* state, const char* name,
                                                         OrtAllocator* allocator, void** buffer,
                                                         size_t* data_size);

// The type OrtExperimental_<name>_SinceV<since>_Fn of each function, and its name.
#define ORT_EXPERIMENTAL_API(SINCE, RETURN_TYPE, NAME, ...)                                   \
  typedef RETURN_TYPE(ORT_API_CALL* OrtExperimental_##NAME##_SinceV##SINCE##_Fn)(__VA_ARGS__) \
      NO_EXCEPTION;                                                                           \
  static const char* const kOrtExperimental_##NAME##_SinceV##SINCE##_FnName =                 \
      #NAME "_SinceV" #SINCE;
#include "onnxruntime_experimental_c_api.inc"
#undef ORT_EXPERIMENTAL_API
