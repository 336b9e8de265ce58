#include "kernels/gemm/gemm_int8.h"

#include <algorithm>
#include <cstring>

#include "kernels/target_test.h"

namespace tenon::kernels {
namespace {

class GemmInt8Test : public TargetTest {
 protected:
  ~GemmInt8Test() override { UseInt8DotProducts(true); }

  template <class F>
  static void OnEveryVariant(F&& f) {
    for (const bool dot_products : {false, true}) {
      UseInt8DotProducts(dot_products);
      SCOPED_TRACE(dot_products ? "dot products" : "pairs");
      OnEveryTarget(f);
    }
  }
};

struct Sizes {
  size_t m, n, k;
};

const Sizes kSizes[] = {{1, 1, 1},   {1, 33, 3},    {3, 31, 4},     {14, 32, 8},   {15, 64, 5},
                        {6, 16, 2},  {29, 65, 7},   {100, 70, 129}, {2, 300, 64},  {130, 9, 1030},
                        {4, 5, 0},   {0, 5, 3},     {5, 0, 3},      {2, 65, 9000}, {1, 500, 70},
                        {1, 131, 0}, {1, 4500, 513}};

struct Operands {
  std::vector<uint8_t> a, b;
  std::vector<int32_t> a_zero, b_zero;
};

Operands MakeOperands(const Sizes& s, bool a_signed, bool b_signed) {
  Random random(s.m * 7 + s.n * 3 + s.k);
  Operands operands;
  const auto bytes = [&](size_t n) {
    std::vector<uint8_t> values(n);
    for (uint8_t& v : values) v = static_cast<uint8_t>(random.Next());
    // The extremes, which overflow 16-bit sums of pairs.
    if (n > 8) std::fill_n(values.begin(), n / 2, static_cast<uint8_t>(n % 2 ? 255 : 128));
    return values;
  };
  const auto zeros = [&](size_t n, bool is_signed) {
    std::vector<int32_t> values(std::max<size_t>(n, 1));
    for (int32_t& v : values) v = static_cast<int32_t>(random.Below(256)) - (is_signed ? 128 : 0);
    return values;
  };
  operands.a = bytes(s.m * s.k);
  operands.b = bytes(s.k * s.n);
  if (const size_t kind = (s.m + s.k) % 3; kind > 0) {
    // Few sums of four overflow, as in trained weights, or many of these and few of two.
    for (uint8_t& value : operands.b) {
      const auto trained = static_cast<int>(random.Below(40) + (random.Below(90) == 0 ? 88 : 0));
      const int magnitude = kind == 1 ? trained : static_cast<int>(random.Below(67));
      const int weight = random.Below(2) ? magnitude : -magnitude;
      value = static_cast<uint8_t>(b_signed ? weight : weight + 128);
    }
  }
  operands.a_zero = zeros(s.m, a_signed);
  operands.b_zero = zeros(s.n, b_signed);
  return operands;
}

int64_t Valued(uint8_t byte, bool is_signed) {
  return is_signed ? static_cast<int8_t>(byte) : byte;
}

// The exact sums.
std::vector<int64_t> Reference(const Int8GemmArgs& args) {
  std::vector<int64_t> c(args.m * args.n);
  for (size_t i = 0; i < args.m; ++i) {
    for (size_t j = 0; j < args.n; ++j) {
      const int64_t a_zero = args.a_zero ? args.a_zero[args.a_zero_per_row ? i : 0] : 0;
      const int64_t b_zero = args.b_zero ? args.b_zero[args.b_zero_per_column ? j : 0] : 0;
      int64_t sum = 0;
      for (size_t p = 0; p < args.k; ++p) {
        const uint8_t a = args.a.data[i * args.a.row_stride + p * args.a.column_stride];
        const uint8_t b = args.b.data[p * args.b.row_stride + j * args.b.column_stride];
        sum += (Valued(a, args.a.is_signed) - a_zero) * (Valued(b, args.b.is_signed) - b_zero);
      }
      if (args.epilogue.bias_columns) sum += args.epilogue.bias_columns[j];
      if (args.epilogue.bias_rows) sum += args.epilogue.bias_rows[i];
      c[i * args.n + j] = sum;
    }
  }
  return c;
}

// With `spoiled`, packed matrices hold any bytes.
std::vector<std::byte, std::allocator<std::byte>> RunTasks(Int8GemmArgs args, size_t element,
                                                           bool packed, Random* spoiled = nullptr) {
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> packed_b(PackedInt8GemmBSize(args.n, args.k) / 64 + 1);
  if (packed) {
    auto* data = reinterpret_cast<uint8_t*>(packed_b.data());
    PackInt8GemmPanels(args.b, args.n, args.k, 0, Int8GemmPanelCount(args.n), data);
    for (size_t i = 0; spoiled && i < PackedInt8GemmBSize(args.n, args.k); ++i) {
      data[i] = static_cast<uint8_t>(spoiled->Next());
    }
    args.packed_b = data;
  }
  std::vector<std::byte> c(args.m * args.n * element + 1, std::byte{0x5a});
  args.c = c.data();
  args.ldc = args.n;
  std::vector<Line> packed_a(PackedInt8GemmRowsSize(args) / 64 + 1);
  if (packed && PackedInt8GemmRowsSize(args) > 0) {
    auto* data = packed_a.data()->bytes;
    for (size_t task = PackInt8GemmRowsTaskCount(args); task-- > 0;) {
      RunPackInt8GemmRowsTask(args, task, data);
    }
    args.packed_a = data;
  }
  std::vector<Line> scratch(Int8GemmScratchSize(args) / 64 + 1);
  for (size_t task = Int8GemmTaskCount(args); task-- > 0;) {
    RunInt8GemmTask(args, task, scratch.data()->bytes);
  }
  EXPECT_EQ(c.back(), std::byte{0x5a});
  return c;
}

Int8GemmArgs MakeArgs(const Sizes& s, const Operands& operands, bool a_signed, bool b_signed) {
  Int8GemmArgs args;
  args.m = s.m;
  args.n = s.n;
  args.k = s.k;
  args.a = {operands.a.data(), a_signed, s.k, 1};
  args.b = {operands.b.data(), b_signed, s.n, 1};
  return args;
}

TEST_F(GemmInt8Test, SumsAreExact) {
  OnEveryVariant([] {
    for (const Sizes& s : kSizes) {
      for (int mask = 0; mask < 32; ++mask) {
        const bool a_signed = mask & 1, b_signed = mask & 2, packed = mask & 4;
        const Operands operands = MakeOperands(s, a_signed, b_signed);
        Int8GemmArgs args = MakeArgs(s, operands, a_signed, b_signed);
        args.a_zero = operands.a_zero.data();
        args.b_zero = operands.b_zero.data();
        args.a_zero_per_row = mask & 8;
        args.b_zero_per_column = mask & 8;
        if (mask & 16) {  // both operands lie transposed
          args.a.row_stride = 1;
          args.a.column_stride = s.m;
          args.b.row_stride = 1;
          args.b.column_stride = s.k;
        }
        const auto bytes = RunTasks(args, 4, packed);
        const std::vector<int64_t> expected = Reference(args);
        for (size_t i = 0; i < expected.size(); ++i) {
          int32_t got;
          std::memcpy(&got, bytes.data() + 4 * i, 4);
          ASSERT_EQ(got, static_cast<int32_t>(expected[i]))
              << i << " of " << s.m << " x " << s.n << " x " << s.k << ", mask " << mask;
        }
      }
    }
  });
}

// They may come from a file that somebody has changed.
TEST_F(GemmInt8Test, PackedMatricesAreNotTrusted) {
  OnEveryVariant([] {
    Random random(5);
    for (const Sizes& s : {Sizes{13, 50, 200}, Sizes{1, 16, 4}}) {
      const Operands operands = MakeOperands(s, false, true);
      const Int8GemmArgs args = MakeArgs(s, operands, false, true);
      for (int i = 0; i < 5; ++i) RunTasks(args, sizeof(int32_t), true, &random);
    }
  });
}

TEST_F(GemmInt8Test, SumsWrapAround) {
  OnEveryVariant([] {
    const size_t k = 70000;
    const std::vector<uint8_t> ones(k, 255);
    Int8GemmArgs args;
    args.m = args.n = 1;
    args.k = k;
    args.a = {ones.data(), false, k, 1};
    args.b = {ones.data(), false, 1, 1};
    const auto bytes = RunTasks(args, 4, false);
    int32_t got;
    std::memcpy(&got, bytes.data(), 4);
    EXPECT_EQ(got, static_cast<int32_t>(static_cast<uint32_t>(uint64_t{k} * 255 * 255)));
  });
}

// Zero points of lines, with what an epilogue may have beside them.
TEST_F(GemmInt8Test, RequantizesWithZeroPointsOfLines) {
  OnEveryVariant([] {
    for (const Sizes& s : kSizes) {
      Random random(4);
      std::vector<int32_t> bias(std::max(s.m, s.n) + 1);
      for (int32_t& v : bias) v = static_cast<int32_t>(random.Below(2000)) - 1000;
      for (int mask = 0; mask < 16; ++mask) {
        const bool is_signed = mask & 1, per_row = mask & 2, per_column = mask & 4;
        const Operands operands = MakeOperands(s, is_signed, is_signed);
        Int8GemmArgs args = MakeArgs(s, operands, is_signed, is_signed);
        args.a_zero = operands.a_zero.data();
        args.b_zero = operands.b_zero.data();
        args.a_zero_per_row = per_row;
        args.b_zero_per_column = per_column;
        args.epilogue.type = is_signed ? Int8Output::kInt8 : Int8Output::kUint8;
        args.epilogue.zero_point = 7;
        args.epilogue.scale = 1e-3f;
        (mask & 8 ? args.epilogue.bias_rows : args.epilogue.bias_columns) = bias.data();
        const auto bytes = RunTasks(args, 1, false);
        args.epilogue.type = Int8Output::kFloat;
        const auto floats = RunTasks(args, 4, false);
        const std::vector<int64_t> sums = Reference(args);
        const double least = is_signed ? -128 : 0;
        for (size_t i = 0; i < sums.size(); ++i) {
          const float scaled = static_cast<float>(sums[i]) * 1e-3f;
          float got;
          std::memcpy(&got, floats.data() + 4 * i, 4);
          ASSERT_EQ(got, scaled) << i << ", mask " << mask;
          const double expected =
              std::clamp(std::nearbyint(static_cast<double>(scaled)) + 7, least, least + 255);
          ASSERT_EQ(Valued(static_cast<uint8_t>(bytes[i]), is_signed), expected)
              << i << ", mask " << mask;
        }
      }
    }
  });
}

TEST_F(GemmInt8Test, ScalesAndRequantizes) {
  OnEveryVariant([] {
    for (const Sizes& s : kSizes) {
      const Operands operands = MakeOperands(s, false, true);
      Random random(3);
      const std::vector<float> scales = random.Floats(std::max(s.m, s.n) + 1, 1e-4f, 1e-3f);
      std::vector<int32_t> bias(std::max(s.m, s.n) + 1);
      for (int32_t& v : bias) v = static_cast<int32_t>(random.Below(2000)) - 1000;
      for (const bool by_row : {false, true}) {
        for (const Int8Output type : {Int8Output::kFloat, Int8Output::kUint8, Int8Output::kInt8}) {
          Int8GemmArgs args = MakeArgs(s, operands, false, true);
          args.epilogue.type = type;
          args.epilogue.zero_point = 7;
          (by_row ? args.epilogue.bias_rows : args.epilogue.bias_columns) = bias.data();
          (by_row ? args.epilogue.scale_rows : args.epilogue.scale_columns) = scales.data();
          const size_t element = type == Int8Output::kFloat ? 4 : 1;
          const auto bytes = RunTasks(args, element, false);
          const std::vector<int64_t> sums = Reference(args);
          for (size_t i = 0; i < sums.size(); ++i) {
            const float scaled = static_cast<float>(sums[i]) * scales[by_row ? i / s.n : i % s.n];
            if (type == Int8Output::kFloat) {
              float got;
              std::memcpy(&got, bytes.data() + 4 * i, 4);
              ASSERT_EQ(got, scaled);
              continue;
            }
            const bool is_signed = type == Int8Output::kInt8;
            const double expected = std::clamp(std::nearbyint(static_cast<double>(scaled)) + 7,
                                               is_signed ? -128.0 : 0.0, is_signed ? 127.0 : 255.0);
            ASSERT_EQ(Valued(static_cast<uint8_t>(bytes[i]), is_signed), expected) << i;
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace tenon::kernels
