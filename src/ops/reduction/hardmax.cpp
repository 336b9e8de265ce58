// Hardmax: 1 for the first maximum along an axis, 0 for the rest.
#include <algorithm>
#include <cmath>

#include "ops/framework/element.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

struct HardmaxAttrs {
  int64_t axis = -1;
  static constexpr auto Fields() { return std::tuple(Field("axis", &HardmaxAttrs::axis)); }
};

Status InferHardmax(const HardmaxAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  TENON_RETURN_IF_ERROR(NormalizeAxis(attrs.axis, x.rank()));
  return context.SetOutput(0, std::move(x));
}

// x as [rows / inner, n, inner]; row r starts at element r / inner * n * inner + r % inner.
template <class T>
void MarkGreatest(const T* x, T* y, size_t n, size_t inner, size_t row) {
  const size_t start = row / inner * n * inner + row % inner;
  size_t best = start;
  for (size_t i = start; i < start + n * inner; i += inner) {
    // As in NumPy, the first NaN counts as the greatest.
    const bool greater = x[i] > x[best] || (std::isnan(x[i]) && !std::isnan(x[best]));
    if (greater) best = i;
  }
  for (size_t i = start; i < start + n * inner; i += inner) y[i] = 0;
  y[best] = 1;
}

Status MarkRows(int64_t n, int64_t inner, KernelContext& context) {
  const Tensor& x = context.Input(0);
  if (x.size() == 0) return OkStatus();
  const auto length = static_cast<size_t>(n);
  const size_t grain = CopyGrain(length * sizeof(float));
  const auto mark = [&]<class T>(T) {
    context.threads().ParallelFor(static_cast<size_t>(x.size() / n), grain,
                                  [&](size_t begin, size_t end) {
                                    for (size_t row = begin; row < end; ++row) {
                                      MarkGreatest(x.data<T>(), context.Output(0).data<T>(), length,
                                                   static_cast<size_t>(inner), row);
                                    }
                                  });
  };
  if (x.type() == DataType::kDouble) {
    mark(double());
  } else {
    mark(float());
  }
  return OkStatus();
}

// Hardmax-13: along one axis.
Status RunHardmax(const HardmaxAttrs& attrs, KernelContext& context) {
  const Shape& shape = context.Input(0).shape();
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, shape.rank()));
  return MarkRows(shape[axis], shape.Product(axis + 1, shape.rank()), context);
}

// Hardmax-1: over all axes from `axis` on, flattened.
Status RunFlattened(const HardmaxAttrs& attrs, KernelContext& context) {
  const Shape& shape = context.Input(0).shape();
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, shape.rank()));
  return MarkRows(shape.Product(axis, shape.rank()), 1, context);
}

constexpr TypeSet kFloatAndDouble = {DataType::kFloat, DataType::kDouble};

constexpr OpRow kRows[] = {
    Op<InferHardmax, RunFlattened>("Hardmax", {.since = 1, .types = kFloatAndDouble}),
    Op<InferHardmax, RunHardmax>("Hardmax", {.since = 13, .types = kFloatAndDouble}),
};

}  // namespace

TENON_OP_FAMILY(Hardmax, kRows);

}  // namespace tenon
