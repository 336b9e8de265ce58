// Minimum and maximum with one rule for NaN on every target.
#if defined(TENON_KERNELS_MIN_MAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_KERNELS_MIN_MAX_INL_H_
#undef TENON_KERNELS_MIN_MAX_INL_H_
#else
#define TENON_KERNELS_MIN_MAX_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// a > b ? a : b in each lane, so b if one is NaN: x86's rule. ARM's instructions return the number
// then, and EMU128 the first.
template <class V>
HWY_INLINE V MaxOrSecond(V a, V b) {
#if HWY_ARCH_ARM || HWY_TARGET == HWY_EMU128
  return hn::IfThenElse(hn::Gt(a, b), a, b);
#else
  return hn::Max(a, b);
#endif
}

// a < b ? a : b, likewise.
template <class V>
HWY_INLINE V MinOrSecond(V a, V b) {
#if HWY_ARCH_ARM || HWY_TARGET == HWY_EMU128
  return hn::IfThenElse(hn::Lt(a, b), a, b);
#else
  return hn::Min(a, b);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
