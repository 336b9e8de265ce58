#include "kernels/elementwise/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/elementwise_unary.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/dispatch.h"
#include "kernels/elementwise/unary_functors-inl.h"
#include "kernels/partial-inl.h"

#ifndef TENON_KERNELS_ELEMENTWISE_UNARY_ONCE
#define TENON_KERNELS_ELEMENTWISE_UNARY_ONCE
namespace tenon::kernels {
struct UnaryTable {
  UnaryFunction::Rows functions[kUnaryOpCount];
};
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

template <class Functor>
void MapRows(const float* x, float* y, size_t stride, size_t rows, size_t n, float a, float b) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto va = hn::Set(d, a);
  const auto vb = hn::Set(d, b);
  const Functor functor;
  // The tails follow in a loop of their own; else each row would load the constants anew.
  const size_t tail = n % lanes;
  const size_t whole = n - tail;
  for (size_t row = 0; row < rows && whole != 0; ++row) {
    for (size_t i = row * stride; i < row * stride + whole; i += lanes) {
      hn::StoreU(functor(d, hn::LoadU(d, x + i), va, vb), d, y + i);
    }
  }
  for (size_t row = 0; row < rows && tail != 0; ++row) {
    const size_t i = row * stride + whole;
    StorePartial(functor(d, LoadPartial(d, x + i, tail), va, vb), d, y + i, tail);
  }
}

const UnaryTable kUnaryTable = {{
#define UNARY_FUNCTION(name, ...) &MapRows<name##Functor>,
#include "base/unary_functions.inc"
}};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {

UnaryFunction FindUnary(UnaryOp op) {
  return TENON_SELECT_TABLE(UnaryTable, kUnaryTable).functions[static_cast<size_t>(op)];
}

size_t ElementwiseGrain(UnaryOp op) {
  constexpr size_t kCheapGrain = 32768;  // 256 KiB in and out, about 3 us
  constexpr size_t kGrain = 8192;
  return InfoOf(op).Has(kCheap) ? kCheapGrain : kGrain;
}

}  // namespace tenon::kernels
#endif
