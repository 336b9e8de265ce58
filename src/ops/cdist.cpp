// CDist of com.microsoft: distances between the rows of two matrices.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/expected_shape.h"
#include "ops/op_row.h"

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

// Each length by itself: their squares may have no product.
double CosineDistance(const RowPair& r) { return 1 - r.xz / (std::sqrt(r.xx) * std::sqrt(r.zz)); }
double Euclidean(const RowPair& r) { return std::sqrt(r.squares); }
double Hamming(const RowPair& r) { return r.unequal / r.n; }
double Share(double part, double rest) { return part == 0 ? 0 : part / (rest + part); }
double RogersTanimoto(const RowPair& r) { return 2 * r.one() / (r.n + r.one()); }

enum class Taken : uint8_t { kAsItIs, kFromItsMean, kAsDistribution };

struct Metric {
  std::string_view name;
  double (*distance)(const RowPair&);
  Taken taken = Taken::kAsItIs;  // each row
};

// Those of SciPy's cdist that need the two rows alone.
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
    {"matching", Hamming},
    {"minkowski", Euclidean},  // of the power 2, for which there is no attribute
    {"rogerstanimoto", RogersTanimoto},
    {"russellrao", [](const RowPair& r) { return (r.n - r.both) / r.n; }},
    {"sokalmichener", RogersTanimoto},
    {"sokalsneath", [](const RowPair& r) { return Share(2 * r.one(), r.both); }},
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
  if (FindMetric(attrs.metric) == nullptr) {
    return NotImplemented("attribute 'metric': expected one that two rows define, got '{}'",
                          attrs.metric);
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape a, context.InputOfRank(0, 2));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape b, context.InputOfRank(1, 2));
  if (!MayEqual(a[1], b[1])) {
    return InvalidArgument("input 1: expected rows of {} elements, got {}", a[1], b);
  }
  return context.SetOutput(0, {a[0], b[0]});
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double Entropy(double p, double mean) {
  if (p > 0 && mean > 0) return p * std::log(p / mean);
  return p == 0 || std::isnan(p) ? p : kInfinity;
}

// An element of a row as the metric takes it: (element - shift) * factor.
struct View {
  double shift = 0, factor = 1;
  template <class T>
  static View Of(Taken taken, const T* row, size_t n) {
    if (taken == Taken::kAsItIs) return {};
    const double sum = std::accumulate(row, row + n, 0.0);
    // A row whose sum is 0 is no distribution: what has negative shares is infinitely far.
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

// The commonest metrics, in T: sums side by side, which vectors can hold.
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

template <class T>
Status RunTyped(const CDistAttrs& attrs, KernelContext& context) {
  const auto* a = context.Input(0).data<T>();
  const auto* b = context.Input(1).data<T>();
  T* y = context.Output(0).data<T>();
  const auto rows = static_cast<size_t>(context.Input(1).shape()[0]);
  const auto n = static_cast<size_t>(context.Input(0).shape()[1]);
  const Metric& metric = *FindMetric(attrs.metric);
  const bool is_square = metric.name == "sqeuclidean";
  const bool is_common = is_square || metric.distance == Euclidean;
  constexpr size_t kElements = 16384;  // that are worth a task
  const auto pairs = static_cast<size_t>(context.Output(0).size());
  context.threads().ParallelFor(pairs, kElements / (n + 1) + 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const T* x = a + i / rows * n;
      const T* z = b + i % rows * n;
      if (is_common) {
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
