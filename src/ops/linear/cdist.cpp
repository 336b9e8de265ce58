// CDist of com.microsoft: distances between the rows of two matrices.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/arithmetic.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// Of two rows x and z of n elements; elements that are not 0 are true.
struct RowPair {
  double n = 0;
  double sum = 0, squares = 0, largest = 0, unequal = 0;  // of |x - z|; how many are not 0
  double canberra = 0;                                    // sum of |x - z| / (|x| + |z|)
  double of_sums = 0;                                     // sum of |x + z|
  double xx = 0, zz = 0, xz = 0;                          // sums of products
  double both = 0, only_x = 0, only_z = 0;                // where each is true
  double divergence = 0;                                  // of both from their mean
  double one() const { return only_x + only_z; }
};

// Each norm separately, because the product of the squares may overflow.
double CosineDistance(const RowPair& r) { return 1 - r.xz / (std::sqrt(r.xx) * std::sqrt(r.zz)); }
double Euclidean(const RowPair& r) { return std::sqrt(r.squares); }
double Hamming(const RowPair& r) { return r.unequal / r.n; }
double Share(double part, double rest) { return part == 0 ? 0 : part / (rest + part); }
double RogersTanimoto(const RowPair& r) { return 2 * r.one() / (r.n + r.one()); }

enum class Taken : uint8_t {
  kAsItIs,
  kFromItsMean,
  kAsDistribution,
  // With the columns of both matrices scaled to the variance 1; or to no covariance, too.
  kByDeviation,
  kByCovariance,
};
bool IsByAllRows(Taken taken) { return taken >= Taken::kByDeviation; }

struct Metric {
  std::string_view name;
  double (*distance)(const RowPair&);
  Taken taken = Taken::kAsItIs;  // each row
};

// Those of SciPy's cdist, with its defaults.
constexpr Metric kMetrics[] = {
    {"euclidean", Euclidean},
    {"sqeuclidean", [](const RowPair& r) { return r.squares; }},
    {"braycurtis", [](const RowPair& r) { return r.sum / r.of_sums; }},
    {"canberra", [](const RowPair& r) { return r.canberra; }},
    {"chebyshev", [](const RowPair& r) { return r.largest; }},
    {"cityblock", [](const RowPair& r) { return r.sum; }},
    {"correlation", CosineDistance, Taken::kFromItsMean},
    {"cosine", CosineDistance},
    {"dice", [](const RowPair& r) { return r.one() / (2 * r.both + r.one()); }},
    {"hamming", Hamming},
    {"jaccard", [](const RowPair& r) { return Share(r.one(), r.both); }},
    {"jensenshannon", [](const RowPair& r) { return std::sqrt(r.divergence / 2); },
     Taken::kAsDistribution},
    {"kulsinski", [](const RowPair& r) { return (r.one() - r.both + r.n) / (r.one() + r.n); }},
    {"mahalanobis", Euclidean, Taken::kByCovariance},
    {"matching", Hamming},
    {"minkowski", Euclidean},  // of the power 2, for which there is no attribute
    {"rogerstanimoto", RogersTanimoto},
    {"russellrao", [](const RowPair& r) { return (r.n - r.both) / r.n; }},
    {"seuclidean", Euclidean, Taken::kByDeviation},
    {"sokalmichener", RogersTanimoto},
    {"sokalsneath", [](const RowPair& r) { return Share(2 * r.one(), r.both); }},
    {"wminkowski", Euclidean},  // of the power 2 and weights of 1
    {"yule",
     [](const RowPair& r) {
       const double mixed = r.only_x * r.only_z;
       return 2 * Share(mixed, r.both * (r.n - r.both - r.one()));
     }},
};

const Metric* FindMetric(std::string_view name) {
  const auto* found = std::find_if(std::begin(kMetrics), std::end(kMetrics),
                                   [&](const Metric& metric) { return metric.name == name; });
  return found == std::end(kMetrics) ? nullptr : found;
}

struct CDistAttrs {
  std::string metric = "sqeuclidean";
  static constexpr auto Fields() { return std::tuple(Field("metric", &CDistAttrs::metric)); }
};

Status InferCDist(const CDistAttrs& attrs, ShapeContext& context) {
  const Metric* metric = FindMetric(attrs.metric);
  if (metric == nullptr) {
    return InvalidArgument("attribute 'metric': expected one of SciPy's cdist, got '{}'",
                           attrs.metric);
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape a, context.InputOfRank(0, 2));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape b, context.InputOfRank(1, 2));
  if (!MayEqual(a[1], b[1])) {
    return InvalidArgument("input 1: expected rows of {} elements, got {}", a[1], b);
  }
  const Dim rows = a[0] + b[0];
  const bool is_known = rows.is_number() && a[1].is_number();
  if (metric->taken == Taken::kByCovariance && is_known && rows.value() <= a[1].value()) {
    return InvalidArgument("inputs 0 and 1: expected more than {} rows for a covariance, got {}",
                           a[1], rows);
  }
  return context.SetOutput(0, {a[0], b[0]});
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double Entropy(double p, double mean) {
  if (p > 0 && mean > 0) return p * std::log(p / mean);
  return p == 0 || std::isnan(p) ? p : kInfinity;
}

// An element of a row in the metric's form: (element - shift) * factor.
struct View {
  double shift = 0, factor = 1;
  template <class T>
  static View Of(Taken taken, const T* row, size_t n) {
    if (taken == Taken::kAsItIs) return {};
    const double sum = std::accumulate(row, row + n, 0.0);
    // A row whose sum is 0 is not a distribution; a row with negative shares is infinitely far
    // away.
    if (taken == Taken::kAsDistribution) return sum == 0 ? View{kInfinity} : View{0, 1 / sum};
    return {sum / static_cast<double>(n), 1};
  }
  double operator()(double element) const { return (element - shift) * factor; }
};

template <class T>
double Distance(const Metric& metric, const T* x, const T* z, size_t n) {
  RowPair r = {.n = static_cast<double>(n)};
  const View of_x = View::Of(metric.taken, x, n), of_z = View::Of(metric.taken, z, n);
  for (size_t i = 0; i < n; ++i) {
    const double u = of_x(static_cast<double>(x[i])), v = of_z(static_cast<double>(z[i]));
    const double size = std::abs(u - v);
    r.sum += size;
    r.squares += size * size;
    if (size > r.largest || std::isnan(size)) r.largest = size;
    r.unequal += u != v;
    if (u != v) r.canberra += size / (std::abs(u) + std::abs(v));
    r.of_sums += std::abs(u + v);
    r.xx += u * u;
    r.zz += v * v;
    r.xz += u * v;
    r.both += u != 0 && v != 0;
    r.only_x += u != 0 && v == 0;
    r.only_z += u == 0 && v != 0;
    if (metric.taken == Taken::kAsDistribution) {
      const double mean = (u + v) / 2;
      r.divergence += Entropy(u, mean) + Entropy(v, mean);
    }
  }
  return metric.distance(r);
}

// The most common metrics, in T: sums side by side, which the compiler can vectorize.
template <class T>
T SquaredDistance(const T* x, const T* z, size_t n) {
  constexpr size_t kStrands = 64 / sizeof(T);
  T sum = 0;
  size_t i = 0;
  if (n >= kStrands) {
    T sums[kStrands] = {};
    for (; i + kStrands <= n; i += kStrands) {
      for (size_t j = 0; j < kStrands; ++j) {
        const T difference = x[i + j] - z[i + j];
        sums[j] += difference * difference;
      }
    }
    sum = std::accumulate(sums, sums + kStrands, T{0});
  }
  for (; i < n; ++i) sum += (x[i] - z[i]) * (x[i] - z[i]);
  return sum;
}

// Rows of two matrices, one below the other, transformed so that their Euclidean distance is the
// metric's.
class StandardRows {
 public:
  StandardRows(bool is_full, size_t count, size_t n)
      : is_full_(is_full), count_(count), n_(n), stride_(is_full ? n : 0) {}

  // Of the memory for Fill; n * n is less than count * n.
  std::optional<size_t> bytes() const {
    return CheckedMul(count_ * n_ + (is_full_ ? n_ * n_ : n_) + 1, sizeof(double));
  }
  template <class T>
  Status Fill(const Tensor& a, const Tensor& b, double* memory, ThreadPool& threads) {
    rows_ = memory;
    factor_ = memory + count_ * n_;
    std::copy_n(b.data<T>(), b.size(), std::copy_n(a.data<T>(), a.size(), rows_));
    Center();
    threads.ParallelFor(n_, 1, [&](size_t begin, size_t end) {
      for (size_t j = begin; j < end; ++j) SetCovariances(j);
    });
    TENON_RETURN_IF_ERROR(TakeRoot());
    threads.ParallelFor(count_, 4096 / (n_ * (stride_ + 1) + 1) + 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) Divide(rows_ + i * n_);
    });
    return OkStatus();
  }
  const double* row(size_t i) const { return rows_ + i * n_; }

 private:
  void Center() {
    for (size_t j = 0; j < n_; ++j) {
      double sum = 0;
      for (size_t i = 0; i < count_; ++i) sum += rows_[i * n_ + j];
      for (size_t i = 0; i < count_; ++i) rows_[i * n_ + j] -= sum / static_cast<double>(count_);
    }
  }
  // Of column j with those before it, or only with itself.
  void SetCovariances(size_t j) {
    const size_t first = is_full_ ? 0 : j;
    double* sums = factor_ + j * stride_;
    std::fill(sums + first, sums + j + 1, 0.0);
    for (size_t i = 0; i < count_; ++i) {
      const double* x = row(i);
      for (size_t k = first; k <= j; ++k) sums[k] += x[j] * x[k];
    }
    for (size_t k = first; k <= j; ++k) sums[k] /= static_cast<double>(count_ - 1);
  }
  // The covariances become their Cholesky factor.
  Status TakeRoot() {
    for (size_t j = 0; j < n_; ++j) {
      double* x = factor_ + j * stride_;
      const double variance = x[j];
      for (size_t k = 0; is_full_ && k <= j; ++k) {
        const double* other = factor_ + k * n_;
        x[k] -= std::inner_product(x, x + k, other, 0.0);
        if (k < j) x[k] /= other[k];
      }
      if (is_full_ && x[j] <= variance * std::numeric_limits<double>::epsilon()) {
        return InvalidArgument(
            "inputs 0 and 1: expected rows whose covariance has an inverse, but their column {} "
            "follows from those before it",
            j);
      }
      x[j] = std::sqrt(x[j]);
    }
    return OkStatus();
  }
  // The factor's inverse times x.
  void Divide(double* x) const {
    for (size_t j = 0; j < n_; ++j) {
      const double* divisors = factor_ + j * stride_;
      if (is_full_) x[j] -= std::inner_product(x, x + j, divisors, 0.0);
      x[j] /= divisors[j];
    }
  }

  const bool is_full_;
  const size_t count_, n_, stride_;
  double* rows_ = nullptr;    // [count, n]
  double* factor_ = nullptr;  // the lower triangle of [n, n], or its diagonal
};

template <class T>
Status RunTyped(const CDistAttrs& attrs, KernelContext& context) {
  const auto* a = context.Input(0).data<T>();
  const auto* b = context.Input(1).data<T>();
  T* y = context.Output(0).data<T>();
  const auto rows = static_cast<size_t>(context.Input(1).shape()[0]);
  const auto n = static_cast<size_t>(context.Input(0).shape()[1]);
  const Metric& metric = *FindMetric(attrs.metric);
  if (context.Output(0).size() == 0) return OkStatus();
  const auto a_rows = static_cast<size_t>(context.Input(0).shape()[0]);
  StandardRows standard(metric.taken == Taken::kByCovariance, a_rows + rows, n);
  const bool is_standard = IsByAllRows(metric.taken);
  if (is_standard) {
    const auto bytes = standard.bytes();
    auto* memory = bytes ? static_cast<double*>(context.Scratch(*bytes)) : nullptr;
    if (memory == nullptr) return RuntimeException("out of memory for {} rows", a_rows + rows);
    TENON_RETURN_IF_ERROR(
        standard.Fill<T>(context.Input(0), context.Input(1), memory, context.threads()));
  }
  const bool is_square = metric.name == "sqeuclidean";
  const bool is_common = is_square || metric.distance == Euclidean;
  constexpr size_t kElements = 16384;  // that are worth a task
  const auto pairs = static_cast<size_t>(context.Output(0).size());
  context.threads().ParallelFor(pairs, kElements / (n + 1) + 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const T* x = a + i / rows * n;
      const T* z = b + i % rows * n;
      if (is_standard) {
        const double square =
            SquaredDistance(standard.row(i / rows), standard.row(a_rows + i % rows), n);
        y[i] = static_cast<T>(std::sqrt(square));
      } else if (is_common) {
        const T square = SquaredDistance(x, z, n);
        y[i] = is_square ? square : std::sqrt(square);
      } else {
        y[i] = static_cast<T>(Distance(metric, x, z, n));
      }
    }
  });
  return OkStatus();
}

Status RunCDist(const CDistAttrs& attrs, KernelContext& context) {
  return context.Input(0).type() == DataType::kDouble ? RunTyped<double>(attrs, context)
                                                      : RunTyped<float>(attrs, context);
}

constexpr OpRow kRows[] = {
    Op<InferCDist, RunCDist>(
        "CDist", {.domain = "com.microsoft", .types = {DataType::kFloat, DataType::kDouble}}),
};

}  // namespace

TENON_OP_FAMILY(CDist, kRows);

}  // namespace tenon
