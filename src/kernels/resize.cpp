#include "kernels/resize.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/resize.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/dispatch.h"
#include "kernels/pairs-inl.h"

#ifndef TENON_KERNELS_RESIZE_ONCE
#define TENON_KERNELS_RESIZE_ONCE
namespace tenon::kernels {
template <class T>
struct ResizeTable {
  void (*row)(const ResizeTaps<T>& taps, const T* x, T* y);
  void (*sample)(const ResizeTaps<T>& taps, const T* x, T* y);
  void (*blend)(const T* const* rows, const T* weights, size_t weight_stride, size_t count, T* y,
                size_t n);
};
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
HWY_INLINE T TapSum(const ResizeTaps<T>& taps, const T* x, size_t o) {
  T sum = 0;
  for (size_t k = 0; k < taps.count; ++k) {
    sum += taps.weights[k * taps.out + o] * x[taps.indices[k * taps.out + o]];
  }
  return sum;
}

// Both results between two neighbours at once, without the indices.
void DoubleRow(const ResizeTaps<float>& taps, const float* x, float* y) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const float* even = taps.weights + 2;
  const float* odd = taps.weights + 1;
  const auto even_0 = hn::Set(d, even[0]), even_1 = hn::Set(d, even[taps.out]);
  const auto odd_0 = hn::Set(d, odd[0]), odd_1 = hn::Set(d, odd[taps.out]);
  size_t i = 1;
  for (; i + lanes < taps.in; i += lanes) {
    const auto x_1 = hn::LoadU(d, x + i);
    const auto at_even = hn::MulAdd(hn::LoadU(d, x + i - 1), even_0, hn::Mul(x_1, even_1));
    const auto at_odd = hn::MulAdd(x_1, odd_0, hn::Mul(hn::LoadU(d, x + i + 1), odd_1));
    hn::StoreInterleaved2(at_even, at_odd, d, y + 2 * i);
  }
  y[0] = TapSum(taps, x, 0);
  y[1] = TapSum(taps, x, 1);
  for (size_t o = 2 * i; o < taps.out; ++o) y[o] = TapSum(taps, x, o);
}

void RowOfDoubles(const ResizeTaps<double>& taps, const double* x, double* y) {
  for (size_t o = 0; o < taps.out; ++o) y[o] = TapSum(taps, x, o);
}

template <class T>
HWY_INLINE T SampleSum(const ResizeTaps<T>& taps, const T* x, size_t o) {
  T sum = 0;
  for (size_t k = 0; k < taps.count; ++k) {
    const int32_t index = taps.indices[k * taps.out + o];
    if (index >= 0) sum += taps.weights[k * taps.out + o] * x[index];
  }
  return sum;
}

// The sums of vectors of outputs, two taps at once where they read neighbours; returns the first
// output that is left.
template <bool kHasOutside>
HWY_INLINE size_t SumVectors(const ResizeTaps<float>& taps, const float* x, float* y) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const size_t lanes = hn::Lanes(d);
  size_t o = 0;
  for (; o + lanes <= taps.out; o += lanes) {
    auto sum = hn::Zero(d);
    const auto add = [&](size_t k) HWY_ATTR {
      const auto indices = hn::LoadU(di, taps.indices + k * taps.out + o);
      const auto weights = hn::LoadU(d, taps.weights + k * taps.out + o);
      if constexpr (kHasOutside) {
        const auto zero = hn::Zero(di);
        const auto elements = hn::GatherIndex(d, x, hn::Max(indices, zero));
        const auto outside = hn::RebindMask(d, hn::Lt(indices, zero));
        // The weight too, which may be NaN.
        sum = hn::MulAdd(hn::IfThenZeroElse(outside, elements),
                         hn::IfThenZeroElse(outside, weights), sum);
      } else {
        sum = hn::MulAdd(hn::GatherIndex(d, x, indices), weights, sum);
      }
    };
    size_t k = 0;
    for (; k + 2 <= taps.count; k += 2) {
      const int32_t* const indices = taps.indices + k * taps.out + o;
      if (!ArePairs(di, indices, indices + taps.out)) {
        add(k);
        add(k + 1);
        continue;
      }
      const float* const weights = taps.weights + k * taps.out + o;
      const auto pairs = LoadPairs(d, x, indices);
      sum = hn::MulAdd(pairs.first, hn::LoadU(d, weights), sum);
      sum = hn::MulAdd(pairs.second, hn::LoadU(d, weights + taps.out), sum);
    }
    if (k < taps.count) add(k);
    hn::StoreU(sum, d, y + o);
  }
  return o;
}

void RowOfFloats(const ResizeTaps<float>& taps, const float* x, float* y) {
  if (taps.doubles) return DoubleRow(taps, x, y);
  for (size_t o = SumVectors<false>(taps, x, y); o < taps.out; ++o) y[o] = TapSum(taps, x, o);
}

void SampleFloats(const ResizeTaps<float>& taps, const float* x, float* y) {
  for (size_t o = SumVectors<true>(taps, x, y); o < taps.out; ++o) y[o] = SampleSum(taps, x, o);
}

void SampleDoubles(const ResizeTaps<double>& taps, const double* x, double* y) {
  for (size_t o = 0; o < taps.out; ++o) y[o] = SampleSum(taps, x, o);
}

// Calls blend(i) for vectors that start at elements i and cover all; returns false if n is less
// than a vector. The last ones may overlap.
template <class D, class Blend>
HWY_INLINE bool ForVectors(D d, size_t n, const Blend& blend) {
  const size_t lanes = hn::Lanes(d);
  if (n < lanes) return false;
  for (size_t i = 0; i + lanes < n; i += lanes) blend(i);
  blend(n - lanes);
  return true;
}

template <class T>
bool BlendVectors(const T* const* rows, const T* weights, size_t weight_stride, size_t count, T* y,
                  size_t n) {
  constexpr bool kHasVectors = sizeof(T) == 4 || HWY_HAVE_FLOAT64;
  if constexpr (kHasVectors) {
    const hn::ScalableTag<T> d;
    if (count == 2) {
      const auto w_0 = hn::Set(d, weights[0]), w_1 = hn::Set(d, weights[weight_stride]);
      const T *x_0 = rows[0], *x_1 = rows[1];
      return ForVectors(d, n, [&](size_t i) HWY_ATTR {
        const auto sum = hn::Mul(hn::LoadU(d, x_0 + i), w_0);
        hn::StoreU(hn::MulAdd(hn::LoadU(d, x_1 + i), w_1, sum), d, y + i);
      });
    }
    return ForVectors(d, n, [&](size_t i) HWY_ATTR {
      auto sum = hn::Zero(d);
      for (size_t k = 0; k < count; ++k) {
        sum = hn::MulAdd(hn::LoadU(d, rows[k] + i), hn::Set(d, weights[k * weight_stride]), sum);
      }
      hn::StoreU(sum, d, y + i);
    });
  }
  return false;
}

template <class T>
void Blend(const T* const* rows, const T* weights, size_t weight_stride, size_t count, T* y,
           size_t n) {
  if (BlendVectors(rows, weights, weight_stride, count, y, n)) return;
  for (size_t i = 0; i < n; ++i) {
    T sum = 0;
    for (size_t k = 0; k < count; ++k) sum += rows[k][i] * weights[k * weight_stride];
    y[i] = sum;
  }
}

const ResizeTable<float> kFloatTable = {&RowOfFloats, &SampleFloats, &Blend<float>};
const ResizeTable<double> kDoubleTable = {&RowOfDoubles, &SampleDoubles, &Blend<double>};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {

bool DoublesHalfPixels(const ResizeTaps<float>& taps) {
  if (taps.count != 2 || taps.out != 2 * taps.in || taps.in < 2) return false;
  const auto last = static_cast<int32_t>(taps.in) - 1;
  for (size_t o = 0; o < taps.out; ++o) {
    const auto second = static_cast<int32_t>((o + 1) / 2);
    const size_t like = o == 0 ? 2 : o == taps.out - 1 ? 1 : 2 - o % 2;
    const bool fits = taps.indices[o] == std::max(second - 1, 0) &&
                      taps.indices[taps.out + o] == std::min(second, last) &&
                      taps.weights[o] == taps.weights[like] &&
                      taps.weights[taps.out + o] == taps.weights[taps.out + like];
    if (!fits) return false;
  }
  return true;
}

void ResizeRow(const ResizeTaps<float>& taps, const float* x, float* y) {
  TENON_SELECT_TABLE(ResizeTable<float>, kFloatTable).row(taps, x, y);
}

void ResizeRow(const ResizeTaps<double>& taps, const double* x, double* y) {
  TENON_SELECT_TABLE(ResizeTable<double>, kDoubleTable).row(taps, x, y);
}

void SampleElements(const ResizeTaps<float>& taps, const float* x, float* y) {
  TENON_SELECT_TABLE(ResizeTable<float>, kFloatTable).sample(taps, x, y);
}

void SampleElements(const ResizeTaps<double>& taps, const double* x, double* y) {
  TENON_SELECT_TABLE(ResizeTable<double>, kDoubleTable).sample(taps, x, y);
}

void BlendRows(const float* const* rows, const float* weights, size_t weight_stride, size_t count,
               float* y, size_t n) {
  TENON_SELECT_TABLE(ResizeTable<float>, kFloatTable)
      .blend(rows, weights, weight_stride, count, y, n);
}

void BlendRows(const double* const* rows, const double* weights, size_t weight_stride, size_t count,
               double* y, size_t n) {
  TENON_SELECT_TABLE(ResizeTable<double>, kDoubleTable)
      .blend(rows, weights, weight_stride, count, y, n);
}

}  // namespace tenon::kernels
#endif
