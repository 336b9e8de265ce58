#include "kernels/gemm/gemm_bf16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kernels/bf16.h"
#include "kernels/target_test.h"

namespace tenon::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Memory at a multiple of 64 bytes, with nothing after it, so that a sanitizer detects every access
// outside.
class Aligned {
 public:
  explicit Aligned(size_t bytes)
      : data_(::operator new(std::max<size_t>(bytes, 1), std::align_val_t(64))) {
    std::memset(data_.get(), 0xff, bytes);  // not a number
  }
  void* get() { return data_.get(); }

 private:
  struct Free {
    void operator()(void* p) const { ::operator delete(p, std::align_val_t(64)); }
  };
  std::unique_ptr<void, Free> data_;
};

struct Operand {
  std::vector<float> storage;
  GemmMatrix view;

  Operand(size_t rows, size_t columns, bool transposed, Random& random)
      : storage(random.Floats(rows * columns, -1, 1)) {
    view = transposed ? Transposed(storage.data(), rows) : RowMajor(storage.data(), columns);
  }
  float At(size_t i, size_t j) const {
    return view.data[i * view.row_stride + j * view.column_stride];
  }
  float& At(size_t i, size_t j) { return storage[i * view.row_stride + j * view.column_stride]; }
};

// All tasks of a product, in order or from the last to the first. output: null if C is in `args`.
void RunTasks(const Bf16Matrix& a, const Bf16Matrix& b, const GemmArgs& args, Bf16Parts parts,
              const Bf16Output* output, bool backward = false) {
  const auto [m, n, k] = args.sizes;
  const auto each = [&](size_t tasks, auto&& run) {
    for (size_t i = 0; i < tasks; ++i) run(backward ? tasks - 1 - i : i);
  };
  Aligned packed(PackedBf16GemmBSize(n, k, parts)), rows(Bf16GemmRowsSize(args.sizes, parts));
  each(PackBf16GemmBTaskCount(n), [&, n = n, k = k](size_t task) {
    RunPackBf16GemmBTask(b, n, k, parts, task, packed.get());
  });
  each(Bf16GemmRowsTaskCount(args.sizes),
       [&](size_t task) { RunBf16GemmRowsTask(a, args.sizes, parts, task, rows.get()); });
  each(Bf16GemmTaskCount(args.sizes),
       [&](size_t task) { RunBf16GemmTask(args, parts, rows.get(), packed.get(), task, output); });
}

std::vector<float> Multiply(const Operand& a, const Operand& b, GemmArgs args, Bf16Parts parts,
                            bool backward = false) {
  std::vector<float> c(args.sizes.m * args.sizes.n, 12345.0f);
  args.c = c.data();
  args.ldc = args.sizes.n;
  RunTasks(a.view, b.view, args, parts, nullptr, backward);
  return c;
}

class Bf16GemmTest : public testing::TestWithParam<Bf16Parts> {
 protected:
  void SetUp() override {
    if (!IsBf16GemmFast(GetParam())) GTEST_SKIP() << "the processor has no such products";
  }
  static constexpr bool IsOne(Bf16Parts parts) { return parts == Bf16Parts::kOne; }
};

constexpr GemmSizes kSizes[] = {{1, 1, 1},    {1, 33, 70},    {5, 2, 31},     {16, 32, 32},
                                {17, 64, 33}, {40, 100, 257}, {130, 70, 129}, {300, 96, 64},
                                {33, 1, 600}, {200, 333, 48}, {2, 300, 70},   {3, 150, 64},
                                {1, 700, 800}};

TEST_P(Bf16GemmTest, EqualsTheProductOfRoundedNumbers) {
  for (const GemmSizes& s : kSizes) {
    for (int form = 0; form < 4; ++form) {
      SCOPED_TRACE(std::to_string(s.m) + " " + std::to_string(s.n) + " " + std::to_string(s.k) +
                   " form " + std::to_string(form));
      Random random(s.m + s.n + s.k);
      const Operand a(s.m, s.k, form & 1, random), b(s.k, s.n, form & 2, random);
      const std::vector<float> c = Multiply(a, b, {.sizes = s}, GetParam());
      for (size_t i = 0; i < s.m; ++i) {
        for (size_t j = 0; j < s.n; ++j) {
          double sum = 0, size = 0;
          for (size_t d = 0; d < s.k; ++d) {
            const float x = a.At(i, d), y = b.At(d, j);
            const double term = IsOne(GetParam()) ? double{ToBf16(x)} * ToBf16(y) : double{x} * y;
            sum += term;
            size += std::abs(term);
          }
          const double tolerance = IsOne(GetParam()) ? 1e-6 : 0x1p-15;
          ASSERT_NEAR(c[i * s.n + j], sum, tolerance * size) << i << ", " << j;
        }
      }
    }
  }
}

TEST_P(Bf16GemmTest, TheBitsDoNotDependOnTheOrderOfTasks) {
  Random random(1);
  const GemmSizes sizes = {500, 700, 90};
  EXPECT_GT(Bf16GemmTaskCount(sizes), 1u);
  const Operand a(sizes.m, sizes.k, false, random), b(sizes.k, sizes.n, true, random);
  EXPECT_EQ(Multiply(a, b, {.sizes = sizes}, GetParam()),
            Multiply(a, b, {.sizes = sizes}, GetParam(), true));
}

TEST_P(Bf16GemmTest, AppliesTheEpilogue) {
  Random random(2);
  const GemmSizes s = {37, 70, 50};
  const Operand a(s.m, s.k, false, random), b(s.k, s.n, false, random);
  const std::vector<float> columns = random.Floats(s.n, -1, 1), rows = random.Floats(s.m, -1, 1),
                           residual = random.Floats(s.m * s.n, -1, 1);
  const std::vector<float> plain = Multiply(a, b, {.sizes = s}, GetParam());
  const std::vector<float> c = Multiply(a, b,
                                        {.sizes = s,
                                         .alpha = 0.5f,
                                         .epilogue = {.bias_columns = columns.data(),
                                                      .bias_rows = rows.data(),
                                                      .residual = residual.data(),
                                                      .ldr = s.n,
                                                      .activation = {UnaryOp::kRelu}}},
                                        GetParam());
  for (size_t i = 0; i < s.m; ++i) {
    for (size_t j = 0; j < s.n; ++j) {
      const float sum = 0.5f * plain[i * s.n + j] + columns[j] + rows[i] + residual[i * s.n + j];
      ASSERT_NEAR(c[i * s.n + j], std::max(sum, 0.0f), 1e-5) << i << ", " << j;
    }
  }
}

// The bfloat16 numbers next to floats.
std::vector<uint16_t> Rounded(const std::vector<float>& floats) {
  std::vector<uint16_t> numbers;
  for (const float x : floats) {
    const float rounded = ToBf16(x);
    uint32_t bits;
    std::memcpy(&bits, &rounded, sizeof(bits));
    numbers.push_back(static_cast<uint16_t>(bits >> 16));
  }
  return numbers;
}

float FloatOf(uint16_t number) {
  const uint32_t bits = uint32_t{number} << 16;
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

TEST_P(Bf16GemmTest, ReadsAndWritesBfloat16) {
  for (const GemmSizes& s : kSizes) {
    for (int form = 0; form < 4; ++form) {
      SCOPED_TRACE(std::to_string(s.m) + " " + std::to_string(s.n) + " " + std::to_string(s.k) +
                   " form " + std::to_string(form));
      Random random(s.m + s.n + s.k);
      const Operand a(s.m, s.k, form & 1, random), b(s.k, s.n, form & 2, random);
      const std::vector<float> row = random.Floats(s.n, -1, 1),
                               whole = random.Floats(s.m * s.n, -1, 1);
      const std::vector<uint16_t> a_numbers = Rounded(a.storage), b_numbers = Rounded(b.storage),
                                  row_numbers = Rounded(row), whole_numbers = Rounded(whole);
      const Bf16Matrix a16(a_numbers.data(), a.view.row_stride, a.view.column_stride),
          b16(b_numbers.data(), b.view.row_stride, b.view.column_stride);
      GemmArgs args = {.sizes = s, .alpha = 0.5f, .epilogue = {.activation = {UnaryOp::kRelu}}};
      args.ldc = s.n;
      std::vector<uint16_t> c(s.m * s.n, 0x7fc0);
      const Bf16Output output = {
          c.data(),
          {{.data = row_numbers.data(), .column_stride = 1}, {whole_numbers.data(), s.n, 1, -2}}};
      RunTasks(a16, b16, args, GetParam(), &output);
      for (size_t i = 0; i < s.m; ++i) {
        for (size_t j = 0; j < s.n; ++j) {
          double sum = 0, size = 0;
          for (size_t d = 0; d < s.k; ++d) {
            const double term = double{ToBf16(a.At(i, d))} * ToBf16(b.At(d, j));
            sum += term;
            size += std::abs(term);
          }
          const double y =
              std::max(0.0, sum / 2 + ToBf16(row[j]) - 2 * double{ToBf16(whole[i * s.n + j])});
          // Half a unit of the last of 8 digits.
          ASSERT_NEAR(FloatOf(c[i * s.n + j]), y, y * 0x1p-8 + 1e-6 * size) << i << ", " << j;
        }
      }
    }
  }
}

TEST_P(Bf16GemmTest, AddendsOfBfloat16AreBroadcast) {
  Random random(5);
  const GemmSizes s = {35, 67, 8};
  const Operand a(s.m, s.k, false, random), b(s.k, s.n, false, random);
  const std::vector<uint16_t> column = Rounded(random.Floats(s.m, -1, 1));
  GemmArgs args = {.sizes = s, .alpha = 0};
  args.ldc = s.n;
  std::vector<uint16_t> c(s.m * s.n);
  const Bf16Output output = {c.data(), {{.data = column.data(), .row_stride = 1}}};
  RunTasks(a.view, b.view, args, GetParam(), &output);
  for (size_t i = 0; i < c.size(); ++i) ASSERT_EQ(c[i], column[i / s.n]) << i;
}

TEST_P(Bf16GemmTest, InfinitiesAreAsInTheFormula) {
  Random random(3);
  const GemmSizes s = {20, 40, 64};
  Operand a(s.m, s.k, false, random), b(s.k, s.n, false, random);
  // No other part than the first: a sum with it is infinite all the same.
  for (float& x : b.storage) x = x < 0 ? -2.0f : 0.5f;
  a.At(3, 5) = kInfinity;
  a.At(4, 40) = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> c = Multiply(a, b, {.sizes = s}, GetParam());
  for (size_t j = 0; j < s.n; ++j) {
    EXPECT_EQ(c[3 * s.n + j], b.At(5, j) < 0 ? -kInfinity : kInfinity);
    EXPECT_TRUE(std::isnan(c[4 * s.n + j]));
    EXPECT_TRUE(std::isfinite(c[2 * s.n + j]));
  }
}

TEST_P(Bf16GemmTest, EmptyProductsHaveNoTasksOrZeros) {
  EXPECT_EQ(Bf16GemmTaskCount({0, 5, 5}), 0u);
  EXPECT_EQ(Bf16GemmTaskCount({5, 0, 5}), 0u);
  Random random(4);
  const Operand a(5, 0, false, random), b(0, 5, false, random);
  EXPECT_EQ(Multiply(a, b, {.sizes = {5, 5, 0}}, GetParam()), std::vector<float>(25, 0.0f));
}

INSTANTIATE_TEST_SUITE_P(Parts, Bf16GemmTest, testing::Values(Bf16Parts::kOne, Bf16Parts::kTwo),
                         [](const auto& info) {
                           return info.param == Bf16Parts::kOne ? "one" : "two";
                         });

}  // namespace
}  // namespace tenon::kernels
