// LpNormalization: division by the norm along an axis.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "ops/framework/element.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// LpNormalization-22. Rows of norm 0 stay 0.
struct LpNormalizationAttrs {
  int64_t axis = -1;
  int64_t p = 2;
  static constexpr auto Fields() {
    return std::tuple(Field("axis", &LpNormalizationAttrs::axis),
                      Field("p", &LpNormalizationAttrs::p));
  }
};

Status InferLpNormalization(const LpNormalizationAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  TENON_RETURN_IF_ERROR(NormalizeAxis(attrs.axis, x.rank()));
  if (attrs.p != 1 && attrs.p != 2) {
    return InvalidArgument("attribute 'p': expected 1 or 2, got {}", attrs.p);
  }
  return context.SetOutput(0, std::move(x));
}

// Neighbouring columns that are handled together, so that memory is read along its rows.
constexpr size_t kColumns = 64;

// Adds column j of [n, inner] to norms[j] for j in [0, count), count <= kColumns. Sums are in
// double: their cost is small compared to that of memory, and they do not overflow for floats.
template <class T>
void AddColumns(const T* x, size_t n, size_t inner, size_t count, int64_t p, double* norms) {
  for (size_t i = 0; i < n; ++i) {
    const T* row = x + i * inner;
    if (p == 1) {
      for (size_t j = 0; j < count; ++j) norms[j] += std::abs(static_cast<double>(row[j]));
    } else {
      for (size_t j = 0; j < count; ++j) {
        norms[j] += static_cast<double>(row[j]) * static_cast<double>(row[j]);
      }
    }
  }
}

// The factor by which elements of a sum are multiplied; 1 for 0.
double FactorOf(double sum, int64_t p) {
  const double norm = p == 1 ? sum : std::sqrt(sum);
  return norm == 0 ? 1 : 1 / norm;
}

template <class T>
void MultiplyColumns(const T* x, T* y, size_t n, size_t inner, size_t count,
                     const double* factors) {
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < count; ++j) {
      y[i * inner + j] = static_cast<T>(static_cast<double>(x[i * inner + j]) * factors[j]);
    }
  }
}

template <class T>
void NormalizeColumns(const T* x, T* y, size_t n, size_t inner, size_t count, int64_t p) {
  std::array<double, kColumns> norms{};
  if (inner == 1) {
    // A row is columns of one norm.
    const size_t rest = n % kColumns;
    AddColumns(x, n / kColumns, kColumns, kColumns, p, norms.data());
    AddColumns(x + n - rest, 1, kColumns, rest, p, norms.data());
    norms.fill(FactorOf(std::accumulate(norms.begin(), norms.end(), 0.0), p));
    MultiplyColumns(x, y, n / kColumns, kColumns, kColumns, norms.data());
    MultiplyColumns(x + n - rest, y + n - rest, 1, kColumns, rest, norms.data());
    return;
  }
  AddColumns(x, n, inner, count, p, norms.data());
  for (double& norm : norms) norm = FactorOf(norm, p);
  MultiplyColumns(x, y, n, inner, count, norms.data());
}

template <class T>
void NormalizeAll(const Tensor& x, Tensor& y, size_t axis, int64_t p, ThreadPool& threads) {
  const auto n = static_cast<size_t>(x.shape()[axis]);
  const auto inner = static_cast<size_t>(x.shape().Product(axis + 1, x.rank()));
  const size_t blocks = (inner + kColumns - 1) / kColumns;
  const auto outer = static_cast<size_t>(x.shape().Product(0, axis));
  const size_t grain = CopyGrain(n * std::min(inner, kColumns) * sizeof(T));
  threads.ParallelFor(outer * blocks, grain, [&](size_t begin, size_t end) {
    for (size_t task = begin; task < end; ++task) {
      const size_t first = task % blocks * kColumns;
      const size_t start = task / blocks * n * inner + first;
      NormalizeColumns(x.data<T>() + start, y.data<T>() + start, n, inner,
                       std::min(kColumns, inner - first), p);
    }
  });
}

Status RunLpNormalization(const LpNormalizationAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, x.rank()));
  const auto normalize =
      x.type() == DataType::kDouble ? &NormalizeAll<double> : &NormalizeAll<float>;
  normalize(x, context.Output(0), axis, attrs.p, context.threads());
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferLpNormalization, RunLpNormalization>("LpNormalization",
                                                 {.since = 1,
                                                  .types = {DataType::kFloat, DataType::kDouble},
                                                  .traits = {.in_place_input = 0}}),
};

}  // namespace

TENON_OP_FAMILY(LpNormalization, kRows);

}  // namespace tenon
