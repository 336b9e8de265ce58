#include "kernels/adamw.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/adamw.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/dispatch.h"
#include "kernels/partial-inl.h"

#ifndef TENON_KERNELS_ADAMW_CPP_
#define TENON_KERNELS_ADAMW_CPP_
namespace tenon::kernels {

struct AdamWTable {
  decltype(&UpdateAdamW) update;
};

}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using V = hn::Vec<Tag>;

void Update(const AdamWStep& step, const float* g, float* w, float* m, float* v, size_t n) {
  const Tag d;
  const V alpha = hn::Set(d, step.alpha), alpha_rest = hn::Set(d, 1 - step.alpha);
  const V beta = hn::Set(d, step.beta), beta_rest = hn::Set(d, 1 - step.beta);
  const V epsilon = hn::Set(d, step.epsilon), root = hn::Set(d, step.root);
  const V rate = hn::Set(d, step.rate);
  const V before = hn::Set(d, step.decay_before), after = hn::Set(d, step.decay_after);
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    const size_t left = n - i;
    const V gradient = LoadUpTo(d, g + i, left);
    const V first = hn::MulAdd(alpha, LoadUpTo(d, m + i, left), hn::Mul(alpha_rest, gradient));
    const V square = hn::Mul(gradient, gradient);
    const V second = hn::MulAdd(beta, LoadUpTo(d, v + i, left), hn::Mul(beta_rest, square));
    const V scale = hn::MulAdd(hn::Sqrt(second), root, epsilon);
    const V change = hn::Div(hn::Mul(rate, first), scale);
    StoreUpTo(hn::Mul(hn::MulSub(before, LoadUpTo(d, w + i, left), change), after), d, w + i, left);
    StoreUpTo(first, d, m + i, left);
    StoreUpTo(second, d, v + i, left);
  }
}

const AdamWTable kAdamWTable = {&Update};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {

void UpdateAdamW(const AdamWStep& step, const float* g, float* w, float* m, float* v, size_t n) {
  TENON_SELECT_TABLE(AdamWTable, kAdamWTable).update(step, g, w, m, v, n);
}

}  // namespace tenon::kernels
#endif
