#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/reduce_kernels.h"

namespace tenon::kernels {
namespace {

// Sums of 128 bits do not overflow. Whether they are integers to the C++ library depends on it.
template <class T>
constexpr bool kWraps = std::integral<T> && sizeof(T) <= sizeof(uint64_t);

template <class T>
T WrappingAdd(T a, T b) {
  if constexpr (kWraps<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}
template <class T>
T WrappingMul(T a, T b) {
  if constexpr (kWraps<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

// The value subtracted before exp. It must be finite, because an infinite maximum would give NaN.
template <class T>
double FiniteShift(T shift) {
  const double value = static_cast<double>(shift);
  return std::isfinite(value) ? value : 0;
}

// Integers are summed in 64 bits and float types in double, but LogSumExp always in double. A mean
// of 64-bit integers has the sum that does not fit them.
template <class T, ReduceOp op>
struct SumPolicy {
  using Integer = std::conditional_t<op == ReduceOp::kMean && sizeof(T) == 8, __int128, int64_t>;
  using Accumulator = std::conditional_t<std::integral<T> && op != ReduceOp::kLogSumExp &&
                                             op != ReduceOp::kLogSum && op != ReduceOp::kL2,
                                         Integer, double>;
  static constexpr bool kIsExtreme = false;
  static constexpr Accumulator kIdentity = op == ReduceOp::kProd ? 1 : 0;
  static Accumulator Term(T x, const T* shift) {
    const auto v = static_cast<Accumulator>(x);
    if constexpr (op == ReduceOp::kSumSquare || op == ReduceOp::kL2) {
      return WrappingMul(v, v);
    } else if constexpr (op == ReduceOp::kL1) {
      return v < 0 ? WrappingMul<Accumulator>(v, -1) : v;
    } else if constexpr (op == ReduceOp::kLogSumExp) {
      return std::exp(v - FiniteShift(*shift));
    } else {
      return v;
    }
  }
  static Accumulator Combine(Accumulator a, Accumulator b) {
    return op == ReduceOp::kProd ? WrappingMul(a, b) : WrappingAdd(a, b);
  }
  static T Finish(Accumulator a, size_t count, const T* shift) {
    if constexpr (op == ReduceOp::kMean && std::integral<T>) {
      return count == 0 ? T{0} : static_cast<T>(a / static_cast<Accumulator>(count));
    } else if constexpr (op == ReduceOp::kMean) {
      return static_cast<T>(a / static_cast<double>(count));
    } else if constexpr (op == ReduceOp::kL2) {
      return Convert(std::sqrt(a));
    } else if constexpr (op == ReduceOp::kLogSum) {
      return Convert(std::log(a));
    } else if constexpr (op == ReduceOp::kLogSumExp) {
      return Convert(std::log(a) + FiniteShift(*shift));
    } else {
      return static_cast<T>(a);
    }
  }
  static T Convert(double value) {
    if constexpr (std::integral<T>) {
      // The conversion of values out of range is undefined.
      constexpr double kLow = static_cast<double>(std::numeric_limits<T>::min());
      constexpr double kHigh = static_cast<double>(std::numeric_limits<T>::max());
      if (std::isnan(value)) return 0;
      if (value <= kLow) return std::numeric_limits<T>::min();
      if (value >= kHigh) return std::numeric_limits<T>::max();
    }
    return static_cast<T>(value);
  }
};

template <class T, ReduceOp op>
struct ExtremePolicy {
  using Accumulator = T;
  using Limits = std::numeric_limits<T>;
  static constexpr bool kIsExtreme = true;
  static constexpr bool kIsMax = op == ReduceOp::kMax;
  static constexpr T kIdentity = Limits::has_infinity
                                     ? (kIsMax ? -Limits::infinity() : Limits::infinity())
                                     : (kIsMax ? Limits::lowest() : Limits::max());
  static T Term(T x, const T*) { return x; }
  static T Combine(T a, T b) {
    const T better = (kIsMax ? a > b : a < b) ? a : b;
    return a != a ? a : better;
  }
  static T Finish(T a, size_t, const T*) { return a; }
};

template <class T, class Policy>
struct Loops {
  using A = typename Policy::Accumulator;

  static void Initialize(void* accumulators, size_t n) {
    std::fill_n(static_cast<A*>(accumulators), n, Policy::kIdentity);
  }
  static void AddRow(const void* x, size_t n, const void* shift, void* accumulator) {
    const T* tx = static_cast<const T*>(x);
    const T* s = static_cast<const T*>(shift);
    A& total = *static_cast<A*>(accumulator);
    // Whose steps take several cycles; the compiler divides the others.
    constexpr bool kIsSlow = std::floating_point<T> || (sizeof(T) == 8 && Policy::kIsExtreme);
    if constexpr (!kIsSlow) {
      A sum = Policy::kIdentity;
      for (size_t i = 0; i < n; ++i) sum = Policy::Combine(sum, Policy::Term(tx[i], s));
      total = Policy::Combine(total, sum);
    } else {
      // Parts that do not wait for each other; they also bound the rounding error of sums.
      constexpr size_t kParts = 8;
      A parts[kParts];
      std::fill_n(parts, kParts, Policy::kIdentity);
      size_t i = 0;
      for (; i + kParts <= n; i += kParts) {
        for (size_t j = 0; j < kParts; ++j) {
          parts[j] = Policy::Combine(parts[j], Policy::Term(tx[i + j], s));
        }
      }
      for (; i < n; ++i) parts[0] = Policy::Combine(parts[0], Policy::Term(tx[i], s));
      for (const A& part : parts) total = Policy::Combine(total, part);
    }
  }
  static void AddColumns(const void* x, size_t stride, size_t rows, size_t n, const void* shift,
                         void* accumulators) {
    const T* tx = static_cast<const T*>(x);
    const T* s = static_cast<const T*>(shift);
    A* a = static_cast<A*>(accumulators);
    for (size_t r = 0; r < rows; ++r, tx += stride) {
      for (size_t j = 0; j < n; ++j) {
        a[j] = Policy::Combine(a[j], Policy::Term(tx[j], s ? s + j : s));
      }
    }
  }
  static void Finish(const void* accumulators, size_t n, size_t count, const void* shift, void* y) {
    const A* a = static_cast<const A*>(accumulators);
    const T* s = static_cast<const T*>(shift);
    T* ty = static_cast<T*>(y);
    for (size_t j = 0; j < n; ++j) ty[j] = Policy::Finish(a[j], count, s ? s + j : s);
  }
  static constexpr ReduceKernels kKernels = {&Initialize, &AddRow, &AddColumns, &Finish};
};

template <class T>
ReduceKernels Find(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return Loops<T, SumPolicy<T, ReduceOp::kSum>>::kKernels;
    case ReduceOp::kMean:
      return Loops<T, SumPolicy<T, ReduceOp::kMean>>::kKernels;
    case ReduceOp::kMax:
      return Loops<T, ExtremePolicy<T, ReduceOp::kMax>>::kKernels;
    case ReduceOp::kMin:
      return Loops<T, ExtremePolicy<T, ReduceOp::kMin>>::kKernels;
    case ReduceOp::kProd:
      return Loops<T, SumPolicy<T, ReduceOp::kProd>>::kKernels;
    case ReduceOp::kSumSquare:
      return Loops<T, SumPolicy<T, ReduceOp::kSumSquare>>::kKernels;
    case ReduceOp::kL1:
      return Loops<T, SumPolicy<T, ReduceOp::kL1>>::kKernels;
    case ReduceOp::kL2:
      return Loops<T, SumPolicy<T, ReduceOp::kL2>>::kKernels;
    case ReduceOp::kLogSum:
      return Loops<T, SumPolicy<T, ReduceOp::kLogSum>>::kKernels;
    case ReduceOp::kLogSumExp:
      return Loops<T, SumPolicy<T, ReduceOp::kLogSumExp>>::kKernels;
  }
  return {};
}

}  // namespace

ReduceKernels FindReduceKernels(ReduceOp op, ElementType type) {
  switch (type) {
    case ElementType::kFloat:
      return FindFloatReduceKernels(op);
    case ElementType::kDouble:
      return Find<double>(op);
    case ElementType::kInt8:
      return Find<int8_t>(op);
    case ElementType::kInt16:
      return Find<int16_t>(op);
    case ElementType::kInt32:
      return Find<int32_t>(op);
    case ElementType::kInt64:
      return Find<int64_t>(op);
    case ElementType::kUint8:
      return Find<uint8_t>(op);
    case ElementType::kUint16:
      return Find<uint16_t>(op);
    case ElementType::kUint32:
      return Find<uint32_t>(op);
    case ElementType::kUint64:
      return Find<uint64_t>(op);
  }
  return {};
}

}  // namespace tenon::kernels
