#include "kernels/lrn.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/lrn.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/dispatch.h"
#include "kernels/math-inl.h"
#include "kernels/partial-inl.h"

#ifndef TENON_KERNELS_LRN_ONCE
#define TENON_KERNELS_LRN_ONCE
namespace tenon::kernels {
struct LrnTable {
  void (*lrn)(const float* x, float* y, size_t channels, size_t n, const LrnParameters& parameters,
              size_t begin, size_t end);
};
// Elements of a channel that are handled at a time: a window of some channels stays in L1.
inline constexpr size_t kLrnBlock = 512;
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

// x base^-beta for a normal positive base.
template <class D, class V>
HWY_INLINE V TimesPower(D d, V x, V base, float beta) {
  hn::Vec<hn::RebindToSigned<D>> e;
  const V m = ReduceForLog(d, base, e);
  const V log = LogReduced(d, hn::Sub(m, hn::Set(d, 1.0f)), hn::ConvertTo(d, e));
  return hn::Mul(x, Exp(d, hn::Mul(log, hn::Set(d, -beta))));
}

// The elements [j, j + count) of all channels of one image.
void LrnColumns(const float* x, float* y, size_t channels, size_t n, const LrnParameters& p,
                size_t j, size_t count) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto scale = hn::Set(d, p.alpha / static_cast<float>(p.size));
  const auto bias = hn::Set(d, p.bias);
  const size_t before = (p.size - 1) / 2;
  const size_t after = p.size - 1 - before;
  for (size_t c = 0; c < channels; ++c) {
    const size_t first = c < before ? 0 : c - before;
    const size_t last = std::min(channels - 1, c + after);
    for (size_t i = j; i < j + count; i += lanes) {
      const size_t valid = std::min(lanes, j + count - i);
      const bool whole = valid == lanes;
      auto sum = hn::Zero(d);
      for (size_t k = first; k <= last; ++k) {
        const float* p_k = x + k * n + i;
        const auto v = whole ? hn::LoadU(d, p_k) : LoadPartial(d, p_k, valid);
        sum = hn::MulAdd(v, v, sum);
      }
      const float* p_c = x + c * n + i;
      const auto v = whole ? hn::LoadU(d, p_c) : LoadPartial(d, p_c, valid);
      const auto result = TimesPower(d, v, hn::MulAdd(sum, scale, bias), p.beta);
      if (whole) {
        hn::StoreU(result, d, y + c * n + i);
      } else {
        StorePartial(result, d, y + c * n + i, valid);
      }
    }
  }
}

void LrnTasksOf(const float* x, float* y, size_t channels, size_t n, const LrnParameters& p,
                size_t begin, size_t end) {
  const size_t blocks = (n + kLrnBlock - 1) / kLrnBlock;
  for (size_t task = begin; task < end; ++task) {
    const size_t image = task / blocks * channels * n;
    const size_t j = task % blocks * kLrnBlock;
    LrnColumns(x + image, y + image, channels, n, p, j, std::min(kLrnBlock, n - j));
  }
}

const LrnTable kLrnTable = {&LrnTasksOf};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {

size_t LrnTasks(size_t batch, size_t n) { return batch * ((n + kLrnBlock - 1) / kLrnBlock); }

void Lrn(const float* x, float* y, size_t channels, size_t n, const LrnParameters& parameters,
         size_t begin, size_t end) {
  TENON_SELECT_TABLE(LrnTable, kLrnTable).lrn(x, y, channels, n, parameters, begin, end);
}

}  // namespace tenon::kernels
#endif
