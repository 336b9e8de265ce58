// NVIDIA's libraries, found when they are needed: nothing links to them, and no header of theirs is
// needed to build. The declarations are the parts of their ABIs that the provider uses; the names
// are theirs. Of CUDA 12 and 13, cuBLASLt 12 and 13, cuDNN 9.
#pragma once

#include <cstddef>
#include <cstdint>

#include "status.h"

namespace cuda {

using namespace codegen;  // NOLINT: the provider is the planner on a device

// --- the driver (libcuda) ---

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = uint64_t;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;

inline constexpr CUresult CUDA_SUCCESS = 0;
inline constexpr int CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97;
inline constexpr int CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75;
inline constexpr int CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76;
inline constexpr int CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16;
inline constexpr int CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115;
inline constexpr int CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4;
inline constexpr int CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8;
inline constexpr unsigned CU_STREAM_NON_BLOCKING = 1;
inline constexpr unsigned CU_EVENT_DEFAULT = 0;
inline constexpr unsigned CU_EVENT_DISABLE_TIMING = 2;
inline constexpr int CU_STREAM_CAPTURE_MODE_RELAXED = 2;

// X(name, symbol, parameters)
// clang-format off
#define CUDA_DRIVER_FUNCTIONS(X) \
  X(cuInit, "cuInit", (unsigned)) \
  X(cuDriverGetVersion, "cuDriverGetVersion", (int*)) \
  X(cuGetErrorName, "cuGetErrorName", (CUresult, const char**)) \
  X(cuGetErrorString, "cuGetErrorString", (CUresult, const char**)) \
  X(cuDeviceGetCount, "cuDeviceGetCount", (int*)) \
  X(cuDeviceGet, "cuDeviceGet", (CUdevice*, int)) \
  X(cuDeviceGetName, "cuDeviceGetName", (char*, int, CUdevice)) \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int*, int, CUdevice)) \
  X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t*, CUdevice)) \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext*, CUdevice)) \
  X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice)) \
  X(cuCtxSetCurrent, "cuCtxSetCurrent", (CUcontext)) \
  X(cuCtxSynchronize, "cuCtxSynchronize", ()) \
  X(cuMemGetInfo, "cuMemGetInfo_v2", (size_t*, size_t*)) \
  X(cuMemAlloc, "cuMemAlloc_v2", (CUdeviceptr*, size_t)) \
  X(cuMemFree, "cuMemFree_v2", (CUdeviceptr)) \
  X(cuMemHostAlloc, "cuMemHostAlloc", (void**, size_t, unsigned)) \
  X(cuMemFreeHost, "cuMemFreeHost", (void*)) \
  X(cuMemAllocAsync, "cuMemAllocAsync", (CUdeviceptr*, size_t, CUstream)) \
  X(cuMemFreeAsync, "cuMemFreeAsync", (CUdeviceptr, CUstream)) \
  X(cuDeviceGetDefaultMemPool, "cuDeviceGetDefaultMemPool", (CUmemoryPool*, CUdevice)) \
  X(cuMemPoolSetAttribute, "cuMemPoolSetAttribute", (CUmemoryPool, int, void*)) \
  X(cuMemPoolTrimTo, "cuMemPoolTrimTo", (CUmemoryPool, size_t)) \
  X(cuMemcpyHtoD, "cuMemcpyHtoD_v2", (CUdeviceptr, const void*, size_t)) \
  X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (CUdeviceptr, const void*, size_t, CUstream)) \
  X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void*, CUdeviceptr, size_t, CUstream)) \
  X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", (CUdeviceptr, CUdeviceptr, size_t, CUstream)) \
  X(cuMemcpyPeerAsync, "cuMemcpyPeerAsync", \
    (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream)) \
  X(cuStreamCreate, "cuStreamCreate", (CUstream*, unsigned)) \
  X(cuStreamDestroy, "cuStreamDestroy_v2", (CUstream)) \
  X(cuStreamSynchronize, "cuStreamSynchronize", (CUstream)) \
  X(cuStreamWaitEvent, "cuStreamWaitEvent", (CUstream, CUevent, unsigned)) \
  X(cuStreamBeginCapture, "cuStreamBeginCapture_v2", (CUstream, int)) \
  X(cuStreamEndCapture, "cuStreamEndCapture", (CUstream, CUgraph*)) \
  X(cuStreamIsCapturing, "cuStreamIsCapturing", (CUstream, int*)) \
  X(cuGraphInstantiate, "cuGraphInstantiateWithFlags", (CUgraphExec*, CUgraph, unsigned long long)) \
  X(cuGraphLaunch, "cuGraphLaunch", (CUgraphExec, CUstream)) \
  X(cuGraphExecDestroy, "cuGraphExecDestroy", (CUgraphExec)) \
  X(cuGraphDestroy, "cuGraphDestroy", (CUgraph)) \
  X(cuEventCreate, "cuEventCreate", (CUevent*, unsigned)) \
  X(cuEventDestroy, "cuEventDestroy_v2", (CUevent)) \
  X(cuEventRecord, "cuEventRecord", (CUevent, CUstream)) \
  X(cuEventSynchronize, "cuEventSynchronize", (CUevent)) \
  X(cuEventElapsedTime, "cuEventElapsedTime", (float*, CUevent, CUevent)) \
  X(cuModuleLoadData, "cuModuleLoadData", (CUmodule*, const void*)) \
  X(cuModuleUnload, "cuModuleUnload", (CUmodule)) \
  X(cuModuleGetFunction, "cuModuleGetFunction", (CUfunction*, CUmodule, const char*)) \
  X(cuFuncSetAttribute, "cuFuncSetAttribute", (CUfunction, int, int)) \
  X(cuLaunchKernel, "cuLaunchKernel", \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, \
     void**, void**))

// --- the compiler (libnvrtc) ---

using nvrtcProgram = struct nvrtcProgram_st*;

#define CUDA_NVRTC_FUNCTIONS(X) \
  X(nvrtcVersion, "nvrtcVersion", (int*, int*)) \
  X(nvrtcGetErrorString, "nvrtcGetErrorString", (int), const char*) \
  X(nvrtcCreateProgram, "nvrtcCreateProgram", \
    (nvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*)) \
  X(nvrtcDestroyProgram, "nvrtcDestroyProgram", (nvrtcProgram*)) \
  X(nvrtcCompileProgram, "nvrtcCompileProgram", (nvrtcProgram, int, const char* const*)) \
  X(nvrtcGetCUBINSize, "nvrtcGetCUBINSize", (nvrtcProgram, size_t*)) \
  X(nvrtcGetCUBIN, "nvrtcGetCUBIN", (nvrtcProgram, char*)) \
  X(nvrtcGetProgramLogSize, "nvrtcGetProgramLogSize", (nvrtcProgram, size_t*)) \
  X(nvrtcGetProgramLog, "nvrtcGetProgramLog", (nvrtcProgram, char*))

// --- matrix products (libcublasLt) ---

using cublasLtHandle_t = struct cublasLtContext*;
using cublasLtMatmulDesc_t = struct cublasLtMatmulDescOpaque_t*;
using cublasLtMatrixLayout_t = struct cublasLtMatrixLayoutOpaque_t*;
using cublasLtMatmulPreference_t = struct cublasLtMatmulPreferenceOpaque_t*;

struct cublasLtMatmulAlgo_t {
  uint64_t data[8];
};
struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  int state;
  float wavesCount;
  int reserved[4];
};

inline constexpr int CUDA_R_32F = 0;
inline constexpr int CUDA_R_16F = 2;
inline constexpr int CUDA_R_16BF = 14;
inline constexpr int CUBLAS_COMPUTE_32F = 68;
inline constexpr int CUBLAS_COMPUTE_32F_FAST_TF32 = 77;
inline constexpr int CUBLAS_OP_T = 1;
inline constexpr int CUBLASLT_MATMUL_DESC_TRANSA = 3;
inline constexpr int CUBLASLT_MATMUL_DESC_TRANSB = 4;
inline constexpr int CUBLASLT_MATMUL_DESC_EPILOGUE = 7;
inline constexpr int CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8;
inline constexpr int CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26;
inline constexpr int CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5;
inline constexpr int CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6;
inline constexpr int CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1;
inline constexpr int CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5;
inline constexpr int CUBLASLT_EPILOGUE_DEFAULT = 1;
inline constexpr int CUBLASLT_EPILOGUE_RELU = 2;
inline constexpr int CUBLASLT_EPILOGUE_BIAS = 4;
inline constexpr int CUBLASLT_EPILOGUE_GELU = 32;

#define CUDA_BLAS_FUNCTIONS(X) \
  X(cublasLtCreate, "cublasLtCreate", (cublasLtHandle_t*)) \
  X(cublasLtDestroy, "cublasLtDestroy", (cublasLtHandle_t)) \
  X(cublasLtMatmulDescCreate, "cublasLtMatmulDescCreate", (cublasLtMatmulDesc_t*, int, int)) \
  X(cublasLtMatmulDescDestroy, "cublasLtMatmulDescDestroy", (cublasLtMatmulDesc_t)) \
  X(cublasLtMatmulDescSetAttribute, "cublasLtMatmulDescSetAttribute", \
    (cublasLtMatmulDesc_t, int, const void*, size_t)) \
  X(cublasLtMatrixLayoutCreate, "cublasLtMatrixLayoutCreate", \
    (cublasLtMatrixLayout_t*, int, uint64_t, uint64_t, int64_t)) \
  X(cublasLtMatrixLayoutDestroy, "cublasLtMatrixLayoutDestroy", (cublasLtMatrixLayout_t)) \
  X(cublasLtMatrixLayoutSetAttribute, "cublasLtMatrixLayoutSetAttribute", \
    (cublasLtMatrixLayout_t, int, const void*, size_t)) \
  X(cublasLtMatmulPreferenceCreate, "cublasLtMatmulPreferenceCreate", \
    (cublasLtMatmulPreference_t*)) \
  X(cublasLtMatmulPreferenceDestroy, "cublasLtMatmulPreferenceDestroy", \
    (cublasLtMatmulPreference_t)) \
  X(cublasLtMatmulPreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute", \
    (cublasLtMatmulPreference_t, int, const void*, size_t)) \
  X(cublasLtMatmulAlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic", \
    (cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, \
     cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int, \
     cublasLtMatmulHeuristicResult_t*, int*)) \
  X(cublasLtMatmul, "cublasLtMatmul", \
    (cublasLtHandle_t, cublasLtMatmulDesc_t, const void*, const void*, cublasLtMatrixLayout_t, \
     const void*, cublasLtMatrixLayout_t, const void*, const void*, cublasLtMatrixLayout_t, void*, \
     cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t*, void*, size_t, CUstream))

// --- convolutions (libcudnn) ---

using cudnnHandle_t = struct cudnnContext*;
using cudnnTensorDescriptor_t = struct cudnnTensorStruct*;
using cudnnFilterDescriptor_t = struct cudnnFilterStruct*;
using cudnnConvolutionDescriptor_t = struct cudnnConvolutionStruct*;
using cudnnActivationDescriptor_t = struct cudnnActivationStruct*;

struct cudnnConvolutionFwdAlgoPerf_t {
  int algo;
  int status;
  float time;
  size_t memory;
  int determinism;
  int mathType;
  int reserved[3];
};

inline constexpr int CUDNN_DATA_FLOAT = 0;
inline constexpr int CUDNN_DATA_HALF = 2;
inline constexpr int CUDNN_DATA_BFLOAT16 = 9;
inline constexpr int CUDNN_TENSOR_NHWC = 1;
inline constexpr int CUDNN_CROSS_CORRELATION = 1;
inline constexpr int CUDNN_DEFAULT_MATH = 0;
inline constexpr int CUDNN_TENSOR_OP_MATH = 1;
inline constexpr int CUDNN_FMA_MATH = 3;
inline constexpr int CUDNN_ACTIVATION_RELU = 1;
inline constexpr int CUDNN_ACTIVATION_IDENTITY = 5;
inline constexpr int CUDNN_PROPAGATE_NAN = 1;
inline constexpr int CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM = 1;
inline constexpr int CUDNN_CONVOLUTION_FWD_ALGO_COUNT = 8;

#define CUDA_DNN_FUNCTIONS(X) \
  X(cudnnCreate, "cudnnCreate", (cudnnHandle_t*)) \
  X(cudnnDestroy, "cudnnDestroy", (cudnnHandle_t)) \
  X(cudnnSetStream, "cudnnSetStream", (cudnnHandle_t, CUstream)) \
  X(cudnnGetErrorString, "cudnnGetErrorString", (int), const char*) \
  X(cudnnCreateTensorDescriptor, "cudnnCreateTensorDescriptor", (cudnnTensorDescriptor_t*)) \
  X(cudnnDestroyTensorDescriptor, "cudnnDestroyTensorDescriptor", (cudnnTensorDescriptor_t)) \
  X(cudnnSetTensor4dDescriptor, "cudnnSetTensor4dDescriptor", \
    (cudnnTensorDescriptor_t, int, int, int, int, int, int)) \
  X(cudnnCreateFilterDescriptor, "cudnnCreateFilterDescriptor", (cudnnFilterDescriptor_t*)) \
  X(cudnnDestroyFilterDescriptor, "cudnnDestroyFilterDescriptor", (cudnnFilterDescriptor_t)) \
  X(cudnnSetFilter4dDescriptor, "cudnnSetFilter4dDescriptor", \
    (cudnnFilterDescriptor_t, int, int, int, int, int, int)) \
  X(cudnnCreateConvolutionDescriptor, "cudnnCreateConvolutionDescriptor", \
    (cudnnConvolutionDescriptor_t*)) \
  X(cudnnDestroyConvolutionDescriptor, "cudnnDestroyConvolutionDescriptor", \
    (cudnnConvolutionDescriptor_t)) \
  X(cudnnSetConvolution2dDescriptor, "cudnnSetConvolution2dDescriptor", \
    (cudnnConvolutionDescriptor_t, int, int, int, int, int, int, int, int)) \
  X(cudnnSetConvolutionGroupCount, "cudnnSetConvolutionGroupCount", \
    (cudnnConvolutionDescriptor_t, int)) \
  X(cudnnSetConvolutionMathType, "cudnnSetConvolutionMathType", \
    (cudnnConvolutionDescriptor_t, int)) \
  X(cudnnCreateActivationDescriptor, "cudnnCreateActivationDescriptor", \
    (cudnnActivationDescriptor_t*)) \
  X(cudnnDestroyActivationDescriptor, "cudnnDestroyActivationDescriptor", \
    (cudnnActivationDescriptor_t)) \
  X(cudnnSetActivationDescriptor, "cudnnSetActivationDescriptor", \
    (cudnnActivationDescriptor_t, int, int, double)) \
  X(cudnnGetConvolutionForwardAlgorithm, "cudnnGetConvolutionForwardAlgorithm_v7", \
    (cudnnHandle_t, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t, \
     cudnnConvolutionDescriptor_t, cudnnTensorDescriptor_t, int, int*, \
     cudnnConvolutionFwdAlgoPerf_t*)) \
  X(cudnnGetConvolutionForwardWorkspaceSize, "cudnnGetConvolutionForwardWorkspaceSize", \
    (cudnnHandle_t, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t, \
     cudnnConvolutionDescriptor_t, cudnnTensorDescriptor_t, int, size_t*)) \
  X(cudnnConvolutionForward, "cudnnConvolutionForward", \
    (cudnnHandle_t, const void*, cudnnTensorDescriptor_t, const void*, cudnnFilterDescriptor_t, \
     const void*, cudnnConvolutionDescriptor_t, int, void*, size_t, const void*, \
     cudnnTensorDescriptor_t, void*)) \
  X(cudnnConvolutionBiasActivationForward, "cudnnConvolutionBiasActivationForward", \
    (cudnnHandle_t, const void*, cudnnTensorDescriptor_t, const void*, cudnnFilterDescriptor_t, \
     const void*, cudnnConvolutionDescriptor_t, int, void*, size_t, const void*, \
     cudnnTensorDescriptor_t, const void*, cudnnTensorDescriptor_t, const void*, \
     cudnnActivationDescriptor_t, cudnnTensorDescriptor_t, void*))
// clang-format on

// The type of a function: int unless a third argument says otherwise.
template <class Return>
struct Returning {
  template <class... Parameters>
  static auto Function(void (*)(Parameters...)) -> Return (*)(Parameters...);
};
#define CUDA_FUNCTION(name, symbol, parameters, ...)      \
  decltype(Returning<CUDA_RETURN(__VA_ARGS__)>::Function( \
      static_cast<void(*) parameters>(nullptr))) name = nullptr;
#define CUDA_RETURN(...) CUDA_RETURN_OF(__VA_ARGS__ __VA_OPT__(, ) int, )
#define CUDA_RETURN_OF(type, ...) type

struct DriverLibrary {
  CUDA_DRIVER_FUNCTIONS(CUDA_FUNCTION)
};
struct CompilerLibrary {
  CUDA_NVRTC_FUNCTIONS(CUDA_FUNCTION)
};
struct BlasLibrary {
  CUDA_BLAS_FUNCTIONS(CUDA_FUNCTION)
};
struct DnnLibrary {
  CUDA_DNN_FUNCTIONS(CUDA_FUNCTION)
};

// Each is opened once for the process, in this order: under the names that the loader knows; in
// CUDA_PATH and /usr/local/cuda; in the folders of PyPI's packages beside the one that the provider
// lies in. The failure says which names were tried. Thread-safe.
const Result<DriverLibrary>& LoadDriver();
const Result<CompilerLibrary>& LoadCompiler();
const Result<BlasLibrary>& LoadBlas();
const Result<DnnLibrary>& LoadDnn();

// The loaded driver. Only called after LoadDriver has succeeded, as finding a device implies.
const DriverLibrary& Cu();

// "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (out of memory)" if `code` is an error.
Status Check(CUresult code, const char* function);
Status CheckBlas(int code, const char* function);
Status CheckDnn(int code, const char* function);

}  // namespace cuda

#define CU_CHECK(function, ...) ::cuda::Check(::cuda::Cu().function(__VA_ARGS__), #function)
