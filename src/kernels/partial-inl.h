// Whole-vector access to the last n < Lanes(d) elements of an array, for tails of loops: a tail
// runs the same code as the loop's body, so an element's bits do not depend on its position.
#if defined(TENON_KERNELS_PARTIAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_KERNELS_PARTIAL_INL_H_
#undef TENON_KERNELS_PARTIAL_INL_H_
#else
#define TENON_KERNELS_PARTIAL_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Whether masked loads and stores of T access only the selected elements.
template <class T>
constexpr bool HasExactMaskedAccess() {
  return !HWY_MEM_OPS_MIGHT_FAULT && (sizeof(T) >= 4 || HWY_TARGET != HWY_AVX2);
}

// Elsewhere, elements of this size go half by half: a copy in memory would take five times as long.
template <class T>
constexpr bool HasHalves() {
  return !HasExactMaskedAccess<T>() && sizeof(T) >= 4 && !HWY_HAVE_SCALABLE;
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadHalves(D d, const T* p, size_t n, T fill) {
  constexpr size_t kHalf = hn::MaxLanes(D()) / 2;
  if constexpr (kHalf == 0) {
    return hn::Set(d, fill);
  } else {
    const hn::Half<D> half;
    const auto rest = LoadHalves(half, p + (n & kHalf), n & (kHalf - 1), fill);
    return n & kHalf ? hn::Combine(d, rest, hn::LoadU(half, p))
                     : hn::Combine(d, hn::Set(half, fill), rest);
  }
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void StoreHalves(hn::Vec<D> v, D /*d*/, T* p, size_t n) {
  constexpr size_t kHalf = hn::MaxLanes(D()) / 2;
  if constexpr (kHalf > 0) {
    const hn::Half<D> half;
    auto part = hn::LowerHalf(half, v);
    if (n & kHalf) {
      hn::StoreU(part, half, p);
      p += kHalf;
      part = hn::UpperHalf(half, v);
    }
    StoreHalves(part, half, p, n);
  }
}

// A function of its own: loads are in many loops, and often several in one.
template <class D, class T = hn::TFromD<D>>
HWY_NOINLINE hn::Vec<D> LoadRest(D d, const T* p, size_t n, T fill) {
  return n == hn::Lanes(d) ? hn::LoadU(d, p) : LoadHalves(d, p, n, fill);
}

// p[0, n) in the lowest lanes, `fill` in the others; n <= Lanes(d). Reads nothing else.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadPartial(D d, const T* p, size_t n, T fill = {}) {
  if constexpr (HasExactMaskedAccess<T>()) {
    const auto mask = hn::FirstN(d, n);
    return hn::IfThenElse(mask, hn::MaskedLoad(mask, d, p), hn::Set(d, fill));
  } else if constexpr (HasHalves<T>()) {
    return LoadRest(d, p, n, fill);
  } else {
    HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)];
    hn::Store(hn::Set(d, fill), d, lanes);
    std::memcpy(lanes, p, n * sizeof(T));
    return hn::Load(d, lanes);
  }
}

// Writes the lowest n <= Lanes(d) lanes to p[0, n) and touches nothing else.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void StorePartial(hn::Vec<D> v, D d, T* p, size_t n) {
  if constexpr (HasExactMaskedAccess<T>()) {
    hn::BlendedStore(v, hn::FirstN(d, n), d, p);
  } else if constexpr (HasHalves<T>()) {
    if (n == hn::Lanes(d)) {
      hn::StoreU(v, d, p);
    } else {
      StoreHalves(v, d, p, n);
    }
  } else {
    HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)];
    hn::Store(v, d, lanes);
    std::memcpy(p, lanes, n * sizeof(T));
  }
}

// The first n elements from p on, for loops whose last round may lack some: a whole vector if n is
// at least its size.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadUpTo(D d, const T* p, size_t n) {
  return n >= hn::Lanes(d) ? hn::LoadU(d, p) : LoadPartial(d, p, n);
}
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void StoreUpTo(hn::Vec<D> v, D d, T* p, size_t n) {
  if (n >= hn::Lanes(d)) {
    hn::StoreU(v, d, p);
  } else {
    StorePartial(v, d, p, n);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
