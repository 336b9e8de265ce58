#include <algorithm>
#include <cmath>

#include "ops/op_cases.h"
#include "ops/reference.h"

namespace tenon {
namespace {

// The four weighted neighbours of a point of a map; zeros beyond a pixel outside of it.
std::vector<double> Corners(const float* map, int64_t height, int64_t width, double y, double x) {
  if (y < -1 || y > static_cast<double>(height) || x < -1 || x > static_cast<double>(width)) {
    return {0, 0, 0, 0};
  }
  y = std::clamp(y, 0.0, static_cast<double>(height - 1));
  x = std::clamp(x, 0.0, static_cast<double>(width - 1));
  std::vector<double> corners;
  for (const int dy : {0, 1}) {
    for (const int dx : {0, 1}) {
      const double row = std::floor(y) + dy, column = std::floor(x) + dx;
      const double weight = (1 - std::abs(y - row)) * (1 - std::abs(x - column));
      const auto at = std::min(static_cast<int64_t>(row), height - 1) * width +
                      std::min(static_cast<int64_t>(column), width - 1);
      corners.push_back(weight * static_cast<double>(map[at]));
    }
  }
  return corners;
}

struct AlignCase {
  std::string mode, coordinates;
  int64_t sampling_ratio;
};

double Aligned(const AlignCase& c, const Tensor& x, const float* map, const float* roi,
               const std::vector<int64_t>& at, const Shape& out, double scale) {
  const bool half = c.coordinates == "half_pixel";
  double start[2], bin[2];
  int64_t samples[2];
  for (size_t i = 0; i < 2; ++i) {
    const double low = static_cast<double>(roi[1 - i]), high = static_cast<double>(roi[3 - i]);
    start[i] = low * scale - (half ? 0.5 : 0);
    double length = (high - low) * scale;
    if (!half) length = std::max(length, 1.0);
    bin[i] = length / static_cast<double>(out[2 + i]);
    samples[i] = c.sampling_ratio > 0
                     ? c.sampling_ratio
                     : std::max<int64_t>(0, static_cast<int64_t>(std::ceil(bin[i])));
  }
  double sum = 0, most = -INFINITY;
  for (int64_t s = 0; s < samples[0]; ++s) {
    for (int64_t t = 0; t < samples[1]; ++t) {
      const auto place = [&](size_t i, int64_t sample) {
        return start[i] + static_cast<double>(at[2 + i]) * bin[i] +
               (static_cast<double>(sample) + 0.5) * bin[i] / static_cast<double>(samples[i]);
      };
      for (const double v : Corners(map, x.shape()[2], x.shape()[3], place(0, s), place(1, t))) {
        sum += v;
        most = std::max(most, v);
      }
    }
  }
  const int64_t count = samples[0] * samples[1];
  if (count == 0) return 0;
  return c.mode == "max" ? most : sum / static_cast<double>(count);
}

void ExpectAligned(const AlignCase& c, float scale) {
  const Tensor x = Scattered({2, 19, 9, 11});
  const std::vector<float> rois = {1,  2,  13, 9, 0, 0, 3, 3, -2, 4.5f,
                                   30, 30, 5,  5, 5, 5, 6, 6, 2,  1};
  const std::vector<int64_t> images = {0, 1, 1, 0, 1};
  const Shape out = {5, 19, 3, 2};
  const Tensor y = RunTensorOp(
      {"RoiAlign",
       16,
       {x, Tensor::Of<float>({5, 4}, rois), Tensor::Of<int64_t>({5}, images)},
       MakeAttributes(Attr("mode", c.mode), Attr("coordinate_transformation_mode", c.coordinates),
                      Attr("sampling_ratio", c.sampling_ratio), Attr("output_height", int64_t{3}),
                      Attr("output_width", int64_t{2}), Attr("spatial_scale", scale))});
  SCOPED_TRACE(c.mode + " " + c.coordinates);
  ExpectElements(y, out, 1e-4, [&](int64_t i) {
    const auto at = CoordinatesOf(i, out);
    const auto region = static_cast<size_t>(at[0]);
    const float* map = x.data<float>() + (images[region] * 19 + at[1]) * 99;
    return Aligned(c, x, map, rois.data() + region * 4, at, out, static_cast<double>(scale));
  });
}

TEST(RoiAlignTest, InterpolatesInsideRegions) {
  for (const char* mode : {"avg", "max"}) {
    for (const char* coordinates : {"half_pixel", "output_half_pixel"}) {
      for (const int64_t ratio : {0, 1, 3}) ExpectAligned({mode, coordinates, ratio}, 0.75f);
    }
  }
}

TEST(RoiAlignTest, RefusesImagesThatAreNotThere) {
  const auto error = [](int64_t image, std::vector<float> roi) {
    return ErrorOf(
        {"RoiAlign", 22, {Scattered({2, 1, 3, 3}), Tensor::Of<float>({1, 4}, roi), Ints({image})}});
  };
  EXPECT_EQ(error(1, {0, 0, 2, 2}), "no error");
  EXPECT_EQ(error(2, {0, 0, 2, 2}), "input 2: expected images in [0, 2), got 2 at 0");
  EXPECT_NE(error(INT64_MIN, {0, 0, 2, 2}), "no error");
  EXPECT_EQ(error(0, {0, NAN, 0, 0}), "input 1: expected finite numbers, got nan at 1");
  EXPECT_EQ(error(0, {0, 0, -INFINITY, 0}), "input 1: expected finite numbers, got -inf at 2");
}

TEST(MaxRoiPoolTest, TakesTheGreatestOfEachBin) {
  const Tensor x = Scattered({2, 3, 8, 9});
  const std::vector<float> rois = {0, 1, 1, 6, 7, 1, 0, 0, 3, 2, 1, 7, 6, 20, 20, 0, 3, 3, 2, 2};
  const Shape out = {4, 3, 2, 3};
  const Tensor y = RunTensorOp({"MaxRoiPool",
                                1,
                                {x, Tensor::Of<float>({4, 5}, rois)},
                                MakeAttributes(Attr("pooled_shape", std::vector<int64_t>{2, 3}),
                                               Attr("spatial_scale", 0.9f))});
  ExpectElements(y, out, 0, [&](int64_t i) {
    const auto at = CoordinatesOf(i, out);
    const float* roi = rois.data() + at[0] * 5;
    double most = -INFINITY;
    const auto inside = [&](size_t axis, int64_t pixel) {
      const auto low = std::round(roi[2 - axis] * 0.9f), high = std::round(roi[4 - axis] * 0.9f);
      const float bin = std::max(high - low + 1, 1.0f) / static_cast<float>(out[2 + axis]);
      const auto step = static_cast<float>(at[2 + axis]);
      const auto p = static_cast<float>(pixel);
      return p >= low + std::floor(step * bin) && p < low + std::ceil((step + 1) * bin);
    };
    for (int64_t row = 0; row < 8; ++row) {
      for (int64_t column = 0; column < 9; ++column) {
        if (!inside(0, row) || !inside(1, column)) continue;
        const std::vector<int64_t> from = {static_cast<int64_t>(roi[0]), at[1], row, column};
        most = std::max<double>(most, x.data<float>()[PositionOf(from, x.shape())]);
      }
    }
    return std::isinf(most) ? 0 : most;
  });
}

TEST(MaxRoiPoolTest, RefusesBadRegions) {
  const auto error = [](float image, std::vector<int64_t> pooled) {
    return ErrorOf({"MaxRoiPool",
                    22,
                    {Scattered({1, 1, 3, 3}), Tensor::Of<float>({1, 5}, {image, 0, 0, 1, 1})},
                    MakeAttributes(Attr("pooled_shape", std::move(pooled)))});
  };
  EXPECT_EQ(error(0, {1, 1}), "no error");
  EXPECT_EQ(error(1, {1, 1}), "input 1: expected images in [0, 1), got 1 in region 0");
  EXPECT_NE(error(NAN, {1, 1}), "no error");
  EXPECT_NE(error(0, {1}), "no error");
  EXPECT_NE(error(0, {0, INT64_MIN}), "no error");
}

}  // namespace
}  // namespace tenon
