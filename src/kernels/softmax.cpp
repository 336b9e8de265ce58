#include "kernels/softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "kernels/dispatch.h"
#include "kernels/math-inl.h"
#include "kernels/partial-inl.h"
#include "kernels/transpose_tiles.h"

#ifndef TENON_KERNELS_SOFTMAX_ONCE
#define TENON_KERNELS_SOFTMAX_ONCE
namespace tenon::kernels {
struct SoftmaxTable {
  void (*rows)(const float* x, float* y, size_t rows, size_t n, bool log);
  void (*middle)(const float* x, float* y, size_t n, size_t inner, bool log, size_t begin,
                 size_t end);
  float (*part)(float* x, size_t n, float scale, const float* mask, SoftmaxState* state);
  void (*scale_row)(float* y, size_t n, float factor);
};
// Rows up to this long are handled as columns, as many at a time as have so many elements: a row
// alone waits for its maximum and its sum.
inline constexpr size_t kShortRow = 32;
inline constexpr size_t kShortRowElements = 4096;
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// The last elements of a row that is no multiple of a vector: a whole vector, which overlaps the
// one before it, as stores under a mask are slow. Rows that have less than a vector have -inf after
// them.
V LoadLast(const float* x, size_t n) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  return n < lanes ? LoadPartial(d, x, n, kMinusInfinity) : hn::LoadU(d, x + n - lanes);
}

void StoreLast(V v, float* y, size_t n) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  if (n < lanes) {
    StorePartial(v, d, y, n);
  } else {
    hn::StoreU(v, d, y + n - lanes);
  }
}

// max over x[0, n); NaN elements may be overlooked.
float MaxOfRow(const float* x, size_t n) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  V m0 = hn::Set(d, kMinusInfinity);
  V m1 = m0;
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    m0 = hn::Max(m0, hn::LoadU(d, x + i));
    m1 = hn::Max(m1, hn::LoadU(d, x + i + lanes));
  }
  for (; i + lanes <= n; i += lanes) m0 = hn::Max(m0, hn::LoadU(d, x + i));
  if (i < n) m1 = hn::Max(m1, LoadLast(x, n));
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(m0, m1)));
}

// x = scale x + mask; returns its maximum.
float ScaleAndMask(float* x, size_t n, float scale, const float* mask) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const V vscale = hn::Set(d, scale);
  V max = hn::Set(d, kMinusInfinity);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V addend = mask ? hn::LoadU(d, mask + i) : hn::Zero(d);
    const V t = hn::MulAdd(hn::LoadU(d, x + i), vscale, addend);
    hn::StoreU(t, d, x + i);
    max = hn::Max(max, t);
  }
  if (i < n) {
    const V addend = mask ? LoadPartial(d, mask + i, n - i) : hn::Zero(d);
    const V t = hn::MulAdd(LoadPartial(d, x + i, n - i), vscale, addend);
    StorePartial(t, d, x + i, n - i);
    const V valid = hn::IfThenElse(hn::FirstN(d, n - i), t, hn::Set(d, kMinusInfinity));
    max = hn::Max(max, valid);
  }
  return hn::GetLane(hn::MaxOfLanes(d, max));
}

// y = exp(x - max), unless y is null; returns the sum. Sums of 2048 elements each are added, so
// that rounding errors do not grow with n. `last`, if there is a rest, is for StoreLast.
float ExpOfRow(const float* x, float* y, size_t n, float max, V& last) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const V vmax = hn::Set(d, max);
  const size_t rest = n % lanes;
  if (rest != 0) last = ExpNonPositive(d, hn::Sub(LoadLast(x, n), vmax));  // before x is written
  V total = hn::Zero(d);
  for (size_t block = 0; block < n - rest; block += 2048) {
    const size_t end = std::min(n - rest, block + 2048);
    V sum = hn::Zero(d);
    for (size_t i = block; i < end; i += lanes) {
      const V e = ExpNonPositive(d, hn::Sub(hn::LoadU(d, x + i), vmax));
      if (y) hn::StoreU(e, d, y + i);
      sum = hn::Add(sum, e);
    }
    total = hn::Add(total, sum);
  }
  if (rest != 0) {
    const V own = n < lanes ? last : hn::IfThenZeroElse(hn::FirstN(d, lanes - rest), last);
    total = hn::Add(total, own);
  }
  return hn::GetLane(hn::SumOfLanes(d, total));
}

// y = change(x) for each vector of a row.
template <class Change>
HWY_INLINE void ChangeRow(const float* x, float* y, size_t n, Change change) {
  const D d;
  const size_t lanes = hn::Lanes(d), rest = n % lanes;
  const V last = rest == 0 ? hn::Zero(d) : change(LoadLast(x, n));
  for (size_t i = 0; i < n - rest; i += lanes) hn::StoreU(change(hn::LoadU(d, x + i)), d, y + i);
  if (rest != 0) StoreLast(last, y, n);
}

void ScaleOfRow(float* y, size_t n, float factor) {
  const V v = hn::Set(D(), factor);
  ChangeRow(y, y, n, [&v](V e) HWY_ATTR { return hn::Mul(e, v); });
}

float LogOf(float x) {
  const D d;
  return hn::GetLane(Log(d, hn::Set(d, x)));
}

void SoftmaxRow(const float* x, float* y, size_t n, bool log) {
  const D d;
  const float max = MaxOfRow(x, n);
  V last = hn::Zero(d);
  if (log) {
    const float log_sum = LogOf(ExpOfRow(x, nullptr, n, max, last));
    const V vmax = hn::Set(d, max), vlog = hn::Set(d, log_sum);
    // Two steps: max alone may be large, which would round log_sum away.
    return ChangeRow(x, y, n, [&](V v) HWY_ATTR { return hn::Sub(hn::Sub(v, vmax), vlog); });
  }
  const float factor = 1 / ExpOfRow(x, y, n, max, last);
  const size_t rest = n % hn::Lanes(d);
  ScaleOfRow(y, n - rest, factor);
  if (rest != 0) StoreLast(hn::Mul(last, hn::Set(d, factor)), y, n);
}

float Part(float* x, size_t n, float scale, const float* mask, SoftmaxState* state) {
  const float own = scale == 1 && !mask ? MaxOfRow(x, n) : ScaleAndMask(x, n, scale, mask);
  const float before = state->max;
  const float max = state->max = std::max(before, own);
  V last = hn::Zero(D());
  const float sum = ExpOfRow(x, x, n, max == kMinusInfinity ? 0 : max, last);
  if (n % hn::Lanes(D()) != 0) StoreLast(last, x, n);
  const float factor = max == before ? 1 : before == kMinusInfinity ? 0 : std::exp(before - max);
  state->sum = state->sum * factor + sum;
  return factor;
}

// One block of at most kSoftmaxColumns columns: rows are walked in order, so memory is streamed.
void ColumnBlock(const float* x, float* y, size_t n, size_t inner, size_t columns, bool log) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const size_t vectors = (columns + lanes - 1) / lanes;
  const size_t whole = columns / lanes;
  HWY_ALIGN float max[kSoftmaxColumns + HWY_MAX_BYTES / sizeof(float)];
  HWY_ALIGN float sum[kSoftmaxColumns + HWY_MAX_BYTES / sizeof(float)];
  // f(vector of x, j) -> vector for y, for every vector of a row.
  const auto for_row = [&](const float* from, float* to, const auto& f) HWY_ATTR {
    size_t j = 0;
    for (; j < whole * lanes; j += lanes) {
      const V v = f(hn::LoadU(d, from + j), j);
      if (to) hn::StoreU(v, d, to + j);
    }
    if (j < columns) {
      const V v = f(LoadPartial(d, from + j, columns - j), j);
      if (to) StorePartial(v, d, to + j, columns - j);
    }
  };
  for (size_t j = 0; j < vectors * lanes; j += lanes) {
    hn::Store(hn::Set(d, kMinusInfinity), d, max + j);
    hn::Store(hn::Zero(d), d, sum + j);
  }
  for (size_t i = 0; i < n; ++i) {
    for_row(x + i * inner, nullptr, [&](V v, size_t j) HWY_ATTR {
      hn::Store(hn::Max(hn::Load(d, max + j), v), d, max + j);
      return v;
    });
  }
  for (size_t i = 0; i < n; ++i) {
    for_row(x + i * inner, log ? nullptr : y + i * inner, [&](V v, size_t j) HWY_ATTR {
      const V e = ExpNonPositive(d, hn::Sub(v, hn::Load(d, max + j)));
      hn::Store(hn::Add(hn::Load(d, sum + j), e), d, sum + j);
      return e;
    });
  }
  for (size_t j = 0; j < vectors * lanes; j += lanes) {
    const V s = hn::Load(d, sum + j);
    hn::Store(log ? Log(d, s) : hn::Div(hn::Set(d, 1.0f), s), d, sum + j);
  }
  for (size_t i = 0; i < n; ++i) {
    if (log) {
      for_row(x + i * inner, y + i * inner, [&](V v, size_t j) HWY_ATTR {
        return hn::Sub(hn::Sub(v, hn::Load(d, max + j)), hn::Load(d, sum + j));
      });
    } else {
      for_row(y + i * inner, y + i * inner,
              [&](V v, size_t j) HWY_ATTR { return hn::Mul(v, hn::Load(d, sum + j)); });
    }
  }
}

// Many rows at a time, as columns; columns of zeros fill the last vector.
void ShortRows(const float* x, float* y, size_t rows, size_t n, bool log) {
  HWY_ALIGN float columns[kShortRowElements];
  const size_t lanes = hn::Lanes(D());
  const size_t block = std::min(kSoftmaxColumns, kShortRowElements / n) / lanes * lanes;
  const auto bytes = [](size_t count) { return static_cast<ptrdiff_t>(count * sizeof(float)); };
  for (size_t first = 0; first < rows; first += block) {
    const size_t count = std::min(block, rows - first);
    const size_t width = (count + lanes - 1) / lanes * lanes;
    if (count < width) std::fill_n(columns, n * width, 0.0f);
    TransposeTiles({count, n, bytes(n), bytes(width)}, sizeof(float),
                   reinterpret_cast<const uint8_t*>(x + first * n),
                   reinterpret_cast<uint8_t*>(columns));
    ColumnBlock(columns, columns, n, width, width, log);
    TransposeTiles({n, count, bytes(width), bytes(n)}, sizeof(float),
                   reinterpret_cast<const uint8_t*>(columns),
                   reinterpret_cast<uint8_t*>(y + first * n));
  }
}

// Whether a row is short is a question of its length alone, so its bits do not depend on the
// others.
void Rows(const float* x, float* y, size_t rows, size_t n, bool log) {
  if (n == 0) return;
  if (n <= kShortRow) return ShortRows(x, y, rows, n, log);
  for (size_t row = 0; row < rows; ++row) SoftmaxRow(x + row * n, y + row * n, n, log);
}

void Middle(const float* x, float* y, size_t n, size_t inner, bool log, size_t begin, size_t end) {
  const size_t blocks = (inner + kSoftmaxColumns - 1) / kSoftmaxColumns;
  for (size_t task = begin; task < end; ++task) {
    const size_t column = task % blocks * kSoftmaxColumns;
    const size_t offset = task / blocks * n * inner + column;
    ColumnBlock(x + offset, y + offset, n, inner, std::min(kSoftmaxColumns, inner - column), log);
  }
}

const SoftmaxTable kSoftmaxTable = {&Rows, &Middle, &Part, &ScaleOfRow};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {

void SoftmaxRows(const float* x, float* y, size_t rows, size_t n, bool log) {
  TENON_SELECT_TABLE(SoftmaxTable, kSoftmaxTable).rows(x, y, rows, n, log);
}

float SoftmaxPart(float* x, size_t n, float scale, const float* mask, SoftmaxState* state) {
  return TENON_SELECT_TABLE(SoftmaxTable, kSoftmaxTable).part(x, n, scale, mask, state);
}

void ScaleRow(float* y, size_t n, float factor) {
  TENON_SELECT_TABLE(SoftmaxTable, kSoftmaxTable).scale_row(y, n, factor);
}

size_t SoftmaxGrain(size_t n) { return n == 0 ? 1 : std::max<size_t>(1, 8192 / n); }

size_t SoftmaxMiddleTasks(size_t outer, size_t inner) {
  return outer * ((inner + kSoftmaxColumns - 1) / kSoftmaxColumns);
}

void SoftmaxMiddle(const float* x, float* y, size_t n, size_t inner, bool log, size_t begin,
                   size_t end) {
  TENON_SELECT_TABLE(SoftmaxTable, kSoftmaxTable).middle(x, y, n, inner, log, begin, end);
}

}  // namespace tenon::kernels
#endif
