// The C ABI of ONNX Runtime 1.30, as Tenon implements it: version 30 of the table OrtApi and the
// types and tables that it uses. C11 and C++. Programs written for ONNX Runtime compile and run
// unchanged.
//
//   const OrtApi* api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
//   OrtEnv* env = NULL;
//   OrtStatus* status = api->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "app", &env);
//   if (status != NULL) {
//     fprintf(stderr, "%s\n", api->GetErrorMessage(status));
//     api->ReleaseStatus(status);
//   }
//
// Rules for all functions, unless their comment says otherwise:
// - A returned OrtStatusPtr is null on success. Otherwise it says what went wrong, the caller
//   releases it with ReleaseStatus, and outputs are untouched.
// - An object written through `T** out` is the caller's and is released with the ReleaseT of its
//   type. One written through `const T** out` belongs to the object that was queried and lives as
//   long as that. Memory from an `allocator` argument is freed through that allocator.
// - Strings are UTF-8 and end in a null character. Pointers must not be null unless the comment
//   says so; a null pointer, an index out of range or an unknown name is ORT_INVALID_ARGUMENT.
// - Reading one object from several threads at once is safe, changing it is not. Run is reading.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "onnxruntime_error_code.h"

// The newest table that this header declares. GetApi accepts every version from 1 up to this one.
#define ORT_API_VERSION 30

#ifdef __cplusplus
extern "C" {
#endif

// Source annotations of Microsoft's compiler, which clients repeat in their own declarations.
#ifndef _MSC_VER
#define _In_
#define _In_z_
#define _In_opt_
#define _In_opt_z_
#define _In_reads_(X)
#define _In_reads_opt_(X)
#define _Out_
#define _Out_opt_
#define _Out_writes_(X)
#define _Out_writes_opt_(X)
#define _Out_writes_all_(X)
#define _Out_writes_bytes_all_(X)
#define _Outptr_
#define _Outptr_opt_
#define _Outptr_result_maybenull_
#define _Outptr_result_buffer_maybenull_(X)
#define _Inout_
#define _Inout_opt_
#define _Inout_updates_(X)
#define _Inout_updates_all_(X)
#define _Frees_ptr_opt_
#define _Ret_maybenull_
#define _Ret_notnull_
#define _Check_return_
#define _Success_(X)
#else
#include <specstrings.h>
#endif
#define ORT_ALL_ARGS_NONNULL

#ifdef _WIN32
#define ORT_EXPORT __declspec(dllexport)
#define ORT_API_CALL __stdcall
#define ORT_MUST_USE_RESULT
#define ORTCHAR_T wchar_t
#else
#define ORT_EXPORT __attribute__((visibility("default")))
#define ORT_API_CALL
#define ORT_MUST_USE_RESULT __attribute__((warn_unused_result))
#define ORTCHAR_T char
#endif

// ORT_TSTR("x") is a literal of paths; ORT_TSTR_ON_MACRO(M) expands the macro M first.
#ifndef ORT_TSTR
#ifdef _WIN32
#define ORT_TSTR(X) L##X
#define ORT_TSTR_ON_MACRO(X) L"" X
#else
#define ORT_TSTR(X) X
#define ORT_TSTR_ON_MACRO(X) X
#endif
#endif

// The source file as a path.
#define ORT_FILE_INTERNAL(X) ORT_TSTR(X)
#define ORT_FILE ORT_FILE_INTERNAL(__FILE__)

#ifdef __cplusplus
#define NO_EXCEPTION noexcept
#else
#define NO_EXCEPTION
#endif

// Declares an opaque object.
#define ORT_RUNTIME_CLASS(X) \
  struct Ort##X;             \
  typedef struct Ort##X Ort##X

// Declare a function.
#define ORT_API(RETURN_TYPE, NAME, ...) RETURN_TYPE ORT_API_CALL NAME(__VA_ARGS__) NO_EXCEPTION
#define ORT_API_STATUS(NAME, ...)             \
  OrtStatusPtr ORT_API_CALL NAME(__VA_ARGS__) \
  NO_EXCEPTION ORT_MUST_USE_RESULT
#define ORT_API_STATUS_IMPL(NAME, ...) OrtStatusPtr ORT_API_CALL NAME(__VA_ARGS__) NO_EXCEPTION
#define ORT_CLASS_RELEASE2(X) void ORT_API_CALL OrtRelease##X(Ort##X* input)

// Declare a slot of a table: one that returns RETURN_TYPE, one that returns a status, one that
// releases an object.
#define ORT_API_T(RETURN_TYPE, NAME, ...) RETURN_TYPE(ORT_API_CALL* NAME)(__VA_ARGS__) NO_EXCEPTION
#define ORT_API2_STATUS(NAME, ...) \
  OrtStatusPtr(ORT_API_CALL* NAME)(__VA_ARGS__) NO_EXCEPTION ORT_MUST_USE_RESULT
#define ORT_CLASS_RELEASE(X) void(ORT_API_CALL * Release##X)(Ort##X * input)

// The outcome of a call that failed; success is a null pointer.
ORT_RUNTIME_CLASS(Status);
typedef OrtStatus* OrtStatusPtr;

// Element types. Up to FLOAT4E2M1 the numbers are those of TensorProto.DataType.
typedef enum ONNXTensorElementDataType ORT_ENUM_TYPE {
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED = 0,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT = 1,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8 = 2,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8 = 3,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16 = 4,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16 = 5,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32 = 6,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 = 7,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING = 8,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL = 9,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16 = 10,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE = 11,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32 = 12,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64 = 13,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64 = 14,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128 = 15,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16 = 16,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN = 17,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ = 18,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2 = 19,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ = 20,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT4 = 21,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4 = 22,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1 = 23,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2 = 24,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2 = 25,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0 = 26,
} ONNXTensorElementDataType;

// Kinds of values.
typedef enum ONNXType ORT_ENUM_TYPE {
  ONNX_TYPE_UNKNOWN = 0,
  ONNX_TYPE_TENSOR = 1,
  ONNX_TYPE_SEQUENCE = 2,
  ONNX_TYPE_MAP = 3,
  ONNX_TYPE_OPAQUE = 4,
  ONNX_TYPE_SPARSETENSOR = 5,
  ONNX_TYPE_OPTIONAL = 6,
} ONNXType;

// How a sparse tensor keeps its indices.
typedef enum OrtSparseFormat ORT_ENUM_TYPE {
  ORT_SPARSE_UNDEFINED = 0,
  ORT_SPARSE_COO = 1,
  ORT_SPARSE_CSRC = 2,
  ORT_SPARSE_BLOCK_SPARSE = 4,
} OrtSparseFormat;

// Which indices of a sparse tensor are meant.
typedef enum OrtSparseIndicesFormat ORT_ENUM_TYPE {
  ORT_SPARSE_COO_INDICES = 0,
  ORT_SPARSE_CSR_INNER_INDICES = 1,
  ORT_SPARSE_CSR_OUTER_INDICES = 2,
  ORT_SPARSE_BLOCK_SPARSE_INDICES = 3,
} OrtSparseIndicesFormat;

// Severity of a log line.
typedef enum OrtLoggingLevel ORT_ENUM_TYPE {
  ORT_LOGGING_LEVEL_VERBOSE = 0,
  ORT_LOGGING_LEVEL_INFO = 1,
  ORT_LOGGING_LEVEL_WARNING = 2,
  ORT_LOGGING_LEVEL_ERROR = 3,
  ORT_LOGGING_LEVEL_FATAL = 4,
} OrtLoggingLevel;

// Types of attributes.
typedef enum OrtOpAttrType ORT_ENUM_TYPE {
  ORT_OP_ATTR_UNDEFINED = 0,
  ORT_OP_ATTR_INT = 1,
  ORT_OP_ATTR_INTS = 2,
  ORT_OP_ATTR_FLOAT = 3,
  ORT_OP_ATTR_FLOATS = 4,
  ORT_OP_ATTR_STRING = 5,
  ORT_OP_ATTR_STRINGS = 6,
  ORT_OP_ATTR_GRAPH = 7,
  ORT_OP_ATTR_TENSOR = 8,
} OrtOpAttrType;

// Which graph rewrites are applied; each level includes those below.
typedef enum GraphOptimizationLevel ORT_ENUM_TYPE {
  ORT_DISABLE_ALL = 0,
  ORT_ENABLE_BASIC = 1,
  ORT_ENABLE_EXTENDED = 2,
  ORT_ENABLE_LAYOUT = 3,
  ORT_ENABLE_ALL = 99,
} GraphOptimizationLevel;

// Whether operators run one after the other or, where they can, at the same time.
typedef enum ExecutionMode ORT_ENUM_TYPE {
  ORT_SEQUENTIAL = 0,
  ORT_PARALLEL = 1,
} ExecutionMode;

// Languages that clients are written in.
typedef enum OrtLanguageProjection ORT_ENUM_TYPE {
  ORT_PROJECTION_C = 0,
  ORT_PROJECTION_CPLUSPLUS = 1,
  ORT_PROJECTION_CSHARP = 2,
  ORT_PROJECTION_PYTHON = 3,
  ORT_PROJECTION_JAVA = 4,
  ORT_PROJECTION_WINML = 5,
  ORT_PROJECTION_NODEJS = 6,
} OrtLanguageProjection;

// The kind of an allocator.
typedef enum OrtAllocatorType ORT_ENUM_TYPE {
  OrtInvalidAllocator = -1,
  OrtDeviceAllocator = 0,
  OrtArenaAllocator = 1,
  OrtReadOnlyAllocator = 2,
} OrtAllocatorType;

// Which of a device's memories is meant: its own, or CPU memory that it reads or writes.
typedef enum OrtMemType ORT_ENUM_TYPE {
  OrtMemTypeCPUInput = -2,
  OrtMemTypeCPUOutput = -1,
  OrtMemTypeCPU = -1,
  OrtMemTypeDefault = 0,
} OrtMemType;

// Whether the host can use the memory too.
typedef enum OrtDeviceMemoryType ORT_ENUM_TYPE {
  OrtDeviceMemoryType_DEFAULT = 0,
  OrtDeviceMemoryType_HOST_ACCESSIBLE = 5,
} OrtDeviceMemoryType;

// Kinds of devices that memory belongs to.
typedef enum OrtMemoryInfoDeviceType ORT_ENUM_TYPE {
  OrtMemoryInfoDeviceType_CPU = 0,
  OrtMemoryInfoDeviceType_GPU = 1,
  OrtMemoryInfoDeviceType_FPGA = 2,
  OrtMemoryInfoDeviceType_NPU = 3,
} OrtMemoryInfoDeviceType;

// Kinds of devices that providers run on.
typedef enum OrtHardwareDeviceType ORT_ENUM_TYPE {
  OrtHardwareDeviceType_CPU = 0,
  OrtHardwareDeviceType_GPU = 1,
  OrtHardwareDeviceType_NPU = 2,
} OrtHardwareDeviceType;

// What the automatic choice of providers aims at.
typedef enum OrtExecutionProviderDevicePolicy ORT_ENUM_TYPE {
  OrtExecutionProviderDevicePolicy_DEFAULT = 0,
  OrtExecutionProviderDevicePolicy_PREFER_CPU = 1,
  OrtExecutionProviderDevicePolicy_PREFER_NPU = 2,
  OrtExecutionProviderDevicePolicy_PREFER_GPU = 3,
  OrtExecutionProviderDevicePolicy_MAX_PERFORMANCE = 4,
  OrtExecutionProviderDevicePolicy_MAX_EFFICIENCY = 5,
  OrtExecutionProviderDevicePolicy_MIN_OVERALL_POWER = 6,
} OrtExecutionProviderDevicePolicy;

// Why a provider cannot use a device; bits.
typedef enum OrtDeviceEpIncompatibilityReason ORT_ENUM_TYPE {
  OrtDeviceEpIncompatibility_NONE = 0,
  OrtDeviceEpIncompatibility_DRIVER_INCOMPATIBLE = 1,
  OrtDeviceEpIncompatibility_DEVICE_INCOMPATIBLE = 2,
  OrtDeviceEpIncompatibility_MISSING_DEPENDENCY = 4,
  OrtDeviceEpIncompatibility_UNKNOWN = -2147483647 - 1,
} OrtDeviceEpIncompatibilityReason;

// How the CUDA provider chooses algorithms for convolutions.
typedef enum OrtCudnnConvAlgoSearch ORT_ENUM_TYPE {
  OrtCudnnConvAlgoSearchExhaustive = 0,
  OrtCudnnConvAlgoSearchHeuristic = 1,
  OrtCudnnConvAlgoSearchDefault = 2,
} OrtCudnnConvAlgoSearch;

// Kinds of memory of other APIs.
typedef enum OrtExternalMemoryHandleType ORT_ENUM_TYPE {
  ORT_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE = 0,
  ORT_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP = 1,
  ORT_EXTERNAL_MEMORY_HANDLE_TYPE_VK_MEMORY_WIN32 = 2,
  ORT_EXTERNAL_MEMORY_HANDLE_TYPE_VK_MEMORY_OPAQUE_FD = 3,
} OrtExternalMemoryHandleType;

// Kinds of semaphores of other APIs.
typedef enum OrtExternalSemaphoreType ORT_ENUM_TYPE {
  ORT_EXTERNAL_SEMAPHORE_D3D12_FENCE = 0,
  ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_WIN32 = 1,
  ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD = 2,
} OrtExternalSemaphoreType;

// Graphics APIs to work with.
typedef enum OrtGraphicsApi ORT_ENUM_TYPE {
  ORT_GRAPHICS_API_NONE = 0,
  ORT_GRAPHICS_API_D3D12 = 1,
  ORT_GRAPHICS_API_VULKAN = 2,
} OrtGraphicsApi;

// Whether a compiled model suits a device.
typedef enum OrtCompiledModelCompatibility ORT_ENUM_TYPE {
  OrtCompiledModelCompatibility_EP_NOT_APPLICABLE = 0,
  OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL = 1,
  OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION = 2,
  OrtCompiledModelCompatibility_EP_UNSUPPORTED = 3,
} OrtCompiledModelCompatibility;

// Opaque objects, reached through the tables below.
ORT_RUNTIME_CLASS(ArenaCfg);
ORT_RUNTIME_CLASS(CANNProviderOptions);
ORT_RUNTIME_CLASS(CUDAProviderOptionsV2);
ORT_RUNTIME_CLASS(CustomOpDomain);
ORT_RUNTIME_CLASS(DeviceEpIncompatibilityDetails);
ORT_RUNTIME_CLASS(DnnlProviderOptions);
ORT_RUNTIME_CLASS(Env);
ORT_RUNTIME_CLASS(EpAssignedNode);
ORT_RUNTIME_CLASS(EpAssignedSubgraph);
ORT_RUNTIME_CLASS(EpDevice);
ORT_RUNTIME_CLASS(ExternalInitializerInfo);
ORT_RUNTIME_CLASS(ExternalResourceImporter);
ORT_RUNTIME_CLASS(Graph);
ORT_RUNTIME_CLASS(HardwareDevice);
ORT_RUNTIME_CLASS(IoBinding);
ORT_RUNTIME_CLASS(KernelContext);
ORT_RUNTIME_CLASS(KernelInfo);
ORT_RUNTIME_CLASS(KeyValuePairs);
ORT_RUNTIME_CLASS(Logger);
ORT_RUNTIME_CLASS(LoraAdapter);
ORT_RUNTIME_CLASS(MapTypeInfo);
ORT_RUNTIME_CLASS(MemoryInfo);
ORT_RUNTIME_CLASS(Model);
ORT_RUNTIME_CLASS(ModelCompilationOptions);
ORT_RUNTIME_CLASS(ModelMetadata);
ORT_RUNTIME_CLASS(Node);
ORT_RUNTIME_CLASS(Op);
ORT_RUNTIME_CLASS(OpAttr);
ORT_RUNTIME_CLASS(OptionalTypeInfo);
ORT_RUNTIME_CLASS(PrepackedWeightsContainer);
ORT_RUNTIME_CLASS(RunOptions);
ORT_RUNTIME_CLASS(SequenceTypeInfo);
ORT_RUNTIME_CLASS(Session);
ORT_RUNTIME_CLASS(SessionOptions);
ORT_RUNTIME_CLASS(ShapeInferContext);
ORT_RUNTIME_CLASS(SyncStream);
ORT_RUNTIME_CLASS(TensorRTProviderOptionsV2);
ORT_RUNTIME_CLASS(TensorTypeAndShapeInfo);
ORT_RUNTIME_CLASS(ThreadingOptions);
ORT_RUNTIME_CLASS(TypeInfo);
ORT_RUNTIME_CLASS(Value);
ORT_RUNTIME_CLASS(ValueInfo);

// Tables of functions and structs, declared below.
ORT_RUNTIME_CLASS(Allocator);
ORT_RUNTIME_CLASS(Api);
ORT_RUNTIME_CLASS(ApiBase);
ORT_RUNTIME_CLASS(CompileApi);
ORT_RUNTIME_CLASS(CustomOp);
ORT_RUNTIME_CLASS(Ep);
ORT_RUNTIME_CLASS(EpApi);
ORT_RUNTIME_CLASS(EpFactory);
ORT_RUNTIME_CLASS(ExternalMemoryHandle);
ORT_RUNTIME_CLASS(ExternalSemaphoreHandle);
ORT_RUNTIME_CLASS(InteropApi);
ORT_RUNTIME_CLASS(ModelEditorApi);
ORT_RUNTIME_CLASS(TrainingApi);

// A function outside the stable tables, to be cast to its own type.
typedef void(ORT_API_CALL* OrtExperimentalFnPtr)(void);

// Receives a log line. `category` is the part that logs, `code_location` the place in the source;
// all strings are only valid during the call.
typedef void(ORT_API_CALL* OrtLoggingFunction)(void* param, OrtLoggingLevel severity,
                                               const char* category, const char* logid,
                                               const char* code_location, const char* message);

// Receives the next bytes of a model that is being written.
typedef OrtStatus*(ORT_API_CALL* OrtWriteBufferFunc)(void* state, const void* buffer,
                                                     size_t buffer_num_bytes);

// Says where an initializer of a model that is being written goes. The caller of this function
// releases `*new_external_info`; null leaves the initializer in the model. `external_info` is its
// present place, null if that is in the model or in memory.
typedef OrtStatus*(ORT_API_CALL* OrtGetInitializerLocationFunc)(
    void* state, const char* initializer_name, const OrtValue* initializer_value,
    const OrtExternalInitializerInfo* external_info,
    OrtExternalInitializerInfo** new_external_info);

// A thread that a client made.
typedef const struct OrtCustomHandleType { char __place_holder; } * OrtCustomThreadHandle;

// The thread's function, the functions that start a thread and await its end.
typedef void (*OrtThreadWorkerFn)(void* ort_worker_fn_param);
typedef OrtCustomThreadHandle (*OrtCustomCreateThreadFn)(void* ort_custom_thread_creation_options,
                                                         OrtThreadWorkerFn ort_thread_worker_fn,
                                                         void* ort_worker_fn_param);
typedef void (*OrtCustomJoinThreadFn)(OrtCustomThreadHandle ort_custom_thread_handle);

// Callbacks of OrtThreadPoolCallbacksConfig.
typedef void* (*OrtThreadPoolWorkEnqueueFn)(void* user_context);
typedef void (*OrtThreadPoolWorkStartFn)(void* user_context, void* enqueue_data);
typedef void (*OrtThreadPoolWorkStopFn)(void* user_context, void* enqueue_data);
typedef void (*OrtThreadPoolWorkAbandonFn)(void* user_context, void* enqueue_data);

// Told when RunAsync is done: the outputs, or the status, which the callback releases.
typedef void (*RunAsyncCallbackFn)(void* user_data, OrtValue** outputs, size_t num_outputs,
                                   OrtStatusPtr status);

// Chooses among `num_devices` devices: writes at most `max_selected` of them, in order of
// preference. `runtime_metadata` may be null. A returned status is released by the library.
typedef OrtStatus*(ORT_API_CALL* EpSelectionDelegate)(
    const OrtEpDevice** ep_devices, size_t num_devices, const OrtKeyValuePairs* model_metadata,
    const OrtKeyValuePairs* runtime_metadata, const OrtEpDevice** selected, size_t max_selected,
    size_t* num_selected, void* state);

// An allocator, implemented by the library or by a client.
struct OrtAllocator {
  // ORT_API_VERSION of the table's implementer; later slots than that version's are not read.
  uint32_t version;
  // Returns at least `size` bytes, null if there are none.
  void*(ORT_API_CALL* Alloc)(OrtAllocator* this_, size_t size);
  // Frees what Alloc, Reserve or AllocOnStream returned; null is allowed.
  void(ORT_API_CALL* Free)(OrtAllocator* this_, void* p);
  // Where the memory lies. Owned by the allocator.
  const OrtMemoryInfo*(ORT_API_CALL* Info)(const OrtAllocator* this_);
  // As Alloc, for memory that stays, so that an arena takes it from the device. May be null. Since
  // 1.18.
  void*(ORT_API_CALL* Reserve)(OrtAllocator* this_, size_t size);
  // Figures of the allocator's use, released by the caller. May be null. Since 1.23.
  OrtStatusPtr(ORT_API_CALL* GetStats)(const OrtAllocator* this_, OrtKeyValuePairs** out);
  // As Alloc, for use on one stream. May be null. Since 1.23.
  void*(ORT_API_CALL* AllocOnStream)(OrtAllocator* this_, size_t size, OrtSyncStream* stream);
  // Gives unused memory back to the device. May be null. Since 1.25.
  OrtStatusPtr(ORT_API_CALL* Shrink)(OrtAllocator* this_);
};

// Options of the CUDA provider.
typedef struct OrtCUDAProviderOptions {
  int device_id;
  OrtCudnnConvAlgoSearch cudnn_conv_algo_search;
  size_t gpu_mem_limit;
  int arena_extend_strategy;
  int do_copy_in_default_stream;
  int has_user_compute_stream;
  void* user_compute_stream;
  OrtArenaCfg* default_memory_arena_cfg;
  int tunable_op_enable;
  int tunable_op_tuning_enable;
  int tunable_op_max_tuning_duration_ms;
#ifdef __cplusplus
  OrtCUDAProviderOptions()
      : device_id{},
        cudnn_conv_algo_search{OrtCudnnConvAlgoSearchExhaustive},
        gpu_mem_limit{SIZE_MAX},
        arena_extend_strategy{},
        do_copy_in_default_stream{1},
        has_user_compute_stream{},
        user_compute_stream{},
        default_memory_arena_cfg{},
        tunable_op_enable{},
        tunable_op_tuning_enable{},
        tunable_op_max_tuning_duration_ms{} {}
#endif
} OrtCUDAProviderOptions;

// Options of the ROCm provider.
typedef struct OrtROCMProviderOptions {
  int device_id;
  int miopen_conv_exhaustive_search;
  size_t gpu_mem_limit;
  int arena_extend_strategy;
  int do_copy_in_default_stream;
  int has_user_compute_stream;
  void* user_compute_stream;
  OrtArenaCfg* default_memory_arena_cfg;
  int enable_hip_graph;
  int tunable_op_enable;
  int tunable_op_tuning_enable;
  int tunable_op_max_tuning_duration_ms;
#ifdef __cplusplus
  OrtROCMProviderOptions()
      : device_id{},
        miopen_conv_exhaustive_search{},
        gpu_mem_limit{SIZE_MAX},
        arena_extend_strategy{},
        do_copy_in_default_stream{1},
        has_user_compute_stream{},
        user_compute_stream{},
        default_memory_arena_cfg{},
        enable_hip_graph{},
        tunable_op_enable{},
        tunable_op_tuning_enable{},
        tunable_op_max_tuning_duration_ms{} {}
#endif
} OrtROCMProviderOptions;

// Options of the TensorRT provider.
typedef struct OrtTensorRTProviderOptions {
  int device_id;
  int has_user_compute_stream;
  void* user_compute_stream;
  int trt_max_partition_iterations;
  int trt_min_subgraph_size;
  size_t trt_max_workspace_size;
  int trt_fp16_enable;
  int trt_int8_enable;
  const char* trt_int8_calibration_table_name;
  int trt_int8_use_native_calibration_table;
  int trt_dla_enable;
  int trt_dla_core;
  int trt_dump_subgraphs;
  int trt_engine_cache_enable;
  const char* trt_engine_cache_path;
  int trt_engine_decryption_enable;
  const char* trt_engine_decryption_lib_path;
  int trt_force_sequential_engine_build;
} OrtTensorRTProviderOptions;

// Options of the MIGraphX provider.
typedef struct OrtMIGraphXProviderOptions {
  int device_id;
  int migraphx_fp16_enable;
  int migraphx_fp8_enable;
  int migraphx_int8_enable;
  int migraphx_use_native_calibration_table;
  const char* migraphx_int8_calibration_table_name;
  int migraphx_save_compiled_model;
  const char* migraphx_save_model_path;
  int migraphx_load_compiled_model;
  const char* migraphx_load_model_path;
  bool migraphx_exhaustive_tune;
  size_t migraphx_mem_limit;
  int migraphx_arena_extend_strategy;
} OrtMIGraphXProviderOptions;

// Options of the OpenVINO provider.
typedef struct OrtOpenVINOProviderOptions {
  const char* device_type;
  unsigned char enable_npu_fast_compile;
  const char* device_id;
  size_t num_of_threads;
  const char* cache_dir;
  void* context;
  unsigned char enable_opencl_throttling;
  unsigned char enable_dynamic_shapes;
#ifdef __cplusplus
  OrtOpenVINOProviderOptions()
      : device_type{},
        enable_npu_fast_compile{},
        device_id{},
        num_of_threads{},
        cache_dir{},
        context{},
        enable_opencl_throttling{},
        enable_dynamic_shapes{} {}
#endif
} OrtOpenVINOProviderOptions;

// Tells a client of the work in thread pools.
typedef struct OrtThreadPoolCallbacksConfig {
  // ORT_API_VERSION of the caller.
  uint32_t version;
  // Called when work is handed to a thread of a pool; its result is passed to the functions below.
  // May be null, like all of them.
  OrtThreadPoolWorkEnqueueFn on_enqueue;
  // Called on the thread that starts the work.
  OrtThreadPoolWorkStartFn on_start_work;
  // Called on the same thread when the work has ended.
  OrtThreadPoolWorkStopFn on_stop_work;
  // Called instead of the two above if the work will never run.
  OrtThreadPoolWorkAbandonFn on_abandon;
  // Passed to all of them.
  void* user_context;
} OrtThreadPoolCallbacksConfig;

// Memory of another API to import.
typedef struct OrtExternalMemoryDescriptor {
  // ORT_API_VERSION of the caller.
  uint32_t version;
  // What `native_handle` is.
  OrtExternalMemoryHandleType handle_type;
  // The handle to import.
  void* native_handle;
  // Size of the memory.
  size_t size_bytes;
  // Where the part in use begins.
  size_t offset_bytes;
} OrtExternalMemoryDescriptor;

// A semaphore of another API to import.
typedef struct OrtExternalSemaphoreDescriptor {
  // ORT_API_VERSION of the caller.
  uint32_t version;
  // What `native_handle` is.
  OrtExternalSemaphoreType type;
  // The handle to import.
  void* native_handle;
} OrtExternalSemaphoreDescriptor;

// How a device is to work with a graphics API.
typedef struct OrtGraphicsInteropConfig {
  // ORT_API_VERSION of the caller.
  uint32_t version;
  // The API to work with.
  OrtGraphicsApi graphics_api;
  // Its queue, such as an ID3D12CommandQueue.
  void* command_queue;
  // May be null.
  const OrtKeyValuePairs* additional_options;
} OrtGraphicsInteropConfig;

// A tensor in imported memory.
typedef struct OrtExternalTensorDescriptor {
  // ORT_API_VERSION of the caller.
  uint32_t version;
  // Element type.
  ONNXTensorElementDataType element_type;
  // `rank` dimensions.
  const int64_t* shape;
  // Number of dimensions.
  size_t rank;
  // Where the tensor begins in the imported memory.
  size_t offset_bytes;
} OrtExternalTensorDescriptor;

// Settings of an environment. Set unused fields to zero.
typedef struct OrtEnvCreationOptions {
  // ORT_API_VERSION of the caller.
  uint32_t version;
  // Least severe OrtLoggingLevel that is logged.
  int32_t logging_severity_level;
  // Names the default logger; copied.
  const char* log_id;
  // Gets the log lines; null: they go to the standard error stream.
  OrtLoggingFunction custom_logging_function;
  // Passed to that function.
  void* custom_logging_param;
  // Settings of the shared thread pools; null: sessions have their own.
  const OrtThreadingOptions* threading_options;
  // Keys of onnxruntime_env_config_keys.h; may be null.
  const OrtKeyValuePairs* config_entries;
} OrtEnvCreationOptions;

// Where everything begins: OrtGetApiBase() returns the only one.
struct OrtApiBase {
  // The table of the given version, null if this library is older than that. Static.
  const OrtApi*(ORT_API_CALL* GetApi)(uint32_t version)NO_EXCEPTION;
  // "1.<version>.<patch>" of the newest table. Static.
  const char*(ORT_API_CALL* GetVersionString)(void)NO_EXCEPTION;
};

// The entry point. Never null; may be called before everything else and from any thread.
ORT_EXPORT const OrtApiBase* ORT_API_CALL OrtGetApiBase(void) NO_EXCEPTION;

// The main table. New versions add slots at the end and change none.
struct OrtApi {
  // Makes a status with a copy of `msg`. Release it with ReleaseStatus. Never null: if memory is
  // out, a shared out-of-memory status is returned, which may be released like any other.
  ORT_API_T(OrtStatus*, CreateStatus, OrtErrorCode code, const char* msg);

  // The code of `status`, which must not be null.
  ORT_API_T(OrtErrorCode, GetErrorCode, const OrtStatus* status);

  // The text of `status`, UTF-8, never null. Owned by `status`.
  ORT_API_T(const char*, GetErrorMessage, const OrtStatus* status);

  // Makes the environment: logger and shared thread pools. All environments of a process share one
  // state; each one made needs its ReleaseEnv. `logid` is copied and names the default logger.
  ORT_API2_STATUS(CreateEnv, OrtLoggingLevel log_severity_level, const char* logid, OrtEnv** out);

  // As CreateEnv, with every log line given to `logging_function`, which must be thread-safe and
  // outlive the environment. `logger_param` is passed through.
  ORT_API2_STATUS(CreateEnvWithCustomLogger, OrtLoggingFunction logging_function,
                  void* logger_param, OrtLoggingLevel log_severity_level, const char* logid,
                  OrtEnv** out);

  // Accepted for compatibility. Tenon sends no telemetry.
  ORT_API2_STATUS(EnableTelemetryEvents, const OrtEnv* env);

  // Accepted for compatibility. Tenon sends no telemetry.
  ORT_API2_STATUS(DisableTelemetryEvents, const OrtEnv* env);

  // Loads and prepares the model in the file `model_path`. `env` must outlive the session;
  // `options` may be null and is copied. Errors: ORT_NO_SUCHFILE, ORT_INVALID_PROTOBUF,
  // ORT_INVALID_GRAPH, ORT_NOT_IMPLEMENTED for an operator that no provider has.
  ORT_API2_STATUS(CreateSession, const OrtEnv* env, const ORTCHAR_T* model_path,
                  const OrtSessionOptions* options, OrtSession** out);

  // As CreateSession, with the model's bytes in memory. They are copied as far as the session needs
  // them, so the caller may free them afterwards.
  ORT_API2_STATUS(CreateSessionFromArray, const OrtEnv* env, const void* model_data,
                  size_t model_data_length, const OrtSessionOptions* options, OrtSession** out);

  // Runs the model once; may be called from several threads at once. `inputs[i]` is fed to the
  // input `input_names[i]`. A null `outputs[i]` receives a new value that the caller releases; a
  // value given there is written in place and must fit. `run_options` may be null. Errors:
  // ORT_INVALID_ARGUMENT for an unknown name, a wrong type or a wrong shape; after any error the
  // session stays usable.
  ORT_API2_STATUS(Run, OrtSession* session, const OrtRunOptions* run_options,
                  const char* const* input_names, const OrtValue* const* inputs, size_t input_len,
                  const char* const* output_names, size_t output_names_len, OrtValue** outputs);

  // Makes options with the default settings. A session copies them, so they may be released once it
  // exists.
  ORT_API2_STATUS(CreateSessionOptions, OrtSessionOptions** options);

  // Writes the optimized model to this file when a session is created.
  ORT_API2_STATUS(SetOptimizedModelFilePath, OrtSessionOptions* options,
                  const ORTCHAR_T* optimized_model_filepath);

  // Makes an independent copy of the options.
  ORT_API2_STATUS(CloneSessionOptions, const OrtSessionOptions* in_options,
                  OrtSessionOptions** out_options);

  // Whether independent branches of the graph may run at the same time. Default: ORT_SEQUENTIAL.
  ORT_API2_STATUS(SetSessionExecutionMode, OrtSessionOptions* options,
                  ExecutionMode execution_mode);

  // Writes a trace in the Chrome format to "<prefix>_<time>.json".
  ORT_API2_STATUS(EnableProfiling, OrtSessionOptions* options,
                  const ORTCHAR_T* profile_file_prefix);

  // Turns off what EnableProfiling turned on.
  ORT_API2_STATUS(DisableProfiling, OrtSessionOptions* options);

  // Plans intermediate values into one block for each set of input shapes. Default: on.
  ORT_API2_STATUS(EnableMemPattern, OrtSessionOptions* options);

  // Turns off what EnableMemPattern turned on.
  ORT_API2_STATUS(DisableMemPattern, OrtSessionOptions* options);

  // Keeps freed CPU memory in an arena for the next run. Default: on.
  ORT_API2_STATUS(EnableCpuMemArena, OrtSessionOptions* options);

  // Turns off what EnableCpuMemArena turned on.
  ORT_API2_STATUS(DisableCpuMemArena, OrtSessionOptions* options);

  // Prefix of the session's log lines; copied.
  ORT_API2_STATUS(SetSessionLogId, OrtSessionOptions* options, const char* logid);

  // Level of detail of the session's ORT_LOGGING_LEVEL_VERBOSE lines.
  ORT_API2_STATUS(SetSessionLogVerbosityLevel, OrtSessionOptions* options,
                  int session_log_verbosity_level);

  // Least severe OrtLoggingLevel that the session logs; -1: that of the environment.
  ORT_API2_STATUS(SetSessionLogSeverityLevel, OrtSessionOptions* options,
                  int session_log_severity_level);

  // Which graph rewrites a session may apply. Default: ORT_ENABLE_ALL.
  ORT_API2_STATUS(SetSessionGraphOptimizationLevel, OrtSessionOptions* options,
                  GraphOptimizationLevel graph_optimization_level);

  // Threads that share the work of one operator, the calling one included. 0: one for each physical
  // core. Without effect if the session uses the environment's pools.
  ORT_API2_STATUS(SetIntraOpNumThreads, OrtSessionOptions* options, int intra_op_num_threads);

  // Threads that run different operators at the same time, in ORT_PARALLEL mode. 0: the default.
  ORT_API2_STATUS(SetInterOpNumThreads, OrtSessionOptions* options, int inter_op_num_threads);

  // Makes an empty domain for custom operators. It must outlive the sessions that use it.
  ORT_API2_STATUS(CreateCustomOpDomain, const char* domain, OrtCustomOpDomain** out);

  // Adds an operator; `op` is not copied and must outlive the domain.
  ORT_API2_STATUS(CustomOpDomain_Add, OrtCustomOpDomain* custom_op_domain, const OrtCustomOp* op);

  // Makes the domain's operators known to sessions with these options. The domain is not copied.
  ORT_API2_STATUS(AddCustomOpDomain, OrtSessionOptions* options,
                  OrtCustomOpDomain* custom_op_domain);

  // Loads a shared library and calls its RegisterCustomOps. The caller owns `*library_handle` and
  // closes it after the last session. Prefer RegisterCustomOpsLibrary_V2.
  ORT_API2_STATUS(RegisterCustomOpsLibrary, OrtSessionOptions* options, const char* library_path,
                  void** library_handle);

  // Number of the model's inputs, without initializers that may be overridden.
  ORT_API2_STATUS(SessionGetInputCount, const OrtSession* session, size_t* out);

  // Number of the model's outputs.
  ORT_API2_STATUS(SessionGetOutputCount, const OrtSession* session, size_t* out);

  // Number of initializers that are also graph inputs, so that a run may replace them.
  ORT_API2_STATUS(SessionGetOverridableInitializerCount, const OrtSession* session, size_t* out);

  // Type of input `index`. Release with ReleaseTypeInfo.
  ORT_API2_STATUS(SessionGetInputTypeInfo, const OrtSession* session, size_t index,
                  OrtTypeInfo** type_info);

  // Type of output `index`. Release with ReleaseTypeInfo.
  ORT_API2_STATUS(SessionGetOutputTypeInfo, const OrtSession* session, size_t index,
                  OrtTypeInfo** type_info);

  // Type of overridable initializer `index`. Release with ReleaseTypeInfo.
  ORT_API2_STATUS(SessionGetOverridableInitializerTypeInfo, const OrtSession* session, size_t index,
                  OrtTypeInfo** type_info);

  // Name of input `index`, null-terminated, allocated with and freed through `allocator`.
  ORT_API2_STATUS(SessionGetInputName, const OrtSession* session, size_t index,
                  OrtAllocator* allocator, char** value);

  // Name of output `index`, null-terminated, allocated with and freed through `allocator`.
  ORT_API2_STATUS(SessionGetOutputName, const OrtSession* session, size_t index,
                  OrtAllocator* allocator, char** value);

  // Name of overridable initializer `index`, allocated with and freed through `allocator`.
  ORT_API2_STATUS(SessionGetOverridableInitializerName, const OrtSession* session, size_t index,
                  OrtAllocator* allocator, char** value);

  // Makes options for Run with the default settings.
  ORT_API2_STATUS(CreateRunOptions, OrtRunOptions** out);

  // Level of detail of the run's ORT_LOGGING_LEVEL_VERBOSE lines.
  ORT_API2_STATUS(RunOptionsSetRunLogVerbosityLevel, OrtRunOptions* options,
                  int log_verbosity_level);

  // Least severe OrtLoggingLevel that the run logs; -1: that of the session.
  ORT_API2_STATUS(RunOptionsSetRunLogSeverityLevel, OrtRunOptions* options, int log_severity_level);

  // Prefix of the run's log lines; copied.
  ORT_API2_STATUS(RunOptionsSetRunTag, OrtRunOptions* options, const char* run_tag);

  // What RunOptionsSetRunLogVerbosityLevel set.
  ORT_API2_STATUS(RunOptionsGetRunLogVerbosityLevel, const OrtRunOptions* options,
                  int* log_verbosity_level);

  // What RunOptionsSetRunLogSeverityLevel set.
  ORT_API2_STATUS(RunOptionsGetRunLogSeverityLevel, const OrtRunOptions* options,
                  int* log_severity_level);

  // What RunOptionsSetRunTag set. Owned by `options`.
  ORT_API2_STATUS(RunOptionsGetRunTag, const OrtRunOptions* options, const char** run_tag);

  // Ends all runs that use these options soon, with an error. May be called from any thread.
  ORT_API2_STATUS(RunOptionsSetTerminate, OrtRunOptions* options);

  // Takes RunOptionsSetTerminate back, so that the options can be used again.
  ORT_API2_STATUS(RunOptionsUnsetTerminate, OrtRunOptions* options);

  // Makes a tensor with memory from `allocator`, which must outlive it. Numbers are not
  // initialised; strings are empty. An empty shape makes a scalar.
  ORT_API2_STATUS(CreateTensorAsOrtValue, OrtAllocator* allocator, const int64_t* shape,
                  size_t shape_len, ONNXTensorElementDataType type, OrtValue** out);

  // Makes a tensor over the caller's memory, which must outlive it and holds `p_data_len` bytes in
  // row-major order. Not for strings. Error: ORT_INVALID_ARGUMENT if the shape needs more bytes.
  ORT_API2_STATUS(CreateTensorWithDataAsOrtValue, const OrtMemoryInfo* info, void* p_data,
                  size_t p_data_len, const int64_t* shape, size_t shape_len,
                  ONNXTensorElementDataType type, OrtValue** out);

  // `*out` is 1 if the value is a dense tensor, else 0.
  ORT_API2_STATUS(IsTensor, const OrtValue* value, int* out);

  // The first element of a tensor of anything but strings, in the tensor's memory. Valid as long as
  // the value.
  ORT_API2_STATUS(GetTensorMutableData, OrtValue* value, void** out);

  // Copies `s_len` null-terminated strings into a string tensor of just that many elements.
  ORT_API2_STATUS(FillStringTensor, OrtValue* value, const char* const* s, size_t s_len);

  // Bytes of all strings of the tensor together, without terminators.
  ORT_API2_STATUS(GetStringTensorDataLength, const OrtValue* value, size_t* len);

  // Copies all strings, one after the other without terminators, into `s`, and the offset of each
  // into `offsets`. `s_len` is at least what GetStringTensorDataLength says; `offsets_len` is the
  // number of elements.
  ORT_API2_STATUS(GetStringTensorContent, const OrtValue* value, void* s, size_t s_len,
                  size_t* offsets, size_t offsets_len);

  // The tensor part of a type, owned by `type_info`; null if it is not a tensor's.
  ORT_API2_STATUS(CastTypeInfoToTensorInfo, const OrtTypeInfo* type_info,
                  const OrtTensorTypeAndShapeInfo** out);

  // The kind of value that the type describes.
  ORT_API2_STATUS(GetOnnxTypeFromTypeInfo, const OrtTypeInfo* type_info, ONNXType* out);

  // Makes a description of a tensor without type and shape.
  ORT_API2_STATUS(CreateTensorTypeAndShapeInfo, OrtTensorTypeAndShapeInfo** out);

  // Sets the element type of a description.
  ORT_API2_STATUS(SetTensorElementType, OrtTensorTypeAndShapeInfo* info,
                  ONNXTensorElementDataType type);

  // Sets the dimensions of a description; -1 stands for an unknown one.
  ORT_API2_STATUS(SetDimensions, OrtTensorTypeAndShapeInfo* info, const int64_t* dim_values,
                  size_t dim_count);

  // The element type, or ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED.
  ORT_API2_STATUS(GetTensorElementType, const OrtTensorTypeAndShapeInfo* info,
                  ONNXTensorElementDataType* out);

  // The rank; 0 for a scalar.
  ORT_API2_STATUS(GetDimensionsCount, const OrtTensorTypeAndShapeInfo* info, size_t* out);

  // Copies at most `dim_values_length` dimensions; -1 stands for one that is unknown or symbolic.
  ORT_API2_STATUS(GetDimensions, const OrtTensorTypeAndShapeInfo* info, int64_t* dim_values,
                  size_t dim_values_length);

  // The names of the dimensions, "" where a dimension has none. The strings are owned by `info`.
  ORT_API2_STATUS(GetSymbolicDimensions, const OrtTensorTypeAndShapeInfo* info,
                  const char** dim_params, size_t dim_params_length);

  // The product of the dimensions; 1 for a scalar. Error: ORT_FAIL on overflow or if a dimension is
  // unknown.
  ORT_API2_STATUS(GetTensorShapeElementCount, const OrtTensorTypeAndShapeInfo* info, size_t* out);

  // Element type and shape of a tensor. Release with ReleaseTensorTypeAndShapeInfo.
  ORT_API2_STATUS(GetTensorTypeAndShape, const OrtValue* value, OrtTensorTypeAndShapeInfo** out);

  // The type of any value. Release with ReleaseTypeInfo.
  ORT_API2_STATUS(GetTypeInfo, const OrtValue* value, OrtTypeInfo** out);

  // The kind of a value.
  ORT_API2_STATUS(GetValueType, const OrtValue* value, ONNXType* out);

  // A memory location, such as "Cpu" and device 0.
  ORT_API2_STATUS(CreateMemoryInfo, const char* name, OrtAllocatorType type, int id,
                  OrtMemType mem_type, OrtMemoryInfo** out);

  // The location of CPU memory.
  ORT_API2_STATUS(CreateCpuMemoryInfo, OrtAllocatorType type, OrtMemType mem_type,
                  OrtMemoryInfo** out);

  // `*out` is 0 if both are the same location, else -1.
  ORT_API2_STATUS(CompareMemoryInfo, const OrtMemoryInfo* info1, const OrtMemoryInfo* info2,
                  int* out);

  // Name of the device, owned by `ptr`.
  ORT_API2_STATUS(MemoryInfoGetName, const OrtMemoryInfo* ptr, const char** out);

  // Number of the device among those of its kind.
  ORT_API2_STATUS(MemoryInfoGetId, const OrtMemoryInfo* ptr, int* out);

  // Which memory of the device it is.
  ORT_API2_STATUS(MemoryInfoGetMemType, const OrtMemoryInfo* ptr, OrtMemType* out);

  // Whether an arena or the device itself hands the memory out.
  ORT_API2_STATUS(MemoryInfoGetType, const OrtMemoryInfo* ptr, OrtAllocatorType* out);

  // Allocates `size` bytes; for 0 bytes, `*out` may be null.
  ORT_API2_STATUS(AllocatorAlloc, OrtAllocator* ort_allocator, size_t size, void** out);

  // Frees what the same allocator allocated; null is allowed.
  ORT_API2_STATUS(AllocatorFree, OrtAllocator* ort_allocator, void* p);

  // Where the allocator's memory lies. Owned by the allocator.
  ORT_API2_STATUS(AllocatorGetInfo, const OrtAllocator* ort_allocator, const OrtMemoryInfo** out);

  // The process-wide CPU allocator. Always the same one; it is never released.
  ORT_API2_STATUS(GetAllocatorWithDefaultOptions, OrtAllocator** out);

  // Gives all dimensions with this denotation a fixed size.
  ORT_API2_STATUS(AddFreeDimensionOverride, OrtSessionOptions* options, const char* dim_denotation,
                  int64_t dim_value);

  // Element `index` of a sequence, or of a map the keys (0) or values (1), as a new value. Memory
  // comes from `allocator`.
  ORT_API2_STATUS(GetValue, const OrtValue* value, int index, OrtAllocator* allocator,
                  OrtValue** out);

  // Number of elements of a sequence; 2 for a map.
  ORT_API2_STATUS(GetValueCount, const OrtValue* value, size_t* out);

  // Makes a sequence of `num_values` values (of no type yet if there are none), a map of a tensor
  // of keys and one of values, or an optional that holds one value or none. The inputs may be
  // released afterwards.
  ORT_API2_STATUS(CreateValue, const OrtValue* const* in, size_t num_values, ONNXType value_type,
                  OrtValue** out);

  // Makes a value of an opaque type.
  ORT_API2_STATUS(CreateOpaqueValue, const char* domain_name, const char* type_name,
                  const void* data_container, size_t data_container_size, OrtValue** out);

  // Copies out the contents of a value of an opaque type.
  ORT_API2_STATUS(GetOpaqueValue, const char* domain_name, const char* type_name,
                  const OrtValue* in, void* data_container, size_t data_container_size);

  // A float attribute of the node.
  ORT_API2_STATUS(KernelInfoGetAttribute_float, const OrtKernelInfo* info, const char* name,
                  float* out);

  // An integer attribute of the node.
  ORT_API2_STATUS(KernelInfoGetAttribute_int64, const OrtKernelInfo* info, const char* name,
                  int64_t* out);

  // A string attribute. `*size` counts the terminator: too small or a null `out` gives the size
  // needed.
  ORT_API2_STATUS(KernelInfoGetAttribute_string, const OrtKernelInfo* info, const char* name,
                  char* out, size_t* size);

  // Number of the node's inputs.
  ORT_API2_STATUS(KernelContext_GetInputCount, const OrtKernelContext* context, size_t* out);

  // Number of the node's outputs.
  ORT_API2_STATUS(KernelContext_GetOutputCount, const OrtKernelContext* context, size_t* out);

  // Input `index`, null if an optional one is missing. Valid during the call of the kernel.
  ORT_API2_STATUS(KernelContext_GetInput, const OrtKernelContext* context, size_t index,
                  const OrtValue** out);

  // Makes output `index` with the given shape; null if an optional one is not asked for.
  ORT_API2_STATUS(KernelContext_GetOutput, OrtKernelContext* context, size_t index,
                  const int64_t* dim_values, size_t dim_count, OrtValue** out);

  // Releases an environment; null is allowed, as in every release function.
  ORT_CLASS_RELEASE(Env);

  // Releases a status.
  ORT_CLASS_RELEASE(Status);

  // Releases what a CreateMemoryInfo function made.
  ORT_CLASS_RELEASE(MemoryInfo);

  // Ends the session: tells its providers, frees its memory. No run may be under way.
  ORT_CLASS_RELEASE(Session);

  // Releases a value, and its memory if the value owns it.
  ORT_CLASS_RELEASE(Value);

  // Releases run options. No run may use them any more.
  ORT_CLASS_RELEASE(RunOptions);

  // Releases a type description.
  ORT_CLASS_RELEASE(TypeInfo);

  // Releases a tensor description.
  ORT_CLASS_RELEASE(TensorTypeAndShapeInfo);

  // Releases session options.
  ORT_CLASS_RELEASE(SessionOptions);

  // Releases a domain, after the sessions that use it.
  ORT_CLASS_RELEASE(CustomOpDomain);

  // The denotation of the type, owned by `type_info`.
  ORT_API2_STATUS(GetDenotationFromTypeInfo, const OrtTypeInfo* type_info,
                  const char** const denotation, size_t* len);

  // The map part of a type, owned by `type_info`; null if it is not a map's.
  ORT_API2_STATUS(CastTypeInfoToMapTypeInfo, const OrtTypeInfo* type_info,
                  const OrtMapTypeInfo** out);

  // The sequence part of a type, owned by `type_info`; null if it is not a sequence's.
  ORT_API2_STATUS(CastTypeInfoToSequenceTypeInfo, const OrtTypeInfo* type_info,
                  const OrtSequenceTypeInfo** out);

  // The type of a map's keys.
  ORT_API2_STATUS(GetMapKeyType, const OrtMapTypeInfo* map_type_info,
                  ONNXTensorElementDataType* out);

  // The type of a map's values. Release with ReleaseTypeInfo.
  ORT_API2_STATUS(GetMapValueType, const OrtMapTypeInfo* map_type_info, OrtTypeInfo** type_info);

  // The type of a sequence's elements. Release with ReleaseTypeInfo.
  ORT_API2_STATUS(GetSequenceElementType, const OrtSequenceTypeInfo* sequence_type_info,
                  OrtTypeInfo** type_info);

  // Releases a map description that the caller owns.
  ORT_CLASS_RELEASE(MapTypeInfo);

  // Releases a sequence description that the caller owns.
  ORT_CLASS_RELEASE(SequenceTypeInfo);

  // Ends profiling and gives the name of the trace's file, allocated with `allocator`.
  ORT_API2_STATUS(SessionEndProfiling, OrtSession* session, OrtAllocator* allocator, char** out);

  // The model's metadata. Release with ReleaseModelMetadata.
  ORT_API2_STATUS(SessionGetModelMetadata, const OrtSession* session, OrtModelMetadata** out);

  // The tool that made the model; allocated with `allocator`, like the strings below.
  ORT_API2_STATUS(ModelMetadataGetProducerName, const OrtModelMetadata* model_metadata,
                  OrtAllocator* allocator, char** value);

  // The name of the model's graph.
  ORT_API2_STATUS(ModelMetadataGetGraphName, const OrtModelMetadata* model_metadata,
                  OrtAllocator* allocator, char** value);

  // The model's domain.
  ORT_API2_STATUS(ModelMetadataGetDomain, const OrtModelMetadata* model_metadata,
                  OrtAllocator* allocator, char** value);

  // The model's description.
  ORT_API2_STATUS(ModelMetadataGetDescription, const OrtModelMetadata* model_metadata,
                  OrtAllocator* allocator, char** value);

  // The value of `key` in the model's own metadata, null if there is none.
  ORT_API2_STATUS(ModelMetadataLookupCustomMetadataMap, const OrtModelMetadata* model_metadata,
                  OrtAllocator* allocator, const char* key, char** value);

  // The model's version number, INT64_MAX if it has none.
  ORT_API2_STATUS(ModelMetadataGetVersion, const OrtModelMetadata* model_metadata, int64_t* value);

  // Releases the metadata.
  ORT_CLASS_RELEASE(ModelMetadata);

  // As CreateEnv, with settings for the thread pools that sessions share.
  ORT_API2_STATUS(CreateEnvWithGlobalThreadPools, OrtLoggingLevel log_severity_level,
                  const char* logid, const OrtThreadingOptions* tp_options, OrtEnv** out);

  // Lets the session use the environment's thread pools.
  ORT_API2_STATUS(DisablePerSessionThreads, OrtSessionOptions* options);

  // Makes settings for the environment's thread pools.
  ORT_API2_STATUS(CreateThreadingOptions, OrtThreadingOptions** out);

  // Releases these settings; the environment has copied them.
  ORT_CLASS_RELEASE(ThreadingOptions);

  // All keys of the model's own metadata; array and strings are allocated with `allocator`. `*keys`
  // is null if there are none.
  ORT_API2_STATUS(ModelMetadataGetCustomMetadataMapKeys, const OrtModelMetadata* model_metadata,
                  OrtAllocator* allocator, char*** keys, int64_t* num_keys);

  // Gives the symbolic dimension `dim_name` a fixed size.
  ORT_API2_STATUS(AddFreeDimensionOverrideByName, OrtSessionOptions* options, const char* dim_name,
                  int64_t dim_value);

  // Names of the execution providers of this build, most preferred first. Release with
  // ReleaseAvailableProviders.
  ORT_API2_STATUS(GetAvailableProviders, char*** out_ptr, int* provider_length);

  // Releases what GetAvailableProviders gave.
  ORT_API2_STATUS(ReleaseAvailableProviders, char** ptr, int providers_length);

  // Bytes of string `index`, without a terminator.
  ORT_API2_STATUS(GetStringTensorElementLength, const OrtValue* value, size_t index, size_t* out);

  // Copies string `index` without a terminator into `s`, which has `s_len` bytes.
  ORT_API2_STATUS(GetStringTensorElement, const OrtValue* value, size_t s_len, size_t index,
                  void* s);

  // Sets string `index` to a copy of the null-terminated `s`.
  ORT_API2_STATUS(FillStringTensorElement, OrtValue* value, const char* s, size_t index);

  // Sets one of the keys of onnxruntime_session_options_config_keys.h.
  ORT_API2_STATUS(AddSessionConfigEntry, OrtSessionOptions* options, const char* config_key,
                  const char* config_value);

  // An allocator that hands out the session's memory of the given kind. Release with
  // ReleaseAllocator, before the session.
  ORT_API2_STATUS(CreateAllocator, const OrtSession* session, const OrtMemoryInfo* mem_info,
                  OrtAllocator** out);

  // Releases what CreateAllocator made.
  ORT_CLASS_RELEASE(Allocator);

  // As Run, with inputs and outputs taken from a binding.
  ORT_API2_STATUS(RunWithBinding, OrtSession* session, const OrtRunOptions* run_options,
                  const OrtIoBinding* binding_ptr);

  // Makes an empty binding for a session, which must outlive it.
  ORT_API2_STATUS(CreateIoBinding, OrtSession* session, OrtIoBinding** out);

  // Releases a binding.
  ORT_CLASS_RELEASE(IoBinding);

  // Binds a value to an input. The binding shares it; values on other devices are copied to where
  // the model needs them.
  ORT_API2_STATUS(BindInput, OrtIoBinding* binding_ptr, const char* name, const OrtValue* val_ptr);

  // Binds a value to an output, which is written in place.
  ORT_API2_STATUS(BindOutput, OrtIoBinding* binding_ptr, const char* name, const OrtValue* val_ptr);

  // Has every run allocate the output in the given memory.
  ORT_API2_STATUS(BindOutputToDevice, OrtIoBinding* binding_ptr, const char* name,
                  const OrtMemoryInfo* mem_info_ptr);

  // All bound names, one after the other without terminators, and the length of each; both
  // allocated with `allocator`.
  ORT_API2_STATUS(GetBoundOutputNames, const OrtIoBinding* binding_ptr, OrtAllocator* allocator,
                  char** buffer, size_t** lengths, size_t* count);

  // The outputs of the last run. The array is allocated with `allocator`; each value is released by
  // the caller.
  ORT_API2_STATUS(GetBoundOutputValues, const OrtIoBinding* binding_ptr, OrtAllocator* allocator,
                  OrtValue*** output, size_t* output_count);

  // Forgets the bound inputs.
  ORT_API_T(void, ClearBoundInputs, OrtIoBinding* binding_ptr);

  // Forgets the bound outputs.
  ORT_API_T(void, ClearBoundOutputs, OrtIoBinding* binding_ptr);

  // Address of the element with the given index in each dimension. Not for strings.
  ORT_API2_STATUS(TensorAt, OrtValue* value, const int64_t* location_values,
                  size_t location_values_count, void** out);

  // Makes an allocator for memory of the given kind that sessions may share.
  ORT_API2_STATUS(CreateAndRegisterAllocator, OrtEnv* env, const OrtMemoryInfo* mem_info,
                  const OrtArenaCfg* arena_cfg);

  // Says which language the client is written in. Without effect.
  ORT_API2_STATUS(SetLanguageProjection, const OrtEnv* ort_env, OrtLanguageProjection projection);

  // Start of profiling, in nanoseconds since 1970 (UTC); 0 without profiling.
  ORT_API2_STATUS(SessionGetProfilingStartTimeNs, const OrtSession* session, uint64_t* out);

  // Threads of the shared pool for the work of one operator; 0: one for each physical core.
  ORT_API2_STATUS(SetGlobalIntraOpNumThreads, OrtThreadingOptions* tp_options,
                  int intra_op_num_threads);

  // Threads of the shared pool for operators at the same time; 0: the default.
  ORT_API2_STATUS(SetGlobalInterOpNumThreads, OrtThreadingOptions* tp_options,
                  int inter_op_num_threads);

  // 1 (default): idle threads of the shared pools spin for a short while. 0: they sleep at once.
  ORT_API2_STATUS(SetGlobalSpinControl, OrtThreadingOptions* tp_options, int allow_spinning);

  // Replaces the initializer `name`. The value is not copied and must outlive the session.
  ORT_API2_STATUS(AddInitializer, OrtSessionOptions* options, const char* name,
                  const OrtValue* val);

  // CreateEnvWithCustomLogger and CreateEnvWithGlobalThreadPools in one.
  ORT_API2_STATUS(CreateEnvWithCustomLoggerAndGlobalThreadPools,
                  OrtLoggingFunction logging_function, void* logger_param,
                  OrtLoggingLevel log_severity_level, const char* logid,
                  const OrtThreadingOptions* tp_options, OrtEnv** out);

  // Adds the CUDA provider.
  ORT_API2_STATUS(SessionOptionsAppendExecutionProvider_CUDA, OrtSessionOptions* options,
                  const OrtCUDAProviderOptions* cuda_options);

  // Adds the ROCm provider.
  ORT_API2_STATUS(SessionOptionsAppendExecutionProvider_ROCM, OrtSessionOptions* options,
                  const OrtROCMProviderOptions* rocm_options);

  // Adds the OpenVINO provider.
  ORT_API2_STATUS(SessionOptionsAppendExecutionProvider_OpenVINO, OrtSessionOptions* options,
                  const OrtOpenVINOProviderOptions* provider_options);

  // Threads of the shared pools treat denormal numbers as zero.
  ORT_API2_STATUS(SetGlobalDenormalAsZero, OrtThreadingOptions* tp_options);

  // Makes the settings of an arena; -1, or 0 for `max_mem`, means the default.
  ORT_API2_STATUS(CreateArenaCfg, size_t max_mem, int arena_extend_strategy,
                  int initial_chunk_size_bytes, int max_dead_bytes_per_chunk, OrtArenaCfg** out);

  // Releases the settings of an arena.
  ORT_CLASS_RELEASE(ArenaCfg);

  // The description of the model's graph, allocated with `allocator`.
  ORT_API2_STATUS(ModelMetadataGetGraphDescription, const OrtModelMetadata* model_metadata,
                  OrtAllocator* allocator, char** value);

  // Adds the TensorRT provider.
  ORT_API2_STATUS(SessionOptionsAppendExecutionProvider_TensorRT, OrtSessionOptions* options,
                  const OrtTensorRTProviderOptions* tensorrt_options);

  // Chooses the GPU of the calling thread.
  ORT_API2_STATUS(SetCurrentGpuDeviceId, int device_id);

  // The GPU of the calling thread.
  ORT_API2_STATUS(GetCurrentGpuDeviceId, int* device_id);

  // A list of floats. `*size` is the room in `out`; too small or a null `out` gives the size
  // needed.
  ORT_API2_STATUS(KernelInfoGetAttributeArray_float, const OrtKernelInfo* info, const char* name,
                  float* out, size_t* size);

  // A list of integers, with `*size` as in KernelInfoGetAttributeArray_float.
  ORT_API2_STATUS(KernelInfoGetAttributeArray_int64, const OrtKernelInfo* info, const char* name,
                  int64_t* out, size_t* size);

  // As CreateArenaCfg, with settings by name.
  ORT_API2_STATUS(CreateArenaCfgV2, const char* const* arena_config_keys,
                  const size_t* arena_config_values, size_t num_keys, OrtArenaCfg** out);

  // Sets one of the keys of onnxruntime_run_options_config_keys.h.
  ORT_API2_STATUS(AddRunConfigEntry, OrtRunOptions* options, const char* config_key,
                  const char* config_value);

  // Makes a store through which sessions share packed weights. It must outlive them.
  ORT_API2_STATUS(CreatePrepackedWeightsContainer, OrtPrepackedWeightsContainer** out);

  // Releases the store.
  ORT_CLASS_RELEASE(PrepackedWeightsContainer);

  // As CreateSession, sharing packed weights.
  ORT_API2_STATUS(CreateSessionWithPrepackedWeightsContainer, const OrtEnv* env,
                  const ORTCHAR_T* model_path, const OrtSessionOptions* options,
                  OrtPrepackedWeightsContainer* prepacked_weights_container, OrtSession** out);

  // As CreateSessionFromArray, sharing packed weights.
  ORT_API2_STATUS(CreateSessionFromArrayWithPrepackedWeightsContainer, const OrtEnv* env,
                  const void* model_data, size_t model_data_length,
                  const OrtSessionOptions* options,
                  OrtPrepackedWeightsContainer* prepacked_weights_container, OrtSession** out);

  // Adds the TensorRT provider, with extensible options.
  ORT_API2_STATUS(SessionOptionsAppendExecutionProvider_TensorRT_V2, OrtSessionOptions* options,
                  const OrtTensorRTProviderOptionsV2* tensorrt_options);

  // Makes options of the TensorRT provider.
  ORT_API2_STATUS(CreateTensorRTProviderOptions, OrtTensorRTProviderOptionsV2** out);

  // Sets options of the TensorRT provider by name.
  ORT_API2_STATUS(UpdateTensorRTProviderOptions, OrtTensorRTProviderOptionsV2* tensorrt_options,
                  const char* const* provider_options_keys,
                  const char* const* provider_options_values, size_t num_keys);

  // All options of the TensorRT provider as "key=value;...", allocated with `allocator`.
  ORT_API2_STATUS(GetTensorRTProviderOptionsAsString,
                  const OrtTensorRTProviderOptionsV2* tensorrt_options, OrtAllocator* allocator,
                  char** ptr);

  // Releases options of the TensorRT provider.
  void(ORT_API_CALL* ReleaseTensorRTProviderOptions)(OrtTensorRTProviderOptionsV2* input);

  // Registers the operators of the onnxruntime-extensions package, where built in.
  ORT_API2_STATUS(EnableOrtCustomOps, OrtSessionOptions* options);

  // Lets sessions use the caller's allocator for its kind of memory.
  ORT_API2_STATUS(RegisterAllocator, OrtEnv* env, OrtAllocator* allocator);

  // Takes RegisterAllocator back.
  ORT_API2_STATUS(UnregisterAllocator, OrtEnv* env, const OrtMemoryInfo* mem_info);

  // `*out` is 1 if the value is a sparse tensor, else 0.
  ORT_API2_STATUS(IsSparseTensor, const OrtValue* value, int* out);

  // Makes a sparse tensor without contents; a FillSparseTensor function gives it some.
  ORT_API2_STATUS(CreateSparseTensorAsOrtValue, OrtAllocator* allocator, const int64_t* dense_shape,
                  size_t dense_shape_len, ONNXTensorElementDataType type, OrtValue** out);

  // Copies values and their coordinates (linear, or [n, 2]) into a sparse tensor.
  ORT_API2_STATUS(FillSparseTensorCoo, OrtValue* ort_value, const OrtMemoryInfo* data_mem_info,
                  const int64_t* values_shape, size_t values_shape_len, const void* values,
                  const int64_t* indices_data, size_t indices_num);

  // Copies values, column numbers and row starts into a sparse tensor.
  ORT_API2_STATUS(FillSparseTensorCsr, OrtValue* ort_value, const OrtMemoryInfo* data_mem_info,
                  const int64_t* values_shape, size_t values_shape_len, const void* values,
                  const int64_t* inner_indices_data, size_t inner_indices_num,
                  const int64_t* outer_indices_data, size_t outer_indices_num);

  // Copies blocks and their coordinates into a sparse tensor.
  ORT_API2_STATUS(FillSparseTensorBlockSparse, OrtValue* ort_value,
                  const OrtMemoryInfo* data_mem_info, const int64_t* values_shape,
                  size_t values_shape_len, const void* values, const int64_t* indices_shape_data,
                  size_t indices_shape_len, const int32_t* indices_data);

  // Makes a sparse tensor over the caller's values; a Use...Indices function gives the indices.
  ORT_API2_STATUS(CreateSparseTensorWithValuesAsOrtValue, const OrtMemoryInfo* info, void* p_data,
                  const int64_t* dense_shape, size_t dense_shape_len, const int64_t* values_shape,
                  size_t values_shape_len, ONNXTensorElementDataType type, OrtValue** out);

  // Uses the caller's coordinates, without a copy.
  ORT_API2_STATUS(UseCooIndices, OrtValue* ort_value, int64_t* indices_data, size_t indices_num);

  // Uses the caller's column numbers and row starts, without a copy.
  ORT_API2_STATUS(UseCsrIndices, OrtValue* ort_value, int64_t* inner_data, size_t inner_num,
                  int64_t* outer_data, size_t outer_num);

  // Uses the caller's block coordinates, without a copy.
  ORT_API2_STATUS(UseBlockSparseIndices, OrtValue* ort_value, const int64_t* indices_shape,
                  size_t indices_shape_len, int32_t* indices_data);

  // How the sparse tensor keeps its indices.
  ORT_API2_STATUS(GetSparseTensorFormat, const OrtValue* ort_value, OrtSparseFormat* out);

  // Type and shape of the stored values. Release with ReleaseTensorTypeAndShapeInfo.
  ORT_API2_STATUS(GetSparseTensorValuesTypeAndShape, const OrtValue* ort_value,
                  OrtTensorTypeAndShapeInfo** out);

  // The stored values, in the tensor's memory.
  ORT_API2_STATUS(GetSparseTensorValues, const OrtValue* ort_value, const void** out);

  // Type and shape of the indices. Release with ReleaseTensorTypeAndShapeInfo.
  ORT_API2_STATUS(GetSparseTensorIndicesTypeShape, const OrtValue* ort_value,
                  OrtSparseIndicesFormat indices_format, OrtTensorTypeAndShapeInfo** out);

  // The indices, in the tensor's memory, and their number.
  ORT_API2_STATUS(GetSparseTensorIndices, const OrtValue* ort_value,
                  OrtSparseIndicesFormat indices_format, size_t* num_indices, const void** indices);

  // `*out` is 0 for an optional without a value, else 1.
  ORT_API2_STATUS(HasValue, const OrtValue* value, int* out);

  // The native stream that the kernel is to use, null on the CPU.
  ORT_API2_STATUS(KernelContext_GetGPUComputeStream, const OrtKernelContext* context, void** out);

  // Where the tensor's memory lies. Owned by the value.
  ORT_API2_STATUS(GetTensorMemoryInfo, const OrtValue* value, const OrtMemoryInfo** mem_info);

  // A provider's own table of functions, if it has one.
  ORT_API2_STATUS(GetExecutionProviderApi, const char* provider_name, uint32_t version,
                  const void** provider_api);

  // The function that starts the session's threads.
  ORT_API2_STATUS(SessionOptionsSetCustomCreateThreadFn, OrtSessionOptions* options,
                  OrtCustomCreateThreadFn ort_custom_create_thread_fn);

  // What is passed to that function.
  ORT_API2_STATUS(SessionOptionsSetCustomThreadCreationOptions, OrtSessionOptions* options,
                  void* ort_custom_thread_creation_options);

  // The function that waits for the end of such a thread.
  ORT_API2_STATUS(SessionOptionsSetCustomJoinThreadFn, OrtSessionOptions* options,
                  OrtCustomJoinThreadFn ort_custom_join_thread_fn);

  // The function that starts the environment's threads.
  ORT_API2_STATUS(SetGlobalCustomCreateThreadFn, OrtThreadingOptions* tp_options,
                  OrtCustomCreateThreadFn ort_custom_create_thread_fn);

  // What is passed to that function.
  ORT_API2_STATUS(SetGlobalCustomThreadCreationOptions, OrtThreadingOptions* tp_options,
                  void* ort_custom_thread_creation_options);

  // The function that waits for the end of such a thread.
  ORT_API2_STATUS(SetGlobalCustomJoinThreadFn, OrtThreadingOptions* tp_options,
                  OrtCustomJoinThreadFn ort_custom_join_thread_fn);

  // Waits until the bound inputs are where the model needs them.
  ORT_API2_STATUS(SynchronizeBoundInputs, OrtIoBinding* binding_ptr);

  // Waits until the bound outputs are complete.
  ORT_API2_STATUS(SynchronizeBoundOutputs, OrtIoBinding* binding_ptr);

  // Adds the CUDA provider, with extensible options. Since 1.11.
  ORT_API2_STATUS(SessionOptionsAppendExecutionProvider_CUDA_V2, OrtSessionOptions* options,
                  const OrtCUDAProviderOptionsV2* cuda_options);

  // Makes options of the CUDA provider. Since 1.11.
  ORT_API2_STATUS(CreateCUDAProviderOptions, OrtCUDAProviderOptionsV2** out);

  // Sets options of the CUDA provider by name. Since 1.11.
  ORT_API2_STATUS(UpdateCUDAProviderOptions, OrtCUDAProviderOptionsV2* cuda_options,
                  const char* const* provider_options_keys,
                  const char* const* provider_options_values, size_t num_keys);

  // All options of the CUDA provider as "key=value;...", allocated with `allocator`. Since 1.11.
  ORT_API2_STATUS(GetCUDAProviderOptionsAsString, const OrtCUDAProviderOptionsV2* cuda_options,
                  OrtAllocator* allocator, char** ptr);

  // Releases options of the CUDA provider. Since 1.11.
  void(ORT_API_CALL* ReleaseCUDAProviderOptions)(OrtCUDAProviderOptionsV2* input);

  // Adds the MIGraphX provider. Since 1.11.
  ORT_API2_STATUS(SessionOptionsAppendExecutionProvider_MIGraphX, OrtSessionOptions* options,
                  const OrtMIGraphXProviderOptions* migraphx_options);

  // Supplies external initializers of the model. The values are not copied and must live until the
  // session is created. Since 1.12.
  ORT_API2_STATUS(AddExternalInitializers, OrtSessionOptions* options,
                  const char* const* initializer_names, const OrtValue* const* initializers,
                  size_t num_initializers);

  // Makes an attribute from `len` elements at `data`. Since 1.12.
  ORT_API2_STATUS(CreateOpAttr, const char* name, const void* data, int len, OrtOpAttrType type,
                  OrtOpAttr** op_attr);

  // Releases an attribute. Since 1.12.
  ORT_CLASS_RELEASE(OpAttr);

  // Makes an operator that a custom kernel can call. Since 1.12.
  ORT_API2_STATUS(CreateOp, const OrtKernelInfo* info, const char* op_name, const char* domain,
                  int version, const char** type_constraint_names,
                  const ONNXTensorElementDataType* type_constraint_values,
                  int type_constraint_count, const OrtOpAttr* const* attr_values, int attr_count,
                  int input_count, int output_count, OrtOp** ort_op);

  // Calls an operator made by CreateOp. Since 1.12.
  ORT_API2_STATUS(InvokeOp, const OrtKernelContext* context, const OrtOp* ort_op,
                  const OrtValue* const* input_values, int input_count,
                  OrtValue* const* output_values, int output_count);

  // Releases such an operator. Since 1.12.
  ORT_CLASS_RELEASE(Op);

  // Adds the provider with this name, with options by name. Since 1.12.
  ORT_API2_STATUS(SessionOptionsAppendExecutionProvider, OrtSessionOptions* options,
                  const char* provider_name, const char* const* provider_options_keys,
                  const char* const* provider_options_values, size_t num_keys);

  // Copies the description of a node, to be kept beyond the creation of its kernel. Since 1.12.
  ORT_API2_STATUS(CopyKernelInfo, const OrtKernelInfo* info, OrtKernelInfo** info_copy);

  // Releases such a copy. Since 1.12.
  ORT_CLASS_RELEASE(KernelInfo);

  // The table for training, null if this build has none. Since 1.13.
  ORT_API_T(const OrtTrainingApi*, GetTrainingApi, uint32_t version);

  // Adds the CANN provider. Since 1.13.
  ORT_API2_STATUS(SessionOptionsAppendExecutionProvider_CANN, OrtSessionOptions* options,
                  const OrtCANNProviderOptions* cann_options);

  // Makes options of the CANN provider. Since 1.13.
  ORT_API2_STATUS(CreateCANNProviderOptions, OrtCANNProviderOptions** out);

  // Sets options of the CANN provider by name. Since 1.13.
  ORT_API2_STATUS(UpdateCANNProviderOptions, OrtCANNProviderOptions* cann_options,
                  const char* const* provider_options_keys,
                  const char* const* provider_options_values, size_t num_keys);

  // All options of the CANN provider as "key=value;...", allocated with `allocator`. Since 1.13.
  ORT_API2_STATUS(GetCANNProviderOptionsAsString, const OrtCANNProviderOptions* cann_options,
                  OrtAllocator* allocator, char** ptr);

  // Releases options of the CANN provider. Since 1.13.
  ORT_CLASS_RELEASE(CANNProviderOptions);

  // The kind of device that the memory belongs to. Since 1.13.
  ORT_API_T(void, MemoryInfoGetDeviceType, const OrtMemoryInfo* ptr, OrtMemoryInfoDeviceType* out);

  // Changes the least severe level that the environment logs. Since 1.13.
  ORT_API2_STATUS(UpdateEnvWithCustomLogLevel, OrtEnv* ort_env, OrtLoggingLevel log_severity_level);

  // Processors of each shared thread but the first, as in "1,2;3,4". Since 1.13.
  ORT_API2_STATUS(SetGlobalIntraOpThreadAffinity, OrtThreadingOptions* tp_options,
                  const char* affinity_string);

  // Loads a shared library, calls its RegisterCustomOps, and keeps it loaded while options or
  // sessions need it. Since 1.14.
  ORT_API2_STATUS(RegisterCustomOpsLibrary_V2, OrtSessionOptions* options,
                  const ORTCHAR_T* library_name);

  // Calls the registration function with this name, looked up in the process. Since 1.14.
  ORT_API2_STATUS(RegisterCustomOpsUsingFunction, OrtSessionOptions* options,
                  const char* registration_func_name);

  // Number of the node's inputs. Since 1.14.
  ORT_API2_STATUS(KernelInfo_GetInputCount, const OrtKernelInfo* info, size_t* out);

  // Number of the node's outputs. Since 1.14.
  ORT_API2_STATUS(KernelInfo_GetOutputCount, const OrtKernelInfo* info, size_t* out);

  // Name of an input, with `*size` as in KernelInfoGetAttribute_string. Since 1.14.
  ORT_API2_STATUS(KernelInfo_GetInputName, const OrtKernelInfo* info, size_t index, char* out,
                  size_t* size);

  // Name of an output, with `*size` as in KernelInfoGetAttribute_string. Since 1.14.
  ORT_API2_STATUS(KernelInfo_GetOutputName, const OrtKernelInfo* info, size_t index, char* out,
                  size_t* size);

  // Type of an input. Release with ReleaseTypeInfo. Since 1.14.
  ORT_API2_STATUS(KernelInfo_GetInputTypeInfo, const OrtKernelInfo* info, size_t index,
                  OrtTypeInfo** type_info);

  // Type of an output. Release with ReleaseTypeInfo. Since 1.14.
  ORT_API2_STATUS(KernelInfo_GetOutputTypeInfo, const OrtKernelInfo* info, size_t index,
                  OrtTypeInfo** type_info);

  // A tensor attribute, copied with `allocator`. Release with ReleaseValue.
  ORT_API2_STATUS(KernelInfoGetAttribute_tensor, const OrtKernelInfo* info, const char* name,
                  OrtAllocator* allocator, OrtValue** out);

  // `*out` is 1 if the key is set, else 0. Since 1.14.
  ORT_API2_STATUS(HasSessionConfigEntry, const OrtSessionOptions* options, const char* config_key,
                  int* out);

  // The value of a key, with `*size` as in KernelInfoGetAttribute_string. Since 1.14.
  ORT_API2_STATUS(GetSessionConfigEntry, const OrtSessionOptions* options, const char* config_key,
                  char* config_value, size_t* size);

  // Adds the oneDNN provider. Since 1.15.
  ORT_API2_STATUS(SessionOptionsAppendExecutionProvider_Dnnl, OrtSessionOptions* options,
                  const OrtDnnlProviderOptions* dnnl_options);

  // Makes options of the oneDNN provider. Since 1.15.
  ORT_API2_STATUS(CreateDnnlProviderOptions, OrtDnnlProviderOptions** out);

  // Sets options of the oneDNN provider by name. Since 1.15.
  ORT_API2_STATUS(UpdateDnnlProviderOptions, OrtDnnlProviderOptions* dnnl_options,
                  const char* const* provider_options_keys,
                  const char* const* provider_options_values, size_t num_keys);

  // All options of the oneDNN provider as "key=value;...", allocated with `allocator`. Since 1.15.
  ORT_API2_STATUS(GetDnnlProviderOptionsAsString, const OrtDnnlProviderOptions* dnnl_options,
                  OrtAllocator* allocator, char** ptr);

  // Releases options of the oneDNN provider. Since 1.15.
  ORT_CLASS_RELEASE(DnnlProviderOptions);

  // Name of the node, with `*size` as in KernelInfoGetAttribute_string. Since 1.15.
  ORT_API2_STATUS(KernelInfo_GetNodeName, const OrtKernelInfo* info, char* out, size_t* size);

  // The session's logger. Since 1.15.
  ORT_API2_STATUS(KernelInfo_GetLogger, const OrtKernelInfo* info, const OrtLogger** logger);

  // The run's logger. Since 1.15.
  ORT_API2_STATUS(KernelContext_GetLogger, const OrtKernelContext* context,
                  const OrtLogger** logger);

  // Logs a message, if its level is severe enough. Since 1.15.
  ORT_API2_STATUS(Logger_LogMessage, const OrtLogger* logger, OrtLoggingLevel log_severity_level,
                  const char* message, const ORTCHAR_T* file_path, int line_number,
                  const char* func_name);

  // The least severe level that the logger writes. Since 1.15.
  ORT_API2_STATUS(Logger_GetLoggingSeverityLevel, const OrtLogger* logger, OrtLoggingLevel* out);

  // Input `index` if it is a constant; else `*is_constant` is 0. Owned by the session. Since 1.15.
  ORT_API2_STATUS(KernelInfoGetConstantInput_tensor, const OrtKernelInfo* info, size_t index,
                  int* is_constant, const OrtValue** out);

  // The optional part of a type, owned by `type_info`; null if it is not an optional's. Since 1.15.
  ORT_API2_STATUS(CastTypeInfoToOptionalTypeInfo, const OrtTypeInfo* type_info,
                  const OrtOptionalTypeInfo** out);

  // The type in an optional. Release with ReleaseTypeInfo. Since 1.15.
  ORT_API2_STATUS(GetOptionalContainedTypeInfo, const OrtOptionalTypeInfo* optional_type_info,
                  OrtTypeInfo** out);

  // Resizes string `index` and gives its bytes to write to.
  ORT_API2_STATUS(GetResizedStringTensorElementBuffer, OrtValue* value, size_t index,
                  size_t length_in_bytes, char** buffer);

  // An allocator for memory of the given kind. Release with ReleaseAllocator. Since 1.15.
  ORT_API2_STATUS(KernelContext_GetAllocator, const OrtKernelContext* context,
                  const OrtMemoryInfo* mem_info, OrtAllocator** out);

  // What the library was built from. Static. Since 1.15.
  ORT_API_T(const char*, GetBuildInfoString, void);

  // Makes options of the ROCm provider. Since 1.16.
  ORT_API2_STATUS(CreateROCMProviderOptions, OrtROCMProviderOptions** out);

  // Sets options of the ROCm provider by name. Since 1.16.
  ORT_API2_STATUS(UpdateROCMProviderOptions, OrtROCMProviderOptions* rocm_options,
                  const char* const* provider_options_keys,
                  const char* const* provider_options_values, size_t num_keys);

  // All options of the ROCm provider as "key=value;...", allocated with `allocator`. Since 1.16.
  ORT_API2_STATUS(GetROCMProviderOptionsAsString, const OrtROCMProviderOptions* rocm_options,
                  OrtAllocator* allocator, char** ptr);

  // Releases options of the ROCm provider. Since 1.16.
  ORT_CLASS_RELEASE(ROCMProviderOptions);

  // As CreateAndRegisterAllocator, for memory of the named provider.
  ORT_API2_STATUS(CreateAndRegisterAllocatorV2, OrtEnv* env, const char* provider_type,
                  const OrtMemoryInfo* mem_info, const OrtArenaCfg* arena_cfg,
                  const char* const* provider_options_keys,
                  const char* const* provider_options_values, size_t num_keys);

  // As Run, on a thread of the session's pool; the callback gets the outputs. All arguments must
  // live until then.
  ORT_API2_STATUS(RunAsync, OrtSession* session, const OrtRunOptions* run_options,
                  const char* const* input_names, const OrtValue* const* input, size_t input_len,
                  const char* const* output_names, size_t output_names_len, OrtValue** output,
                  RunAsyncCallbackFn run_async_callback, void* user_data);

  // Sets an option of the TensorRT provider that is a pointer. Since 1.16.
  ORT_API2_STATUS(UpdateTensorRTProviderOptionsWithValue,
                  OrtTensorRTProviderOptionsV2* tensorrt_options, const char* key, void* value);

  // An option of the TensorRT provider that is a pointer. Since 1.16.
  ORT_API2_STATUS(GetTensorRTProviderOptionsByName,
                  const OrtTensorRTProviderOptionsV2* tensorrt_options, const char* key,
                  void** ptr);

  // Sets an option of the CUDA provider that is a pointer. Since 1.16.
  ORT_API2_STATUS(UpdateCUDAProviderOptionsWithValue, OrtCUDAProviderOptionsV2* cuda_options,
                  const char* key, void* value);

  // An option of the CUDA provider that is a pointer. Since 1.16.
  ORT_API2_STATUS(GetCUDAProviderOptionsByName, const OrtCUDAProviderOptionsV2* cuda_options,
                  const char* key, void** ptr);

  // A resource of the provider, such as a library handle. Since 1.16.
  ORT_API2_STATUS(KernelContext_GetResource, const OrtKernelContext* context, int resource_version,
                  int resource_id, void** resource);

  // Gives the session's log lines to a function of the caller, which must be thread-safe. Since
  // 1.17.
  ORT_API2_STATUS(SetUserLoggingFunction, OrtSessionOptions* options,
                  OrtLoggingFunction user_logging_function, void* user_logging_param);

  // Number of the node's inputs. Since 1.17.
  ORT_API2_STATUS(ShapeInferContext_GetInputCount, const OrtShapeInferContext* context,
                  size_t* out);

  // Type and shape of an input. Owned by the context. Since 1.17.
  ORT_API2_STATUS(ShapeInferContext_GetInputTypeShape, const OrtShapeInferContext* context,
                  size_t index, OrtTensorTypeAndShapeInfo** info);

  // An attribute of the node. Owned by the context. Since 1.17.
  ORT_API2_STATUS(ShapeInferContext_GetAttribute, const OrtShapeInferContext* context,
                  const char* attr_name, const OrtOpAttr** attr);

  // States type and shape of an output. Since 1.17.
  ORT_API2_STATUS(ShapeInferContext_SetOutputTypeShape, const OrtShapeInferContext* context,
                  size_t index, const OrtTensorTypeAndShapeInfo* info);

  // Names the dimensions of a description; "" for none. Since 1.17.
  ORT_API2_STATUS(SetSymbolicDimensions, OrtTensorTypeAndShapeInfo* info, const char** dim_params,
                  size_t dim_params_length);

  // Copies an attribute's data; `*out` is the number of bytes needed. Each string of a list ends in
  // a null character, a single string does not. Since 1.17.
  ORT_API2_STATUS(ReadOpAttr, const OrtOpAttr* op_attr, OrtOpAttrType type, void* data, size_t len,
                  size_t* out);

  // Whether only kernels with repeatable results may run. Since 1.17.
  ORT_API2_STATUS(SetDeterministicCompute, OrtSessionOptions* options, bool value);

  // Calls `fn(usr_data, i)` for i in [0, total), on the session's threads. Since 1.17.
  ORT_API2_STATUS(KernelContext_ParallelFor, const OrtKernelContext* context,
                  void (*fn)(void* usr_data, size_t), size_t total, size_t num_batch,
                  void* usr_data);

  // Adds the OpenVINO provider, with options by name. Since 1.17.
  ORT_API2_STATUS(SessionOptionsAppendExecutionProvider_OpenVINO_V2, OrtSessionOptions* options,
                  const char* const* provider_options_keys,
                  const char* const* provider_options_values, size_t num_keys);

  // Adds the Vitis AI provider, with options by name. Since 1.18.
  ORT_API2_STATUS(SessionOptionsAppendExecutionProvider_VitisAI, OrtSessionOptions* options,
                  const char* const* provider_options_keys,
                  const char* const* provider_options_values, size_t num_keys);

  // Memory that lives until the kernel's call ends. Since 1.18.
  ORT_API2_STATUS(KernelContext_GetScratchBuffer, const OrtKernelContext* context,
                  const OrtMemoryInfo* mem_info, size_t count_or_bytes, void** out);

  // The provider's allocator for a kind of memory. Release with ReleaseAllocator. Since 1.18.
  ORT_API2_STATUS(KernelInfoGetAllocator, const OrtKernelInfo* info, OrtMemType mem_type,
                  OrtAllocator** out);

  // Supplies the contents of external data files from memory, which must live until the session is
  // created. Since 1.18.
  ORT_API2_STATUS(AddExternalInitializersFromFilesInMemory, OrtSessionOptions* options,
                  const ORTCHAR_T* const* external_initializer_file_names,
                  char* const* external_initializer_file_buffer_array,
                  const size_t* external_initializer_file_lengths,
                  size_t num_external_initializer_files);

  // Reads an adapter from a file; with an allocator, its parameters are copied to that device.
  // Since 1.20.
  ORT_API2_STATUS(CreateLoraAdapter, const ORTCHAR_T* adapter_file_path, OrtAllocator* allocator,
                  OrtLoraAdapter** out);

  // As CreateLoraAdapter, from memory. Since 1.20.
  ORT_API2_STATUS(CreateLoraAdapterFromArray, const void* bytes, size_t num_bytes,
                  OrtAllocator* allocator, OrtLoraAdapter** out);

  // Releases an adapter.
  ORT_CLASS_RELEASE(LoraAdapter);

  // Has runs use the adapter, which must outlive them. Since 1.20.
  ORT_API2_STATUS(RunOptionsAddActiveLoraAdapter, OrtRunOptions* options,
                  const OrtLoraAdapter* adapter);

  // Changes options of the session's providers while it lives. Since 1.20.
  ORT_API2_STATUS(SetEpDynamicOptions, OrtSession* sess, const char* const* keys,
                  const char* const* values, size_t kv_len);

  // Releases a value description that no graph owns. Since 1.22.
  ORT_CLASS_RELEASE(ValueInfo);

  // Releases a node that no graph owns. Since 1.22.
  ORT_CLASS_RELEASE(Node);

  // Releases a graph that no model owns. Since 1.22.
  ORT_CLASS_RELEASE(Graph);

  // Releases a model. Since 1.22.
  ORT_CLASS_RELEASE(Model);

  // Name of the value. Owned by `value_info`. Since 1.22.
  ORT_API2_STATUS(GetValueInfoName, const OrtValueInfo* value_info, const char** name);

  // Type of the value. Owned by `value_info`. Since 1.22.
  ORT_API2_STATUS(GetValueInfoTypeInfo, const OrtValueInfo* value_info,
                  const OrtTypeInfo** type_info);

  // The table for building and changing models. Since 1.22.
  ORT_API_T(const OrtModelEditorApi*, GetModelEditorApi, void);

  // As CreateTensorWithDataAsOrtValue, with memory that the value frees through `deleter`. Since
  // 1.22.
  ORT_API2_STATUS(CreateTensorWithDataAndDeleterAsOrtValue, OrtAllocator* deleter, void* p_data,
                  size_t p_data_len, const int64_t* shape, size_t shape_len,
                  ONNXTensorElementDataType type, OrtValue** out);

  // With true, a session that is being created with these options gives up soon, with
  // ORT_MODEL_LOAD_CANCELED. Since 1.22.
  ORT_API2_STATUS(SessionOptionsSetLoadCancellationFlag, OrtSessionOptions* options, bool cancel);

  // The table for compiling models ahead of time. Since 1.22.
  ORT_API_T(const OrtCompileApi*, GetCompileApi, void);

  // Makes an empty list of pairs. Since 1.22.
  ORT_API_T(void, CreateKeyValuePairs, OrtKeyValuePairs** out);

  // Sets a key to a value; both are copied. Empty keys are ignored. Since 1.22.
  ORT_API_T(void, AddKeyValuePair, OrtKeyValuePairs* kvps, const char* key, const char* value);

  // The value of a key, null if it is not there. Owned by `kvps`. Since 1.22.
  ORT_API_T(const char*, GetKeyValue, const OrtKeyValuePairs* kvps, const char* key);

  // All keys and values. Owned by `kvps`, valid until it changes. Since 1.22.
  ORT_API_T(void, GetKeyValuePairs, const OrtKeyValuePairs* kvps, const char* const** keys,
            const char* const** values, size_t* num_entries);

  // Removes a key, if it is there. Since 1.22.
  ORT_API_T(void, RemoveKeyValuePair, OrtKeyValuePairs* kvps, const char* key);

  // Releases a list of pairs. Since 1.22.
  ORT_CLASS_RELEASE(KeyValuePairs);

  // Loads a library with plugin providers under a name of the caller's choice. Since 1.22.
  ORT_API2_STATUS(RegisterExecutionProviderLibrary, OrtEnv* env, const char* registration_name,
                  const ORTCHAR_T* path);

  // Unloads such a library. No session may use its providers any more. Since 1.22.
  ORT_API2_STATUS(UnregisterExecutionProviderLibrary, OrtEnv* env, const char* registration_name);

  // All pairs of a provider and a device that it can use. Owned by the environment. Since 1.22.
  ORT_API2_STATUS(GetEpDevices, const OrtEnv* env, const OrtEpDevice* const** ep_devices,
                  size_t* num_ep_devices);

  // Adds a provider for the given devices, which must all belong to one provider. Since 1.22.
  ORT_API2_STATUS(SessionOptionsAppendExecutionProvider_V2, OrtSessionOptions* session_options,
                  OrtEnv* env, const OrtEpDevice* const* ep_devices, size_t num_ep_devices,
                  const char* const* ep_option_keys, const char* const* ep_option_vals,
                  size_t num_ep_options);

  // Has the session choose providers by a policy. Since 1.22.
  ORT_API2_STATUS(SessionOptionsSetEpSelectionPolicy, OrtSessionOptions* session_options,
                  OrtExecutionProviderDevicePolicy policy);

  // Has the session choose providers by a function of the caller. Since 1.22.
  ORT_API2_STATUS(SessionOptionsSetEpSelectionPolicyDelegate, OrtSessionOptions* session_options,
                  EpSelectionDelegate delegate, void* delegate_state);

  // The kind of device. Since 1.22.
  ORT_API_T(OrtHardwareDeviceType, HardwareDevice_Type, const OrtHardwareDevice* device);

  // PCI number of the vendor. Since 1.22.
  ORT_API_T(uint32_t, HardwareDevice_VendorId, const OrtHardwareDevice* device);

  // Name of the vendor. Since 1.22.
  ORT_API_T(const char*, HardwareDevice_Vendor, const OrtHardwareDevice* device);

  // PCI number of the device; the same for equal devices. Since 1.22.
  ORT_API_T(uint32_t, HardwareDevice_DeviceId, const OrtHardwareDevice* device);

  // Metadata of the device. Since 1.22.
  ORT_API_T(const OrtKeyValuePairs*, HardwareDevice_Metadata, const OrtHardwareDevice* device);

  // Name of the provider. Since 1.22.
  ORT_API_T(const char*, EpDevice_EpName, const OrtEpDevice* ep_device);

  // Vendor of the provider. Since 1.22.
  ORT_API_T(const char*, EpDevice_EpVendor, const OrtEpDevice* ep_device);

  // Metadata of the provider. Since 1.22.
  ORT_API_T(const OrtKeyValuePairs*, EpDevice_EpMetadata, const OrtEpDevice* ep_device);

  // Options that the provider suggests for the device. Since 1.22.
  ORT_API_T(const OrtKeyValuePairs*, EpDevice_EpOptions, const OrtEpDevice* ep_device);

  // The device. Since 1.22.
  ORT_API_T(const OrtHardwareDevice*, EpDevice_Device, const OrtEpDevice* ep_device);

  // The table for writing providers. Since 1.22.
  ORT_API_T(const OrtEpApi*, GetEpApi, void);

  // Bytes of a tensor of anything but strings. Since 1.23.
  ORT_API2_STATUS(GetTensorSizeInBytes, const OrtValue* ort_value, size_t* size);

  // Figures of the allocator's use. Release with ReleaseKeyValuePairs. Since 1.23.
  ORT_API2_STATUS(AllocatorGetStats, const OrtAllocator* ort_allocator, OrtKeyValuePairs** out);

  // A memory location by device, vendor, kind of memory and alignment. Since 1.23.
  ORT_API2_STATUS(CreateMemoryInfo_V2, const char* name, OrtMemoryInfoDeviceType device_type,
                  uint32_t vendor_id, int32_t device_id, OrtDeviceMemoryType mem_type,
                  size_t alignment, OrtAllocatorType allocator_type, OrtMemoryInfo** out);

  // Whether the host can use the memory too. Since 1.23.
  ORT_API_T(OrtDeviceMemoryType, MemoryInfoGetDeviceMemType, const OrtMemoryInfo* ptr);

  // PCI number of the device's vendor. Since 1.23.
  ORT_API_T(uint32_t, MemoryInfoGetVendorId, const OrtMemoryInfo* ptr);

  // The node that makes the value, null if none does, and which of its outputs it is. Since 1.23.
  ORT_API2_STATUS(ValueInfo_GetValueProducer, const OrtValueInfo* value_info,
                  const OrtNode** producer_node, size_t* producer_output_index);

  // Number of places where the value is used. Since 1.23.
  ORT_API2_STATUS(ValueInfo_GetValueNumConsumers, const OrtValueInfo* value_info,
                  size_t* num_consumers);

  // Nodes that use the value and as which input; -1 for implicit ones. Since 1.23.
  ORT_API2_STATUS(ValueInfo_GetValueConsumers, const OrtValueInfo* value_info,
                  const OrtNode** nodes, int64_t* input_indices, size_t num_consumers);

  // The initializer of this name, null if there is none. Owned by the graph. Since 1.23.
  ORT_API2_STATUS(ValueInfo_GetInitializerValue, const OrtValueInfo* value_info,
                  const OrtValue** initializer_value);

  // Where an initializer lies in a file beside the model; null if it lies in the model or in
  // memory. The path is relative to the model's folder. Release with
  // ReleaseExternalInitializerInfo. Since 1.23.
  ORT_API2_STATUS(ValueInfo_GetExternalInitializerInfo, const OrtValueInfo* value_info,
                  OrtExternalInitializerInfo** info);

  // Whether it is a graph input without a default. Since 1.23.
  ORT_API2_STATUS(ValueInfo_IsRequiredGraphInput, const OrtValueInfo* value_info,
                  bool* is_required_graph_input);

  // Whether it is a graph input with a default. Since 1.23.
  ORT_API2_STATUS(ValueInfo_IsOptionalGraphInput, const OrtValueInfo* value_info,
                  bool* is_optional_graph_input);

  // Whether it is a graph output. Since 1.23.
  ORT_API2_STATUS(ValueInfo_IsGraphOutput, const OrtValueInfo* value_info, bool* is_graph_output);

  // Whether it is an initializer that no run can replace. Since 1.23.
  ORT_API2_STATUS(ValueInfo_IsConstantInitializer, const OrtValueInfo* value_info,
                  bool* is_constant_initializer);

  // Whether an enclosing graph defines it. Since 1.23.
  ORT_API2_STATUS(ValueInfo_IsFromOuterScope, const OrtValueInfo* value_info,
                  bool* is_from_outer_scope);

  // Name of the graph. Since 1.23.
  ORT_API2_STATUS(Graph_GetName, const OrtGraph* graph, const char** graph_name);

  // File that the model came from, "" if none. Since 1.23.
  ORT_API2_STATUS(Graph_GetModelPath, const OrtGraph* graph, const ORTCHAR_T** model_path);

  // IR version of the model. Since 1.23.
  ORT_API2_STATUS(Graph_GetOnnxIRVersion, const OrtGraph* graph, int64_t* onnx_ir_version);

  // Number of operator sets that the model imports. Since 1.23.
  ORT_API2_STATUS(Graph_GetNumOperatorSets, const OrtGraph* graph, size_t* num_operator_sets);

  // Domains and versions of these operator sets. Since 1.23.
  ORT_API2_STATUS(Graph_GetOperatorSets, const OrtGraph* graph, const char** domains,
                  int64_t* opset_versions, size_t num_operator_sets);

  // Number of graph inputs, initializers among them included. Since 1.23.
  ORT_API2_STATUS(Graph_GetNumInputs, const OrtGraph* graph, size_t* num_inputs);

  // The graph inputs. Since 1.23.
  ORT_API2_STATUS(Graph_GetInputs, const OrtGraph* graph, const OrtValueInfo** inputs,
                  size_t num_inputs);

  // Number of graph outputs. Since 1.23.
  ORT_API2_STATUS(Graph_GetNumOutputs, const OrtGraph* graph, size_t* num_outputs);

  // The graph outputs. Since 1.23.
  ORT_API2_STATUS(Graph_GetOutputs, const OrtGraph* graph, const OrtValueInfo** outputs,
                  size_t num_outputs);

  // Number of initializers. Since 1.23.
  ORT_API2_STATUS(Graph_GetNumInitializers, const OrtGraph* graph, size_t* num_initializers);

  // The initializers. Since 1.23.
  ORT_API2_STATUS(Graph_GetInitializers, const OrtGraph* graph, const OrtValueInfo** initializers,
                  size_t num_initializers);

  // Number of nodes. Since 1.23.
  ORT_API2_STATUS(Graph_GetNumNodes, const OrtGraph* graph, size_t* num_nodes);

  // The nodes, in an order in which they can run. Since 1.23.
  ORT_API2_STATUS(Graph_GetNodes, const OrtGraph* graph, const OrtNode** nodes, size_t num_nodes);

  // The node that the graph is a subgraph of, null if none. Since 1.23.
  ORT_API2_STATUS(Graph_GetParentNode, const OrtGraph* graph, const OrtNode** node);

  // A graph of some of the nodes. Release with ReleaseGraph, before `src_graph`. Since 1.23.
  ORT_API2_STATUS(Graph_GetGraphView, const OrtGraph* src_graph, const OrtNode** nodes,
                  size_t num_nodes, OrtGraph** dst_graph);

  // Number of the node, unique in its graph. Since 1.23.
  ORT_API2_STATUS(Node_GetId, const OrtNode* node, size_t* node_id);

  // Name of the node, which may be "". Since 1.23.
  ORT_API2_STATUS(Node_GetName, const OrtNode* node, const char** node_name);

  // Name of the operator. Since 1.23.
  ORT_API2_STATUS(Node_GetOperatorType, const OrtNode* node, const char** operator_type);

  // Domain of the operator. Since 1.23.
  ORT_API2_STATUS(Node_GetDomain, const OrtNode* node, const char** domain_name);

  // First opset version that has the operator as the node means it. Since 1.23.
  ORT_API2_STATUS(Node_GetSinceVersion, const OrtNode* node, int* since_version);

  // Number of inputs, missing optional ones included. Since 1.23.
  ORT_API2_STATUS(Node_GetNumInputs, const OrtNode* node, size_t* num_inputs);

  // The inputs, null where an optional one is missing. Since 1.23.
  ORT_API2_STATUS(Node_GetInputs, const OrtNode* node, const OrtValueInfo** inputs,
                  size_t num_inputs);

  // Number of outputs, missing optional ones included. Since 1.23.
  ORT_API2_STATUS(Node_GetNumOutputs, const OrtNode* node, size_t* num_outputs);

  // The outputs, null where an optional one is missing. Since 1.23.
  ORT_API2_STATUS(Node_GetOutputs, const OrtNode* node, const OrtValueInfo** outputs,
                  size_t num_outputs);

  // Number of outer values that the node's subgraphs use. Since 1.23.
  ORT_API2_STATUS(Node_GetNumImplicitInputs, const OrtNode* node, size_t* num_implicit_inputs);

  // These outer values. Since 1.23.
  ORT_API2_STATUS(Node_GetImplicitInputs, const OrtNode* node, const OrtValueInfo** implicit_inputs,
                  size_t num_implicit_inputs);

  // Number of attributes. Since 1.23.
  ORT_API2_STATUS(Node_GetNumAttributes, const OrtNode* node, size_t* num_attributes);

  // The attributes. Since 1.23.
  ORT_API2_STATUS(Node_GetAttributes, const OrtNode* node, const OrtOpAttr** attributes,
                  size_t num_attributes);

  // An attribute by name, null if it is not set. Error: ORT_NOT_FOUND if the name is unknown. Since
  // 1.23.
  ORT_API2_STATUS(Node_GetAttributeByName, const OrtNode* node, const char* attribute_name,
                  const OrtOpAttr** attribute);

  // A tensor attribute. Release with ReleaseValue. Since 1.23.
  ORT_API2_STATUS(OpAttr_GetTensorAttributeAsOrtValue, const OrtOpAttr* attribute,
                  OrtValue** attr_tensor);

  // The attribute's type. Since 1.23.
  ORT_API2_STATUS(OpAttr_GetType, const OrtOpAttr* attribute, OrtOpAttrType* type);

  // The attribute's name. Since 1.23.
  ORT_API2_STATUS(OpAttr_GetName, const OrtOpAttr* attribute, const char** name);

  // Number of subgraphs. Since 1.23.
  ORT_API2_STATUS(Node_GetNumSubgraphs, const OrtNode* node, size_t* num_subgraphs);

  // The subgraphs, and the attributes that hold them. Since 1.23.
  ORT_API2_STATUS(Node_GetSubgraphs, const OrtNode* node, const OrtGraph** subgraphs,
                  size_t num_subgraphs, const char** attribute_names);

  // The graph that the node is in. Since 1.23.
  ORT_API2_STATUS(Node_GetGraph, const OrtNode* node, const OrtGraph** graph);

  // The provider that the node is assigned to, "" if none. Since 1.23.
  ORT_API2_STATUS(Node_GetEpName, const OrtNode* node, const char** out);

  // Releases the place of an initializer. Since 1.23.
  ORT_CLASS_RELEASE(ExternalInitializerInfo);

  // File, relative to the model's folder. Since 1.23.
  ORT_API_T(const ORTCHAR_T*, ExternalInitializerInfo_GetFilePath,
            const OrtExternalInitializerInfo* info);

  // Offset in the file, in bytes. Since 1.23.
  ORT_API_T(int64_t, ExternalInitializerInfo_GetFileOffset, const OrtExternalInitializerInfo* info);

  // Size in bytes. Since 1.23.
  ORT_API_T(size_t, ExternalInitializerInfo_GetByteSize, const OrtExternalInitializerInfo* info);

  // What AddRunConfigEntry set, null if nothing. Owned by `options`. Since 1.23.
  ORT_API_T(const char*, GetRunConfigEntry, const OrtRunOptions* options, const char* config_key);

  // The device's memory of a kind, null if it has none. Since 1.23.
  ORT_API_T(const OrtMemoryInfo*, EpDevice_MemoryInfo, const OrtEpDevice* ep_device,
            OrtDeviceMemoryType memory_type);

  // Makes the allocator that all sessions use for this memory of a device. Owned by the
  // environment. Since 1.23.
  ORT_API2_STATUS(CreateSharedAllocator, OrtEnv* env, const OrtEpDevice* ep_device,
                  OrtDeviceMemoryType mem_type, OrtAllocatorType allocator_type,
                  const OrtKeyValuePairs* allocator_options, OrtAllocator** allocator);

  // The shared allocator for this memory, null if there is none. Since 1.23.
  ORT_API2_STATUS(GetSharedAllocator, OrtEnv* env, const OrtMemoryInfo* mem_info,
                  OrtAllocator** allocator);

  // Releases a shared allocator. Since 1.23.
  ORT_API2_STATUS(ReleaseSharedAllocator, OrtEnv* env, const OrtEpDevice* ep_device,
                  OrtDeviceMemoryType mem_type);

  // As GetTensorMutableData, to read from. Since 1.23.
  ORT_API2_STATUS(GetTensorData, const OrtValue* value, const void** out);

  // All keys that are set. Release with ReleaseKeyValuePairs. Since 1.23.
  ORT_API2_STATUS(GetSessionOptionsConfigEntries, const OrtSessionOptions* options,
                  OrtKeyValuePairs** out);

  // Where each input is best placed. Since 1.23.
  ORT_API2_STATUS(SessionGetMemoryInfoForInputs, const OrtSession* session,
                  const OrtMemoryInfo** inputs_memory_info, size_t num_inputs);

  // Where each output will lie. Since 1.23.
  ORT_API2_STATUS(SessionGetMemoryInfoForOutputs, const OrtSession* session,
                  const OrtMemoryInfo** outputs_memory_info, size_t num_outputs);

  // The device that uses each input, null if none is known. Since 1.23.
  ORT_API2_STATUS(SessionGetEpDeviceForInputs, const OrtSession* session,
                  const OrtEpDevice** inputs_ep_devices, size_t num_inputs);

  // Makes a stream on a device. Release with ReleaseSyncStream. Since 1.23.
  ORT_API2_STATUS(CreateSyncStreamForEpDevice, const OrtEpDevice* ep_device,
                  const OrtKeyValuePairs* stream_options, OrtSyncStream** stream);

  // The native handle, such as a cudaStream_t. Since 1.23.
  ORT_API_T(void*, SyncStream_GetHandle, OrtSyncStream* stream);

  // Releases a stream.
  ORT_CLASS_RELEASE(SyncStream);

  // Copies tensors between devices, on a stream if one is given. Since 1.23.
  ORT_API2_STATUS(CopyTensors, const OrtEnv* env, const OrtValue* const* src_tensors,
                  OrtValue* const* dst_tensors, OrtSyncStream* stream, size_t num_tensors);

  // The model's metadata. Release with ReleaseModelMetadata. Since 1.23.
  ORT_API2_STATUS(Graph_GetModelMetadata, const OrtGraph* graph, OrtModelMetadata** out);

  // Whether a compiled model suits these devices. Since 1.23.
  ORT_API2_STATUS(GetModelCompatibilityForEpDevices, const OrtEpDevice* const* ep_devices,
                  size_t num_ep_devices, const char* compatibility_info,
                  OrtCompiledModelCompatibility* out_status);

  // Names a place in a file for an initializer. Since 1.23.
  ORT_API2_STATUS(CreateExternalInitializerInfo, const ORTCHAR_T* filepath, int64_t file_offset,
                  size_t byte_size, OrtExternalInitializerInfo** out);

  // Whether the rank is known. Since 1.24.
  ORT_API_T(bool, TensorTypeAndShape_HasShape, const OrtTensorTypeAndShapeInfo* info);

  // All keys that are set in the session's options. Release with ReleaseKeyValuePairs. Since 1.24.
  ORT_API2_STATUS(KernelInfo_GetConfigEntries, const OrtKernelInfo* info, OrtKeyValuePairs** out);

  // Domain of the operator, with `*size` as in KernelInfoGetAttribute_string. Since 1.24.
  ORT_API2_STATUS(KernelInfo_GetOperatorDomain, const OrtKernelInfo* info, char* out, size_t* size);

  // Name of the operator, with `*size` as in KernelInfoGetAttribute_string. Since 1.24.
  ORT_API2_STATUS(KernelInfo_GetOperatorType, const OrtKernelInfo* info, char* out, size_t* size);

  // First opset version that has the operator as the node means it. Since 1.24.
  ORT_API2_STATUS(KernelInfo_GetOperatorSinceVersion, const OrtKernelInfo* info,
                  int* since_version);

  // The table for memory and semaphores of other APIs. Since 1.24.
  ORT_API_T(const OrtInteropApi*, GetInteropApi, void);

  // The device that makes each output, null if none is known. Since 1.24.
  ORT_API2_STATUS(SessionGetEpDeviceForOutputs, const OrtSession* session,
                  const OrtEpDevice** outputs_ep_devices, size_t num_outputs);

  // Number of devices that were found. Since 1.24.
  ORT_API2_STATUS(GetNumHardwareDevices, const OrtEnv* env, size_t* num_devices);

  // The devices that were found. Owned by the environment. Since 1.24.
  ORT_API2_STATUS(GetHardwareDevices, const OrtEnv* env, const OrtHardwareDevice** devices,
                  size_t num_devices);

  // Why a provider cannot use a device. Release with ReleaseDeviceEpIncompatibilityDetails. Since
  // 1.24.
  ORT_API2_STATUS(GetHardwareDeviceEpIncompatibilityDetails, const OrtEnv* env, const char* ep_name,
                  const OrtHardwareDevice* hw, OrtDeviceEpIncompatibilityDetails** details);

  // OrtDeviceEpIncompatibilityReason bits. Since 1.24.
  ORT_API2_STATUS(DeviceEpIncompatibilityDetails_GetReasonsBitmask,
                  const OrtDeviceEpIncompatibilityDetails* details, uint32_t* reasons_bitmask);

  // A text for people, null if there is none. Since 1.24.
  ORT_API2_STATUS(DeviceEpIncompatibilityDetails_GetNotes,
                  const OrtDeviceEpIncompatibilityDetails* details, const char** notes);

  // The provider's own code. Since 1.24.
  ORT_API2_STATUS(DeviceEpIncompatibilityDetails_GetErrorCode,
                  const OrtDeviceEpIncompatibilityDetails* details, int32_t* error_code);

  // Releases the reasons. Since 1.24.
  ORT_CLASS_RELEASE(DeviceEpIncompatibilityDetails);

  // What a compiled model in a file says for a provider, allocated with `allocator`; null if
  // nothing. Since 1.24.
  ORT_API2_STATUS(GetCompatibilityInfoFromModel, const ORTCHAR_T* model_path, const char* ep_type,
                  OrtAllocator* allocator, char** compatibility_info);

  // As GetCompatibilityInfoFromModel, for a model in memory. Since 1.24.
  ORT_API2_STATUS(GetCompatibilityInfoFromModelBytes, const void* model_data,
                  size_t model_data_length, const char* ep_type, OrtAllocator* allocator,
                  char** compatibility_info);

  // As CreateEnv, with extensible options. Since 1.24.
  ORT_API2_STATUS(CreateEnvWithOptions, const OrtEnvCreationOptions* options, OrtEnv** out);

  // Which nodes went to which provider, if session.record_ep_graph_assignment_info is set. Owned by
  // the session. Since 1.24.
  ORT_API2_STATUS(Session_GetEpGraphAssignmentInfo, const OrtSession* session,
                  const OrtEpAssignedSubgraph* const** ep_subgraphs, size_t* num_ep_subgraphs);

  // The provider. Since 1.24.
  ORT_API2_STATUS(EpAssignedSubgraph_GetEpName, const OrtEpAssignedSubgraph* ep_subgraph,
                  const char** out);

  // The nodes that it got. Since 1.24.
  ORT_API2_STATUS(EpAssignedSubgraph_GetNodes, const OrtEpAssignedSubgraph* ep_subgraph,
                  const OrtEpAssignedNode* const** ep_nodes, size_t* num_ep_nodes);

  // Name of the node. Since 1.24.
  ORT_API2_STATUS(EpAssignedNode_GetName, const OrtEpAssignedNode* ep_node, const char** out);

  // Domain of its operator. Since 1.24.
  ORT_API2_STATUS(EpAssignedNode_GetDomain, const OrtEpAssignedNode* ep_node, const char** out);

  // Name of its operator. Since 1.24.
  ORT_API2_STATUS(EpAssignedNode_GetOperatorType, const OrtEpAssignedNode* ep_node,
                  const char** out);

  // Has the run use this stream of the device; null takes it back.
  ORT_API_T(void, RunOptionsSetSyncStream, OrtRunOptions* options, OrtSyncStream* sync_stream);

  // Element type and shape of a tensor, without a copy. Owned by the value. Since 1.24.
  ORT_API2_STATUS(GetTensorElementTypeAndShapeDataReference, const OrtValue* value,
                  ONNXTensorElementDataType* elem_type, const int64_t** shape_data,
                  size_t* shape_data_count);

  // Writes a trace of just the runs that use these options. Since 1.25.
  ORT_API2_STATUS(RunOptionsEnableProfiling, OrtRunOptions* options,
                  const ORTCHAR_T* profile_file_prefix);

  // Turns off what RunOptionsEnableProfiling turned on. Since 1.25.
  ORT_API2_STATUS(RunOptionsDisableProfiling, OrtRunOptions* options);

  // A list of strings; array and strings are allocated with `allocator`. Since 1.25.
  ORT_API2_STATUS(KernelInfoGetAttributeArray_string, const OrtKernelInfo* info, const char* name,
                  OrtAllocator* allocator, char*** out, size_t* size);

  // Lets the pools of later sessions report their work. Sessions made before keep their callbacks,
  // and the environment's own pool reports nothing. The functions are called as long as those
  // sessions live, from any thread. All null: later sessions report nothing again. Since 1.25.
  ORT_API2_STATUS(SetPerSessionThreadPoolCallbacks, OrtEnv* env,
                  const OrtThreadPoolCallbacksConfig* config);

  // `*out` is 1 if EnableMemPattern is in effect, else 0. Since 1.27.
  ORT_API2_STATUS(GetMemPatternEnabled, const OrtSessionOptions* options, int* out);

  // What SetSessionExecutionMode set. Since 1.27.
  ORT_API2_STATUS(GetSessionExecutionMode, const OrtSessionOptions* options, ExecutionMode* out);

  // Frees the device graph that was captured under this number. Since 1.27.
  ORT_API2_STATUS(SessionReleaseCapturedGraph, OrtSession* session, int graph_annotation_id);

  // A function outside the stable table, null if there is none of this name. Since 1.28.
  ORT_API_T(OrtExperimentalFnPtr, GetExperimentalFunction, const char* name);

  // The stream that the kernel is to use, null on the CPU. Since 1.28.
  ORT_API2_STATUS(KernelContext_GetSyncStream, const OrtKernelContext* context,
                  OrtSyncStream** out);

  // The original model in memory, from which a compiled model without weights takes them. Since
  // 1.29.
  ORT_API2_STATUS(SessionOptionsSetWeightlessSourceModelBuffer, OrtSessionOptions* options,
                  const void* source_model_data, size_t source_model_data_length);

  // The tensor that the caller of the run bound to an output, for a kernel that computes right into
  // it; null if there is none. The context owns it. Error: there is no such output. Since 1.30.
  ORT_API2_STATUS(KernelContext_GetPreallocatedOutput, const OrtKernelContext* context,
                  size_t output_index, OrtValue** output);
};

// How often an input or output of a custom operator occurs.
typedef enum OrtCustomOpInputOutputCharacteristic ORT_ENUM_TYPE {
  INPUT_OUTPUT_REQUIRED = 0,
  INPUT_OUTPUT_OPTIONAL = 1,
  INPUT_OUTPUT_VARIADIC = 2,
} OrtCustomOpInputOutputCharacteristic;

// A custom operator, implemented by a client.
struct OrtCustomOp {
  // ORT_API_VERSION of the operator's implementer; later slots than that version's are not read.
  uint32_t version;
  // Makes the kernel of a node. Not called if CreateKernelV2 is set.
  void*(ORT_API_CALL* CreateKernel)(const OrtCustomOp* op, const OrtApi* api,
                                    const OrtKernelInfo* info);
  // Name of the operator.
  const char*(ORT_API_CALL* GetName)(const OrtCustomOp* op);
  // Provider that the operator belongs to; null: the CPU.
  const char*(ORT_API_CALL* GetExecutionProviderType)(const OrtCustomOp* op);
  // Element type of an input; ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED: any.
  ONNXTensorElementDataType(ORT_API_CALL* GetInputType)(const OrtCustomOp* op, size_t index);
  // Number of inputs.
  size_t(ORT_API_CALL* GetInputTypeCount)(const OrtCustomOp* op);
  // Element type of an output; ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED: that of an input.
  ONNXTensorElementDataType(ORT_API_CALL* GetOutputType)(const OrtCustomOp* op, size_t index);
  // Number of outputs.
  size_t(ORT_API_CALL* GetOutputTypeCount)(const OrtCustomOp* op);
  // Runs a kernel. Not called if KernelComputeV2 is set.
  void(ORT_API_CALL* KernelCompute)(void* op_kernel, OrtKernelContext* context);
  // Destroys a kernel.
  void(ORT_API_CALL* KernelDestroy)(void* op_kernel);
  // Whether an input is required, optional or variadic.
  OrtCustomOpInputOutputCharacteristic(ORT_API_CALL* GetInputCharacteristic)(const OrtCustomOp* op,
                                                                             size_t index);
  // Whether an output is required, optional or variadic.
  OrtCustomOpInputOutputCharacteristic(ORT_API_CALL* GetOutputCharacteristic)(const OrtCustomOp* op,
                                                                              size_t index);
  // Where an input is to lie. Since 1.15.
  OrtMemType(ORT_API_CALL* GetInputMemoryType)(const OrtCustomOp* op, size_t index);
  // Least number of values of the variadic input.
  int(ORT_API_CALL* GetVariadicInputMinArity)(const OrtCustomOp* op);
  // 1: all values of the variadic input have one type.
  int(ORT_API_CALL* GetVariadicInputHomogeneity)(const OrtCustomOp* op);
  // Least number of values of the variadic output.
  int(ORT_API_CALL* GetVariadicOutputMinArity)(const OrtCustomOp* op);
  // 1: all values of the variadic output have one type.
  int(ORT_API_CALL* GetVariadicOutputHomogeneity)(const OrtCustomOp* op);
  // Makes the kernel of a node. Since 1.16.
  OrtStatusPtr(ORT_API_CALL* CreateKernelV2)(const OrtCustomOp* op, const OrtApi* api,
                                             const OrtKernelInfo* info, void** kernel);
  // Runs a kernel. Since 1.16.
  OrtStatusPtr(ORT_API_CALL* KernelComputeV2)(void* op_kernel, OrtKernelContext* context);
  // Infers types and shapes of the outputs; may be null. Since 1.17.
  OrtStatusPtr(ORT_API_CALL* InferOutputShapeFn)(const OrtCustomOp* op,
                                                 OrtShapeInferContext* context);
  // First opset version that has the operator. Since 1.17.
  int(ORT_API_CALL* GetStartVersion)(const OrtCustomOp* op);
  // Last opset version that has the operator. Since 1.17.
  int(ORT_API_CALL* GetEndVersion)(const OrtCustomOp* op);
  // Which output may take the memory of which input; returns their number. Since 1.18.
  size_t(ORT_API_CALL* GetMayInplace)(int** input_index, int** output_index);
  // Frees these lists.
  void(ORT_API_CALL* ReleaseMayInplace)(int* input_index, int* output_index);
  // Which output is the memory of which input; returns their number. Since 1.18.
  size_t(ORT_API_CALL* GetAliasMap)(int** input_index, int** output_index);
  // Frees these lists.
  void(ORT_API_CALL* ReleaseAliasMap)(int* input_index, int* output_index);
};

// Building and changing models.
struct OrtModelEditorApi {
  // The type of a tensor. Release with ReleaseTypeInfo, as all types made here.
  ORT_API2_STATUS(CreateTensorTypeInfo, const OrtTensorTypeAndShapeInfo* tensor_info,
                  OrtTypeInfo** type_info);
  // The type of a sparse tensor.
  ORT_API2_STATUS(CreateSparseTensorTypeInfo, const OrtTensorTypeAndShapeInfo* tensor_info,
                  OrtTypeInfo** type_info);
  // The type of a map.
  ORT_API2_STATUS(CreateMapTypeInfo, ONNXTensorElementDataType map_key_type,
                  const OrtTypeInfo* map_value_type, OrtTypeInfo** type_info);
  // The type of a sequence.
  ORT_API2_STATUS(CreateSequenceTypeInfo, const OrtTypeInfo* sequence_type,
                  OrtTypeInfo** type_info);
  // The type of an optional.
  ORT_API2_STATUS(CreateOptionalTypeInfo, const OrtTypeInfo* contained_type,
                  OrtTypeInfo** type_info);
  // A named value of a type, which is copied.
  ORT_API2_STATUS(CreateValueInfo, const char* name, const OrtTypeInfo* type_info,
                  OrtValueInfo** value_info);
  // A node. It takes over the attributes, whose entries become null; "" stands for a missing
  // optional input or output.
  ORT_API2_STATUS(CreateNode, const char* operator_name, const char* domain_name,
                  const char* node_name, const char* const* input_names, size_t input_names_len,
                  const char* const* output_names, size_t output_names_len, OrtOpAttr** attributes,
                  size_t attribs_len, OrtNode** node);
  // An empty graph.
  ORT_API2_STATUS(CreateGraph, OrtGraph** graph);
  // Sets the inputs, which the graph takes over; the entries become null.
  ORT_API2_STATUS(SetGraphInputs, OrtGraph* graph, OrtValueInfo** inputs, size_t inputs_len);
  // Sets the outputs, which the graph takes over; the entries become null.
  ORT_API2_STATUS(SetGraphOutputs, OrtGraph* graph, OrtValueInfo** outputs, size_t outputs_len);
  // Adds an initializer. With `data_is_external`, the memory is the caller's and outlives the
  // session.
  ORT_API2_STATUS(AddInitializerToGraph, OrtGraph* graph, const char* name, OrtValue* tensor,
                  bool data_is_external);
  // Adds a node, which the graph takes over.
  ORT_API2_STATUS(AddNodeToGraph, OrtGraph* graph, OrtNode* node);
  // An empty model with the given operator sets.
  ORT_API2_STATUS(CreateModel, const char* const* domain_names, const int* opset_versions,
                  size_t opset_entries_len, OrtModel** model);
  // Sets the main graph, which the model takes over.
  ORT_API2_STATUS(AddGraphToModel, OrtModel* model, OrtGraph* graph);
  // Creates a session; the model may be released afterwards.
  ORT_API2_STATUS(CreateSessionFromModel, const OrtEnv* env, const OrtModel* model,
                  const OrtSessionOptions* options, OrtSession** out);
  // Loads a model from a file for changes, as a session that is not ready to run.
  ORT_API2_STATUS(CreateModelEditorSession, const OrtEnv* env, const ORTCHAR_T* model_path,
                  const OrtSessionOptions* options, OrtSession** out);
  // As CreateModelEditorSession, from memory.
  ORT_API2_STATUS(CreateModelEditorSessionFromArray, const OrtEnv* env, const void* model_data,
                  size_t model_data_length, const OrtSessionOptions* options, OrtSession** out);
  // Opset version that the model imports for a domain.
  ORT_API2_STATUS(SessionGetOpsetForDomain, const OrtSession* session, const char* domain,
                  int* opset);
  // Adds the nodes and initializers of `model` to the session's.
  ORT_API2_STATUS(ApplyModelToModelEditorSession, OrtSession* session, OrtModel* model);
  // Makes the session ready to run.
  ORT_API2_STATUS(FinalizeModelEditorSession, OrtSession* session, const OrtSessionOptions* options,
                  OrtPrepackedWeightsContainer* prepacked_weights_container);
};

// Settings of a compilation; bits.
typedef enum OrtCompileApiFlags ORT_ENUM_TYPE {
  OrtCompileApiFlags_NONE = 0,
  OrtCompileApiFlags_ERROR_IF_NO_NODES_COMPILED = 1,
  OrtCompileApiFlags_ERROR_IF_OUTPUT_FILE_EXISTS = 2,
} OrtCompileApiFlags;

// Compiling models ahead of time.
struct OrtCompileApi {
  // Releases the settings of a compilation.
  ORT_CLASS_RELEASE(ModelCompilationOptions);
  // Makes settings of a compilation for the providers in the session options.
  ORT_API2_STATUS(CreateModelCompilationOptionsFromSessionOptions, const OrtEnv* env,
                  const OrtSessionOptions* session_options, OrtModelCompilationOptions** out);
  // File of the model to compile.
  ORT_API2_STATUS(ModelCompilationOptions_SetInputModelPath,
                  OrtModelCompilationOptions* model_compile_options,
                  const ORTCHAR_T* input_model_path);
  // Bytes of the model to compile, which stay the caller's.
  ORT_API2_STATUS(ModelCompilationOptions_SetInputModelFromBuffer,
                  OrtModelCompilationOptions* model_compile_options, const void* input_model_data,
                  size_t input_model_data_size);
  // File to write.
  ORT_API2_STATUS(ModelCompilationOptions_SetOutputModelPath,
                  OrtModelCompilationOptions* model_compile_options,
                  const ORTCHAR_T* output_model_path);
  // File for initializers of at least this many bytes.
  ORT_API2_STATUS(ModelCompilationOptions_SetOutputModelExternalInitializersFile,
                  OrtModelCompilationOptions* model_compile_options,
                  const ORTCHAR_T* external_initializers_file_path,
                  size_t external_initializers_size_threshold);
  // Has CompileModel return the model in memory from `allocator`.
  ORT_API2_STATUS(ModelCompilationOptions_SetOutputModelBuffer,
                  OrtModelCompilationOptions* model_compile_options, OrtAllocator* allocator,
                  void** output_model_buffer_ptr, size_t* output_model_buffer_size_ptr);
  // Whether the compiled parts are in the model or in files beside it.
  ORT_API2_STATUS(ModelCompilationOptions_SetEpContextEmbedMode,
                  OrtModelCompilationOptions* model_compile_options,
                  bool embed_ep_context_in_model);
  // Compiles the model.
  ORT_API2_STATUS(CompileModel, const OrtEnv* env, const OrtModelCompilationOptions* model_options);
  // OrtCompileApiFlags bits. Since 1.23.
  ORT_API2_STATUS(ModelCompilationOptions_SetFlags,
                  OrtModelCompilationOptions* model_compile_options, uint32_t flags);
  // Folder and name for the files of compiled parts. Since 1.23.
  ORT_API2_STATUS(ModelCompilationOptions_SetEpContextBinaryInformation,
                  OrtModelCompilationOptions* model_compile_options,
                  const ORTCHAR_T* output_directory, const ORTCHAR_T* model_name);
  // Which graph rewrites are applied first. Default: ORT_DISABLE_ALL. Since 1.23.
  ORT_API2_STATUS(ModelCompilationOptions_SetGraphOptimizationLevel,
                  OrtModelCompilationOptions* model_compile_options,
                  GraphOptimizationLevel graph_optimization_level);
  // Has the model written through a function of the caller. Since 1.23.
  ORT_API2_STATUS(ModelCompilationOptions_SetOutputModelWriteFunc,
                  OrtModelCompilationOptions* model_compile_options, OrtWriteBufferFunc write_func,
                  void* state);
  // Has a function of the caller say where each initializer goes. Since 1.23.
  ORT_API2_STATUS(ModelCompilationOptions_SetOutputModelGetInitializerLocationFunc,
                  OrtModelCompilationOptions* model_compile_options,
                  OrtGetInitializerLocationFunc get_initializer_location_func, void* state);
  // A model made with OrtModelEditorApi to compile. Since 1.24.
  ORT_API2_STATUS(ModelCompilationOptions_SetInputModel,
                  OrtModelCompilationOptions* model_compile_options, const OrtModel* model);
  // Whether the compiled model leaves the weights in the original one. Since 1.29.
  ORT_API2_STATUS(ModelCompilationOptions_SetWeightlessEnabled,
                  OrtModelCompilationOptions* model_compile_options, bool use_weightless);
};

// Sharing memory and semaphores with other APIs.
struct OrtInteropApi {
  // Makes an importer; null if the provider has none.
  ORT_API2_STATUS(CreateExternalResourceImporterForDevice, const OrtEpDevice* ep_device,
                  OrtExternalResourceImporter** out_importer);
  // Releases an importer.
  ORT_CLASS_RELEASE(ExternalResourceImporter);
  // Whether the importer takes such memory.
  ORT_API2_STATUS(CanImportMemory, const OrtExternalResourceImporter* importer,
                  OrtExternalMemoryHandleType handle_type, bool* out_supported);
  // Imports memory. Release with ReleaseExternalMemoryHandle.
  ORT_API2_STATUS(ImportMemory, OrtExternalResourceImporter* importer,
                  const OrtExternalMemoryDescriptor* desc, OrtExternalMemoryHandle** out_handle);
  // Releases imported memory, after the tensors over it.
  ORT_CLASS_RELEASE(ExternalMemoryHandle);
  // Makes a tensor over imported memory.
  ORT_API2_STATUS(CreateTensorFromMemory, OrtExternalResourceImporter* importer,
                  const OrtExternalMemoryHandle* mem_handle,
                  const OrtExternalTensorDescriptor* tensor_desc, OrtValue** out_tensor);
  // Whether the importer takes such semaphores.
  ORT_API2_STATUS(CanImportSemaphore, const OrtExternalResourceImporter* importer,
                  OrtExternalSemaphoreType type, bool* out_supported);
  // Imports a semaphore. Release with ReleaseExternalSemaphoreHandle.
  ORT_API2_STATUS(ImportSemaphore, OrtExternalResourceImporter* importer,
                  const OrtExternalSemaphoreDescriptor* desc,
                  OrtExternalSemaphoreHandle** out_handle);
  // Releases a semaphore.
  ORT_CLASS_RELEASE(ExternalSemaphoreHandle);
  // Has the stream wait until the semaphore reaches `value`.
  ORT_API2_STATUS(WaitSemaphore, OrtExternalResourceImporter* importer,
                  OrtExternalSemaphoreHandle* semaphore_handle, OrtSyncStream* stream,
                  uint64_t value);
  // Has the stream set the semaphore to `value`.
  ORT_API2_STATUS(SignalSemaphore, OrtExternalResourceImporter* importer,
                  OrtExternalSemaphoreHandle* semaphore_handle, OrtSyncStream* stream,
                  uint64_t value);
  // Prepares the device for work with a graphics API. Since 1.25.
  ORT_API2_STATUS(InitGraphicsInteropForEpDevice, const OrtEpDevice* ep_device,
                  const OrtGraphicsInteropConfig* config);
  // Takes InitGraphicsInteropForEpDevice back. Since 1.25.
  ORT_API2_STATUS(DeinitGraphicsInteropForEpDevice, const OrtEpDevice* ep_device);
};

// Add a provider to session options. A provider that is not part of the build is an error.
ORT_EXPORT ORT_API_STATUS(OrtSessionOptionsAppendExecutionProvider_CUDA, OrtSessionOptions* options,
                          int device_id);
ORT_EXPORT ORT_API_STATUS(OrtSessionOptionsAppendExecutionProvider_ROCM, OrtSessionOptions* options,
                          int device_id);
ORT_EXPORT ORT_API_STATUS(OrtSessionOptionsAppendExecutionProvider_MIGraphX,
                          OrtSessionOptions* options, int device_id);
ORT_EXPORT ORT_API_STATUS(OrtSessionOptionsAppendExecutionProvider_Dnnl, OrtSessionOptions* options,
                          int use_arena);
ORT_EXPORT ORT_API_STATUS(OrtSessionOptionsAppendExecutionProvider_Tensorrt,
                          OrtSessionOptions* options, int device_id);

#ifdef __cplusplus
}
#endif

#include "onnxruntime_ep_c_api.h"  // IWYU pragma: export
