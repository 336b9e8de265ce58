#include "kernels/elementwise/elementwise_float.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/elementwise_float.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>

#include "kernels/dispatch.h"
#include "kernels/elementwise/binary_loops-inl.h"
#include "kernels/elementwise/pow-inl.h"
#include "kernels/min_max-inl.h"
#include "kernels/partial-inl.h"

#ifndef TENON_KERNELS_ELEMENTWISE_FLOAT_ONCE
#define TENON_KERNELS_ELEMENTWISE_FLOAT_ONCE
namespace tenon::kernels {
struct FloatBinaryTable {
  BinaryFunctions functions[kBinaryOpCount];
};
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

#define TENON_BINARY_FUNCTOR(Name, expression)                      \
  struct Name##Functor {                                            \
    template <class D, class V>                                     \
    HWY_INLINE V operator()([[maybe_unused]] D d, V a, V b) const { \
      return expression;                                            \
    }                                                               \
  };
TENON_BINARY_FUNCTOR(Add, hn::Add(a, b))
TENON_BINARY_FUNCTOR(Sub, hn::Sub(a, b))
TENON_BINARY_FUNCTOR(Mul, hn::Mul(a, b))
TENON_BINARY_FUNCTOR(Div, hn::Div(a, b))
TENON_BINARY_FUNCTOR(Pow, Pow(d, a, b))
// x86 gives b if either is NaN.
TENON_BINARY_FUNCTOR(Max, hn::IfThenElse(hn::IsNaN(a), a, MaxOrSecond(a, b)))
TENON_BINARY_FUNCTOR(Min, hn::IfThenElse(hn::IsNaN(a), a, MinOrSecond(a, b)))
TENON_BINARY_FUNCTOR(PRelu, hn::IfThenElse(hn::Lt(a, hn::Zero(d)), hn::Mul(a, b), a))
#undef TENON_BINARY_FUNCTOR

// The source of an operand: an array, or one element in all lanes.
template <class D>
struct ArrayOperand {
  const float* p;
  hn::Vec<D> Load(D d, size_t i) const { return hn::LoadU(d, p + i); }
  hn::Vec<D> LoadTail(D d, size_t i, size_t n) const { return LoadPartial(d, p + i, n); }
};
template <class D>
struct ScalarOperand {
  float value;
  hn::Vec<D> Load(D d, size_t) const { return hn::Set(d, value); }
  hn::Vec<D> LoadTail(D d, size_t, size_t) const { return hn::Set(d, value); }
};

template <class Functor, class D, class A, class B>
HWY_INLINE void MapBinary(D d, const A& a, const B& b, float* y, size_t n) {
  const size_t lanes = hn::Lanes(d);
  const Functor functor;
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(functor(d, a.Load(d, i), b.Load(d, i)), d, y + i);
  if (i < n) {
    const auto v = functor(d, a.LoadTail(d, i, n - i), b.LoadTail(d, i, n - i));
    StorePartial(v, d, y + i, n - i);
  }
}

using FloatTag = hn::ScalableTag<float>;

template <class Functor>
struct FloatLoops {
  static void VectorVector(const void* a, const void* b, void* y, size_t n) {
    MapBinary<Functor>(FloatTag(), Array(a), Array(b), static_cast<float*>(y), n);
  }
  static void ScalarVector(const void* a, const void* b, void* y, size_t n) {
    MapBinary<Functor>(FloatTag(), Scalar(a), Array(b), static_cast<float*>(y), n);
  }
  static void VectorScalar(const void* a, const void* b, void* y, size_t n) {
    MapBinary<Functor>(FloatTag(), Array(a), Scalar(b), static_cast<float*>(y), n);
  }
  static constexpr BinaryFunctions kFunctions = {&VectorVector, &ScalarVector, &VectorScalar};

 private:
  static ArrayOperand<FloatTag> Array(const void* p) { return {static_cast<const float*>(p)}; }
  static ScalarOperand<FloatTag> Scalar(const void* p) { return {*static_cast<const float*>(p)}; }
};

void PowVectorScalar(const void* a, const void* b, void* y, size_t n) {
  // x^2 is common, and has the same bits this way.
  if (*static_cast<const float*>(b) == 2.0f)
    return FloatLoops<MulFunctor>::VectorVector(a, a, y, n);
  FloatLoops<PowFunctor>::VectorScalar(a, b, y, n);
}

struct FmodOp {
  static float Apply(float a, float b) {
    // In double, a quotient below 2^27 does not round to the next whole number, its product with b
    // is exact, and so is what remains of a.
    const double quotient = static_cast<double>(a) / static_cast<double>(b);
    if (!(std::abs(quotient) < 0x1p27) || std::isinf(b)) return std::fmod(a, b);
    const double rest = static_cast<double>(a) - std::trunc(quotient) * static_cast<double>(b);
    return std::copysign(static_cast<float>(rest), a);
  }
};
struct ModOp {
  static float Apply(float a, float b) {
    const float r = FmodOp::Apply(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
};

template <class Op>
constexpr BinaryFunctions kFloatLoops = FloatLoops<Op>::kFunctions;
template <class Op, class R>
constexpr BinaryFunctions kScalarLoops = BinaryLoops<Op, float, R>::kFunctions;

// In the order of BinaryOp.
const FloatBinaryTable kFloatBinaryTable = {{
    kFloatLoops<AddFunctor>,
    kFloatLoops<SubFunctor>,
    kFloatLoops<MulFunctor>,
    kFloatLoops<DivFunctor>,
    kScalarLoops<ModOp, float>,
    kScalarLoops<FmodOp, float>,
    {&FloatLoops<PowFunctor>::VectorVector, &FloatLoops<PowFunctor>::ScalarVector,
     &PowVectorScalar},
    kFloatLoops<MaxFunctor>,
    kFloatLoops<MinFunctor>,
    kFloatLoops<PReluFunctor>,
    CommutativeLoops<EqualOp, float, uint8_t>::kFunctions,
    kScalarLoops<LessOp, uint8_t>,
    kScalarLoops<LessOrEqualOp, uint8_t>,
    SwappedLoops<LessOp, float>::kFunctions,
    SwappedLoops<LessOrEqualOp, float>::kFunctions,
}};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {

BinaryFunctions FindFloatBinary(BinaryOp op) {
  const auto& table = TENON_SELECT_TABLE(FloatBinaryTable, kFloatBinaryTable);
  return table.functions[static_cast<size_t>(op)];
}

}  // namespace tenon::kernels
#endif
