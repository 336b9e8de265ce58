// The multiply-add of matrix products and convolutions. Included once per target.
#if defined(TENON_KERNELS_FUSED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_KERNELS_FUSED_INL_H_
#undef TENON_KERNELS_FUSED_INL_H_
#else
#define TENON_KERNELS_FUSED_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {

// a * b + c of floats, rounded as the machine does it fastest: Highway's MulAdd, except that it
// rounds twice in WebAssembly, which with relaxed SIMD leaves that to the machine.
template <class V>
HWY_INLINE V FastMulAdd(V a, V b, V c) {
#if defined(__wasm_relaxed_simd__)
  return V{static_cast<decltype(V::raw)>(__builtin_wasm_relaxed_madd_f32x4(
      static_cast<__f32x4>(a.raw), static_cast<__f32x4>(b.raw), static_cast<__f32x4>(c.raw)))};
#else
  return hwy::HWY_NAMESPACE::MulAdd(a, b, c);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
