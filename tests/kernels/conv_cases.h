// Shapes and epilogues that the convolution tests run through.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "conv_reference.h"
#include "kernels/bf16.h"
#include "kernels/conv/conv_epilogue.h"
#include "kernels/unary_cases.h"

namespace tenon::kernels {

struct ConvCase {
  std::string name;
  Conv2dShape shape;
  UnaryOp activation = UnaryOp::kIdentity;
  bool residual = false;
};

inline void PrintTo(const ConvCase& c, std::ostream* os) { *os << c.name; }

inline std::string ConvCaseName(const testing::TestParamInfo<ConvCase>& info) {
  return info.param.name;
}

// Random operands of a case, in NCHW and OIHW, with the expected NCHW result. If `rounds`, inputs
// and weights are rounded to bfloat16 for it.
struct ConvData {
  explicit ConvData(const ConvCase& c, bool rounds = false)
      : in(RandomFloats(c.shape.batch * c.shape.in_channels * c.shape.frames.in *
                            c.shape.in_height * c.shape.in_width,
                        1)),
        weights(RandomFloats(c.shape.out_channels * (c.shape.in_channels / c.shape.groups) *
                                 c.shape.frames.kernel * c.shape.kernel_height *
                                 c.shape.kernel_width,
                             2)),
        bias(RandomFloats(c.shape.out_channels, 3)),
        pixels(c.shape.frames.out * c.shape.out_height * c.shape.out_width),
        residual(RandomFloats(c.residual ? c.shape.batch * c.shape.out_channels * pixels : 0, 4)),
        expected(ReferenceConv(c.shape, Rounded(in, rounds), Rounded(weights, rounds))) {
    // Float sums of n products in [-1, 1] err by about sqrt(n) roundings of the largest sum.
    const double depth = static_cast<double>(c.shape.in_channels / c.shape.groups *
                                             c.shape.kernel_height * c.shape.kernel_width);
    tolerance = 1e-6 * (1 + depth / 8);
    for (size_t i = 0; i < expected.size(); ++i) {
      expected[i] += bias[i / pixels % c.shape.out_channels];
      if (c.residual) expected[i] += residual[i];
      expected[i] = Activate(c.activation, expected[i]);
    }
  }

  static std::vector<float> Rounded(std::vector<float> values, bool rounds) {
    if (rounds) std::transform(values.begin(), values.end(), values.begin(), ToBf16);
    return values;
  }

  // kClip clamps to [kClipLow, kClipHigh], which excludes 0 to show that idle lanes stay zero.
  static constexpr float kClipLow = 0.25f;
  static constexpr float kClipHigh = 1.5f;
  static double Activate(UnaryOp activation, double x) {
    return static_cast<double>(CaseOf(activation).reference(x, kClipLow, kClipHigh));
  }

  ConvEpilogue Epilogue(const ConvCase& c, const float* residual_data) const {
    return {bias.data(), c.residual ? residual_data : nullptr, {c.activation, kClipLow, kClipHigh}};
  }

  std::vector<float> in;
  std::vector<float> weights;
  std::vector<float> bias;
  size_t pixels;
  std::vector<float> residual;
  std::vector<double> expected;
  double tolerance;
};

}  // namespace tenon::kernels
