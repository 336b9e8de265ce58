// What the kernels that are written by hand share. The text stands before theirs; it is compiled at
// run time, where CUDA's own headers may be absent.

typedef unsigned char uchar;
typedef unsigned short ushort;  // the bits of a float16 or bfloat16
typedef unsigned int uint;

#define INFINITY __int_as_float(0x7f800000)
#define LOG2_E 1.4426950408889634f

// ELEMENT is 1 for float16, 2 for bfloat16, 3 for float.
#ifdef ELEMENT
#if ELEMENT == 3
typedef float element;
__device__ __forceinline__ float to_float(element x) { return x; }
__device__ __forceinline__ element to_element(float x) { return x; }
#elif ELEMENT == 1
typedef ushort element;
__device__ __forceinline__ float to_float(element x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
__device__ __forceinline__ element to_element(float x) {
  element y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
// Two elements in a register, `low` at the lower address.
__device__ __forceinline__ uint pack(float low, float high) {
  uint y;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}
#else
typedef ushort element;
__device__ __forceinline__ float to_float(element x) { return __uint_as_float((uint)x << 16); }
__device__ __forceinline__ element to_element(float x) {
  element y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ uint pack(float low, float high) {
  uint y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}
#endif
#endif

__device__ __forceinline__ uint shared_address(const void* p) {
  return (uint)__cvta_generic_to_shared(p);
}

// 16 bytes from global to shared memory, on the side.
__device__ __forceinline__ void copy_async(void* shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(shared)),
               "l"(global));
}
__device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;"); }
// Waits until at most COUNT groups of copies are under way.
template <int COUNT>
__device__ __forceinline__ void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(COUNT));
}

#if defined(ELEMENT) && ELEMENT != 3
// Four 8 x 8 matrices: each lane gives the address of a row of eight elements, lanes 0 to 7 those of
// the first matrix.
__device__ __forceinline__ void load_matrices(uint (&r)[4], const element* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row)));
}
__device__ __forceinline__ void load_matrices_transposed(uint (&r)[4], const element* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row)));
}
// c += a x b: 16 x 16 times 16 x 8, the sums in float.
__device__ __forceinline__ void multiply(float (&c)[4], const uint (&a)[4], uint b0, uint b1) {
  asm volatile(
#if ELEMENT == 1
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
#else
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
#endif
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#endif
