#include <algorithm>
#include <cmath>

#include "kernels/dispatch.h"
#include "ops/op_cases.h"
#include "ops/reference.h"

namespace tenon {
namespace {

template <class T>
Tensor Bytes(const Shape& shape, uint32_t seed) {
  Tensor x = Tensor::Allocate(DataTypeOf<T>(), shape).value();
  uint32_t state = seed * 2654435761u + 1;
  for (int64_t i = 0; i < x.size(); ++i) {
    state = state * 1664525u + 1013904223u;
    x.data<T>()[i] = static_cast<T>(state >> 24);
  }
  return x;
}

// Two spatial axes; fewer are given as axes of size 1.
struct ConvCase {
  Shape x, w;
  int64_t group, stride, dilation, pad;
};

const ConvCase kCases[] = {
    {{1, 1, 3, 3}, {1, 1, 2, 2}, 1, 1, 1, 0},
    {{2, 3, 9, 11}, {5, 3, 3, 3}, 1, 1, 1, 1},
    {{1, 4, 8, 8}, {6, 2, 3, 3}, 2, 2, 1, 1},
    {{1, 8, 7, 7}, {8, 1, 3, 3}, 8, 1, 1, 1},
    {{1, 16, 7, 7}, {40, 16, 1, 1}, 1, 1, 1, 0},
    {{1, 3, 12, 12}, {4, 3, 3, 3}, 1, 1, 2, 2},
    {{1, 2, 5, 40}, {3, 2, 1, 5}, 1, 3, 1, 4},
    {{0, 2, 5, 5}, {3, 2, 3, 3}, 1, 1, 1, 0},
    {{1, 3, 20, 40}, {5, 3, 3, 3}, 1, 2, 1, 1},
    {{2, 2, 33, 3}, {3, 2, 3, 3}, 1, 1, 1, 2},
    {{2, 4, 9, 40}, {8, 1, 3, 5}, 4, 2, 1, 2},
    {{1, 3, 20, 70}, {3, 1, 3, 3}, 3, 3, 2, 3},
    {{1, 2, 1, 17}, {2, 1, 1, 4}, 2, 1, 1, 0},
    {{1, 2, 20, 20}, {2, 1, 17, 17}, 2, 1, 1, 8},
    {{1, 3, 7, 7}, {6, 1, 5, 5}, 3, 1, 1, 2},
    {{1, 2, 9, 90}, {2, 1, 3, 3}, 2, 4, 1, 1},
    {{2, 2, 4, 61}, {2, 1, 3, 3}, 2, 1, 3, 3},
    {{1, 2, 9, 9}, {2, 1, 1, 1}, 2, 1, 1, 0},
    {{1, 2, 3, 50}, {2, 1, 2, 9}, 2, 5, 1, 4},
    {{1, 5, 3, 3}, {20, 5, 3, 3}, 1, 2, 1, 1},
    // The columns are all of the padding.
    {{1, 2, 60, 1}, {2, 1, 3, 1}, 2, 3, 1, 1},
    {{1, 2, 60, 1}, {3, 2, 3, 1}, 1, 3, 1, 1},
    // Depthwise, of rows that fit a vector together.
    {{1, 9, 14, 14}, {9, 1, 3, 3}, 9, 1, 1, 1},
    {{2, 3, 14, 14}, {6, 1, 3, 3}, 3, 2, 1, 1},
    {{1, 3, 7, 7}, {3, 1, 3, 3}, 3, 2, 1, 1},
    {{1, 3, 8, 8}, {3, 1, 3, 3}, 3, 1, 1, 0},
    {{1, 2, 5, 21}, {2, 1, 3, 3}, 2, 1, 1, 0},
    {{1, 2, 5, 22}, {2, 1, 3, 3}, 2, 1, 1, 1},
    {{1, 2, 40, 3}, {2, 1, 3, 2}, 2, 3, 1, 1},
    {{1, 2, 6, 1}, {2, 1, 1, 1}, 2, 1, 1, 2},
    {{1, 2, 4, 4}, {2, 1, 3, 3}, 2, 1, 6, 6},
    {{1, 2, 9, 6}, {2, 1, 2, 3}, 2, 1, 2, 3},
    {{1, 2, 1, 60}, {2, 1, 1, 5}, 2, 1, 1, 2},
    {{1, 2, 2, 5}, {2, 1, 2, 2}, 2, 1, 1, 20},
    // Depthwise, of more rows than are computed together.
    {{1, 2, 80, 3}, {2, 1, 70, 1}, 2, 1, 1, 0},
};

enum class WeightZero { kAny, kMiddle };

template <class X, class W>
double SumAt(const ConvCase& c, const Tensor& x, const Tensor& w, double x_zero,
             const Tensor& w_zero, const Shape& y, int64_t i) {
  const auto at = CoordinatesOf(i, y);
  const int64_t in_group = c.w[1], first = at[1] / (c.w[0] / c.group) * in_group;
  const double zero = w_zero.data<W>()[w_zero.size() > 1 ? at[1] : 0];
  double sum = 0;
  for (int64_t k = 0; k < in_group; ++k) {
    for (int64_t r = 0; r < c.w[2]; ++r) {
      for (int64_t s = 0; s < c.w[3]; ++s) {
        const int64_t row = at[2] * c.stride + r * c.dilation - c.pad;
        const int64_t column = at[3] * c.stride + s * c.dilation - c.pad;
        if (row < 0 || row >= c.x[2] || column < 0 || column >= c.x[3]) continue;
        sum += (x.data<X>()[PositionOf({at[0], first + k, row, column}, c.x)] - x_zero) *
               (w.data<W>()[PositionOf({at[1], k, r, s}, c.w)] - zero);
      }
    }
  }
  return sum;
}

template <class X, class W>
void CheckConv(bool constant, bool per_channel, WeightZero weight_zero) {
  for (const ConvCase& c : kCases) {
    SCOPED_TRACE(c.x.ToString() + c.w.ToString());
    const auto attributes = [&] {
      const std::vector<int64_t> twice[] = {{c.stride, c.stride}, {c.dilation, c.dilation}};
      return MakeAttributes(Attr("group", c.group), Attr("strides", twice[0]),
                            Attr("dilations", twice[1]),
                            Attr("pads", std::vector<int64_t>(4, c.pad)));
    };
    const int64_t channels = c.w[0];
    const Shape values = per_channel ? Shape({channels}) : Shape();
    const Tensor x = Bytes<X>(c.x, 1), w = Bytes<W>(c.w, 2);
    const Tensor x_zero = Tensor::Of<X>({}, {static_cast<X>(77)});
    Tensor w_zero = Bytes<W>(values, 3);
    if (weight_zero == WeightZero::kMiddle) {
      // The middle of the type, as quantizers choose it: what is left of the weights fits into it.
      std::fill_n(w_zero.data<W>(), w_zero.size(), std::is_signed_v<W> ? W(0) : W(128));
    }
    OpCall call{"ConvInteger", 10, {x, w, x_zero, w_zero}, attributes()};
    call.first_constant = constant ? 1 : SIZE_MAX;
    const Tensor y = RunTensorOp(std::move(call));
    const auto sum = [&](int64_t i) { return SumAt<X, W>(c, x, w, 77, w_zero, y.shape(), i); };
    ExpectElements<int32_t>(y, y.shape(), 0, sum);
    const int64_t out = (c.x[2] + 2 * c.pad - (c.w[2] - 1) * c.dilation - 1) / c.stride + 1;
    EXPECT_EQ(y.shape()[2], out);

    Tensor w_scale = Scattered(values, 5);
    for (float& v : std::span(w_scale.data<float>(), static_cast<size_t>(w_scale.size()))) {
      v = std::abs(v) / 100 + 0.001f;
    }
    const Tensor bias = Iota<int32_t>({channels});
    OpCall linear{"QLinearConv",
                  10,
                  {x, Tensor::Of<float>({}, {0.05f}), x_zero, w, w_scale, w_zero,
                   Tensor::Of<float>({}, {0.6f}), Tensor::Of<X>({}, {static_cast<X>(3)}), bias},
                  attributes()};
    linear.first_constant = constant ? 3 : SIZE_MAX;
    ExpectElements<X>(RunTensorOp(std::move(linear)), y.shape(), 0, [&](int64_t i) {
      const int64_t channel = CoordinatesOf(i, y.shape())[1];
      const float scale = 0.05f * w_scale.data<float>()[per_channel ? channel : 0] / 0.6f;
      const float scaled = static_cast<float>(sum(i) + static_cast<double>(channel)) * scale;
      return std::clamp<double>(std::nearbyint(scaled) + 3, std::numeric_limits<X>::min(),
                                std::numeric_limits<X>::max());
    });
  }
}

TEST(QuantizedConvTest, FollowsTheFormulaOnEveryTarget) {
  for (const kernels::Target target : kernels::SupportedTargets()) {
    kernels::SetActiveTarget(target);
    SCOPED_TRACE(kernels::TargetName(target));
    for (const bool constant : {false, true}) {
      for (const bool per_channel : {false, true}) {
        for (const WeightZero zero : {WeightZero::kAny, WeightZero::kMiddle}) {
          CheckConv<uint8_t, uint8_t>(constant, per_channel, zero);
          CheckConv<uint8_t, int8_t>(constant, per_channel, zero);
          CheckConv<int8_t, int8_t>(constant, per_channel, zero);
        }
      }
    }
  }
}

TEST(QuantizedConvTest, RefusesWhatDoesNotFit) {
  const Tensor x = Bytes<uint8_t>({1, 2, 4, 4}, 1), w = Bytes<uint8_t>({3, 2, 2, 2}, 2);
  const Tensor zero = Tensor::Of<uint8_t>({}, {0});
  EXPECT_EQ(ErrorOf({"ConvInteger", 10, {x, w, zero, zero}}), "no error");
  EXPECT_NE(ErrorOf({"ConvInteger", 10, {x, w, zero, Bytes<uint8_t>({2}, 1)}}), "no error");
  EXPECT_NE(ErrorOf({"ConvInteger", 10, {x, w, Bytes<uint8_t>({2}, 1), zero}}), "no error");
  EXPECT_NE(ErrorOf({"ConvInteger", 10, {x, Bytes<uint8_t>({3, 1, 2, 2}, 2)}}), "no error");
}

}  // namespace
}  // namespace tenon
