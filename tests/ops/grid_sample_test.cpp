#include <algorithm>
#include <cmath>

#include "ops/op_cases.h"
#include "ops/reference.h"

namespace tenon {
namespace {

struct Case {
  std::string mode, padding;
  bool align;
};

double Reflect(double x, double low, double high) {
  if (high <= low) return low;
  while (x < low || x > high) x = x < low ? 2 * low - x : 2 * high - x;
  return x;
}

// The element at a whole position that may be outside.
double Pixel(const Case& c, const std::vector<double>& line, double i) {
  const auto size = static_cast<double>(line.size());
  if (i < 0 || i >= size) {
    if (c.padding == "zeros") return 0;
    if (c.padding == "reflection") {
      i = Reflect(i, c.align ? 0 : -0.5, c.align ? size - 1 : size - 0.5);
    }
    i = std::clamp(std::trunc(i), 0.0, size - 1);
  }
  return line[static_cast<size_t>(i)];
}

double Cubic(double x) {
  constexpr double a = -0.75;
  x = std::abs(x);
  if (x < 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  return x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a : 0;
}

// A line sampled at a normalized position.
double SampleLine(const Case& c, const std::vector<double>& line, float normalized) {
  const auto size = static_cast<float>(line.size());
  const float position =
      c.align ? (normalized + 1) / 2 * (size - 1) : ((normalized + 1) * size - 1) / 2;
  double x = static_cast<double>(position);
  if (c.mode == "nearest") x = std::nearbyint(x);
  const double low = c.align ? 0 : -0.5, high = static_cast<double>(size) - (c.align ? 1 : 0.5);
  if (x < low || x > high) {
    // PyTorch moves the taps of a cubic sample to the border, not its position.
    const bool moves_position = c.padding == "border" && c.mode != "cubic";
    if (moves_position) x = std::clamp(x, 0.0, static_cast<double>(size) - 1);
    if (c.padding == "reflection") x = Reflect(x, low, high);
  }
  if (c.mode == "nearest") return Pixel(c, line, std::trunc(x));
  double sum = 0;
  for (double i = std::floor(x) - 1; i <= std::floor(x) + 2; ++i) {
    const double weight = c.mode == "cubic" ? Cubic(i - x) : std::max(0.0, 1 - std::abs(i - x));
    if (weight != 0) sum += weight * Pixel(c, line, i);
  }
  return sum;
}

// A map sampled one axis after the other, the last first.
double SampleMap(const Case& c, const float* x, std::vector<int64_t> dims, const float* position) {
  std::vector<double> map(x, x + Shape(dims).NumElements());
  for (size_t axis = dims.size(); axis-- > 0; ++position) {
    const auto size = static_cast<size_t>(dims[axis]);
    std::vector<double> next;
    for (size_t i = 0; i < map.size(); i += size) {
      next.push_back(SampleLine(
          c,
          {map.begin() + static_cast<ptrdiff_t>(i), map.begin() + static_cast<ptrdiff_t>(i + size)},
          *position));
    }
    map = std::move(next);
  }
  return map[0];
}

void ExpectSampled(const Case& c, const Shape& in, const Shape& grid_shape, int32_t opset) {
  const Tensor x = Scattered(in);
  const Tensor grid = Scattered(grid_shape, 9);
  std::string mode = c.mode;
  if (opset == 16 && mode != "nearest") mode = "bi" + mode;
  const Tensor y = RunTensorOp({"GridSample",
                                opset,
                                {x, grid},
                                MakeAttributes(Attr("mode", mode), Attr("padding_mode", c.padding),
                                               Attr("align_corners", int64_t{c.align}))});
  const std::vector<int64_t> dims(in.begin() + 2, in.end());
  Shape out = {in[0], in[1]};
  for (size_t i = 1; i + 1 < grid_shape.rank(); ++i) out.Append(grid_shape[i]);
  const int64_t size = in.Product(2, in.rank()), samples = out.Product(2, out.rank());
  SCOPED_TRACE(c.mode + " " + c.padding);
  ExpectElements(y, out, 3e-5, [&](int64_t i) {
    const int64_t map = i / samples;
    const float* position =
        grid.data<float>() + (map / in[1] * samples + i % samples) * grid_shape.back();
    return SampleMap(c, x.data<float>() + map * size, dims, position);
  });
}

TEST(GridSampleTest, SamplesInEveryMode) {
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* padding : {"zeros", "border", "reflection"}) {
      for (const bool align : {false, true}) {
        ExpectSampled({mode, padding, align}, {2, 3, 5, 7}, {2, 6, 9, 2}, 16);
        ExpectSampled({mode, padding, align}, {1, 2, 4}, {1, 33, 1}, 20);
        ExpectSampled({mode, padding, align}, {1, 2, 3, 4, 5}, {1, 2, 3, 5, 3}, 20);
        ExpectSampled({mode, padding, align}, {1, 1, 1, 1}, {1, 3, 3, 2}, 22);
      }
    }
  }
  ExpectSampled({"linear", "zeros", false}, {1, 70, 6, 6}, {1, 30, 50, 2}, 20);
}

TEST(GridSampleTest, PicksElementsOfAnyType) {
  ForEachElementSize([]<class T>(T) {
    const Tensor x = Iota<T>({1, 1, 2, 2});
    const Tensor grid = Tensor::Of<float>({1, 1, 3, 2}, {-0.5f, 0.5f, 0.5f, -0.5f, 5, 5});
    const Tensor y = RunTensorOp(
        {"GridSample", 16, {x, grid}, MakeAttributes(Attr("mode", std::string("nearest")))});
    EXPECT_EQ(y.data<T>()[0], x.data<T>()[2]);
    EXPECT_EQ(y.data<T>()[1], x.data<T>()[1]);
    EXPECT_EQ(y.data<T>()[2], T());
  });
}

TEST(GridSampleTest, InterpolatesOtherTypes) {
  const Tensor middle = Tensor::Of<double>({1, 1, 1, 2}, {0, 0});
  const auto sample = [&](Tensor x) { return RunTensorOp({"GridSample", 20, {x, middle}}); };
  EXPECT_EQ(ElementsOf<int32_t>(sample(Tensor::Of<int32_t>({1, 1, 1, 2}, {1, 4}))),
            std::vector<int32_t>{2});
  EXPECT_EQ(ElementsOf<float>(sample(Tensor::Of<float>({1, 1, 1, 2}, {1, 4}))),
            std::vector<float>{2.5f});
  EXPECT_NE(ErrorOf({"GridSample", 20, {Iota<std::string>({1, 1, 1, 2}), middle}}), "no error");
}

TEST(GridSampleTest, StaysInsideForAnyPosition) {
  const Tensor x = Iota<float>({1, 1, 3, 3});
  const Tensor grid =
      Tensor::Of<float>({1, 1, 4, 2}, {NAN, NAN, INFINITY, -INFINITY, 1e30f, -1e30f, 3e38f, 3e38f});
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* padding : {"zeros", "border", "reflection"}) {
      const Tensor y = RunTensorOp({"GridSample",
                                    20,
                                    {x, grid},
                                    MakeAttributes(Attr("mode", std::string(mode)),
                                                   Attr("padding_mode", std::string(padding)))});
      EXPECT_EQ(y.size(), 4);
    }
  }
}

TEST(GridSampleTest, FindsZeroWhereNoPositionIs) {
  constexpr size_t kPositions = 37;  // vectors, and a rest
  Tensor grid = Iota<float>({1, 1, kPositions, 2});
  for (size_t i = 0; i < kPositions; ++i) {
    grid.data<float>()[2 * i + i % 2] = i % 3 ? NAN : INFINITY;
    grid.data<float>()[2 * i + 1 - i % 2] = 0;
  }
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    const Tensor y = RunTensorOp({"GridSample",
                                  20,
                                  {Iota<float>({1, 1, 3, 3}), grid},
                                  MakeAttributes(Attr("mode", std::string(mode)),
                                                 Attr("padding_mode", std::string("zeros")))});
    EXPECT_EQ(ElementsOf<float>(y), std::vector<float>(kPositions, 0.0f)) << mode;
  }
}

TEST(GridSampleTest, RefusesGridsThatDoNotFit) {
  const auto error = [](const Shape& x, const Shape& grid) {
    return ErrorOf({"GridSample", 20, {Scattered(x), Scattered(grid)}});
  };
  EXPECT_EQ(error({1, 1, 2, 2}, {1, 2, 2, 2}), "no error");
  EXPECT_NE(error({1, 1, 2, 2}, {1, 2, 2, 3}), "no error");
  EXPECT_NE(error({1, 1, 2, 2}, {2, 2, 2, 2}), "no error");
  EXPECT_NE(error({1, 1, 2, 2}, {1, 2, 2, 2, 2}), "no error");
  EXPECT_NE(error({1, 1, 0, 2}, {1, 2, 2, 2}), "no error");
  EXPECT_EQ(error({1, 1, 0, 2}, {1, 0, 2, 2}), "no error");
}

}  // namespace
}  // namespace tenon
