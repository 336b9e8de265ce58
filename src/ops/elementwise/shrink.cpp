// Shrink: values near 0 become 0, the others move towards it.
#include "ops/framework/element.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// Shrink-9.
struct ShrinkAttrs {
  float bias = 0;
  float lambd = 0.5f;
  static constexpr auto Fields() {
    return std::tuple(Field("bias", &ShrinkAttrs::bias), Field("lambd", &ShrinkAttrs::lambd));
  }
};

Status InferShrink(const ShrinkAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  return context.SetOutput(0, std::move(x));
}

// The type for computing with an element: long double holds every 64-bit integer.
template <class T>
using ShrinkType =
    std::conditional_t<std::is_floating_point_v<T>, T,
                       std::conditional_t<sizeof(T) == 8, long double,
                                          std::conditional_t<sizeof(T) == 4, double, float>>>;

// The value truncated towards zero and clamped to the range of T.
template <class T, class A>
T Narrow(A value) {
  if constexpr (std::is_integral_v<T>) {
    if (!(value > static_cast<A>(std::numeric_limits<T>::min()))) {
      return std::numeric_limits<T>::min();
    }
    if (value >= static_cast<A>(std::numeric_limits<T>::max())) {
      return std::numeric_limits<T>::max();
    }
  }
  return static_cast<T>(value);
}

template <class T>
void Shrink(const T* x, T* y, size_t n, const ShrinkAttrs& attrs) {
  using A = ShrinkType<T>;
  const A bias = attrs.bias, lambda = attrs.lambd;
  for (size_t i = 0; i < n; ++i) {
    const A v = static_cast<A>(x[i]);
    const A outer = v + (v < -lambda ? bias : -bias);
    if constexpr (std::is_floating_point_v<T>) {
      y[i] = ((v < -lambda) | (v > lambda)) ? outer : 0;  // without branches, to be vectorised
    } else {
      y[i] = v < -lambda || v > lambda ? Narrow<T>(outer) : T(0);
    }
  }
}

Status RunShrink(const ShrinkAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  VisitNumber(x.type(), [&]<class T>(T) {
    if constexpr (std::is_arithmetic_v<T>) {
      context.threads().ParallelFor(
          static_cast<size_t>(x.size()), CopyGrain(sizeof(T)), [&](size_t begin, size_t end) {
            Shrink(x.data<T>() + begin, context.Output(0).data<T>() + begin, end - begin, attrs);
          });
    }
  });
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferShrink, RunShrink>("Shrink",
                               {.since = 9,
                                .types = kInts | TypeSet{DataType::kFloat, DataType::kDouble},
                                .traits = {.in_place_input = 0}}),
};

}  // namespace

TENON_OP_FAMILY(Shrink, kRows);

}  // namespace tenon
