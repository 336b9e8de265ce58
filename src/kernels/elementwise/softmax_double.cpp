#include <algorithm>
#include <cmath>

#include "kernels/elementwise/elementwise.h"
#include "kernels/softmax.h"

namespace tenon::kernels {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// Elements that are handled at a time, so that what one step writes is in L1 for the next one.
constexpr size_t kBlock = kSoftmaxColumns;
// Independent maxima and sums of a row, which the compiler makes vectors of.
constexpr size_t kChains = 8;

// f(..., f(f(start, x[0]), x[1]), ...), in kChains chains.
template <class F>
double Fold(const double* x, size_t n, double start, F f) {
  double chains[kChains];
  std::fill_n(chains, kChains, start);
  size_t i = 0;
  for (; i + kChains <= n; i += kChains) {
    for (size_t c = 0; c < kChains; ++c) chains[c] = f(chains[c], x[i + c]);
  }
  for (size_t c = 0; i < n; ++i, ++c) chains[c] = f(chains[c], x[i]);
  for (size_t c = 1; c < kChains; ++c) chains[0] = f(chains[0], chains[c]);
  return chains[0];
}

// `max` where x is NaN.
double Greatest(double max, double x) { return x > max ? x : max; }

void Exp(const double* x, double* y, size_t n) { ApplyInDouble(UnaryOp::kExp, x, y, n, 0, 0); }

void Row(const double* x, double* y, size_t n, bool log) {
  const double max = Fold(x, n, kMinusInfinity, &Greatest);
  double sum = 0;
  for (size_t i = 0; i < n; i += kBlock) {
    const size_t count = std::min(kBlock, n - i);
    double powers[kBlock];
    for (size_t j = 0; j < count; ++j) y[i + j] = x[i + j] - max;
    double* const to = log ? powers : y + i;
    Exp(y + i, to, count);
    sum += Fold(to, count, 0, [](double a, double b) { return a + b; });
  }
  const double log_sum = std::log(sum);
  for (size_t i = 0; i < n; ++i) y[i] = log ? y[i] - log_sum : y[i] / sum;
}

// Some columns of the n rows, at most kBlock.
void Columns(const double* x, double* y, size_t n, size_t inner, size_t columns, bool log) {
  double max[kBlock], sum[kBlock], powers[kBlock];
  std::fill_n(max, columns, kMinusInfinity);
  std::fill_n(sum, columns, 0.0);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < columns; ++j) max[j] = Greatest(max[j], x[i * inner + j]);
  }
  for (size_t i = 0; i < n; ++i) {
    double* const row = y + i * inner;
    for (size_t j = 0; j < columns; ++j) row[j] = x[i * inner + j] - max[j];
    double* const to = log ? powers : row;
    Exp(row, to, columns);
    for (size_t j = 0; j < columns; ++j) sum[j] += to[j];
  }
  if (log) ApplyInDouble(UnaryOp::kLog, sum, sum, columns, 0, 0);
  for (size_t i = 0; i < n; ++i) {
    double* const row = y + i * inner;
    for (size_t j = 0; j < columns; ++j) row[j] = log ? row[j] - sum[j] : row[j] / sum[j];
  }
}

}  // namespace

void SoftmaxRows(const double* x, double* y, size_t rows, size_t n, bool log) {
  for (size_t row = 0; row < rows; ++row) Row(x + row * n, y + row * n, n, log);
}

void SoftmaxMiddle(const double* x, double* y, size_t n, size_t inner, bool log, size_t begin,
                   size_t end) {
  const size_t blocks = SoftmaxMiddleTasks(1, inner);
  for (size_t task = begin; task < end; ++task) {
    const size_t column = task % blocks * kBlock;
    const size_t offset = task / blocks * n * inner + column;
    Columns(x + offset, y + offset, n, inner, std::min(kBlock, inner - column), log);
  }
}

}  // namespace tenon::kernels
