// The activations of kernels/elementwise/activation.h on vectors of float: included once per
// target.
#if defined(TENON_KERNELS_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_KERNELS_ACTIVATION_INL_H_
#undef TENON_KERNELS_ACTIVATION_INL_H_
#else
#define TENON_KERNELS_ACTIVATION_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/elementwise/activation.h"
#include "kernels/math-inl.h"
#include "kernels/min_max-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Every functor maps a vector to a vector of the same tag, lane by lane.
struct IdentityActivation {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return x;
  }
};

struct ReluActivation {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return MaxOrSecond(hn::Zero(d), x);  // keeps NaN
  }
};

struct ClipActivation {
  float low, high;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return ClampKeepNan(d, x, low, high);
  }
};

struct LeakyReluActivation {
  float alpha;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(hn::Set(d, alpha), x), x);
  }
};

struct HardSigmoidActivation {
  float alpha, beta;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return ClampKeepNan(d, hn::MulAdd(hn::Set(d, alpha), x, hn::Set(d, beta)), 0.0f, 1.0f);
  }
};

struct HardSwishActivation {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Mul(x, HardSigmoidActivation{1.0f / 6, 0.5f}(d, x));
  }
};

struct SigmoidActivation {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return Sigmoid(d, x);
  }
};

struct TanhActivation {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return Tanh(d, x);
  }
};

// x / 2 (1 + y): the common end of both forms of Gelu.
template <class D, class V>
HWY_INLINE V HalfOfOnePlus(D d, V x, V y) {
  const V half_x = hn::Mul(hn::Set(d, 0.5f), x);
  return hn::MulAdd(half_x, y, half_x);
}

struct GeluActivation {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    constexpr float kSqrtHalf = 0.707106781f;
    return HalfOfOnePlus(d, x, Erf(d, hn::Mul(hn::Set(d, kSqrtHalf), x)));
  }
};

struct GeluTanhActivation {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    constexpr float kSqrtTwoOverPi = 0.797884561f;
    const V cubic = hn::Mul(hn::Mul(x, x), hn::Set(d, 0.044715f * kSqrtTwoOverPi));
    const V inner = hn::Mul(x, hn::Add(cubic, hn::Set(d, kSqrtTwoOverPi)));
    return HalfOfOnePlus(d, x, Tanh(d, inner));
  }
};

struct SiluActivation {
  float alpha;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Mul(x, Sigmoid(d, hn::Mul(hn::Set(d, alpha), x)));
  }
};

// Calls body(functor) with the functor of `spec`: the one place that maps kinds to code.
template <class Body>
HWY_INLINE void WithActivation(const ActivationSpec& spec, Body body) {
  switch (spec.kind) {
    case Activation::kNone:
      return body(IdentityActivation{});
    case Activation::kRelu:
      return body(ReluActivation{});
    case Activation::kClip:
      return body(ClipActivation{spec.alpha, spec.beta});
    case Activation::kLeakyRelu:
      return body(LeakyReluActivation{spec.alpha});
    case Activation::kHardSigmoid:
      return body(HardSigmoidActivation{spec.alpha, spec.beta});
    case Activation::kHardSwish:
      return body(HardSwishActivation{});
    case Activation::kSigmoid:
      return body(SigmoidActivation{});
    case Activation::kTanh:
      return body(TanhActivation{});
    case Activation::kGelu:
      return body(GeluActivation{});
    case Activation::kGeluTanh:
      return body(GeluTanhActivation{});
    case Activation::kSilu:
      return body(SiluActivation{spec.alpha});
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
