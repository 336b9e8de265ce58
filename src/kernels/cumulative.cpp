#include "kernels/cumulative.h"

#include <algorithm>
#include <concepts>
#include <type_traits>

#include "kernels/element_type_switch.h"

namespace tenon::kernels {
namespace {

// The type to compute in: integers wrap around, signed ones as well.
template <class T>
struct ComputedAs {
  using type = T;
};
template <std::signed_integral T>
struct ComputedAs<T> {
  using type = std::make_unsigned_t<T>;
};

struct Sum {
  static constexpr int kStart = 0;
  template <class T>
  static T Apply(T a, T b) {
    return static_cast<T>(a + b);
  }
};
struct Product {
  static constexpr int kStart = 1;
  template <class T>
  static T Apply(T a, T b) {
    return static_cast<T>(a * b);
  }
};

// Some columns; `step` is the distance of their rows, negative if they are walked backwards.
template <class Op, bool kExclusive, class T>
void Columns(const T* x, T* y, size_t n, ptrdiff_t step, size_t columns) {
  T results[CumulativePlan::kColumns];
  std::fill_n(results, columns, T{Op::kStart});
  ptrdiff_t row = 0;
  for (size_t i = 0; i < n; ++i, row += step) {
    for (size_t j = 0; j < columns; ++j) {
      const ptrdiff_t at = row + static_cast<ptrdiff_t>(j);
      const T before = results[j];
      results[j] = Op::Apply(before, x[at]);
      y[at] = kExclusive ? before : results[j];
    }
  }
}

// kRows contiguous rows side by side, `step` is 1 or -1: a single row would wait for every result.
template <class Op, bool kExclusive, size_t kRows, class T>
void Rows(const T* x, T* y, size_t n, ptrdiff_t step) {
  T results[kRows];
  std::fill_n(results, kRows, T{Op::kStart});
  ptrdiff_t column = 0;
  for (size_t i = 0; i < n; ++i, column += step) {
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      const ptrdiff_t at = column + static_cast<ptrdiff_t>(r * n);
      const T before = results[r];
      results[r] = Op::Apply(before, x[at]);
      y[at] = kExclusive ? before : results[r];
    }
  }
}

template <class Op, bool kExclusive, class T>
void Run(const CumulativePlan& plan, const T* x, T* y, size_t begin, size_t end) {
  const size_t n = plan.n, last = plan.reverse ? n - 1 : 0;
  const ptrdiff_t direction = plan.reverse ? -1 : 1;
  if (plan.inner == 1) {
    constexpr size_t kRows = 4;
    x += last;
    y += last;
    size_t row = begin;
    for (; row + kRows <= end; row += kRows) {
      Rows<Op, kExclusive, kRows>(x + row * n, y + row * n, n, direction);
    }
    for (; row < end; ++row) Rows<Op, kExclusive, 1>(x + row * n, y + row * n, n, direction);
    return;
  }
  const ptrdiff_t step = direction * static_cast<ptrdiff_t>(plan.inner);
  for (size_t task = begin; task < end; ++task) {
    const size_t column = task % plan.blocks() * CumulativePlan::kColumns;
    const size_t start = (task / plan.blocks() * n + last) * plan.inner + column;
    Columns<Op, kExclusive>(x + start, y + start, n, step,
                            std::min(CumulativePlan::kColumns, plan.inner - column));
  }
}

template <class Op, class T>
void Run(const CumulativePlan& plan, const T* x, T* y, size_t begin, size_t end) {
  const auto run = plan.exclusive ? &Run<Op, true, T> : &Run<Op, false, T>;
  run(plan, x, y, begin, end);
}

}  // namespace

void Cumulate(const CumulativePlan& plan, ElementType type, const void* x, void* y, size_t begin,
              size_t end) {
  if (plan.n == 0) return;
  WithElementType(type, [&]<class Element>() {
    using T = ComputedAs<Element>::type;
    const T* from = static_cast<const T*>(x);
    T* to = static_cast<T*>(y);
    if (plan.op == CumulativeOp::kSum) {
      Run<Sum>(plan, from, to, begin, end);
    } else if constexpr (sizeof(T) >= 4) {
      Run<Product>(plan, from, to, begin, end);
    }
  });
}

}  // namespace tenon::kernels
