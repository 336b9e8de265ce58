#include "kernels/grid_taps.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/grid_taps.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "kernels/dispatch.h"
#include "kernels/pairs-inl.h"

#ifndef TENON_KERNELS_GRID_TAPS_ONCE
#define TENON_KERNELS_GRID_TAPS_ONCE
namespace tenon::kernels {
struct GridTable {
  decltype(&FindAxisTaps) find;
  decltype(&FindPlaneTaps) find_plane;
  decltype(&JoinTaps) join;
  decltype(&AddSampled) add;
  decltype(&ContractTaps) contract;
};
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr float kA = -0.75f;  // the coefficient of cubic interpolation

HWY_INLINE V Number(float value) { return hn::Set(D(), value); }

// The values of polynomials, the highest power first.
HWY_INLINE V Polynomial(V x, float a, float b, float c, float d) {
  return hn::MulAdd(hn::MulAdd(hn::MulAdd(Number(a), x, Number(b)), x, Number(c)), x, Number(d));
}
HWY_INLINE V Near(V x) { return Polynomial(x, kA + 2, -(kA + 3), 0, 1); }
HWY_INLINE V Far(V x) { return Polynomial(x, kA, -5 * kA, 8 * kA, -4 * kA); }
HWY_INLINE V NearSlope(V x) { return Polynomial(x, 0, 3 * (kA + 2), -2 * (kA + 3), 0); }
HWY_INLINE V FarSlope(V x) { return Polynomial(x, 0, 3 * kA, -10 * kA, 8 * kA); }

HWY_INLINE V Inside(V x, float last) {
  // 0 for NaN.
  return hn::Min(hn::IfThenElseZero(hn::Gt(x, hn::Zero(D())), x), Number(last));
}

// Reflects positions outside the axis at its ends, and changes the signs of the slopes there.
HWY_INLINE V Reflected(const GridAxis& axis, V x, V& slope) {
  const float dim = static_cast<float>(axis.dim);
  const float least = axis.align_corners ? 0 : -0.5f;
  const float most = dim - (axis.align_corners ? 1 : 0.5f), range = most - least;
  if (!(range > 0)) {
    slope = hn::Zero(D());
    return hn::Zero(D());
  }
  const V distance = hn::Abs(hn::Sub(x, Number(least)));
  const V turns = hn::Trunc(hn::Mul(distance, Number(0.5f / range)));
  const V beyond = hn::Abs(hn::NegMulAdd(turns, Number(2 * range), distance));
  const auto is_back = hn::Ge(beyond, Number(range));
  const V from_end = hn::Sub(Number(most), hn::Sub(beyond, Number(range)));
  const V moved = hn::IfThenElse(is_back, from_end, hn::Add(Number(least), beyond));
  const auto is_before = hn::Lt(x, Number(least));
  const auto is_outside = hn::Or(is_before, hn::Gt(x, Number(most)));
  const auto turns_back = hn::And(is_outside, hn::Xor(is_back, is_before));
  slope = hn::IfThenElse(turns_back, hn::Neg(slope), slope);
  x = hn::IfThenElse(is_outside, moved, x);
  // Also of infinities and NaN.
  const auto is_finite = hn::Lt(distance, Number(HUGE_VALF));
  slope = hn::IfThenElseZero(is_finite, slope);
  return hn::IfThenElseZero(is_finite, x);
}

// The position along the axis of a normalized one.
HWY_INLINE V PositionOn(const GridAxis& axis, V normalized) {
  const float dim = static_cast<float>(axis.dim);
  const V one = Number(1), half = Number(0.5f), sum = hn::Add(normalized, one);
  const V x = axis.align_corners ? hn::Mul(hn::Mul(sum, half), Number(dim - 1))
                                 : hn::Mul(hn::Sub(hn::Mul(sum, Number(dim)), one), half);
  return axis.taps == 1 ? hn::Round(x) : x;
}

// The elements at whole positions; -1 where there is none.
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> ElementsAt(const GridAxis& axis, V at) {
  const float last = static_cast<float>(axis.dim) - 1;
  if (axis.padding != GridPadding::kZeros) {
    at = Inside(at, last);
  } else {
    const auto is_there = hn::And(hn::Ge(at, hn::Zero(D())), hn::Le(at, Number(last)));
    at = hn::IfThenElse(is_there, at, Number(-1));
  }
  return hn::ConvertTo(hn::RebindToSigned<D>(), at);
}

// Finds the taps of a vector of positions.
void FindVector(const GridAxis& axis, size_t count, int32_t* indices, float* weights,
                float* slopes) {
  const D d;
  const hn::RebindToSigned<D> di;
  const bool is_cubic = axis.taps == 4;
  const V one = Number(1), zero = hn::Zero(d);
  const float dim = static_cast<float>(axis.dim), last = dim - 1;
  V x = PositionOn(axis, hn::LoadU(d, weights));
  V slope = Number((axis.align_corners ? last : dim) / 2);
  if (axis.padding != GridPadding::kZeros && !is_cubic) {
    if (axis.padding == GridPadding::kReflection) x = Reflected(axis, x, slope);
    slope = hn::IfThenElseZero(hn::And(hn::Gt(x, zero), hn::Lt(x, Number(last))), slope);
    x = Inside(x, last);
  }
  const V floor = hn::Floor(x), ratio = hn::Sub(x, floor), rest = hn::Sub(one, ratio);
  for (size_t k = 0; k < axis.taps; ++k) {
    const V at = hn::Add(floor, Number(static_cast<float>(static_cast<int>(k) - is_cubic)));
    hn::StoreU(ElementsAt(axis, at), di, indices + k * count);
  }
  const auto put = [&](size_t k, V weight, V derivative) HWY_ATTR {
    hn::StoreU(weight, d, weights + k * count);
    if (slopes != nullptr) hn::StoreU(hn::Mul(slope, derivative), d, slopes + k * count);
  };
  if (is_cubic) {
    const V before = hn::Add(one, ratio), after = hn::Add(one, rest);
    put(0, Far(before), FarSlope(before));
    put(1, Near(ratio), NearSlope(ratio));
    put(2, Near(rest), hn::Neg(NearSlope(rest)));
    put(3, Far(after), hn::Neg(FarSlope(after)));
  } else if (axis.taps == 2) {
    put(0, rest, Number(-1));
    put(1, ratio, one);
  } else {
    put(0, one, zero);
  }
}

void Find(const GridAxis& axis, size_t count, int32_t* indices, float* weights, float* slopes) {
  const size_t lanes = hn::Lanes(D());
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    FindVector(axis, count, indices + i, weights + i, slopes == nullptr ? nullptr : slopes + i);
  }
  if (i == count) return;
  constexpr size_t kMostLanes = HWY_MAX_BYTES / sizeof(float);
  int32_t last_indices[4 * kMostLanes];
  float last_weights[4 * kMostLanes] = {}, last_slopes[4 * kMostLanes];
  std::copy_n(weights + i, count - i, last_weights);
  FindVector(axis, lanes, last_indices, last_weights, last_slopes);
  for (size_t k = 0; k < axis.taps; ++k) {
    std::copy_n(last_indices + k * lanes, count - i, indices + k * count + i);
    std::copy_n(last_weights + k * lanes, count - i, weights + k * count + i);
    if (slopes != nullptr) std::copy_n(last_slopes + k * lanes, count - i, slopes + k * count + i);
  }
}

// The index of an element of a plane; all bits are set where there is none.
template <class VI>
HWY_INLINE VI Joined(VI outer, VI inner, VI stride) {
  return hn::Or(hn::Add(hn::Mul(outer, stride), inner), hn::ShiftRight<31>(hn::Or(outer, inner)));
}

HWY_INLINE void FindPlaneVector(const GridAxis& rows, const GridAxis& columns, size_t count,
                                const float* positions, int32_t* indices, float* weights) {
  const D d;
  const hn::RebindToSigned<D> di;
  const V one = Number(1);
  const auto stride = hn::Set(di, static_cast<int32_t>(columns.dim));
  V x, y;
  hn::LoadInterleaved2(d, positions, x, y);
  x = PositionOn(columns, x);
  y = PositionOn(rows, y);
  if (rows.padding == GridPadding::kBorder) {
    x = Inside(x, static_cast<float>(columns.dim) - 1);
    y = Inside(y, static_cast<float>(rows.dim) - 1);
  }
  const V left = hn::Floor(x), top = hn::Floor(y);
  const auto column = ElementsAt(columns, left), row = ElementsAt(rows, top);
  hn::StoreU(Joined(row, column, stride), di, indices);
  if (rows.taps == 1) {
    hn::StoreU(one, d, weights);
    return;
  }
  const auto next_column = ElementsAt(columns, hn::Add(left, one));
  const auto next_row = ElementsAt(rows, hn::Add(top, one));
  hn::StoreU(Joined(row, next_column, stride), di, indices + count);
  hn::StoreU(Joined(next_row, column, stride), di, indices + 2 * count);
  hn::StoreU(Joined(next_row, next_column, stride), di, indices + 3 * count);
  const V right = hn::Sub(x, left), below = hn::Sub(y, top);
  const V before = hn::Sub(one, right), above = hn::Sub(one, below);
  hn::StoreU(hn::Mul(above, before), d, weights);
  hn::StoreU(hn::Mul(above, right), d, weights + count);
  hn::StoreU(hn::Mul(below, before), d, weights + 2 * count);
  hn::StoreU(hn::Mul(below, right), d, weights + 3 * count);
}

void FindPlane(const GridAxis& given_rows, const GridAxis& given_columns, size_t count,
               const float* positions, int32_t* indices, float* weights) {
  const GridAxis rows = given_rows, columns = given_columns;  // no store can change these
  constexpr size_t kMostLanes = HWY_MAX_BYTES / sizeof(float);
  const size_t lanes = hn::Lanes(D());
  float last_positions[2 * kMostLanes] = {}, last_weights[4 * kMostLanes];
  int32_t last_indices[4 * kMostLanes];
  for (size_t i = 0; i < count; i += lanes) {
    const size_t rest = count - i;
    const bool is_last = rest < lanes;
    if (is_last) std::copy_n(positions + 2 * i, 2 * rest, last_positions);
    FindPlaneVector(rows, columns, is_last ? lanes : count,
                    is_last ? last_positions : positions + 2 * i,
                    is_last ? last_indices : indices + i, is_last ? last_weights : weights + i);
    for (size_t k = 0; is_last && k < rows.taps * columns.taps; ++k) {
      std::copy_n(last_indices + k * lanes, rest, indices + k * count + i);
      std::copy_n(last_weights + k * lanes, rest, weights + k * count + i);
    }
  }
}

void Join(int64_t dim, const int32_t* indices, const float* weights, const int32_t* own_indices,
          const float* own_weights, int32_t* to_indices, float* to_weights, size_t n) {
  const D d;
  const hn::RebindToSigned<D> di;
  const size_t lanes = hn::Lanes(d);
  const auto stride = static_cast<int32_t>(dim);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto outer = hn::LoadU(di, indices + i), inner = hn::LoadU(di, own_indices + i);
    hn::StoreU(Joined(outer, inner, hn::Set(di, stride)), di, to_indices + i);
    hn::StoreU(hn::Mul(hn::LoadU(d, weights + i), hn::LoadU(d, own_weights + i)), d,
               to_weights + i);
  }
  for (; i < n; ++i) {
    const int32_t outer = indices[i], inner = own_indices[i];
    to_indices[i] = (outer | inner) < 0 ? -1 : outer * stride + inner;
    to_weights[i] = weights[i] * own_weights[i];
  }
}

void AddTap(const int32_t* indices, const float* x, const float* factors, float* sums, size_t i,
            size_t n) {
  const D d;
  const hn::RebindToSigned<D> di;
  const size_t lanes = hn::Lanes(d);
  for (; i + lanes <= n; i += lanes) {
    const auto at = hn::LoadU(di, indices + i);
    const auto is_outside = hn::RebindMask(d, hn::Lt(at, hn::Zero(di)));
    const V elements = hn::GatherIndex(d, x, hn::Max(at, hn::Zero(di)));
    const V product = hn::Mul(elements, hn::LoadU(d, factors + i));
    hn::StoreU(hn::Add(hn::LoadU(d, sums + i), hn::IfThenZeroElse(is_outside, product)), d,
               sums + i);
  }
  for (; i < n; ++i) {
    if (indices[i] >= 0) sums[i] += x[indices[i]] * factors[i];
  }
}

void Add(size_t taps, const int32_t* indices, const float* x, const float* factors, float* sums,
         size_t n) {
  const D d;
  const hn::RebindToSigned<D> di;
  const size_t lanes = hn::Lanes(d);
  size_t k = 0;
  for (; k + 2 <= taps; k += 2, indices += 2 * n, sums += 2 * n) {
    for (size_t i = 0; i < n; i += lanes) {
      const size_t end = std::min(n, i + lanes);
      if (end - i < lanes || !ArePairs(di, indices + i, indices + n + i)) {
        AddTap(indices, x, factors, sums, i, end);
        AddTap(indices + n, x, factors, sums + n, i, end);
        continue;
      }
      const auto pairs = LoadPairs(d, x, indices + i);
      const V factor = hn::LoadU(d, factors + i);
      const auto add = [&](V elements, float* to) HWY_ATTR {
        // Not in one step, as for elements that are not side by side.
        hn::StoreU(hn::Add(hn::LoadU(d, to), hn::Mul(elements, factor)), d, to);
      };
      add(pairs.first, sums + i);
      add(pairs.second, sums + n + i);
    }
  }
  for (; k < taps; ++k, indices += n, sums += n) AddTap(indices, x, factors, sums, 0, n);
}

void Contract(size_t taps, const float* terms, const float* factors, float* to, size_t n) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    V sum = hn::Zero(d);
    for (size_t k = i; k < taps * n; k += n) {
      sum = hn::MulAdd(hn::LoadU(d, terms + k), hn::LoadU(d, factors + k), sum);
    }
    hn::StoreU(sum, d, to + i);
  }
  for (; i < n; ++i) {
    float sum = 0;
    for (size_t k = i; k < taps * n; k += n) sum += terms[k] * factors[k];
    to[i] = sum;
  }
}

const GridTable kTable = {&Find, &FindPlane, &Join, &Add, &Contract};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {

void FindAxisTaps(const GridAxis& axis, size_t count, int32_t* indices, float* weights,
                  float* slopes) {
  TENON_SELECT_TABLE(GridTable, kTable).find(axis, count, indices, weights, slopes);
}

void FindPlaneTaps(const GridAxis& rows, const GridAxis& columns, size_t count,
                   const float* positions, int32_t* indices, float* weights) {
  TENON_SELECT_TABLE(GridTable, kTable)
      .find_plane(rows, columns, count, positions, indices, weights);
}

void JoinTaps(int64_t dim, const int32_t* indices, const float* weights, const int32_t* own_indices,
              const float* own_weights, int32_t* to_indices, float* to_weights, size_t n) {
  TENON_SELECT_TABLE(GridTable, kTable)
      .join(dim, indices, weights, own_indices, own_weights, to_indices, to_weights, n);
}

void AddSampled(size_t taps, const int32_t* indices, const float* x, const float* factors,
                float* sums, size_t n) {
  TENON_SELECT_TABLE(GridTable, kTable).add(taps, indices, x, factors, sums, n);
}

void ContractTaps(size_t taps, const float* terms, const float* factors, float* to, size_t n) {
  TENON_SELECT_TABLE(GridTable, kTable).contract(taps, terms, factors, to, n);
}

}  // namespace tenon::kernels
#endif
