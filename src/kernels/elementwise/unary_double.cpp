#include "kernels/elementwise/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/unary_double.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/dispatch.h"
#include "kernels/elementwise/unary_functors-inl.h"
#include "kernels/partial-inl.h"

#ifndef TENON_KERNELS_UNARY_DOUBLE_ONCE
#define TENON_KERNELS_UNARY_DOUBLE_ONCE
namespace tenon::kernels {
struct UnaryDoubleTable {
  void (*functions[kUnaryOpCount])(const double* x, double* y, size_t n, double a, double b);
};
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

template <class Functor>
void Map(const double* x, double* y, size_t n, double a, double b) {
  const hn::ScalableTag<double> d;
  const auto va = hn::Set(d, a);
  const auto vb = hn::Set(d, b);
  const Functor functor;
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    StoreUpTo(functor(d, LoadUpTo(d, x + i, n - i), va, vb), d, y + i, n - i);
  }
}

const UnaryDoubleTable kUnaryDoubleTable = {{
#define UNARY_FUNCTION(name, ...) &Map<name##Functor>,
#include "base/unary_functions.inc"
}};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {

void ApplyInDouble(UnaryOp op, const double* x, double* y, size_t n, double a, double b) {
  TENON_SELECT_TABLE(UnaryDoubleTable, kUnaryDoubleTable)
      .functions[static_cast<size_t>(op)](x, y, n, a, b);
}

}  // namespace tenon::kernels
#endif
