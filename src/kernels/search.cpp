#include "kernels/search.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <type_traits>

#include "base/pieces.h"
#include "kernels/argmax_float.h"
#include "kernels/element_type_switch.h"

namespace tenon::kernels {
namespace {

// With the order reversed if `min` is set: -x, or for integers -1 - x.
template <class T>
T Ordered(T x, bool min) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(x ^ static_cast<T>(-static_cast<int>(min)));
  } else {
    return x * static_cast<T>(1 - 2 * static_cast<int>(min));
  }
}

// Columns that are searched at a time, row by row.
constexpr size_t kColumns = 256;

template <class T>
void ArgExtremeOfColumns(const ArgExtremeSizes& sizes, const T* x, int64_t* y, size_t columns) {
  // As wide as the elements, so that the loop over columns is vectorised.
  using Index = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  constexpr size_t kRows = size_t{1} << 31;
  T best[kColumns];
  for (size_t j = 0; j < columns; ++j) best[j] = Ordered(x[j], sizes.min);
  std::fill_n(y, columns, 0);
  const bool last = sizes.select_last_index;
  for (size_t begin = 1; begin < sizes.n; begin += kRows) {
    Index found[kColumns] = {};  // counts rows from 1; 0 if none of these is better
    for (size_t i = begin; i < std::min(sizes.n, begin + kRows); ++i) {
      const T* row = x + i * sizes.inner;
      for (size_t j = 0; j < columns; ++j) {
        const T v = Ordered(row[j], sizes.min), b = best[j];
        const bool better = (v > b) | (last & (v == b)) | ((v != v) & (last | (b == b)));
        best[j] = better ? v : b;
        found[j] = better ? static_cast<Index>(i - begin + 1) : found[j];
      }
    }
    for (size_t j = 0; j < columns; ++j) {
      if (found[j] != 0) y[j] = static_cast<int64_t>(begin - 1 + found[j]);
    }
  }
}

// A row is searched as columns, whose indices are then compared.
template <class T>
int64_t ArgExtremeOfLongRow(const ArgExtremeSizes& sizes, const T* x) {
  constexpr size_t kParts = 64;
  int64_t found[kParts];
  ArgExtremeSizes parts = sizes;
  parts.n = sizes.n / kParts;
  parts.inner = kParts;
  ArgExtremeOfColumns(parts, x, found, kParts);
  size_t best = 0;
  const auto consider = [&](size_t i) {
    const T v = Ordered(x[i], sizes.min), b = Ordered(x[best], sizes.min);
    const bool equal = v == b || (v != v && b != b);
    const bool better = v > b || (v != v && b == b);
    if (better || (equal && (i > best) == sizes.select_last_index)) best = i;
  };
  for (size_t j = 0; j < kParts; ++j) consider(static_cast<size_t>(found[j]) * kParts + j);
  for (size_t i = parts.n * kParts; i < sizes.n; ++i) consider(i);
  return static_cast<int64_t>(best);
}

// Order-preserving unsigned keys: a greater element has a greater key.
template <class T>
uint64_t KeyOf(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    constexpr Bits kSign = Bits{1} << (8 * sizeof(T) - 1);
    if (value != value) return static_cast<Bits>(~Bits{0});
    const Bits bits = std::bit_cast<Bits>(value + T{0});  // -0 becomes +0
    return bits & kSign ? static_cast<Bits>(~bits) : static_cast<Bits>(bits | kSign);
  } else if constexpr (std::is_signed_v<T>) {
    constexpr uint64_t kMask = ~uint64_t{0} >> (64 - 8 * sizeof(T));
    return (static_cast<uint64_t>(value) & kMask) ^ (uint64_t{1} << (8 * sizeof(T) - 1));
  } else {
    return value;
  }
}

// Key above, inverted index below: one comparison orders by value, then by lower index first.
template <class T>
using Candidate = std::conditional_t<sizeof(T) == 8, unsigned __int128, uint64_t>;

constexpr size_t kFewCandidates = 16;

// The second half is for sorting.
size_t CandidateCapacity(size_t k) { return 2 * k + 64; }

template <class T>
void TopKOfColumn(const TopKSizes& sizes, const TopKOrder& order, const T* x, T* values,
                  int64_t* indices, Candidate<T>* candidates) {
  using C = Candidate<T>;
  constexpr int kKeyShift = 32;
  const uint64_t flip = order.largest ? 0 : ~uint64_t{0} >> (64 - 8 * sizeof(T));
  // A few are kept in order; many are gathered, and cut back to k of them when there is no room.
  const bool few = sizes.k <= kFewCandidates;
  const size_t capacity = few ? sizes.k : CandidateCapacity(sizes.k);
  size_t count = 0;
  C threshold = 0;  // no candidate below it can be among the first k
  T bound{};        // the element of the threshold
  const auto take = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const T value = x[i * sizes.inner];
      if (threshold != 0 && (order.largest ? value < bound : value > bound)) continue;
      const C candidate = static_cast<C>(KeyOf(value) ^ flip) << kKeyShift |
                          (0xffffffffu - static_cast<uint32_t>(i));
      if (candidate < threshold) continue;
      if (few) {
        size_t at = std::min(count, capacity - 1);
        for (; at > 0 && candidates[at - 1] < candidate; --at) candidates[at] = candidates[at - 1];
        candidates[at] = candidate;
        count = std::min(count + 1, capacity);
      } else {
        candidates[count++] = candidate;
      }
      if (count == capacity) {
        if (!few) {
          std::nth_element(candidates, candidates + sizes.k - 1, candidates + count,
                           std::greater<>());
          count = sizes.k;
        }
        threshold = candidates[sizes.k - 1];
        bound = x[(0xffffffffu - static_cast<uint32_t>(threshold)) * sizes.inner];
      }
    }
  };
  if (!InPieces(sizes.n, take)) return;
  if (count > sizes.k) {
    std::nth_element(candidates, candidates + sizes.k - 1, candidates + count, std::greater<>());
  }
  if (order.sorted && !few) {
    candidates = SortInPieces(candidates, candidates + sizes.k, sizes.k, std::greater<>());
    if (candidates == nullptr) return;
  }
  InPieces(sizes.k, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const size_t index = 0xffffffffu - static_cast<uint32_t>(candidates[i]);
      values[i * sizes.inner] = x[index * sizes.inner];
      indices[i * sizes.inner] = static_cast<int64_t>(index);
    }
  });
}

}  // namespace

void ArgExtreme(const ArgExtremeSizes& sizes, ElementType type, const void* x, int64_t* y,
                size_t begin, size_t end) {
  WithElementType(type, [&]<class T>() {
    for (size_t outer = begin; outer < end; ++outer) {
      const T* from = static_cast<const T*>(x) + outer * sizes.n * sizes.inner;
      int64_t* to = y + outer * sizes.inner;
      if constexpr (std::is_same_v<T, float>) {
        if (sizes.inner == 1) {
          *to = static_cast<int64_t>(
              ArgExtremeOfRow(from, sizes.n, sizes.min, sizes.select_last_index));
          continue;
        }
      } else if (sizes.inner == 1 && sizes.n >= 64) {
        *to = ArgExtremeOfLongRow(sizes, from);
        continue;
      }
      for (size_t j = 0; j < sizes.inner; j += kColumns) {
        ArgExtremeOfColumns(sizes, from + j, to + j, std::min(kColumns, sizes.inner - j));
      }
    }
  });
}

size_t TopKWorkspaceBytes(const TopKSizes& sizes) {
  return CandidateCapacity(sizes.k) * sizeof(unsigned __int128);
}

void TopK(const TopKSizes& sizes, const TopKOrder& order, ElementType type, const void* x,
          void* values, int64_t* indices, size_t begin, size_t end, void* workspace) {
  if (sizes.k == 0) return;
  // The greatest elements of neighbouring columns are found together.
  const bool one_of_columns = sizes.k == 1 && sizes.inner > 1 && order.largest;
  if (one_of_columns) ArgExtreme({sizes.n, sizes.inner}, type, x, indices, begin, end);
  WithElementType(type, [&]<class T>() {
    for (size_t column = begin * sizes.inner; column < end * sizes.inner; ++column) {
      const size_t outer = column / sizes.inner, j = column % sizes.inner;
      const size_t result = outer * sizes.k * sizes.inner + j;
      if (one_of_columns) {
        const size_t row = outer * sizes.n + static_cast<size_t>(indices[result]);
        static_cast<T*>(values)[result] = static_cast<const T*>(x)[row * sizes.inner + j];
        continue;
      }
      TopKOfColumn(sizes, order, static_cast<const T*>(x) + outer * sizes.n * sizes.inner + j,
                   static_cast<T*>(values) + result, indices + result,
                   static_cast<Candidate<T>*>(workspace));
    }
  });
}

}  // namespace tenon::kernels
