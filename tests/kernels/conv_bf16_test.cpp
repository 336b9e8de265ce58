#include "kernels/conv/conv_bf16.h"

#include <algorithm>

#include "bf16.h"
#include "conv_reference.h"

namespace tenon::kernels {
namespace {

struct Bf16ConvCase {
  std::string name;
  ConvGeneralShape shape;
};

void PrintTo(const Bf16ConvCase& c, std::ostream* os) { *os << c.name; }

ConvDim Axis(size_t in, size_t kernel, size_t stride, size_t pad, size_t dilation = 1,
             size_t pad_end = 0) {
  ConvDim dim;
  dim.in = in;
  dim.kernel = kernel;
  dim.stride = stride;
  dim.dilation = dilation;
  dim.pad_begin = pad;
  dim.out = (in + 2 * pad + pad_end - (kernel - 1) * dilation - 1) / stride + 1;
  return dim;
}

ConvGeneralShape ShapeOver(size_t batch, size_t in, size_t out, ConvDim height, ConvDim width) {
  ConvGeneralShape shape{.batch = batch, .in_channels = in, .out_channels = out};
  shape.dims[1] = height;
  shape.dims[2] = width;
  return shape;
}

const Bf16ConvCase kCases[] = {
    {"Stem", ShapeOver(2, 3, 64, Axis(40, 7, 2, 3), Axis(37, 7, 2, 3))},
    {"Strided", ShapeOver(3, 20, 33, Axis(14, 3, 2, 1), Axis(15, 3, 2, 1))},
    {"PointwiseStrided", ShapeOver(2, 40, 17, Axis(13, 1, 2, 0), Axis(12, 1, 3, 0))},
    {"Pointwise", ShapeOver(2, 70, 50, Axis(9, 1, 1, 0), Axis(31, 1, 1, 0))},
    {"Dilated", ShapeOver(1, 9, 16, Axis(17, 3, 1, 2, 2), Axis(20, 3, 2, 3, 3))},
    {"PadsBeyondTheEnd", ShapeOver(1, 5, 24, Axis(6, 3, 3, 0, 1, 4), Axis(7, 5, 2, 4, 1, 5))},
    {"OneAxis", ShapeOver(4, 24, 40, ConvDim(), Axis(300, 5, 1, 2))},
    {"ManyChannels", ShapeOver(8, 200, 130, Axis(14, 3, 2, 1), Axis(14, 3, 2, 1))},
    {"ManyPixels", ShapeOver(1, 8, 16, Axis(70, 3, 1, 1), Axis(71, 3, 1, 1))},
};

class ConvBf16Test : public testing::TestWithParam<Bf16ConvCase> {
 protected:
  void SetUp() override {
    if (!ConvBf16Worthwhile(shape_)) GTEST_SKIP() << "no fast products of bfloat16 here";
    x_ = RandomFloats(shape_.batch * shape_.in_channels * Size(false), 1);
    w_ = RandomFloats(shape_.out_channels * shape_.in_channels * taps_, 2);
    dy_ = RandomFloats(shape_.batch * shape_.out_channels * Size(true), 3);
    bias_ = RandomFloats(shape_.out_channels, 4);
  }

  size_t Size(bool is_out) const {
    const auto& [depth, height, width] = shape_.dims;
    return is_out ? height.out * width.out : height.in * width.in;
  }

  // Calls body(x's index, w's index, y's index) for every multiplication.
  template <class Body>
  void ForEachProduct(Body body) const {
    const ConvDim &height = shape_.dims[1], &width = shape_.dims[2];
    for (size_t n = 0; n < shape_.batch; ++n) {
      for (size_t o = 0; o < shape_.out_channels; ++o) {
        for (size_t i = 0; i < shape_.in_channels; ++i) {
          for (size_t p = 0; p < Size(true) * taps_; ++p) {
            const size_t pixel = p / taps_, tap = p % taps_;
            const size_t y = pixel / width.out * height.stride +
                             tap / width.kernel * height.dilation - height.pad_begin;
            const size_t x = pixel % width.out * width.stride +
                             tap % width.kernel * width.dilation - width.pad_begin;
            if (y >= height.in || x >= width.in) continue;
            body(((n * shape_.in_channels + i) * height.in + y) * width.in + x,
                 (o * shape_.in_channels + i) * taps_ + tap,
                 (n * shape_.out_channels + o) * Size(true) + pixel);
          }
        }
      }
    }
  }

  // The result, with the tasks in the given order.
  std::vector<float> Run(ConvProduct product, size_t size, bool is_backwards) const {
    GuardedBuffer x(x_), w(w_), dy(dy_), bias(bias_), result(size);
    ConvBf16Args args{product, shape_, x.data(), w.data(), dy.data(), result.data(), {}};
    if (product == ConvProduct::kOutput) args.epilogue.bias = bias.data();
    const ConvSteps steps = ConvBf16Steps(args);
    const auto floats = [](size_t bytes) { return (bytes + 3) / 4; };
    GuardedBuffer shared(floats(steps.shared_bytes), true);
    for (size_t step = 0; step < steps.count; ++step) {
      const size_t count = ConvBf16TaskCount(args, step);
      for (size_t i = 0; i < count; ++i) {
        GuardedBuffer scratch(floats(steps.scratch_bytes), true);
        RunConvBf16Task(args, step, is_backwards ? count - 1 - i : i,
                        reinterpret_cast<std::byte*>(shared.data()),
                        reinterpret_cast<std::byte*>(scratch.data()));
      }
    }
    return result.values();
  }

  void Check(ConvProduct product, const std::vector<double>& expected) const {
    const std::vector<float> actual = Run(product, expected.size(), false);
    // Sums of numbers up to 1, in float32.
    const double terms = static_cast<double>(std::max(
        {shape_.in_channels * taps_, shape_.out_channels * taps_, shape_.batch * Size(true)}));
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(actual[i], expected[i], 2e-7 * terms) << "element " << i;
    }
    EXPECT_EQ(actual, Run(product, expected.size(), true));
  }

  const ConvGeneralShape shape_ = GetParam().shape;
  const size_t taps_ = shape_.dims[1].kernel * shape_.dims[2].kernel;
  std::vector<float> x_, w_, dy_, bias_;
};

double Rounded(float x) { return static_cast<double>(ToBf16(x)); }

TEST_P(ConvBf16Test, OutputsAreThoseOfRoundedNumbers) {
  std::vector<double> y(dy_.size());
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = static_cast<double>(bias_[i / Size(true) % shape_.out_channels]);
  }
  ForEachProduct([&](size_t x, size_t w, size_t at) { y[at] += Rounded(x_[x]) * Rounded(w_[w]); });
  Check(ConvProduct::kOutput, y);
}

TEST_P(ConvBf16Test, InputGradientsAreThoseOfRoundedNumbers) {
  std::vector<double> dx(x_.size());
  ForEachProduct(
      [&](size_t x, size_t w, size_t at) { dx[x] += Rounded(dy_[at]) * Rounded(w_[w]); });
  Check(ConvProduct::kInputGradient, dx);
}

TEST_P(ConvBf16Test, WeightGradientsAreThoseOfRoundedNumbers) {
  std::vector<double> dw(w_.size());
  ForEachProduct(
      [&](size_t x, size_t w, size_t at) { dw[w] += Rounded(dy_[at]) * Rounded(x_[x]); });
  Check(ConvProduct::kWeightGradient, dw);
}

INSTANTIATE_TEST_SUITE_P(Shapes, ConvBf16Test, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(ConvBf16ShapesTest, GroupsAndVolumesAreNotSupported) {
  ConvGeneralShape shape = ShapeOver(1, 64, 64, Axis(16, 3, 1, 1), Axis(16, 3, 1, 1));
  shape.groups = 2;
  EXPECT_FALSE(ConvBf16Worthwhile(shape));
  shape.groups = 1;
  shape.dims[0] = Axis(4, 3, 1, 1);
  EXPECT_FALSE(ConvBf16Worthwhile(shape));
}

}  // namespace
}  // namespace tenon::kernels
