// CumProd: running products along an axis.
#include <algorithm>
#include <array>

#include "ops/framework/element.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// CumProd-26.
struct CumProdAttrs {
  bool exclusive = false;
  bool reverse = false;
  static constexpr auto Fields() {
    return std::tuple(Field("exclusive", &CumProdAttrs::exclusive),
                      Field("reverse", &CumProdAttrs::reverse));
  }
};

Status InferCumProd(const CumProdAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  return context.SetOutput(0, std::move(shape));
}

// Integers wrap around.
template <class T>
T Times(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

// Neighbouring columns that are handled together, so that memory is read along its rows.
constexpr size_t kColumns = 64;

// Column j of [n, inner] for j in [0, count), count <= kColumns. y may be x.
template <class T>
void MultiplyColumns(const T* x, T* y, size_t n, size_t inner, size_t count,
                     const CumProdAttrs& attrs) {
  std::array<T, kColumns> products;
  products.fill(T(1));
  for (size_t step = 0; step < n; ++step) {
    const size_t row = (attrs.reverse ? n - 1 - step : step) * inner;
    for (size_t j = 0; j < count; ++j) {
      const T before = products[j];
      products[j] = Times(before, x[row + j]);
      y[row + j] = attrs.exclusive ? before : products[j];
    }
  }
}

Status RunCumProd(const CumProdAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  TENON_ASSIGN_OR_RETURN(const Shape axes, IntegersOf(context.Input(1)));
  if (axes.rank() != 1) return InvalidArgument("input 1: expected one axis");
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(axes[0], x.rank()));
  if (x.size() == 0) return OkStatus();
  const auto n = static_cast<size_t>(x.shape()[axis]);
  const auto inner = static_cast<size_t>(x.shape().Product(axis + 1, x.rank()));
  const auto outer = static_cast<size_t>(x.shape().Product(0, axis));
  const size_t blocks = (inner + kColumns - 1) / kColumns;
  VisitNumber(x.type(), [&]<class T>(T) {
    if constexpr (std::is_arithmetic_v<T>) {
      const size_t grain = CopyGrain(n * std::min(inner, kColumns) * sizeof(T));
      context.threads().ParallelFor(outer * blocks, grain, [&](size_t begin, size_t end) {
        for (size_t task = begin; task < end; ++task) {
          const size_t first = task % blocks * kColumns;
          const size_t start = task / blocks * n * inner + first;
          MultiplyColumns(x.data<T>() + start, context.Output(0).data<T>() + start, n, inner,
                          std::min(kColumns, inner - first), attrs);
        }
      });
    }
  });
  return OkStatus();
}

constexpr TypeSet kTypes = {DataType::kFloat, DataType::kDouble, DataType::kInt32,
                            DataType::kInt64, DataType::kUint32, DataType::kUint64};

constexpr OpRow kRows[] = {
    Op<InferCumProd, RunCumProd>("CumProd",
                                 {.since = 26, .types = kTypes, .traits = {.in_place_input = 0}}),
};

}  // namespace

TENON_OP_FAMILY(CumProd, kRows);

}  // namespace tenon
