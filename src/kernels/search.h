// Searches along one axis of dense arrays seen as [outer, n, inner]: ArgMax, TopK. The steps
// [begin, end) of the outer axis, which are independent, are done; all functions may be called from
// several threads at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/element_type.h"

namespace tenon::kernels {

// ArgMax-13 and ArgMin-13. NaN counts as the extreme, as in NumPy.
struct ArgExtremeSizes {
  size_t n;  // at least 1
  size_t inner;
  bool min = false;
  bool select_last_index = false;
};
// y is [outer, inner].
void ArgExtreme(const ArgExtremeSizes& sizes, ElementType type, const void* x, int64_t* y,
                size_t begin, size_t end);

// TopK-11. Equal elements come in the order of their indices. NaN counts as the largest; -0 and +0
// are equal.
struct TopKSizes {
  size_t n;  // below 2^32
  size_t k;  // at most n
  size_t inner;
};
struct TopKOrder {
  bool largest = true;
  bool sorted = true;  // otherwise the k elements come in any order
};
size_t TopKWorkspaceBytes(const TopKSizes& sizes);
// values and indices are [outer, k, inner]; workspace is this call's own and 16-byte aligned.
void TopK(const TopKSizes& sizes, const TopKOrder& order, ElementType type, const void* x,
          void* values, int64_t* indices, size_t begin, size_t end, void* workspace);

}  // namespace tenon::kernels
