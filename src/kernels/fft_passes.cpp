#include "kernels/fft_passes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/fft_passes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
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

// A complex number in each lane.
template <class D>
struct Numbers {
  using T = hn::TFromD<D>;
  struct Number {
    hn::Vec<D> re, im;
  };

  static size_t Parts() { return 2 * hn::Lanes(D()); }
  static HWY_INLINE Number Load(const T* at) {
    const D d;
    return {hn::LoadU(d, at), hn::LoadU(d, at + hn::Lanes(d))};
  }
  static HWY_INLINE void Store(const Number& x, T* at) {
    const D d;
    hn::StoreU(x.re, d, at);
    hn::StoreU(x.im, d, at + hn::Lanes(d));
  }
};

// One pass of Stockham's algorithm over arrays seen as [radix, m, stride] complex numbers of each
// lane: y[p, k, q] = w^(p k) sum(x[j, p, q] exp(-2 pi i j k / radix)), where w is the root of the
// length radix * m and roots[stride] is w.
template <class D>
class Pass : Numbers<D> {
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;
  using typename Numbers<D>::Number;
  using Numbers<D>::Load;
  using Numbers<D>::Parts;
  using Numbers<D>::Store;

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
      const T* from = x_ + stride_ * p * Parts();
      T* into = y_ + stride_ * radix_ * p * Parts();
      for (size_t q = 0; q < stride_; ++q, from += Parts(), into += Parts()) {
        if (radix_ == 4) {
          RunFour(from, into, p);
        } else if (radix_ == 2) {
          const Number a = Load(from), b = Load(from + Distance());
          Store(Add(a, b), into);
          Store(Turned(Sub(a, b), p), into + stride_ * Parts());
        } else {
          RunOdd(from, into, p);
        }
      }
    }
  }

 private:
  // From an input of a butterfly to the next.
  size_t Distance() const { return stride_ * m_ * Parts(); }

  static HWY_INLINE Number Add(const Number& a, const Number& b) {
    return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)};
  }
  static HWY_INLINE Number Sub(const Number& a, const Number& b) {
    return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)};
  }
  // a - i b and a + i b.
  static HWY_INLINE Number SubTimesI(const Number& a, const Number& b) {
    return {hn::Add(a.re, b.im), hn::Sub(a.im, b.re)};
  }
  static HWY_INLINE Number AddTimesI(const Number& a, const Number& b) {
    return {hn::Sub(a.re, b.im), hn::Add(a.im, b.re)};
  }

  // x times the root of the number `step`, of those that the pass has.
  HWY_INLINE Number Turned(const Number& x, size_t step) const {
    const D d;
    const T* const root = roots_ + 2 * stride_ * step;
    const V re = hn::Set(d, root[0]), im = hn::Set(d, root[1]);
    return {hn::NegMulAdd(x.im, im, hn::Mul(x.re, re)), hn::MulAdd(x.re, im, hn::Mul(x.im, re))};
  }

  HWY_INLINE void RunFour(const T* from, T* into, size_t p) const {
    const size_t next = stride_ * Parts();
    const Number a = Load(from), b = Load(from + Distance());
    const Number c = Load(from + 2 * Distance()), e = Load(from + 3 * Distance());
    const Number even = Add(a, c), odd = Add(b, e), other = Sub(a, c), turned = Sub(b, e);
    Store(Add(even, odd), into);
    const Number one = SubTimesI(other, turned), two = Sub(even, odd);
    const Number three = AddTimesI(other, turned);
    if (p == 0) {
      Store(one, into + next);
      Store(two, into + 2 * next);
      Store(three, into + 3 * next);
    } else {
      Store(Turned(one, p), into + next);
      Store(Turned(two, 2 * p), into + 2 * next);
      Store(Turned(three, 3 * p), into + 3 * next);
    }
  }

  // By sums and differences of the inputs j and radix - j, whose factors are conjugates.
  HWY_INLINE void RunOdd(const T* from, T* into, size_t p) const {
    const D d;
    const size_t next = stride_ * Parts(), pairs = radix_ / 2;
    const Number first = Load(from);
    Number all = first;
    for (size_t j = 1; j < radix_; ++j) all = Add(all, Load(from + j * Distance()));
    Store(all, into);
    for (size_t k = 1; k <= pairs; ++k) {
      Number a = first, b = {hn::Zero(d), hn::Zero(d)};
      size_t power = 0;
      for (size_t j = 1; j <= pairs; ++j) {
        power += k;
        if (power >= radix_) power -= radix_;
        const T* const root = roots_ + 2 * power * (length_ / radix_);
        const V cosine = hn::Set(d, root[0]), sine = hn::Set(d, root[1]);
        const Number x = Load(from + j * Distance()), z = Load(from + (radix_ - j) * Distance());
        const Number sum = Add(x, z), difference = Sub(x, z);
        a = {hn::MulAdd(sum.re, cosine, a.re), hn::MulAdd(sum.im, cosine, a.im)};
        b = {hn::MulAdd(difference.re, sine, b.re), hn::MulAdd(difference.im, sine, b.im)};
      }
      Store(Turned(AddTimesI(a, b), p * k), into + k * next);
      Store(Turned(SubTimesI(a, b), p * (radix_ - k)), into + (radix_ - k) * next);
    }
  }

  const T* const roots_;
  const T* const x_;
  T* const y_;
  const size_t length_, radix_, stride_, m_;
};

// The result ends up in x.
template <class D, class T = hn::TFromD<D>>
void RunPasses(const FftPasses<T>& passes, T* x, T* work) {
  T* from = x;
  T* into = work;
  size_t stride = 1;
  for (const size_t radix : passes.factors) {
    Pass<D>(passes, from, into, radix, stride, passes.length / (stride * radix)).Run();
    std::swap(from, into);
    stride *= radix;
  }
  if (from != x) std::copy_n(from, 2 * passes.length * hn::Lanes(D()), x);
}

// See UntangleReal.
template <class D, class T = hn::TFromD<D>>
void Untangle(size_t half, const T* turns, T* x) {
  using N = Numbers<D>;
  const D d;
  const auto zero = hn::Zero(d), one_half = hn::Set(d, T{0.5});
  const auto first = N::Load(x);
  N::Store({hn::Add(first.re, first.im), zero}, x);
  N::Store({hn::Sub(first.re, first.im), zero}, x + half * N::Parts());
  for (size_t k = 1; 2 * k <= half; ++k) {
    T* const low = x + k * N::Parts();
    T* const high = x + (half - k) * N::Parts();
    const auto a = N::Load(low), b = N::Load(high);
    const auto re = hn::Set(d, turns[2 * k]), im = hn::Set(d, turns[2 * k + 1]);
    // The transforms of the even elements, and of the odd ones times i.
    const auto even_re = hn::Mul(hn::Add(a.re, b.re), one_half);
    const auto even_im = hn::Mul(hn::Sub(a.im, b.im), one_half);
    const auto odd_re = hn::Mul(hn::Sub(a.re, b.re), one_half);
    const auto odd_im = hn::Mul(hn::Add(a.im, b.im), one_half);
    const auto turned_re = hn::MulAdd(re, odd_im, hn::Mul(im, odd_re));
    const auto turned_im = hn::NegMulAdd(re, odd_re, hn::Mul(im, odd_im));
    N::Store({hn::Add(even_re, turned_re), hn::Add(even_im, turned_im)}, low);
    N::Store({hn::Sub(even_re, turned_re), hn::Sub(turned_im, even_im)}, high);
  }
}

const FftTable<float> kFloatFftTable = {hn::MaxLanes(hn::ScalableTag<float>()),
                                        &RunPasses<hn::ScalableTag<float>>,
                                        &Untangle<hn::ScalableTag<float>>};
const FftTable<double> kDoubleFftTable = {hn::MaxLanes(hn::ScalableTag<double>()),
                                          &RunPasses<hn::ScalableTag<double>>,
                                          &Untangle<hn::ScalableTag<double>>};

#if HWY_TARGET == HWY_STATIC_TARGET
const FftTable<float> kFloatLineTable = {1, &RunPasses<hn::CappedTag<float, 1>>,
                                         &Untangle<hn::CappedTag<float, 1>>};
const FftTable<double> kDoubleLineTable = {1, &RunPasses<hn::CappedTag<double, 1>>,
                                           &Untangle<hn::CappedTag<double, 1>>};
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
