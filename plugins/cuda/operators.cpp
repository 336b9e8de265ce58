#include "operators.h"

#include <vector>

namespace cuda {

// OpenCL C as CUDA C++: the names that generated kernels use. A long has 64 bits in both, on Linux.
const char* const kPrelude = R"(
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned short half;
#define KERNEL extern "C" __global__
#define GLOBAL
#define LOCAL __shared__
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define CLK_LOCAL_MEM_FENCE 0
#define barrier(flags) __syncthreads()
#define get_group_id(axis) ((axis) == 0 ? blockIdx.x : (axis) == 1 ? blockIdx.y : blockIdx.z)
#define get_local_id(axis) ((axis) == 0 ? threadIdx.x : (axis) == 1 ? threadIdx.y : threadIdx.z)
#define get_local_size(axis) ((axis) == 0 ? blockDim.x : (axis) == 1 ? blockDim.y : blockDim.z)
#define get_global_id(axis) (int)(get_group_id(axis) * get_local_size(axis) + get_local_id(axis))
#define SHUFFLE(x, offset) __shfl_xor_sync(0xffffffff, x, offset)
#define as_uint(x) __float_as_uint(x)
#define as_int(x) __float_as_int(x)
#define as_float(x) __uint_as_float(x)
template <class T>
struct alignas(sizeof(T) * 8 < 16 ? sizeof(T) * 8 : 16) Eight {
  T x[8];
};
#define EIGHT(type) Eight<type>
__device__ __forceinline__ float vload_half(int, const half* p) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(*p));
  return x;
}
__device__ __forceinline__ void vstore_half_rte(float x, int, half* p) {
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(*p) : "f"(x));
}
__device__ __forceinline__ float clamp(float x, float low, float high) {
  return fminf(fmaxf(x, low), high);
}
__device__ __forceinline__ int clamp(int x, int low, int high) { return min(max(x, low), high); }
__device__ __forceinline__ float sign(float x) {
  return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : isnan(x) ? 0.0f : x;
}
)";

const Operator* FindOperator(const Node& node) {
  static const std::vector<Operator> kOwn = [] {
    std::vector<Operator> rows;
    for (const auto table : {ProductOperators(), cuda::ConvolutionOperators(), EpilogueOperators(),
                             AttentionOperators(), DecoderOperators(), QuantizedOperators()}) {
      rows.insert(rows.end(), table.begin(), table.end());
    }
    return rows;
  }();
  for (const Operator& op : kOwn) {
    if (op.type == node.type && op.domain == node.domain) return &op;
  }
  return FindGenerated(node);
}

}  // namespace cuda
