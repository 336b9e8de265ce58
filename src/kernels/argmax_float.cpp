#include "kernels/argmax_float.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/argmax_float.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <limits>

#include "kernels/dispatch.h"
#include "kernels/partial-inl.h"

#ifndef TENON_KERNELS_ARGMAX_FLOAT_ONCE
#define TENON_KERNELS_ARGMAX_FLOAT_ONCE
namespace tenon::kernels {
struct ArgExtremeTable {
  size_t (*arg_extreme)(const float* x, size_t n, bool min, bool select_last_index);
};
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// max over x[0, n), or NaN if there is one; of -x with kNegate.
template <bool kNegate>
float MaxOrNan(const float* x, size_t n) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const V least = hn::Set(d, -std::numeric_limits<float>::infinity());
  V max = least;
  V nan = hn::Zero(d);
  const auto visit = [&](V v) HWY_ATTR {
    if (kNegate) v = hn::Neg(v);
    max = hn::Max(max, v);
    nan = hn::Or(nan, hn::VecFromMask(d, hn::IsNaN(v)));
  };
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) visit(hn::LoadU(d, x + i));
  if (i < n) {
    visit(LoadPartial(d, x + i, n - i, kNegate ? -hn::GetLane(least) : hn::GetLane(least)));
  }
  const hn::RebindToUnsigned<D> du;
  if (!hn::AllTrue(du, hn::Eq(hn::BitCast(du, nan), hn::Zero(du)))) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  const float result = hn::GetLane(hn::MaxOfLanes(d, max));
  return kNegate ? -result : result;
}

// The lanes that equal `value`, where NaN equals NaN.
HWY_INLINE auto IsValue(V v, V value) {
  return hn::Or(hn::Eq(v, value), hn::And(hn::IsNaN(v), hn::IsNaN(value)));
}

size_t FirstOf(const float* x, size_t n, float value) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const V wanted = hn::Set(d, value);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const intptr_t lane = hn::FindFirstTrue(d, IsValue(hn::LoadU(d, x + i), wanted));
    if (lane >= 0) return i + static_cast<size_t>(lane);
  }
  for (; i < n; ++i) {
    if (x[i] == value || (x[i] != x[i] && value != value)) return i;
  }
  return 0;
}

size_t LastOf(const float* x, size_t n, float value) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const V wanted = hn::Set(d, value);
  size_t i = n;
  while (i >= lanes && hn::AllFalse(d, IsValue(hn::LoadU(d, x + i - lanes), wanted))) i -= lanes;
  while (i > 1 && x[i - 1] != value && !(x[i - 1] != x[i - 1] && value != value)) --i;
  return i - 1;
}

size_t ArgExtremeOf(const float* x, size_t n, bool min, bool select_last_index) {
  const float value = min ? MaxOrNan<true>(x, n) : MaxOrNan<false>(x, n);
  return select_last_index ? LastOf(x, n, value) : FirstOf(x, n, value);
}

const ArgExtremeTable kArgExtremeTable = {&ArgExtremeOf};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {

size_t ArgExtremeOfRow(const float* x, size_t n, bool min, bool select_last_index) {
  const auto& table = TENON_SELECT_TABLE(ArgExtremeTable, kArgExtremeTable);
  return table.arg_extreme(x, n, min, select_last_index);
}

}  // namespace tenon::kernels
#endif
