// What Tenon offers beyond the C ABI of ONNX Runtime. The rules of onnxruntime_c_api.h hold.
#pragma once

#include "onnxruntime_c_api.h"

// The newest table that this header declares.
#define TENON_API_VERSION 1

// Element types that ONNXTensorElementDataType lacks, as numbers of it.
#define TENON_TENSOR_ELEMENT_DATA_TYPE_FLOAT6E2M3 27
#define TENON_TENSOR_ELEMENT_DATA_TYPE_FLOAT6E3M2 28

#ifdef __cplusplus
extern "C" {
#endif

// New versions add slots at the end and change none.
typedef struct TenonApi {
  // Version of the library, as in "0.1.0". Static.
  ORT_API_T(const char*, GetVersionString, void);

  // Describes a model file without making a session. The sizes of `dim_count` named dimensions may
  // be given; a dimension that inputs leave unnamed is called "<input>.<axis>". `json` receives
  // one JSON object as null-terminated UTF-8, to be freed with `allocator`:
  //   ir_version, producer_name, producer_version, domain, model_version, doc_string, graph_name
  //   opsets               [{domain, version}], "" for ai.onnx
  //   metadata             {key: text}
  //   inputs, outputs      [{name, type, shape}]; shape is an array of numbers and texts such as
  //                        "batch" or "2*batch + 1", or null if not even the rank is known
  //   operators            [{domain, op_type, count}], most frequent first, subgraphs included
  //   functions            [{domain, name, nodes}]
  //   nodes                how many there are, subgraphs included
  //   parameters           {tensors, elements, bytes} of the initializers
  //   activations          {peak_bytes, unknown_values, assumed_dims}: an estimate of the memory
  //                        for values between nodes, without what sharing and fusion save;
  //                        dimensions in assumed_dims were counted as 1, unknown values not at all
  //   problem              why the model cannot be run, or null
  // Fails if the file cannot be read as a model at all.
  ORT_API_T(OrtStatus*, DescribeModel, const ORTCHAR_T* model_path, const char* const* dim_names,
            const int64_t* dim_sizes, size_t dim_count, OrtAllocator* allocator, char** json);
} TenonApi;

// The table of the given version, null if this library is older than that. Static.
ORT_EXPORT const TenonApi* ORT_API_CALL TenonGetApi(uint32_t version) NO_EXCEPTION;

#ifdef __cplusplus
}
#endif
