// Loops over two operands, either of which may be one element, that the compiler vectorises for the
// target. For operators that need no explicit vector code.
#if defined(TENON_KERNELS_BINARY_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_KERNELS_BINARY_LOOPS_INL_H_
#undef TENON_KERNELS_BINARY_LOOPS_INL_H_
#else
#define TENON_KERNELS_BINARY_LOOPS_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/elementwise/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Op::Apply(T, T) -> R. A scalar is read before anything is written, since the output may be the
// vector operand.
template <class Op, class T, class R>
struct BinaryLoops {
  [[gnu::noinline]] static void VectorVector(const void* a, const void* b, void* y, size_t n) {
    const T* ta = static_cast<const T*>(a);
    const T* tb = static_cast<const T*>(b);
    R* ty = static_cast<R*>(y);
    for (size_t i = 0; i < n; ++i) ty[i] = Op::Apply(ta[i], tb[i]);
  }
  [[gnu::noinline]] static void ScalarVector(const void* a, const void* b, void* y, size_t n) {
    const T scalar = *static_cast<const T*>(a);
    const T* tb = static_cast<const T*>(b);
    R* ty = static_cast<R*>(y);
    for (size_t i = 0; i < n; ++i) ty[i] = Op::Apply(scalar, tb[i]);
  }
  [[gnu::noinline]] static void VectorScalar(const void* a, const void* b, void* y, size_t n) {
    const T* ta = static_cast<const T*>(a);
    const T scalar = *static_cast<const T*>(b);
    R* ty = static_cast<R*>(y);
    for (size_t i = 0; i < n; ++i) ty[i] = Op::Apply(ta[i], scalar);
  }
  static constexpr BinaryFunctions kFunctions = {&VectorVector, &ScalarVector, &VectorScalar};
};

struct EqualOp {
  template <class T>
  static uint8_t Apply(T a, T b) {
    return a == b;
  }
};
struct LessOp {
  template <class T>
  static uint8_t Apply(T a, T b) {
    return a < b;
  }
};
struct LessOrEqualOp {
  template <class T>
  static uint8_t Apply(T a, T b) {
    return a <= b;
  }
};
// For operators whose operands may be swapped.
template <class Op, class T, class R>
struct CommutativeLoops {
  using Loops = BinaryLoops<Op, T, R>;
  static void ScalarVector(const void* a, const void* b, void* y, size_t n) {
    Loops::VectorScalar(b, a, y, n);
  }
  static constexpr BinaryFunctions kFunctions = {&Loops::VectorVector, &ScalarVector,
                                                 &Loops::VectorScalar};
};

// a > b is b < a: the same code with the operands swapped.
template <class Op, class T>
struct SwappedLoops {
  using Loops = BinaryLoops<Op, T, uint8_t>;
  static void VectorVector(const void* a, const void* b, void* y, size_t n) {
    Loops::VectorVector(b, a, y, n);
  }
  static void ScalarVector(const void* a, const void* b, void* y, size_t n) {
    Loops::VectorScalar(b, a, y, n);
  }
  static void VectorScalar(const void* a, const void* b, void* y, size_t n) {
    Loops::ScalarVector(b, a, y, n);
  }
  static constexpr BinaryFunctions kFunctions = {&VectorVector, &ScalarVector, &VectorScalar};
};

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
