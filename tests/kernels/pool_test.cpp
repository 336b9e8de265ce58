#include <limits>
#include <optional>

#include "conv_reference.h"
#include "kernels/conv/pool_blocked.h"
#include "kernels/conv/pool_planar.h"

namespace tenon::kernels {
namespace {

struct PoolCase {
  std::string name;
  size_t planes;  // of the planar form; channels of two images in the blocked form
  PoolDim dims[3];
};

void PrintTo(const PoolCase& c, std::ostream* os) { *os << c.name; }

struct Pooled {
  std::vector<double> values;
  std::vector<int64_t> indices;
};

// The contents of a window for one output element: values inside, their offsets, and how many
// elements lie inside the padded input.
struct WindowContents {
  std::vector<double> values;
  std::vector<int64_t> offsets;
  size_t padded = 0;
};

std::optional<long> Coordinate(const PoolDim& dim, size_t out, size_t tap) {
  const long at = static_cast<long>(out * dim.stride + tap * dim.dilation);
  const long begin = static_cast<long>(dim.pad_begin);
  if (at >= begin + static_cast<long>(dim.in + dim.pad_end)) return std::nullopt;
  return at - begin;
}

WindowContents Gather(const PoolCase& c, const std::vector<float>& in, size_t plane, size_t z,
                      size_t y, size_t x) {
  const auto& [depth, height, width] = c.dims;
  WindowContents window;
  for (size_t kz = 0; kz < depth.kernel; ++kz) {
    for (size_t ky = 0; ky < height.kernel; ++ky) {
      for (size_t kx = 0; kx < width.kernel; ++kx) {
        const auto iz = Coordinate(depth, z, kz);
        const auto iy = Coordinate(height, y, ky);
        const auto ix = Coordinate(width, x, kx);
        if (!iz || !iy || !ix) continue;
        ++window.padded;
        if (*iz < 0 || *iz >= static_cast<long>(depth.in)) continue;
        if (*iy < 0 || *iy >= static_cast<long>(height.in)) continue;
        if (*ix < 0 || *ix >= static_cast<long>(width.in)) continue;
        const long offset =
            (*iz * static_cast<long>(height.in) + *iy) * static_cast<long>(width.in) + *ix;
        window.offsets.push_back(offset);
        window.values.push_back(
            in[plane * depth.in * height.in * width.in + static_cast<size_t>(offset)]);
      }
    }
  }
  return window;
}

double Reduce(PlanarPoolKind kind, double p, const WindowContents& window) {
  double sum = 0;
  for (const double value : window.values) {
    sum += kind == PlanarPoolKind::kLp ? std::pow(std::abs(value), p) : value;
  }
  switch (kind) {
    case PlanarPoolKind::kMax:
      return window.values.empty() ? -std::numeric_limits<double>::infinity()
                                   : *std::max_element(window.values.begin(), window.values.end());
    case PlanarPoolKind::kAverage:
      return sum / static_cast<double>(window.values.size());
    case PlanarPoolKind::kAverageIncludingPads:
      return sum / static_cast<double>(window.padded);
    case PlanarPoolKind::kLp:
      return std::pow(sum, 1 / p);
  }
  return 0;
}

Pooled Reference(const PoolCase& c, PlanarPoolKind kind, double p, const std::vector<float>& in) {
  Pooled result;
  const int64_t plane_size = static_cast<int64_t>(c.dims[0].in * c.dims[1].in * c.dims[2].in);
  for (size_t plane = 0; plane < c.planes; ++plane) {
    for (size_t z = 0; z < c.dims[0].out; ++z) {
      for (size_t y = 0; y < c.dims[1].out; ++y) {
        for (size_t x = 0; x < c.dims[2].out; ++x) {
          const WindowContents window = Gather(c, in, plane, z, y, x);
          result.values.push_back(Reduce(kind, p, window));
          const auto best = std::max_element(window.values.begin(), window.values.end());
          result.indices.push_back(
              window.values.empty()
                  ? -1
                  : static_cast<int64_t>(plane) * plane_size +
                        window.offsets[static_cast<size_t>(best - window.values.begin())]);
        }
      }
    }
  }
  return result;
}

void ExpectNear(const std::vector<float>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i])) {
      ASSERT_TRUE(std::isnan(got[i])) << i;
    } else if (std::isinf(expected[i])) {
      ASSERT_EQ(got[i], expected[i]) << i;
    } else {
      ASSERT_NEAR(got[i], expected[i], 2e-5) << i;
    }
  }
}

size_t InSize(const PoolCase& c) { return c.planes * c.dims[0].in * c.dims[1].in * c.dims[2].in; }

std::vector<float> RunPlanar(const PoolCase& c, PlanarPoolKind kind, double p,
                             const std::vector<float>& values, int64_t* indices,
                             bool column_major) {
  GuardedBuffer in(values);
  GuardedBuffer out(c.planes * c.dims[0].out * c.dims[1].out * c.dims[2].out);
  PoolPlanarArgs args = {.kind = kind,
                         .planes = c.planes,
                         .p = p,
                         .in = in.data(),
                         .out = out.data(),
                         .indices = indices,
                         .column_major_indices = column_major};
  std::copy_n(c.dims, 3, args.dims);
  for (size_t t = 0; t < PoolPlanarTaskCount(args); ++t) RunPoolPlanarTask(args, t);
  return out.values();
}

class PoolTest : public testing::TestWithParam<PoolCase> {};

TEST_P(PoolTest, PlanarMatchesReferenceOnEveryTarget) {
  const PoolCase& c = GetParam();
  const std::vector<float> in = RandomFloats(InSize(c), 1);
  struct Kind {
    PlanarPoolKind kind;
    double p;
  };
  for (const Kind& k :
       {Kind{PlanarPoolKind::kMax, 0}, Kind{PlanarPoolKind::kAverage, 0},
        Kind{PlanarPoolKind::kAverageIncludingPads, 0}, Kind{PlanarPoolKind::kLp, 1},
        Kind{PlanarPoolKind::kLp, 2}, Kind{PlanarPoolKind::kLp, 3}}) {
    SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(k.kind) << " p " << k.p);
    const Pooled expected = Reference(c, k.kind, k.p, in);
    ForEveryTarget(
        [&] { ExpectNear(RunPlanar(c, k.kind, k.p, in, nullptr, false), expected.values); });
  }
}

TEST_P(PoolTest, MaximumReportsWhereItIs) {
  const PoolCase& c = GetParam();
  const std::vector<float> in = RandomFloats(InSize(c), 1);
  const Pooled expected = Reference(c, PlanarPoolKind::kMax, 0, in);
  ForEveryTarget([&] {
    std::vector<int64_t> indices(expected.indices.size(), -7);
    ExpectNear(RunPlanar(c, PlanarPoolKind::kMax, 0, in, indices.data(), false), expected.values);
    EXPECT_EQ(indices, expected.indices);

    ExpectNear(RunPlanar(c, PlanarPoolKind::kMax, 0, in, indices.data(), true), expected.values);
    const int64_t depth = static_cast<int64_t>(c.dims[0].in);
    const int64_t height = static_cast<int64_t>(c.dims[1].in);
    const int64_t width = static_cast<int64_t>(c.dims[2].in);
    for (size_t i = 0; i < indices.size(); ++i) {
      const int64_t row_major = expected.indices[i];
      if (row_major < 0) {
        ASSERT_EQ(indices[i], -1);
        continue;
      }
      const int64_t plane = row_major / (depth * height * width);
      const int64_t x = row_major % width;
      const int64_t y = row_major / width % height;
      const int64_t z = row_major / (width * height) % depth;
      ASSERT_EQ(indices[i], plane * depth * height * width + z + depth * (y + height * x));
    }
  });
}

class PoolBlockedTest : public PoolTest {};

TEST_P(PoolBlockedTest, MatchesReferenceOnEveryTarget) {
  const PoolCase& c = GetParam();
  const PoolDim &height = c.dims[1], &width = c.dims[2];
  ASSERT_EQ(c.planes % 2, 0u);
  const size_t channels = c.planes / 2;
  const Conv2dShape shape = {2,
                             channels,
                             height.in,
                             width.in,
                             channels,
                             height.out,
                             width.out,
                             1,
                             height.kernel,
                             width.kernel,
                             height.stride,
                             width.stride,
                             height.dilation,
                             width.dilation,
                             height.pad_begin,
                             width.pad_begin};
  const std::vector<float> values = RandomFloats(InSize(c), 1);
  const std::pair<PoolKind, PlanarPoolKind> kinds[] = {
      {PoolKind::kMax, PlanarPoolKind::kMax},
      {PoolKind::kAverage, PlanarPoolKind::kAverage},
      {PoolKind::kAverageIncludingPads, PlanarPoolKind::kAverageIncludingPads}};
  for (const auto& kind : kinds) {
    SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(kind.first));
    const std::vector<double> expected = Reference(c, kind.second, 0, values).values;
    ForEveryTarget([&] {
      GuardedBuffer in(ToBlocked(values, 2, channels, height.in * width.in, std::nanf("")));
      GuardedBuffer out(BlockedSize(2, channels, height.out * width.out));
      const PoolBlockedArgs args = {shape,      height.pad_end, width.pad_end,
                                    kind.first, in.data(),      out.data()};
      for (size_t t = 0; t < PoolBlockedTaskCount(shape); ++t) RunPoolBlockedTask(args, t);
      std::vector<float> planar;
      const std::vector<float> got = out.values();
      const size_t pixels = height.out * width.out;
      for (size_t n = 0; n < 2; ++n) {
        for (size_t lane = 0; lane < ChannelBlocks(channels) * kChannelBlock; ++lane) {
          for (size_t p = 0; p < pixels; ++p) {
            const float value =
                got[BlockedIndex(ChannelBlocks(channels) * kChannelBlock, pixels, n, lane, p)];
            if (lane < channels) {
              planar.push_back(value);
            } else {
              ASSERT_EQ(std::bit_cast<uint32_t>(value), 0u);
            }
          }
        }
      }
      ExpectNear(planar, expected);
    });
  }
}

// in, out, kernel, stride, dilation, pad_begin, pad_end
const PoolCase kPoolCases[] = {
    {"one_pixel", 2, {{}, {1, 1, 1}, {1, 1, 1}}},
    {"2x2_stride_2", 64, {{}, {14, 7, 2, 2}, {22, 11, 2, 2}}},
    {"3x3_stride_2", 6, {{}, {15, 8, 3, 2, 1, 1, 1}, {31, 16, 3, 2, 1, 1, 1}}},
    {"3x3_stride_1", 34, {{}, {9, 9, 3, 1, 1, 1, 1}, {19, 19, 3, 1, 1, 1, 1}}},
    {"5x5_pads", 2, {{}, {4, 4, 5, 1, 1, 2, 2}, {6, 6, 5, 1, 1, 2, 2}}},
    {"uneven_pads", 2, {{}, {6, 6, 3, 1, 1, 0, 2}, {7, 6, 4, 1, 1, 2, 0}}},
    {"ceil_mode", 4, {{}, {10, 5, 3, 2, 1, 0, 0}, {12, 6, 3, 2, 1, 0, 0}}},
    {"ceil_mode_with_pads", 4, {{}, {10, 6, 3, 2, 1, 1, 1}, {12, 7, 3, 2, 1, 1, 1}}},
    {"dilated", 2, {{}, {12, 8, 3, 1, 2, 0, 0}, {20, 8, 4, 2, 2, 1, 1}}},
    {"stride_3", 2, {{}, {12, 4, 3, 3}, {40, 13, 4, 3}}},
    {"window_in_the_pads", 2, {{}, {2, 5, 2, 2, 1, 4, 4}, {3, 5, 2, 2, 1, 4, 4}}},
    {"global", 70, {{}, {7, 1, 7}, {9, 1, 9}}},
    {"global_wide", 2, {{}, {3, 1, 3}, {67, 1, 67}}},
    {"one_column", 2, {{}, {5, 3, 3, 1, 1, 0, 0}, {30, 1, 35, 40, 1, 3, 2}}},
    {"wide_kernel", 2, {{}, {}, {45, 24, 20, 2, 1, 12, 9}}},
    {"one_dimension", 4, {{}, {}, {100, 49, 4, 2, 1}}},
    {"no_planes", 0, {{}, {4, 4, 1}, {4, 4, 1}}},
};
const PoolCase kPoolCases3d[] = {
    {"three_dimensions", 3, {{6, 3, 2, 2}, {7, 7, 3, 1, 1, 1, 1}, {9, 5, 3, 2, 1, 1, 1}}},
    {"three_dimensions_pads",
     3,
     {{3, 4, 2, 1, 1, 1, 1}, {5, 3, 3, 2, 1, 1, 1}, {4, 2, 3, 2, 2, 2, 1}}},
};

std::string PoolCaseName(const testing::TestParamInfo<PoolCase>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Shapes, PoolTest, testing::ValuesIn(kPoolCases), PoolCaseName);
INSTANTIATE_TEST_SUITE_P(Shapes3d, PoolTest, testing::ValuesIn(kPoolCases3d), PoolCaseName);
INSTANTIATE_TEST_SUITE_P(Shapes, PoolBlockedTest, testing::ValuesIn(kPoolCases), PoolCaseName);

}  // namespace
}  // namespace tenon::kernels
