#include <cmath>
#include <complex>
#include <limits>
#include <utility>

#include "ops/op_cases.h"
#include "ops/reference.h"

namespace tenon {
namespace {

using Complexes = std::vector<std::complex<double>>;

Complexes Transform(const Complexes& x, bool inverse) {
  const size_t n = x.size();
  Complexes y(n);
  for (size_t k = 0; k < n; ++k) {
    for (size_t j = 0; j < n; ++j) {
      const double angle = 2 * M_PI * static_cast<double>(j * k % n) / static_cast<double>(n);
      y[k] += x[j] * std::polar(1.0, inverse ? angle : -angle);
    }
    if (inverse) y[k] /= static_cast<double>(n);
  }
  return y;
}

template <class T>
void CheckLength(int64_t n, int64_t given, int64_t parts, bool inverse, bool onesided,
                 int64_t outer = 2, int64_t inner = 3) {
  SCOPED_TRACE(Format("length {} as {}, {} parts, inverse {}, onesided {}, {} by {} signals", n,
                      given, parts, inverse, onesided, outer, inner));
  const Tensor x = Scattered<T>({outer, n, inner, parts});
  const bool to_real = inverse && onesided;
  const Tensor y = RunTensorOp(
      {"DFT",
       20,
       {x, Ints({given}), Ints({1})},
       MakeAttributes(Attr("inverse", int64_t{inverse}), Attr("onesided", int64_t{onesided}))});
  const int64_t bins = onesided && !inverse ? given / 2 + 1 : given;
  ASSERT_EQ(y.shape(), Shape({outer, bins, inner, to_real ? 1 : 2}));
  for (int64_t line = 0; line < outer * inner; ++line) {
    Complexes signal(static_cast<size_t>(given));
    const auto at = [&](int64_t j) {
      if (j >= n) return std::complex<double>();
      const int64_t i = ((line / inner * n + j) * inner + line % inner) * parts;
      return std::complex<double>(static_cast<double>(x.data<T>()[i]),
                                  parts == 2 ? static_cast<double>(x.data<T>()[i + 1]) : 0);
    };
    for (int64_t j = 0; j < given; ++j) {
      auto& value = signal[static_cast<size_t>(j)];
      value = to_real && 2 * j > given ? std::conj(at(given - j)) : at(j);
      if (to_real && (j == 0 || 2 * j == given)) value = value.real();
    }
    const Complexes expected = Transform(signal, inverse);
    for (int64_t k = 0; k < bins; ++k) {
      const int64_t i = ((line / inner * bins + k) * inner + line % inner) * (to_real ? 1 : 2);
      const double tolerance = (sizeof(T) == 8 ? 1e-12 : 2e-6) * static_cast<double>(given + 8);
      ASSERT_NEAR(y.data<T>()[i], expected[static_cast<size_t>(k)].real(), tolerance);
      if (!to_real) {
        ASSERT_NEAR(y.data<T>()[i + 1], expected[static_cast<size_t>(k)].imag(), tolerance);
      }
    }
  }
}

TEST(DftTest, TransformsAnyLength) {
  for (const int64_t n : {1,  2,  3,  4,  5,  6,   7,   8,   12,  13,  16,  17,
                          30, 34, 60, 64, 97, 100, 128, 143, 169, 210, 251, 509}) {
    CheckLength<float>(n, n, 2, false, false);
    CheckLength<double>(n, n, 2, true, false);
    CheckLength<double>(n, n, 1, false, false);
    CheckLength<float>(n, n, 1, false, true);
  }
}

// As many at once as a vector has lanes, and some are left.
TEST(DftTest, TransformsAnyNumberOfSignals) {
  for (const int64_t n : {9, 20, 22, 97}) {
    for (const auto& [outer, inner] : {std::pair{1, 1}, {1, 2}, {7, 1}, {33, 1}, {1, 40}, {5, 9}}) {
      CheckLength<float>(n, n, 2, false, false, outer, inner);
      CheckLength<double>(n, n, 1, false, true, outer, inner);
      CheckLength<float>(n, n, 1, true, false, outer, inner);
    }
  }
}

TEST(DftTest, SignalsDoNotMeet) {
  Tensor x = Scattered({20, 12, 1});
  const Tensor before = RunTensorOp({"DFT", 20, {x}});
  x.data<float>()[3 * 12 + 5] = std::numeric_limits<float>::quiet_NaN();
  x.data<float>()[4 * 12] = std::numeric_limits<float>::infinity();
  const Tensor y = RunTensorOp({"DFT", 20, {x}});
  for (int64_t signal = 0; signal < 20; ++signal) {
    for (int64_t i = signal * 24; i < signal * 24 + 24; ++i) {
      if (signal == 3 || signal == 4) {
        EXPECT_FALSE(std::isfinite(y.data<float>()[i]) && i % 2 == 0) << i;
      } else {
        EXPECT_EQ(y.data<float>()[i], before.data<float>()[i]) << i;
      }
    }
  }
}

TEST(DftTest, PadsCutsAndKeepsHalves) {
  for (const int64_t n : {5, 8, 11}) {
    for (const int64_t given : {4, 5, 8, 13}) {
      CheckLength<double>(n, given, 1, false, false);
      CheckLength<double>(n, given, 1, false, true);
      CheckLength<double>(n, given, 2, true, true);
      CheckLength<float>(n, given, 2, false, false);
    }
  }
}

TEST(DftTest, TheAxisAndLengthHaveDefaults) {
  const Tensor x = Scattered({2, 3, 4, 1});
  EXPECT_EQ(RunTensorOp({"DFT", 17, {x}}).shape(), Shape({2, 3, 4, 2}));
  EXPECT_EQ(RunTensorOp({"DFT", 20, {x}, MakeAttributes(Attr("onesided", int64_t{1}))}).shape(),
            Shape({2, 3, 3, 2}));
  EXPECT_EQ(
      RunTensorOp(
          {"DFT", 17, {x}, MakeAttributes(Attr("axis", int64_t{-2}), Attr("onesided", int64_t{1}))})
          .shape(),
      Shape({2, 3, 3, 2}));
}

TEST(DftTest, RefusesHostileValues) {
  const Tensor x = Scattered({2, 4, 1});
  for (const int64_t value : {int64_t{0}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
    EXPECT_NE(ErrorOf({"DFT", 20, {x, Ints({value})}}), "no error") << value;
  }
  for (const int64_t axis : {int64_t{2}, int64_t{-1}, int64_t{3}, INT64_MIN, INT64_MAX}) {
    EXPECT_NE(ErrorOf({"DFT", 20, {x, Value(), Ints({axis})}}), "no error") << axis;
    EXPECT_NE(ErrorOf({"DFT", 17, {x}, MakeAttributes(Attr("axis", axis))}), "no error") << axis;
  }
  EXPECT_NE(ErrorOf({"DFT", 20, {Scattered({2, 4, 3})}}), "no error");
  EXPECT_NE(
      ErrorOf({"DFT", 20, {Scattered({2, 4, 2})}, MakeAttributes(Attr("onesided", int64_t{1}))}),
      "no error");
}

TEST(StftTest, TransformsWindowedFrames) {
  for (const bool onesided : {false, true}) {
    for (const int64_t length : {6, 7}) {
      const Tensor signal = Scattered({2, 30, 1}), window = Scattered({length}, 9);
      const Tensor y = RunTensorOp({"STFT",
                                    17,
                                    {signal, Tensor::Of<int64_t>({}, {4}), window},
                                    MakeAttributes(Attr("onesided", int64_t{onesided}))});
      const int64_t frames = (30 - length) / 4 + 1, bins = onesided ? length / 2 + 1 : length;
      ASSERT_EQ(y.shape(), Shape({2, frames, bins, 2}));
      for (int64_t frame = 0; frame < 2 * frames; ++frame) {
        Complexes line;
        for (int64_t j = 0; j < length; ++j) {
          line.emplace_back(static_cast<double>(
              signal.data<float>()[frame / frames * 30 + frame % frames * 4 + j] *
              window.data<float>()[j]));
        }
        const Complexes expected = Transform(line, false);
        for (int64_t k = 0; k < bins; ++k) {
          const float* got = y.data<float>() + (frame * bins + k) * 2;
          ASSERT_NEAR(got[0], expected[static_cast<size_t>(k)].real(), 1e-5);
          ASSERT_NEAR(got[1], expected[static_cast<size_t>(k)].imag(), 1e-5);
        }
      }
    }
  }
}

TEST(StftTest, RefusesHostileValues) {
  const Tensor signal = Scattered({1, 8, 1});
  const auto scalar = [](int64_t value) { return Tensor::Of<int64_t>({}, {value}); };
  for (const int64_t value : {int64_t{0}, int64_t{-1}, INT64_MIN}) {
    EXPECT_NE(ErrorOf({"STFT", 17, {signal, scalar(value)}}), "no error");
  }
  for (const int64_t value : {int64_t{0}, int64_t{-1}, int64_t{9}, INT64_MIN, INT64_MAX}) {
    EXPECT_NE(ErrorOf({"STFT", 17, {signal, scalar(2), Value(), scalar(value)}}), "no error");
  }
  EXPECT_EQ(ErrorOf({"STFT", 17, {signal, scalar(INT64_MAX)}}), "no error");
}

}  // namespace
}  // namespace tenon
