#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/op_cases.h"
#include "ops/reference.h"

namespace tenon {
namespace {

Tensor Floats(std::initializer_list<float> values) {
  return Tensor::Of<float>({static_cast<int64_t>(values.size())}, values);
}

// The attributes of a case, and a reference that follows the standard element by element.
struct Case {
  std::string mode = "linear", coordinates = "half_pixel", nearest = "round_prefer_floor";
  float cubic = -0.75f;
  bool exclude_outside = false, antialias = false;
  double start = 0, end = 1;  // of every axis

  std::vector<Attribute> Attributes() const {
    return MakeAttributes(Attr("mode", mode), Attr("coordinate_transformation_mode", coordinates),
                          Attr("nearest_mode", nearest), Attr("cubic_coeff_a", cubic),
                          Attr("exclude_outside", int64_t{exclude_outside}),
                          Attr("antialias", int64_t{antialias}), Attr("extrapolation_value", 7.0f));
  }

  double Position(double o, double in, double out, double scale) const {
    const double length = scale * in;
    if (coordinates == "half_pixel") return (o + 0.5) / scale - 0.5;
    if (coordinates == "half_pixel_symmetric") {
      // in / 2 * (1 - out / length), which is exact where the scale is.
      return (length - out) / 2 / scale + (o + 0.5) / scale - 0.5;
    }
    if (coordinates == "pytorch_half_pixel") return out > 1 ? (o + 0.5) / scale - 0.5 : 0;
    if (coordinates == "align_corners") return out > 1 ? o * (in - 1) / (length - 1) : 0;
    if (coordinates == "asymmetric") return o / scale;
    if (coordinates == "tf_half_pixel_for_nn") return scale == 1 ? o : (o + 0.5) / scale;
    return out > 1 ? start * (in - 1) + o * (end - start) * (in - 1) / (length - 1)
                   : 0.5 * (start + end) * (in - 1);
  }

  double Kernel(double x) const {
    x = std::abs(x);
    if (mode == "linear") return std::max(0.0, 1 - x);
    const double a = static_cast<double>(cubic);
    if (x < 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
    return x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a : 0;
  }

  // The weight of each element of the input; empty where it is extrapolated.
  std::vector<double> Weights(int64_t o, int64_t in, int64_t out, double scale) const {
    std::vector<double> weights(static_cast<size_t>(in), 0);
    if (in == out && scale == 1 && start == 0 && end == 1) {
      weights[static_cast<size_t>(o)] = 1;
      return weights;
    }
    const double x =
        Position(static_cast<double>(o), static_cast<double>(in), static_cast<double>(out), scale);
    const auto last = static_cast<double>(in - 1);
    if (coordinates == "tf_crop_and_resize" && (x < 0 || x > last)) return {};
    const auto at = [&](double i) -> double& {
      return weights[static_cast<size_t>(std::clamp(i, 0.0, last))];
    };
    if (mode == "nearest") {
      double i = nearest == "floor" ? std::floor(x) : std::ceil(x);
      if (nearest == "round_prefer_floor") i = std::ceil(x - 0.5);
      if (nearest == "round_prefer_ceil") i = std::floor(x + 0.5);
      at(i) = 1;
      return weights;
    }
    const double stretch = antialias ? std::min(scale, 1.0) : 1;
    double sum = 0;
    for (double i = std::floor(x) - 20; i < x + 20; ++i) {
      const bool outside = i < 0 || i > last;
      if (exclude_outside && outside) continue;
      at(i) += Kernel((i - x) * stretch);
      sum += Kernel((i - x) * stretch);
    }
    for (double& weight : weights) weight /= sum;
    return weights;
  }
};

// The resized element at `at`, which has as many coordinates as x has axes.
double Element(const Case& c, const Tensor& x, const std::vector<int64_t>& at, const Shape& out,
               const std::vector<double>& scales, size_t axis = 0, int64_t offset = 0) {
  if (axis == x.rank()) return static_cast<double>(x.data<float>()[offset]);
  const int64_t in = x.shape()[axis];
  const std::vector<double> weights = c.Weights(at[axis], in, out[axis], scales[axis]);
  if (weights.empty()) return 7;
  double sum = 0;
  for (int64_t i = 0; i < in; ++i) {
    const double weight = weights[static_cast<size_t>(i)];
    if (weight == 0) continue;
    sum += weight * Element(c, x, at, out, scales, axis + 1, offset * in + i);
  }
  return sum;
}

void ExpectResized(const Case& c, const Shape& in, const std::vector<float>& scales) {
  const Tensor x = Scattered(in);
  Value roi;
  if (c.coordinates == "tf_crop_and_resize") {
    std::vector<float> numbers(2 * in.rank(), static_cast<float>(c.start));
    std::fill(numbers.begin() + static_cast<ptrdiff_t>(in.rank()), numbers.end(),
              static_cast<float>(c.end));
    roi = Tensor::Of<float>({static_cast<int64_t>(numbers.size())}, numbers);
  }
  const Tensor scale_tensor = Tensor::Of<float>({static_cast<int64_t>(scales.size())}, scales);
  const int32_t opset = c.coordinates == "tf_half_pixel_for_nn" ? 11 : 19;
  if (opset == 11) roi = Floats({});
  OpCall call = {"Resize", opset, {x, roi, scale_tensor}, c.Attributes()};
  if (opset == 11) {
    std::erase_if(call.attributes, [](const Attribute& a) { return a.name == "antialias"; });
  }
  const Tensor y = RunTensorOp(std::move(call));
  Shape out = in;
  for (size_t i = 0; i < in.rank(); ++i) {
    out[i] = static_cast<int64_t>(std::floor(static_cast<float>(in[i]) * scales[i]));
  }
  // A scale stands for the ratio of the sizes if it is the float next to that.
  std::vector<double> exact(scales.begin(), scales.end());
  for (size_t i = 0; i < in.rank(); ++i) {
    const double ratio = static_cast<double>(out[i]) / static_cast<double>(in[i]);
    if (static_cast<float>(ratio) == scales[i]) exact[i] = ratio;
  }
  SCOPED_TRACE(c.mode + " " + c.coordinates + " " + c.nearest);
  ExpectElements(y, out, 2e-5,
                 [&](int64_t i) { return Element(c, x, CoordinatesOf(i, out), out, exact); });
}

const char* const kCoordinates[] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                    "align_corners", "asymmetric"};

TEST(ResizeTest, FollowsTheStandardInEveryMode) {
  for (const char* coordinates : kCoordinates) {
    for (const auto& scales : {std::vector<float>{1, 1, 2, 2},
                               {1, 1, 0.6f, 1.7f},
                               {1, 1, 1.3f, 0.4f},
                               {1, 2, 0.5f, 1},
                               {1, 1, 0.15f, 3}}) {
      for (const char* nearest : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}) {
        ExpectResized({.mode = "nearest", .coordinates = coordinates, .nearest = nearest},
                      {1, 2, 7, 20}, scales);
      }
      for (const bool exclude : {false, true}) {
        for (const char* mode : {"linear", "cubic"}) {
          ExpectResized({.mode = mode, .coordinates = coordinates, .exclude_outside = exclude},
                        {1, 2, 7, 20}, scales);
        }
      }
    }
  }
}

TEST(ResizeTest, WidensTheFilterAgainstAliases) {
  for (const char* mode : {"linear", "cubic"}) {
    for (const bool exclude : {false, true}) {
      const Case c = {.mode = mode, .exclude_outside = exclude, .antialias = true};
      ExpectResized(c, {2, 1, 16, 40}, {1, 1, 0.3f, 0.11f});
      ExpectResized(c, {1, 1, 9, 9}, {1, 1, 2.5f, 0.5f});
    }
  }
}

TEST(ResizeTest, ResizesAnyAxes) {
  ExpectResized({}, {20}, {1.6f});
  ExpectResized({}, {3, 4, 5, 6}, {2, 0.5f, 1.4f, 2});
  ExpectResized({.mode = "cubic"}, {1, 5, 6, 3}, {1, 1.5f, 0.5f, 1});  // channels last
  ExpectResized({.mode = "nearest"}, {2, 5, 6, 3}, {1, 1.5f, 2, 1});
  ExpectResized({.mode = "nearest", .coordinates = "asymmetric"}, {1, 1, 3, 33}, {1, 1, 4, 4});
  ExpectResized({}, {1, 1, 40, 70}, {1, 1, 2, 2});
  ExpectResized({}, {2, 3, 1, 1}, {1, 1, 8, 8});
  ExpectResized({}, {2, 3, 5, 1}, {1, 1, 1.5f, 3});
  ExpectResized({.mode = "cubic"}, {2, 3, 1, 5}, {1, 1, 2, 2});
}

TEST(ResizeTest, CropsAndExtrapolates) {
  for (const char* mode : {"linear", "nearest", "cubic"}) {
    for (const auto& [start, end] : {std::pair(0.1, 0.8), {-0.3, 1.2}, {0.9, 0.2}}) {
      ExpectResized({.mode = mode, .coordinates = "tf_crop_and_resize", .start = start, .end = end},
                    {2, 7, 9}, {1.5f, 1.2f, 0.7f});
    }
  }
  ExpectResized({.mode = "nearest", .coordinates = "tf_half_pixel_for_nn"}, {1, 6, 5},
                {1, 2, 0.5f});
  ExpectResized({.mode = "nearest", .coordinates = "tf_half_pixel_for_nn", .nearest = "ceil"},
                {3, 6, 5}, {1, 2, 0.5f});
}

TEST(ResizeTest, TakesSizesAndAxes) {
  const Tensor x = Iota<float>({1, 2, 4, 6});
  const auto shape_of = [&](Tensor sizes, std::string policy) {
    return RunTensorOp({"Resize",
                        18,
                        {x, Value(), Value(), std::move(sizes)},
                        MakeAttributes(Attr("axes", std::vector<int64_t>{3, -2}),
                                       Attr("keep_aspect_ratio_policy", std::move(policy)))})
        .shape();
  };
  EXPECT_EQ(shape_of(Ints({9, 8}), "stretch"), Shape({1, 2, 8, 9}));
  EXPECT_EQ(shape_of(Ints({9, 8}), "not_larger"), Shape({1, 2, 6, 9}));
  EXPECT_EQ(shape_of(Ints({9, 8}), "not_smaller"), Shape({1, 2, 8, 12}));
  EXPECT_EQ(shape_of(Ints({0, 8}), "stretch"), Shape({1, 2, 8, 0}));
}

TEST(ResizeTest, PicksElementsOfAnyType) {
  ForEachElementSize([]<class T>(T) {
    const Tensor x = Iota<T>({2, 3, 4});
    const Tensor y = RunTensorOp({"Resize",
                                  13,
                                  {x, Value(), Floats({1, 2, 3})},
                                  MakeAttributes(Attr("mode", std::string("nearest")))});
    ASSERT_EQ(y.shape(), Shape({2, 6, 12}));
    ExpectElements<T>(y, x, [](const std::vector<int64_t>& at) {
      return std::vector<int64_t>{at[0], at[1] / 2, at[2] / 3};
    });
  });
}

TEST(ResizeTest, InterpolatesOtherTypes) {
  const auto linear = [](Tensor x) {
    return RunTensorOp(
        {"Resize",
         13,
         {std::move(x), Value(), Floats({2})},
         MakeAttributes(Attr("mode", std::string("linear")),
                        Attr("coordinate_transformation_mode", std::string("align_corners")))});
  };
  // From 0 to 10 in steps of 10 / 3, rounded.
  EXPECT_EQ(ElementsOf<int32_t>(linear(Tensor::Of<int32_t>({2}, {0, 10}))),
            (std::vector<int32_t>{0, 3, 7, 10}));
  EXPECT_EQ(ElementsOf<uint8_t>(linear(Tensor::Of<uint8_t>({2}, {255, 0}))),
            (std::vector<uint8_t>{255, 170, 85, 0}));
  EXPECT_NEAR(linear(Tensor::Of<double>({2}, {0, 1})).data<double>()[1], 1.0 / 3, 1e-15);
  EXPECT_EQ(ElementsOf<int64_t>(linear(Tensor::Of<int64_t>({2}, {INT64_MAX, INT64_MAX}))),
            (std::vector<int64_t>(4, INT64_MAX)));
  // A complex number stays together.
  const float parts[] = {0, 30, 3, 0};
  Tensor complex = Tensor::Allocate(DataType::kComplex64, {2}).value();
  std::copy_n(parts, 4, static_cast<float*>(complex.raw()));
  const Tensor y = linear(complex);
  EXPECT_NEAR(static_cast<const float*>(y.raw())[2], 1, 1e-6);
  EXPECT_NEAR(static_cast<const float*>(y.raw())[3], 20, 1e-5);
}

TEST(ResizeTest, KnowsItsOlderForms) {
  const Tensor x = Tensor::Of<float>({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto old = [&](const char* name, int32_t opset, std::vector<Value> inputs,
                       std::vector<Attribute> attributes) {
    return ElementsOf<float>(RunTensorOp({name, opset, std::move(inputs), std::move(attributes)}));
  };
  // As the backend tests of opset 10 have it.
  const Tensor shrink = Floats({1, 1, 0.6f, 0.6f});
  EXPECT_EQ(old("Resize", 10, {x, shrink}, {}), (std::vector<float>{1, 3}));
  const std::vector<float> linear =
      old("Resize", 10, {x, shrink}, MakeAttributes(Attr("mode", std::string("linear"))));
  ASSERT_EQ(linear.size(), 2u);
  EXPECT_NEAR(linear[1], 2.6666665f, 1e-6);
  const std::vector<float> doubled = {1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8};
  EXPECT_EQ(old("Upsample", 9, {x, Floats({1, 1, 1, 2})}, {}), doubled);
  EXPECT_EQ(old("Upsample", 7, {x}, MakeAttributes(Attr("scales", std::vector<float>{1, 1, 1, 2}))),
            doubled);
  EXPECT_EQ(old("Upsample", 1, {x},
                MakeAttributes(Attr("height_scale", 1.0f), Attr("width_scale", 2.0f))),
            doubled);
}

// Four elements become 2.4 and 2.6 long by the scale: positions follow it, not the size.
TEST(ResizeTest, TakesAScaleBesideTheSize) {
  const auto call = [](Tensor scale, int64_t size) {
    OpCall made = {
        "ScaledResize", 1, {Floats({0, 10, 20, 30}), Value(), std::move(scale), Ints({size})}};
    made.attributes = MakeAttributes(Attr("mode", std::string("linear")));
    made.domain = "com.tenon";
    return made;
  };
  const auto numbers = [&](double scale, int64_t size) {
    return ElementsOf<float>(RunTensorOp(call(Tensor::Of<double>({1}, {scale}), size)));
  };
  // 10 * ((x + 0.5) / scale - 0.5)
  const std::vector<float> down = numbers(0.6, 2), up = numbers(0.65, 3);
  ASSERT_EQ(down.size(), 2u);
  EXPECT_NEAR(down[0], 10 / 3.0, 1e-5);
  EXPECT_NEAR(down[1], 20, 1e-5);
  ASSERT_EQ(up.size(), 3u);
  EXPECT_NEAR(up[0], 5 / 0.65 - 5, 1e-5);
  EXPECT_NEAR(up[2], 30, 1e-5);
  const std::string error = ErrorOf(call(Tensor::Of<double>({1}, {0.6}), 3));
  EXPECT_EQ(error, "axis 0 of 4: expected 2 elements by the scale 0.6, got 3");
  EXPECT_NE(ErrorOf(call(Tensor::Of<double>({1}, {NAN}), 3)), "no error");
  EXPECT_NE(ErrorOf(call(Tensor::Of<double>({2}, {1, 1}), 4)), "no error");
}

TEST(ResizeTest, RefusesWhatHasNoMeaning) {
  const auto error = [](std::vector<Value> inputs, std::vector<Attribute> attributes = {}) {
    return ErrorOf({"Resize", 19, std::move(inputs), std::move(attributes)});
  };
  const Tensor x = Iota<float>({2, 3});
  EXPECT_EQ(error({x, Value(), Floats({1})}), "expected 2 scales, got 1");
  EXPECT_EQ(error({x, Value(), Floats({1, -1})}), "expected scales above 0, got -1");
  EXPECT_EQ(error({x}), "expected scales or sizes, got none");
  EXPECT_EQ(error({x, Value(), Floats({1, 1}), Ints({2, 3})}),
            "expected scales or sizes, got both");
  EXPECT_EQ(error({x, Value(), Value(), Ints({2, INT64_MIN})}),
            "expected sizes >= 0, got -9223372036854775808");
  for (const float bad : {INFINITY, NAN, 0.0f, 1e30f}) {
    EXPECT_NE(error({x, Value(), Floats({1, bad})}), "no error") << bad;
  }
  EXPECT_NE(error({x, Value(), Value(), Ints({INT64_MAX, INT64_MAX})}), "no error");
  EXPECT_EQ(error({Iota<float>({0}), Value(), Value(), Ints({3})}),
            "axis 0 has no elements to make 3 of");
  EXPECT_EQ(error({x, Value(), Floats({1, 2})}, MakeAttributes(Attr("mode", std::string("round")))),
            "attribute 'mode': expected nearest, linear or cubic, got 'round'");
  EXPECT_EQ(error({x, Floats({0, 1}), Floats({1, 2})},
                  MakeAttributes(
                      Attr("coordinate_transformation_mode", std::string("tf_crop_and_resize")))),
            "expected 4 numbers in roi, got 2");
  EXPECT_NE(error({Iota<std::string>({2}), Value(), Floats({2})},
                  MakeAttributes(Attr("mode", std::string("linear")))),
            "no error");
}

}  // namespace
}  // namespace tenon
