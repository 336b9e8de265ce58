#include <cstring>
#include <type_traits>

#include "kernels/elementwise/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/elementwise_where.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/dispatch.h"

#ifndef TENON_KERNELS_ELEMENTWISE_WHERE_ONCE
#define TENON_KERNELS_ELEMENTWISE_WHERE_ONCE
namespace tenon::kernels {
using WhereFunction = void (*)(const uint8_t* condition, const void* a, const void* b, void* y,
                               size_t n, const WhereStrides& strides);
struct WhereTable {
  WhereFunction by_log2_size[5];
  void (*logical_not)(const uint8_t* x, uint8_t* y, size_t n);
};
struct Bytes16 {
  uint64_t low, high;
};
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

template <class T, size_t kStrideA, size_t kStrideB>
void Select(const uint8_t* condition, const T* a, const T* b, T* y, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    // Both are loaded in any case, so that the loop has no branch.
    const T ai = a[i * kStrideA];
    const T bi = b[i * kStrideB];
    y[i] = condition[i] != 0 ? ai : bi;
  }
}

template <class T>
void CopyOrFill(const T* x, T* y, size_t n, size_t stride) {
  if (stride != 0) {
    if (x != y) std::memmove(y, x, n * sizeof(T));
    return;
  }
  const T value = *x;
  for (size_t i = 0; i < n; ++i) y[i] = value;
}

template <class T>
void WhereOf(const uint8_t* condition, const void* a, const void* b, void* y, size_t n,
             const WhereStrides& strides) {
  const T* ta = static_cast<const T*>(a);
  const T* tb = static_cast<const T*>(b);
  T* ty = static_cast<T*>(y);
  if (n == 0) return;
  if (strides.condition == 0) {
    const bool first = *condition != 0;
    return CopyOrFill(first ? ta : tb, ty, n, first ? strides.a : strides.b);
  }
  if (strides.a == 0 && strides.b == 0) return Select<T, 0, 0>(condition, ta, tb, ty, n);
  if (strides.a == 0) return Select<T, 0, 1>(condition, ta, tb, ty, n);
  if (strides.b == 0) return Select<T, 1, 0>(condition, ta, tb, ty, n);
  Select<T, 1, 1>(condition, ta, tb, ty, n);
}

void NotBytes(const uint8_t* x, uint8_t* y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] = x[i] == 0;
}

const WhereTable kWhereTable = {{&WhereOf<uint8_t>, &WhereOf<uint16_t>, &WhereOf<uint32_t>,
                                 &WhereOf<uint64_t>, &WhereOf<Bytes16>},
                                &NotBytes};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <bit>

namespace tenon::kernels {

void Where(const uint8_t* condition, const void* a, const void* b, void* y, size_t n, size_t size,
           const WhereStrides& strides) {
  const auto& table = TENON_SELECT_TABLE(WhereTable, kWhereTable);
  table.by_log2_size[std::countr_zero(size)](condition, a, b, y, n, strides);
}

void LogicalNot(const uint8_t* x, uint8_t* y, size_t n) {
  TENON_SELECT_TABLE(WhereTable, kWhereTable).logical_not(x, y, n);
}

}  // namespace tenon::kernels
#endif
