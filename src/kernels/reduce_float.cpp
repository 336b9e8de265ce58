#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce_float.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "kernels/dispatch.h"
#include "kernels/math-inl.h"
#include "kernels/min_max-inl.h"
#include "kernels/partial-inl.h"
#include "kernels/reduce_kernels.h"
#include "kernels/row_sums-inl.h"

#ifndef TENON_KERNELS_REDUCE_FLOAT_ONCE
#define TENON_KERNELS_REDUCE_FLOAT_ONCE
namespace tenon::kernels {
struct FloatReduceTable {
  ReduceKernels kernels[static_cast<size_t>(ReduceOp::kLogSumExp) + 1];
};
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// The value subtracted before exp. It must be finite, because an infinite maximum would give NaN.
HWY_INLINE V FiniteShift(V shift) {
  const D d;
  const auto finite = hn::Lt(hn::Abs(shift), hn::Set(d, std::numeric_limits<float>::infinity()));
  return hn::IfThenElseZero(finite, shift);
}

struct Identity {
  HWY_INLINE V operator()(V x, V) const { return x; }
};
struct Absolute {
  HWY_INLINE V operator()(V x, V) const { return hn::Abs(x); }
};
struct Squared {
  HWY_INLINE V operator()(V x, V) const { return hn::Mul(x, x); }
};
struct ShiftedExp {
  HWY_INLINE V operator()(V x, V shift) const { return Exp(D(), hn::Sub(x, shift)); }
};

// Calls f(j, load, store) for every vector of n elements; load(p) and store(v, p) access p + j and
// no element beyond n.
template <class F>
HWY_INLINE void ForEachVector(size_t n, const F& f) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  size_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    f([d, j](const float* p) HWY_ATTR { return hn::LoadU(d, p + j); },
      [d, j](V v, float* p) HWY_ATTR { hn::StoreU(v, d, p + j); });
  }
  if (j < n) {
    f([d, j, n](const float* p) HWY_ATTR { return LoadPartial(d, p + j, n - j); },
      [d, j, n](V v, float* p) HWY_ATTR { StorePartial(v, d, p + j, n - j); });
  }
}

// Accumulators of sums are doubles; blocks of terms are summed in float.
template <class Term>
struct Sums {
  static void Initialize(void* accumulators, size_t n) {
    std::fill_n(static_cast<double*>(accumulators), n, 0.0);
  }

  static void AddRow(const void* x, size_t n, const void* shift, void* accumulator) {
    const D d;
    const V s = shift ? FiniteShift(hn::Set(d, *static_cast<const float*>(shift))) : hn::Zero(d);
    const V sum = SumOfTerms(d, static_cast<const float*>(x), n,
                             [&](V v, size_t) HWY_ATTR { return Term()(v, s); });
    *static_cast<double*>(accumulator) += static_cast<double>(hn::GetLane(sum));
  }

  static void AddColumns(const void* x, size_t stride, size_t rows, size_t n, const void* shift,
                         void* accumulators) {
    constexpr size_t kRowsInFloat = 256;
    const float* fx = static_cast<const float*>(x);
    const float* fs = static_cast<const float*>(shift);
    double* a = static_cast<double*>(accumulators);
    HWY_ALIGN float sums[kReduceBlock];
    for (size_t begin = 0; begin < rows; begin += kRowsInFloat) {
      const size_t end = std::min(rows, begin + kRowsInFloat);
      std::fill_n(sums, n, 0.0f);
      size_t r = begin;
      for (; r + 8 <= end; r += 8) AddRows<8>(fx + r * stride, stride, n, fs, sums);
      for (; r < end; ++r) AddRows<1>(fx + r * stride, stride, n, fs, sums);
      for (size_t j = 0; j < n; ++j) a[j] += static_cast<double>(sums[j]);
    }
  }

 private:
  // sums += the terms of kRows rows, added as a tree.
  template <size_t kRows>
  static HWY_INLINE void AddRows(const float* x, size_t stride, size_t n, const float* shift,
                                 float* sums) {
    ForEachVector(n, [=](const auto& load, const auto& store) HWY_ATTR {
      const V s = shift ? FiniteShift(load(shift)) : hn::Zero(D());
      store(hn::Add(load(sums), Tree<kRows>(load, x, stride, s)), sums);
    });
  }
  template <size_t kRows, class Load>
  static HWY_INLINE V Tree(const Load& load, const float* x, size_t stride, V s) {
    if constexpr (kRows == 1) {
      return Term()(load(x), s);
    } else {
      constexpr size_t kHalf = kRows / 2;
      return hn::Add(Tree<kHalf>(load, x, stride, s),
                     Tree<kHalf>(load, x + kHalf * stride, stride, s));
    }
  }
};

struct Product {
  static constexpr float kIdentity = 1;
  HWY_INLINE V operator()(V a, V b) const { return hn::Mul(a, b); }
};
// NaN stays: x86 gives the second operand if one is NaN.
struct Maximum {
  static constexpr float kIdentity = -std::numeric_limits<float>::infinity();
  HWY_INLINE V operator()(V a, V b) const {
    return hn::IfThenElse(hn::IsNaN(a), a, MaxOrSecond(a, b));
  }
};
struct Minimum {
  static constexpr float kIdentity = std::numeric_limits<float>::infinity();
  HWY_INLINE V operator()(V a, V b) const {
    return hn::IfThenElse(hn::IsNaN(a), a, MinOrSecond(a, b));
  }
};

// All lanes, combined as a tree.
template <class Combine>
HWY_INLINE float FoldLanes(V v, const Combine& combine) {
  [[maybe_unused]] const D d;
#if HWY_HAVE_SCALABLE
  HWY_ALIGN float lanes[2 * HWY_MAX_BYTES / sizeof(float)] = {};
  for (size_t half = hn::Lanes(d) / 2; half > 0; half /= 2) {
    hn::Store(v, d, lanes);
    v = combine(v, hn::LoadU(d, lanes + half));
  }
#else
#if HWY_MAX_BYTES >= 32
  v = combine(v, hn::ReverseBlocks(d, v));
#endif
#if HWY_MAX_BYTES >= 64
  v = combine(v, hn::SwapAdjacentBlocks(v));
#endif
  v = combine(v, hn::Shuffle1032(v));
  v = combine(v, hn::Shuffle2301(v));
#endif
  return hn::GetLane(v);
}

// Accumulators of the other operators are floats.
template <class Combine>
struct Folds {
  static void Initialize(void* accumulators, size_t n) {
    std::fill_n(static_cast<float*>(accumulators), n, Combine::kIdentity);
  }

  static void AddRow(const void* x, size_t n, const void*, void* accumulator) {
    const D d;
    const Combine combine;
    const float* fx = static_cast<const float*>(x);
    const size_t lanes = hn::Lanes(d);
    V a0 = hn::Set(d, Combine::kIdentity), a1 = a0, a2 = a0, a3 = a0;
    size_t i = 0;
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
      a0 = combine(a0, hn::LoadU(d, fx + i));
      a1 = combine(a1, hn::LoadU(d, fx + i + lanes));
      a2 = combine(a2, hn::LoadU(d, fx + i + 2 * lanes));
      a3 = combine(a3, hn::LoadU(d, fx + i + 3 * lanes));
    }
    for (; i + lanes <= n; i += lanes) a0 = combine(a0, hn::LoadU(d, fx + i));
    if (i < n) a1 = combine(a1, LoadPartial(d, fx + i, n - i, Combine::kIdentity));
    float* total = static_cast<float*>(accumulator);
    const float own = FoldLanes(combine(combine(a0, a1), combine(a2, a3)), combine);
    *total = hn::GetLane(combine(hn::Set(d, *total), hn::Set(d, own)));
  }

  static void AddColumns(const void* x, size_t stride, size_t rows, size_t n, const void*,
                         void* accumulators) {
    const Combine combine;
    const float* fx = static_cast<const float*>(x);
    float* a = static_cast<float*>(accumulators);
    size_t r = 0;
    for (; r + 4 <= rows; r += 4, fx += 4 * stride) {
      ForEachVector(n, [=](const auto& load, const auto& store) HWY_ATTR {
        const V first = combine(load(fx), load(fx + stride));
        const V second = combine(load(fx + 2 * stride), load(fx + 3 * stride));
        store(combine(load(a), combine(first, second)), a);
      });
    }
    for (; r < rows; ++r, fx += stride) {
      ForEachVector(n, [=](const auto& load, const auto& store)
                           HWY_ATTR { store(combine(load(a), load(fx)), a); });
    }
  }
};

void FinishFloats(const void* accumulators, size_t n, size_t, const void*, void* y) {
  std::copy_n(static_cast<const float*>(accumulators), n, static_cast<float*>(y));
}

// y[j] = f(sum of output j).
template <class F>
void FinishSums(const void* accumulators, size_t n, void* y, const F& f) {
  const double* a = static_cast<const double*>(accumulators);
  for (size_t j = 0; j < n; ++j) static_cast<float*>(y)[j] = static_cast<float>(f(a[j]));
}
void FinishSum(const void* accumulators, size_t n, size_t, const void*, void* y) {
  FinishSums(accumulators, n, y, [](double sum) { return sum; });
}
void FinishMean(const void* accumulators, size_t n, size_t count, const void*, void* y) {
  FinishSums(accumulators, n, y, [count](double sum) { return sum / static_cast<double>(count); });
}
void FinishSqrt(const void* accumulators, size_t n, size_t, const void*, void* y) {
  FinishSums(accumulators, n, y, [](double sum) { return std::sqrt(sum); });
}
void FinishLog(const void* accumulators, size_t n, size_t, const void* shift, void* y) {
  FinishSums(accumulators, n, y, [](double sum) { return std::log(sum); });
  if (!shift) return;
  const float* s = static_cast<const float*>(shift);
  for (size_t j = 0; j < n; ++j) {
    if (std::isfinite(s[j])) static_cast<float*>(y)[j] += s[j];
  }
}

template <class Loops, auto kFinish>
constexpr ReduceKernels kKernels = {&Loops::Initialize, &Loops::AddRow, &Loops::AddColumns,
                                    kFinish};

// In the order of ReduceOp.
const FloatReduceTable kFloatReduceTable = {{
    kKernels<Sums<Identity>, &FinishSum>,
    kKernels<Sums<Identity>, &FinishMean>,
    kKernels<Folds<Maximum>, &FinishFloats>,
    kKernels<Folds<Minimum>, &FinishFloats>,
    kKernels<Folds<Product>, &FinishFloats>,
    kKernels<Sums<Squared>, &FinishSum>,
    kKernels<Sums<Absolute>, &FinishSum>,
    kKernels<Sums<Squared>, &FinishSqrt>,
    kKernels<Sums<Identity>, &FinishLog>,
    kKernels<Sums<ShiftedExp>, &FinishLog>,
}};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {

ReduceKernels FindFloatReduceKernels(ReduceOp op) {
  const auto& table = TENON_SELECT_TABLE(FloatReduceTable, kFloatReduceTable);
  return table.kernels[static_cast<size_t>(op)];
}

}  // namespace tenon::kernels
#endif
