// Long work of one thread that heeds the end of its run: see StopSignal.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/stop_signal.h"

namespace tenon {

// Calls body(begin, end) for pieces of [0, n) in order. False if the run is to end before the last
// of them.
template <class Body>
bool InPieces(size_t n, Body&& body) {
  constexpr size_t kPiece = size_t{1} << 17;  // a millisecond or so
  for (size_t begin = 0; begin < n; begin += kPiece) {
    if (begin > 0 && StopSignal::CutsCurrent()) return false;
    body(begin, std::min(n, begin + kPiece));
  }
  return true;
}

// Sorts n items by `less`, equal ones in any order; `spare` has room for as many. Returns the array
// with the result, or null if the run is to end before.
template <class T, class Less>
T* SortInPieces(T* items, T* spare, size_t n, Less less) {
  constexpr size_t kRun = size_t{1} << 14;  // also with comparisons that take long
  for (size_t begin = 0; begin < n; begin += kRun) {
    if (begin > 0 && StopSignal::CutsCurrent()) return nullptr;
    std::sort(items + begin, items + std::min(n, begin + kRun), less);
  }
  for (size_t width = kRun; width < n; width *= 2) {
    for (size_t begin = 0; begin < n; begin += 2 * width) {
      const T *a = items + begin, *const a_end = items + std::min(n, begin + width);
      const T *b = a_end, *const b_end = items + std::min(n, begin + 2 * width);
      T* to = spare + begin;
      while (a != a_end && b != b_end) {
        if (StopSignal::CutsCurrent()) return nullptr;
        // None of the two ends within so many steps.
        auto steps = static_cast<size_t>(std::min(a_end - a, b_end - b));
        for (steps = std::min(steps, kRun); steps > 0; --steps) {
          *to++ = less(*b, *a) ? *b++ : *a++;
        }
      }
      std::copy(b, b_end, std::copy(a, a_end, to));
    }
    std::swap(items, spare);
  }
  return items;
}

}  // namespace tenon
