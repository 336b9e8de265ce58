#include "kernels/fft_passes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/fft_passes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "kernels/dispatch.h"

#ifndef TENON_KERNELS_FFT_PASSES_ONCE
#define TENON_KERNELS_FFT_PASSES_ONCE
namespace tenon::kernels {
template <class T>
struct FftTable {
  size_t lanes;
  void (*passes)(const FftPasses<T>& passes, T* x, T* work);
  void (*untangle)(size_t half, const T* turns, T* x);
};
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The arithmetic of one signal.
template <class T>
struct OneLane {
  using Real = T;
  using V = T;
  static constexpr size_t kLanes = 1;

  static HWY_INLINE V Load(const T* at) { return *at; }
  static HWY_INLINE void Store(V v, T* at) { *at = v; }
  static HWY_INLINE V Set(T x) { return x; }
  static HWY_INLINE V Add(V a, V b) { return a + b; }
  static HWY_INLINE V Sub(V a, V b) { return a - b; }
  static HWY_INLINE V Mul(V a, V b) { return a * b; }
  static HWY_INLINE V MulAdd(V a, V b, V c) { return a * b + c; }
  static HWY_INLINE V NegMulAdd(V a, V b, V c) { return c - a * b; }
};

// That of as many signals as a vector has lanes.
template <class T>
struct AllLanes {
  using D = hn::ScalableTag<T>;
  using Real = T;
  using V = hn::Vec<D>;
  static constexpr size_t kLanes = hn::MaxLanes(D());

  static HWY_INLINE V Load(const T* at) { return hn::LoadU(D(), at); }
  static HWY_INLINE void Store(V v, T* at) { hn::StoreU(v, D(), at); }
  static HWY_INLINE V Set(T x) { return hn::Set(D(), x); }
  static HWY_INLINE V Add(V a, V b) { return hn::Add(a, b); }
  static HWY_INLINE V Sub(V a, V b) { return hn::Sub(a, b); }
  static HWY_INLINE V Mul(V a, V b) { return hn::Mul(a, b); }
  static HWY_INLINE V MulAdd(V a, V b, V c) { return hn::MulAdd(a, b, c); }
  static HWY_INLINE V NegMulAdd(V a, V b, V c) { return hn::NegMulAdd(a, b, c); }
};

// WebAssembly has no vectors of doubles here.
template <class T>
using Lanes = std::conditional_t<sizeof(T) == 4 || HWY_HAVE_FLOAT64, AllLanes<T>, OneLane<T>>;

// A complex number in each lane.
template <class L>
struct Number {
  typename L::V re, im;

  static constexpr size_t kReals = 2 * L::kLanes;
  static HWY_INLINE Number Load(const typename L::Real* at) {
    return {L::Load(at), L::Load(at + L::kLanes)};
  }
  HWY_INLINE void Store(typename L::Real* at) const {
    L::Store(re, at);
    L::Store(im, at + L::kLanes);
  }
};

// One pass of Stockham's algorithm over arrays seen as [radix, m, stride] complex numbers of each
// lane: y[p, k, q] = w^(p k) sum(x[j, p, q] exp(-2 pi i j k / radix)), where w is the root of the
// length radix * m and roots[stride] is w.
template <class L>
class Pass {
  using T = typename L::Real;
  using V = typename L::V;
  using N = Number<L>;

 public:
  Pass(const FftPasses<T>& passes, const T* x, T* y, size_t radix, size_t stride, size_t m)
      : roots_(passes.roots),
        x_(x),
        y_(y),
        length_(passes.length),
        radix_(radix),
        stride_(stride),
        m_(m) {}

  void Run() const {
    for (size_t p = 0; p < m_; ++p) {
      const T* from = x_ + stride_ * p * N::kReals;
      T* into = y_ + stride_ * radix_ * p * N::kReals;
      for (size_t q = 0; q < stride_; ++q, from += N::kReals, into += N::kReals) {
        if (radix_ == 4) {
          RunFour(from, into, p);
        } else if (radix_ == 2) {
          const N a = N::Load(from), b = N::Load(from + Distance());
          Add(a, b).Store(into);
          Turned(Sub(a, b), p).Store(into + stride_ * N::kReals);
        } else {
          RunOdd(from, into, p);
        }
      }
    }
  }

 private:
  // From an input of a butterfly to the next.
  size_t Distance() const { return stride_ * m_ * N::kReals; }

  static HWY_INLINE N Add(const N& a, const N& b) {
    return {L::Add(a.re, b.re), L::Add(a.im, b.im)};
  }
  static HWY_INLINE N Sub(const N& a, const N& b) {
    return {L::Sub(a.re, b.re), L::Sub(a.im, b.im)};
  }
  // a - i b and a + i b.
  static HWY_INLINE N SubTimesI(const N& a, const N& b) {
    return {L::Add(a.re, b.im), L::Sub(a.im, b.re)};
  }
  static HWY_INLINE N AddTimesI(const N& a, const N& b) {
    return {L::Sub(a.re, b.im), L::Add(a.im, b.re)};
  }

  // x times the root of the number `step`, of those that the pass has.
  HWY_INLINE N Turned(const N& x, size_t step) const {
    const T* const root = roots_ + 2 * stride_ * step;
    const V re = L::Set(root[0]), im = L::Set(root[1]);
    return {L::NegMulAdd(x.im, im, L::Mul(x.re, re)), L::MulAdd(x.re, im, L::Mul(x.im, re))};
  }

  HWY_INLINE void RunFour(const T* from, T* into, size_t p) const {
    const size_t next = stride_ * N::kReals;
    const N a = N::Load(from), b = N::Load(from + Distance());
    const N c = N::Load(from + 2 * Distance()), e = N::Load(from + 3 * Distance());
    const N even = Add(a, c), odd = Add(b, e), other = Sub(a, c), turned = Sub(b, e);
    Add(even, odd).Store(into);
    const N one = SubTimesI(other, turned), two = Sub(even, odd), three = AddTimesI(other, turned);
    if (p == 0) {
      one.Store(into + next);
      two.Store(into + 2 * next);
      three.Store(into + 3 * next);
    } else {
      Turned(one, p).Store(into + next);
      Turned(two, 2 * p).Store(into + 2 * next);
      Turned(three, 3 * p).Store(into + 3 * next);
    }
  }

  // By sums and differences of the inputs j and radix - j, whose factors are conjugates.
  HWY_INLINE void RunOdd(const T* from, T* into, size_t p) const {
    const size_t next = stride_ * N::kReals, pairs = radix_ / 2;
    const N first = N::Load(from);
    N all = first;
    for (size_t j = 1; j < radix_; ++j) all = Add(all, N::Load(from + j * Distance()));
    all.Store(into);
    for (size_t k = 1; k <= pairs; ++k) {
      N a = first, b = {L::Set(0), L::Set(0)};
      size_t power = 0;
      for (size_t j = 1; j <= pairs; ++j) {
        power += k;
        if (power >= radix_) power -= radix_;
        const T* const root = roots_ + 2 * power * (length_ / radix_);
        const V cosine = L::Set(root[0]), sine = L::Set(root[1]);
        const N x = N::Load(from + j * Distance()), z = N::Load(from + (radix_ - j) * Distance());
        const N sum = Add(x, z), difference = Sub(x, z);
        a = {L::MulAdd(sum.re, cosine, a.re), L::MulAdd(sum.im, cosine, a.im)};
        b = {L::MulAdd(difference.re, sine, b.re), L::MulAdd(difference.im, sine, b.im)};
      }
      Turned(AddTimesI(a, b), p * k).Store(into + k * next);
      Turned(SubTimesI(a, b), p * (radix_ - k)).Store(into + (radix_ - k) * next);
    }
  }

  const T* const roots_;
  const T* const x_;
  T* const y_;
  const size_t length_, radix_, stride_, m_;
};

// The result ends up in x.
template <class L, class T = typename L::Real>
void RunPasses(const FftPasses<T>& passes, T* x, T* work) {
  T* from = x;
  T* into = work;
  size_t stride = 1;
  for (const size_t radix : passes.factors) {
    Pass<L>(passes, from, into, radix, stride, passes.length / (stride * radix)).Run();
    std::swap(from, into);
    stride *= radix;
  }
  if (from != x) std::copy_n(from, 2 * passes.length * L::kLanes, x);
}

// See UntangleReal.
template <class L, class T = typename L::Real>
void Untangle(size_t half, const T* turns, T* x) {
  using N = Number<L>;
  const auto zero = L::Set(0), one_half = L::Set(T{0.5});
  const N first = N::Load(x);
  N{L::Add(first.re, first.im), zero}.Store(x);
  N{L::Sub(first.re, first.im), zero}.Store(x + half * N::kReals);
  for (size_t k = 1; 2 * k <= half; ++k) {
    T* const low = x + k * N::kReals;
    T* const high = x + (half - k) * N::kReals;
    const N a = N::Load(low), b = N::Load(high);
    const auto re = L::Set(turns[2 * k]), im = L::Set(turns[2 * k + 1]);
    // The transforms of the even elements, and of the odd ones times i.
    const auto even_re = L::Mul(L::Add(a.re, b.re), one_half);
    const auto even_im = L::Mul(L::Sub(a.im, b.im), one_half);
    const auto odd_re = L::Mul(L::Sub(a.re, b.re), one_half);
    const auto odd_im = L::Mul(L::Add(a.im, b.im), one_half);
    const auto turned_re = L::MulAdd(re, odd_im, L::Mul(im, odd_re));
    const auto turned_im = L::NegMulAdd(re, odd_re, L::Mul(im, odd_im));
    N{L::Add(even_re, turned_re), L::Add(even_im, turned_im)}.Store(low);
    N{L::Sub(even_re, turned_re), L::Sub(turned_im, even_im)}.Store(high);
  }
}

template <class L, class T = typename L::Real>
constexpr FftTable<T> TableOf() {
  return {L::kLanes, &RunPasses<L>, &Untangle<L>};
}

const FftTable<float> kFloatFftTable = TableOf<Lanes<float>>();
const FftTable<double> kDoubleFftTable = TableOf<Lanes<double>>();
#if HWY_TARGET == HWY_STATIC_TARGET
const FftTable<float> kFloatLineTable = TableOf<OneLane<float>>();
const FftTable<double> kDoubleLineTable = TableOf<OneLane<double>>();
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {
namespace {

const FftTable<float>& Table(float) { return TENON_SELECT_TABLE(FftTable<float>, kFloatFftTable); }
const FftTable<double>& Table(double) {
  return TENON_SELECT_TABLE(FftTable<double>, kDoubleFftTable);
}
const FftTable<float>& LineTable(float) { return HWY_STATIC_DISPATCH(kFloatLineTable); }
const FftTable<double>& LineTable(double) { return HWY_STATIC_DISPATCH(kDoubleLineTable); }

}  // namespace

template <class T>
size_t FftLanes() {
  return Table(T()).lanes;
}

template <class T>
void RunFftPasses(const FftPasses<T>& passes, size_t lines, T* x, T* work) {
  (lines == 1 ? LineTable(T()) : Table(T())).passes(passes, x, work);
}

template <class T>
void UntangleReal(size_t half, const T* turns, size_t lines, T* x) {
  (lines == 1 ? LineTable(T()) : Table(T())).untangle(half, turns, x);
}

template size_t FftLanes<float>();
template size_t FftLanes<double>();
template void RunFftPasses(const FftPasses<float>&, size_t, float*, float*);
template void RunFftPasses(const FftPasses<double>&, size_t, double*, double*);
template void UntangleReal(size_t, const float*, size_t, float*);
template void UntangleReal(size_t, const double*, size_t, double*);

}  // namespace tenon::kernels
#endif
