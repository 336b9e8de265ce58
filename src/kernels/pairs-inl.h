// Elements that lie side by side in memory, at positions that are computed: one load for two of
// them takes less than half of the time of gathering each. Included once per target.
#if defined(TENON_KERNELS_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_KERNELS_PAIRS_INL_H_
#undef TENON_KERNELS_PAIRS_INL_H_
#else
#define TENON_KERNELS_PAIRS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Whether second[i] == first[i] + 1 and first[i] >= 0 for all i of a vector.
template <class DI>
HWY_INLINE bool ArePairs(DI di, const int32_t* first, const int32_t* second) {
  const auto from = hn::LoadU(di, first), next = hn::LoadU(di, second);
  const auto is_next = hn::Eq(hn::Add(from, hn::Set(di, 1)), next);
  return hn::AllTrue(di, hn::And(is_next, hn::Gt(from, hn::Set(di, -1))));
}

// x[indices[0]], x[indices[0] + 1], x[indices[1]], ...: a vector of half as many pairs.
template <class D>
HWY_INLINE hn::Vec<D> LoadHalfOfPairs(D d, const float* x, const int32_t* indices) {
  if constexpr (hn::MaxLanes(d) <= 2) {
    return hn::LoadU(d, x + indices[0]);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, LoadHalfOfPairs(half, x, indices + hn::MaxLanes(d) / 4),
                       LoadHalfOfPairs(half, x, indices));
  }
}

template <class V>
struct Pairs {
  V first, second;
};

// The elements x[indices[i]] and x[indices[i] + 1] for each i of a vector.
template <class D>
HWY_INLINE Pairs<hn::Vec<D>> LoadPairs(D d, const float* x, const int32_t* indices) {
  const auto low = LoadHalfOfPairs(d, x, indices);
  const auto high = LoadHalfOfPairs(d, x, indices + hn::MaxLanes(d) / 2);
  return {hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low)};
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
