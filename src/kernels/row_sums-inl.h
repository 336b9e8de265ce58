// Sums over contiguous floats whose rounding error does not grow with their number: included once
// per target.
#if defined(TENON_KERNELS_ROW_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_KERNELS_ROW_SUMS_INL_H_
#undef TENON_KERNELS_ROW_SUMS_INL_H_
#else
#define TENON_KERNELS_ROW_SUMS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>

#include "kernels/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Elements whose sum is taken by four vectors in one go; such sums are then added up.
constexpr size_t kSumBlock = 4096;

// The sum over i in [0, n) of term(vector of x at i, i), in every lane. Lanes beyond n are not
// counted, whatever their term; `i` is the first element of a vector.
template <class D, class Term>
HWY_INLINE hn::Vec<D> SumOfTerms(D d, const float* x, size_t n, const Term& term) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d);
  V total = hn::Zero(d);
  for (size_t begin = 0; begin < n; begin += kSumBlock) {
    const size_t end = begin + kSumBlock < n ? begin + kSumBlock : n;
    V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    size_t i = begin;
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
      s0 = hn::Add(s0, term(hn::LoadU(d, x + i), i));
      s1 = hn::Add(s1, term(hn::LoadU(d, x + i + lanes), i + lanes));
      s2 = hn::Add(s2, term(hn::LoadU(d, x + i + 2 * lanes), i + 2 * lanes));
      s3 = hn::Add(s3, term(hn::LoadU(d, x + i + 3 * lanes), i + 3 * lanes));
    }
    for (; i + lanes <= end; i += lanes) s0 = hn::Add(s0, term(hn::LoadU(d, x + i), i));
    if (i < end) {
      const V v = term(LoadPartial(d, x + i, end - i), i);
      s1 = hn::Add(s1, hn::IfThenElseZero(hn::FirstN(d, end - i), v));
    }
    total = hn::Add(total, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
  }
  return hn::SumOfLanes(d, total);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
