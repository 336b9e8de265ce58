// Det: determinants of square matrices.
#include <algorithm>
#include <cmath>

#include "base/stop_signal.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// Det-22.
Status InferDet(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.Input(0));
  if (x.rank() < 2) return InvalidArgument("input 0: expected rank 2 or more, got {}", x);
  const Dim rows = x[x.rank() - 2], columns = x[x.rank() - 1];
  if (rows.is_number() && columns.is_number() && !(rows == columns)) {
    return InvalidArgument("input 0: expected square matrices, got {}", x);
  }
  SymbolicShape y;
  for (size_t i = 0; i + 2 < x.rank(); ++i) y.Append(x[i]);
  return context.SetOutput(0, std::move(y));
}

// By elimination with the largest pivot of each column. `a`, [n, n], is overwritten.
double Determinant(double* a, size_t n) {
  double result = 1;
  for (size_t k = 0; k < n && !StopSignal::CutsCurrent(); ++k) {
    size_t pivot = k;
    for (size_t i = k + 1; i < n; ++i) {
      if (std::abs(a[i * n + k]) > std::abs(a[pivot * n + k])) pivot = i;
    }
    if (a[pivot * n + k] == 0) return 0;
    if (pivot != k) {
      std::swap_ranges(a + k * n, a + (k + 1) * n, a + pivot * n);
      result = -result;
    }
    result *= a[k * n + k];
    for (size_t i = k + 1; i < n; ++i) {
      const double factor = a[i * n + k] / a[k * n + k];
      if (factor == 0) continue;
      for (size_t j = k + 1; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
    }
  }
  return result;
}

template <class T>
Status RunDetOf(KernelContext& context) {
  const Tensor& x = context.Input(0);
  const auto n = static_cast<size_t>(x.shape().back());
  const auto count = static_cast<size_t>(context.Output(0).size());
  return context.ForEachTask(
      count, std::max<size_t>(1, n * n) * sizeof(double), [&](size_t task, std::byte* scratch) {
        auto* matrix = reinterpret_cast<double*>(scratch);
        std::copy_n(x.data<T>() + task * n * n, n * n, matrix);
        context.Output(0).data<T>()[task] = static_cast<T>(Determinant(matrix, n));
      });
}

Status RunDet(const NoAttrs&, KernelContext& context) {
  return context.Input(0).type() == DataType::kDouble ? RunDetOf<double>(context)
                                                      : RunDetOf<float>(context);
}

constexpr OpRow kRows[] = {
    Op<InferDet, RunDet>("Det", {.since = 11, .types = {DataType::kFloat, DataType::kDouble}}),
};

}  // namespace

TENON_OP_FAMILY(Det, kRows);

}  // namespace tenon
