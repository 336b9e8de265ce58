#include "kernels/gemm/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kernels/dispatch.h"
#include "kernels/elementwise/convert.h"
#include "kernels/unary_cases.h"

namespace tenon::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kGuard = 12345.0f;

// `count` floats at a multiple of 64 bytes, with nothing after them, so that a sanitizer detects
// every access outside.
class AlignedFloats {
 public:
  explicit AlignedFloats(size_t count)
      : data_(static_cast<float*>(::operator new(count * sizeof(float), std::align_val_t(64)))) {
    std::fill_n(data_.get(), count, kNan);
  }
  float* get() { return data_.get(); }

 private:
  struct Free {
    void operator()(float* p) const { ::operator delete(p, std::align_val_t(64)); }
  };
  std::unique_ptr<float, Free> data_;
};

class Random {
 public:
  explicit Random(uint32_t seed) : state_(seed * 2654435761u + 1) {}
  float Next() {  // uniform in [-1, 1)
    state_ = state_ * 1664525 + 1013904223;
    return static_cast<float>(state_ >> 8) / (1 << 23) - 1;
  }
  std::vector<float> Vector(size_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = Next();
    return values;
  }

 private:
  uint32_t state_;
};

double Activate(const ActivationSpec& spec, double x) {
  return static_cast<double>(CaseOf(spec.op).reference(x, spec.alpha, spec.beta));
}

enum class Layout { kRows, kTransposed, kStrided };
constexpr Layout kLayouts[] = {Layout::kRows, Layout::kTransposed, Layout::kStrided};

// A matrix of random elements with only the memory that its layout needs.
struct Matrix {
  Matrix(size_t rows, size_t columns, Layout layout, size_t padding, Random& random) {
    switch (layout) {
      case Layout::kRows:
        view = RowMajor(nullptr, columns + padding);
        break;
      case Layout::kTransposed:
        view = Transposed(nullptr, rows + padding);
        break;
      case Layout::kStrided:
        view = {nullptr, 3 * columns + padding, 3};
        break;
    }
    const bool empty = rows == 0 || columns == 0;
    storage = random.Vector(
        empty ? 0 : (rows - 1) * view.row_stride + (columns - 1) * view.column_stride + 1);
    view.data = storage.data();
  }
  double at(size_t i, size_t j) const {
    return storage[i * view.row_stride + j * view.column_stride];
  }

  std::vector<float> storage;
  GemmMatrix view;
};

struct GemmCase {
  GemmSizes sizes;
  Layout a_layout = Layout::kRows;
  Layout b_layout = Layout::kRows;
  bool packed = true;
  size_t padding = 0;
  float alpha = 1;
  float beta = 0;
  bool bias_columns = false;
  bool bias_rows = false;
  bool residual = false;
  ActivationSpec activation = {};

  std::string Name() const {
    return "m=" + std::to_string(sizes.m) + " n=" + std::to_string(sizes.n) +
           " k=" + std::to_string(sizes.k) + " a=" + std::to_string(static_cast<int>(a_layout)) +
           " b=" + std::to_string(static_cast<int>(b_layout)) + (packed ? " packed" : " unpacked") +
           " padding=" + std::to_string(padding) + " beta=" + std::to_string(beta) +
           " activation=" + std::string(InfoOf(activation.op).name);
  }
};

// A product ready to run, with its operands.
class Product {
 public:
  explicit Product(const GemmCase& c)
      : case_(c),
        random_(static_cast<uint32_t>(c.sizes.m * 31 + c.sizes.n * 7 + c.sizes.k)),
        a_(c.sizes.m, c.sizes.k, c.a_layout, c.padding, random_),
        b_(c.sizes.k, c.sizes.n, c.b_layout, c.padding, random_),
        bias_columns_(random_.Vector(c.sizes.n)),
        bias_rows_(random_.Vector(c.sizes.m)),
        residual_(random_.Vector(Elements(c.sizes.n + c.padding))),
        initial_(random_.Vector(Elements(c.sizes.n + c.padding))),
        packed_b_(PackedGemmBSize(c.sizes.n, c.sizes.k) / sizeof(float)),
        scratch_(GemmScratchSize(c.sizes, c.packed) / sizeof(float)) {
    const size_t ldc = c.sizes.n + c.padding;
    for (size_t i = 0; i < initial_.size(); ++i) {
      if (i % ldc >= c.sizes.n) initial_[i] = kGuard;
    }
  }

  Matrix& a() { return a_; }
  Matrix& b() { return b_; }

  std::vector<float> Run(bool reverse, size_t threads = kGemmThreads) {
    GemmArgs args;
    std::vector<float> c = Begin(args);
    if (case_.packed) {
      PackGemmB(b_.view, case_.sizes.n, case_.sizes.k, packed_b_.get());
      args.packed_b = packed_b_.get();
    } else {
      args.b = b_.view;
    }
    args.threads = threads;
    args.is_backward = reverse;
    const size_t tasks = GemmTaskCount(case_.sizes, case_.packed, threads);
    for (size_t task = 0; task < tasks; ++task) {
      RunGemmTask(args, reverse ? tasks - 1 - task : task, scratch_.get());
    }
    return c;
  }

  // Rounds B to float16, and multiplies it in this form.
  std::vector<float> RunHalf() {
    const auto [m, n, k] = case_.sizes;
    std::vector<uint16_t> halves(b_.storage.size());
    FloatToFloat16(b_.storage.data(), halves.data(), halves.size());
    Float16ToFloat(halves.data(), b_.storage.data(), halves.size());
    const HalfMatrix b = {halves.data(), b_.view.row_stride, b_.view.column_stride};
    AlignedFloats packed(PackedHalfGemmBSize(n, k) / sizeof(float));
    auto* const packed_halves = reinterpret_cast<uint16_t*>(packed.get());
    for (size_t task = 0; task < PackGemmBTaskCount(n, k); ++task) {
      RunPackHalfGemmBTask(b, n, k, task, packed_halves);
    }
    GemmArgs args;
    std::vector<float> c = Begin(args);
    args.packed_half_b = packed_halves;
    AlignedFloats scratch(GemmScratchSize(case_.sizes, true, true) / sizeof(float));
    for (size_t task = 0; task < GemmTaskCount(case_.sizes, true); ++task) {
      RunGemmTask(args, task, scratch.get());
    }
    return c;
  }

  // Compares `c` with the formula in double. Partial sums are of the order of the products' root
  // sum of squares. k roundings of such sums add up like a random walk. Four times its expected
  // length is allowed, because millions of elements are compared.
  void Check(const std::vector<float>& c) const {
    const size_t ldc = case_.sizes.n + case_.padding;
    const double roundings = 4 + 4 * std::sqrt(static_cast<double>(case_.sizes.k));
    for (size_t i = 0; i < case_.sizes.m; ++i) {
      for (size_t j = 0; j < ldc && i * ldc + j < c.size(); ++j) {
        const size_t at = i * ldc + j;
        if (j >= case_.sizes.n) {
          ASSERT_EQ(c[at], kGuard) << "written beyond row " << i << ": " << case_.Name();
          continue;
        }
        double sum = 0, squares = 0;
        for (size_t l = 0; l < case_.sizes.k; ++l) {
          sum += a_.at(i, l) * b_.at(l, j);
          squares += std::pow(a_.at(i, l) * b_.at(l, j), 2);
        }
        sum *= case_.alpha;
        const double magnitude = 1 + std::abs(case_.alpha) * std::sqrt(squares);
        if (case_.beta != 0) sum += static_cast<double>(case_.beta) * initial_[at];
        if (case_.bias_columns) sum += bias_columns_[j];
        if (case_.bias_rows) sum += bias_rows_[i];
        if (case_.residual) sum += residual_[at];
        ASSERT_NEAR(c[at], Activate(case_.activation, sum), roundings * magnitude * 6e-8)
            << "row " << i << " column " << j << " " << case_.Name();
      }
    }
  }

 private:
  // All arguments but B, and what C holds before.
  std::vector<float> Begin(GemmArgs& args) {
    std::vector<float> c = initial_;
    if (case_.beta == 0) {
      for (float& value : c) value = value == kGuard ? kGuard : kNan;
    }
    args.sizes = case_.sizes;
    args.alpha = case_.alpha;
    args.beta = case_.beta;
    args.a = a_.view;
    args.c = c.data();
    args.ldc = case_.sizes.n + case_.padding;
    if (case_.bias_columns) args.epilogue.bias_columns = bias_columns_.data();
    if (case_.bias_rows) args.epilogue.bias_rows = bias_rows_.data();
    if (case_.residual) {
      args.epilogue.residual = residual_.data();
      args.epilogue.ldr = args.ldc;
    }
    args.epilogue.activation = case_.activation;
    return c;
  }

  // A row-major matrix of m rows, the last without padding.
  size_t Elements(size_t ld) const {
    return case_.sizes.m == 0 ? 0 : (case_.sizes.m - 1) * ld + case_.sizes.n;
  }

  const GemmCase case_;
  Random random_;
  Matrix a_, b_;
  std::vector<float> bias_columns_, bias_rows_, residual_, initial_;
  AlignedFloats packed_b_, scratch_;
};

bool SameBits(const std::vector<float>& x, const std::vector<float>& y) {
  return x.size() == y.size() &&
         (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0);
}

class GemmTest : public testing::TestWithParam<Target> {
 protected:
  void SetUp() override { SetActiveTarget(GetParam()); }
  void TearDown() override { SetActiveTarget(SupportedTargets().back()); }

  void Check(const GemmCase& c) {
    Product product(c);
    const std::vector<float> forward = product.Run(false);
    ASSERT_NO_FATAL_FAILURE(product.Check(forward));
    const std::vector<float> backward = product.Run(true);
    ASSERT_TRUE(SameBits(forward, backward)) << "the order of tasks matters: " << c.Name();
  }
};

INSTANTIATE_TEST_SUITE_P(Targets, GemmTest,
                         testing::ValuesIn(SupportedTargets().begin(), SupportedTargets().end()),
                         [](const auto& info) { return TargetName(info.param); });

// Both sides of every tile height, vector and panel, of blocks of rows and of depth.
constexpr size_t kRowCounts[] = {0, 1, 2, 3, 5, 6, 7, 13, 14, 15, 29};
constexpr size_t kColumnCounts[] = {0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 65};
constexpr size_t kDepths[] = {0, 1, 2, 3, 4, 5, 17, 64};

TEST_P(GemmTest, MatchesReferenceAtEveryEdge) {
  for (const size_t m : kRowCounts) {
    for (const size_t n : kColumnCounts) {
      for (const size_t k : kDepths) {
        for (const bool packed : {true, false}) {
          ASSERT_NO_FATAL_FAILURE(Check({.sizes = {m, n, k}, .packed = packed, .padding = m % 3}));
        }
      }
    }
  }
}

constexpr GemmSizes kLargeSizes[] = {
    {1, 300, 5000}, {3, 70, 2100},    {14, 40, 2049}, {15, 40, 513},
    {113, 33, 40},  {230, 129, 1030}, {64, 512, 96},  {520, 520, 70},
    {16, 48, 1024}, {2000, 10, 30},   {20, 2000, 50},
};

TEST_P(GemmTest, MatchesReferenceAcrossBlocksAndLayouts) {
  for (const GemmSizes& sizes : kLargeSizes) {
    for (const Layout a : kLayouts) {
      for (const Layout b : kLayouts) {
        ASSERT_NO_FATAL_FAILURE(
            Check({.sizes = sizes, .a_layout = a, .b_layout = b, .packed = sizes.m % 2 == 0}));
      }
    }
  }
}

// B in float16 gives the bits of the same numbers in float32, but in a last panel that is narrower.
TEST_P(GemmTest, WidensPackedHalves) {
  if (!IsHalfGemmFast()) GTEST_SKIP() << "the processor does not widen float16 numbers";
  constexpr GemmSizes kEdges[] = {{1, 1, 1},   {2, 17, 5},  {5, 33, 64},  {15, 65, 3},
                                  {29, 31, 9}, {0, 16, 16}, {16, 300, 0}, {7, 2000, 40}};
  std::vector<GemmSizes> all(std::begin(kEdges), std::end(kEdges));
  all.insert(all.end(), std::begin(kLargeSizes), std::end(kLargeSizes));
  for (const GemmSizes& sizes : all) {
    for (const Layout layout : kLayouts) {
      GemmCase c = {.sizes = sizes, .b_layout = layout, .padding = 3, .bias_columns = true};
      Product product(c);
      const std::vector<float> widened = product.RunHalf();  // also rounds B
      ASSERT_NO_FATAL_FAILURE(product.Check(widened));
      if (sizes.n % GemmPanelColumns() != 0) continue;
      ASSERT_TRUE(SameBits(widened, product.Run(false))) << c.Name();
    }
  }
}

TEST_P(GemmTest, FewRowsTimesUnpackedB) {
  for (const size_t m : {1, 2, 3, 4}) {
    for (const size_t n : {1, 3, 4, 6, 130, 515, 1100}) {
      for (const size_t k : {1, 3, 4, 7, 8, 16, 17, 33, 70}) {
        for (const Layout b : {Layout::kRows, Layout::kTransposed}) {
          ASSERT_NO_FATAL_FAILURE(Check({.sizes = {m, n, k},
                                         .b_layout = b,
                                         .packed = false,
                                         .padding = 130,
                                         .beta = 0.5f,
                                         .bias_columns = true,
                                         .activation = {UnaryOp::kSwish}}));
        }
      }
    }
  }
}

TEST_P(GemmTest, ReadsEveryLayoutAtEdges) {
  for (const Layout a : kLayouts) {
    for (const Layout b : kLayouts) {
      for (const bool packed : {true, false}) {
        for (const size_t size : {1, 3, 5, 18, 35}) {
          const GemmSizes sizes = {size, size + 1, size + 2};
          ASSERT_NO_FATAL_FAILURE(Check(
              {.sizes = sizes, .a_layout = a, .b_layout = b, .packed = packed, .padding = 5}));
        }
      }
    }
  }
}

TEST_P(GemmTest, AppliesEveryActivation) {
  for (const UnaryCase& test : kUnaryCases) {
    if (!InfoOf(test.op).Has(kFused)) continue;
    const ActivationSpec activation = {test.op, test.a, test.b};
    for (const GemmSizes& sizes : {GemmSizes{5, 37, 9}, GemmSizes{20, 32, 1100}}) {
      ASSERT_NO_FATAL_FAILURE(
          Check({.sizes = sizes, .bias_columns = true, .activation = activation}));
    }
  }
}

TEST_P(GemmTest, CombinesScalesBiasAndResidual) {
  for (const GemmSizes& sizes : {GemmSizes{7, 19, 11}, GemmSizes{30, 64, 2100}, GemmSizes{4, 9, 0},
                                 GemmSizes{120, 40, 600}}) {
    for (const float beta : {0.0f, 1.0f, -0.75f}) {
      for (unsigned terms = 0; terms < 8; ++terms) {
        ASSERT_NO_FATAL_FAILURE(Check({.sizes = sizes,
                                       .packed = (terms & 1) != 0,
                                       .padding = 2,
                                       .alpha = 1.5f,
                                       .beta = beta,
                                       .bias_columns = (terms & 1) != 0,
                                       .bias_rows = (terms & 2) != 0,
                                       .residual = (terms & 4) != 0,
                                       .activation = {UnaryOp::kRelu}}));
      }
    }
  }
}

TEST_P(GemmTest, ZeroTimesInfinityIsNan) {
  for (const bool packed : {true, false}) {
    Product product({.sizes = {3, 20, 40}, .packed = packed, .alpha = 0});
    product.b().storage[7 * 20 + 4] = kInfinity;
    product.a().storage[2 * 40 + 9] = kNan;
    const std::vector<float> c = product.Run(false);
    for (size_t i = 0; i < 3; ++i) {
      for (size_t j = 0; j < 20; ++j) {
        EXPECT_EQ(std::isnan(c[i * 20 + j]), i == 2 || j == 4) << i << ", " << j;
      }
    }
  }
}

TEST_P(GemmTest, ActivationsKeepNan) {
  for (const UnaryCase& test : kUnaryCases) {
    if (!InfoOf(test.op).Has(kFused)) continue;
    Product product({.sizes = {1, 3, 2}, .activation = {test.op, test.a, test.b}});
    product.b().storage[1] = kNan;
    const std::vector<float> c = product.Run(false);
    EXPECT_FALSE(std::isnan(c[0]));
    EXPECT_EQ(std::isnan(c[1]), test.op != UnaryOp::kThresholdedRelu) << InfoOf(test.op).name;
  }
}

TEST_P(GemmTest, InfinitiesPassThrough) {
  Product product({.sizes = {1, 2, 1}});
  product.a().storage[0] = 2;
  product.b().storage = {kInfinity, -kInfinity};
  product.b().view.data = product.b().storage.data();
  const std::vector<float> c = product.Run(false);
  EXPECT_EQ(c[0], kInfinity);
  EXPECT_EQ(c[1], -kInfinity);
}

// 100 microseconds on a fast core of today, or 6 million multiply-adds.
constexpr GemmSizes kSizesWorthDividing[] = {
    {256, 256, 256}, {128, 768, 768}, {1, 4096, 4096},  {3136, 64, 64},
    {64, 3136, 64},  {8, 3072, 768},  {196, 256, 1024},
};

TEST_P(GemmTest, LargeProductsHaveTasksForManyThreads) {
  for (const GemmSizes& sizes : kSizesWorthDividing) {
    for (const bool packed : {true, false}) {
      EXPECT_GE(GemmTaskCount(sizes, packed), 8u) << sizes.m << " " << sizes.n << " " << sizes.k;
    }
  }
}

// Few threads get fewer tasks, and the same bits.
TEST_P(GemmTest, NumberOfThreadsDoesNotChangeBits) {
  for (const GemmSizes& sizes : {GemmSizes{230, 300, 1030}, GemmSizes{61, 1024, 520}}) {
    for (const Layout layout : kLayouts) {
      for (const bool packed : {true, false}) {
        Product product({.sizes = sizes, .a_layout = layout, .b_layout = layout, .packed = packed});
        const std::vector<float> expected = product.Run(false, 16);
        for (const size_t threads : {1, 2, 4}) {
          const std::vector<float> c = product.Run(false, threads);
          EXPECT_EQ(std::memcmp(c.data(), expected.data(), c.size() * sizeof(float)), 0) << threads;
        }
        if (!packed) {
          EXPECT_LT(GemmTaskCount(sizes, packed, 1), GemmTaskCount(sizes, packed, 4));
        }
      }
    }
  }
}

TEST_P(GemmTest, SmallAndEmptyProductsHaveFewTasks) {
  EXPECT_EQ(GemmTaskCount({64, 64, 64}, true), 1u);
  EXPECT_EQ(GemmTaskCount({5, 5, 0}, true), 1u);
  EXPECT_EQ(GemmTaskCount({0, 5, 5}, true), 0u);
  EXPECT_EQ(GemmTaskCount({5, 0, 5}, false), 0u);
}

TEST_P(GemmTest, PackingTasksMayRunInAnyOrder) {
  Random random(3);
  const size_t n = 333, k = 21;
  const Matrix b(k, n, Layout::kTransposed, 2, random);
  const size_t size = PackedGemmBSize(n, k);
  EXPECT_EQ(size % 64, 0u);
  AlignedFloats forward(size / sizeof(float)), backward(size / sizeof(float));
  PackGemmB(b.view, n, k, forward.get());
  const size_t tasks = PackGemmBTaskCount(n, k);
  EXPECT_GT(tasks, 1u);
  for (size_t task = tasks; task-- > 0;) RunPackGemmBTask(b.view, n, k, task, backward.get());
  EXPECT_EQ(std::memcmp(forward.get(), backward.get(), size), 0);
}

}  // namespace
}  // namespace tenon::kernels
