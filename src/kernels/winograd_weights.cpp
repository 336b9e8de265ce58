#include <algorithm>
#include <array>

#include "kernels/conv_winograd.h"
#include "kernels/winograd_points.h"

namespace tenon::kernels {
namespace {

constexpr size_t kMaxSide = 6;

// The values of the filter's polynomial at the interpolation points, scaled: G g.
void TransformFilter(WinogradTile tile, const std::array<double, 3>& g, double* y) {
  if (tile == WinogradTile::k2x2) {
    y[0] = g[0];
    y[1] = (g[0] + g[1] + g[2]) / 2;
    y[2] = (g[0] - g[1] + g[2]) / 2;
    y[3] = g[2];
    return;
  }
  constexpr double kA2 = kWinogradA * kWinogradA;
  constexpr double kB2 = kWinogradB * kWinogradB;
  const double even_a = (g[0] + kA2 * g[2]) / (2 * kA2 * (kA2 - kB2));
  const double odd_a = kWinogradA * g[1] / (2 * kA2 * (kA2 - kB2));
  const double even_b = (g[0] + kB2 * g[2]) / (2 * kB2 * (kB2 - kA2));
  const double odd_b = kWinogradB * g[1] / (2 * kB2 * (kB2 - kA2));
  y[0] = g[0] / (kA2 * kB2);
  y[1] = even_a + odd_a;
  y[2] = even_a - odd_a;
  y[3] = even_b + odd_b;
  y[4] = even_b - odd_b;
  y[5] = g[2];
}

// Costs are multiply-adds per pair of channels. Their constants were fitted to an EPYC 9004, 1 to
// 512 channels at 1x1 to 320x320.

// Reading a weight costs as much as using it for this many pixels or tiles.
constexpr double kWeightCost = 4;
// The same for weights that no shared cache holds.
constexpr double kDistantWeightCost = 7;
constexpr double kDistantBytes = 24 << 20;

double DirectCost(const Conv2dShape& shape) {
  const double pixels = static_cast<double>(shape.batch * shape.out_height * shape.out_width);
  return 9 * (pixels + kWeightCost);
}

double WinogradCost(const Conv2dShape& shape, WinogradTile tile) {
  const size_t side = static_cast<size_t>(tile);
  const double tiles = static_cast<double>(shape.batch * CeilDiv(shape.out_height, side) *
                                           CeilDiv(shape.out_width, side));
  const double positions = static_cast<double>((side + 2) * (side + 2));
  const double pairs = static_cast<double>(shape.in_channels * shape.out_channels);
  const double blocks =
      static_cast<double>(ChannelBlocks(shape.in_channels) + ChannelBlocks(shape.out_channels));
  // Transforming a block of one tile: some 8 vector operations and accesses a position.
  const double transforms = 8 * positions * blocks * kChannelBlock / pairs;
  const double bytes = positions * pairs * sizeof(float);
  const double weights = bytes > kDistantBytes ? kDistantWeightCost : kWeightCost;
  return positions * (tiles + weights) + tiles * transforms;
}

}  // namespace

size_t PackedWinogradWeightsSize(const Conv2dShape& shape, WinogradTile tile) {
  const size_t side = static_cast<size_t>(tile) + 2;
  return ChannelBlocks(shape.out_channels) * ChannelBlocks(shape.in_channels) * side * side *
         kChannelBlock * kChannelBlock;
}

void PackWinogradWeights(const Conv2dShape& shape, WinogradTile tile, const float* weights,
                         float* packed) {
  const size_t side = static_cast<size_t>(tile) + 2;
  const size_t in_blocks = ChannelBlocks(shape.in_channels);
  const size_t position_stride = in_blocks * kChannelBlock * kChannelBlock;
  std::fill_n(packed, PackedWinogradWeightsSize(shape, tile), 0.0f);
  for (size_t o = 0; o < shape.out_channels; ++o) {
    float* filters = packed + o / kChannelBlock * side * side * position_stride + o % kChannelBlock;
    for (size_t i = 0; i < shape.in_channels; ++i) {
      const float* g = weights + (o * shape.in_channels + i) * 9;
      double half[3][kMaxSide];
      for (size_t r = 0; r < 3; ++r)
        TransformFilter(tile, {g[3 * r], g[3 * r + 1], g[3 * r + 2]}, half[r]);
      for (size_t c = 0; c < side; ++c) {
        double column[kMaxSide];
        TransformFilter(tile, {half[0][c], half[1][c], half[2][c]}, column);
        for (size_t r = 0; r < side; ++r) {
          filters[(r * side + c) * position_stride + i * kChannelBlock] =
              static_cast<float>(column[r]);
        }
      }
    }
  }
}

bool ConvWinogradSupports(const Conv2dShape& shape) {
  return shape.groups == 1 && shape.kernel_height == 3 && shape.kernel_width == 3 &&
         shape.stride_height == 1 && shape.stride_width == 1 && shape.dilation_height == 1 &&
         shape.dilation_width == 1;
}

WinogradTile ChooseWinogradTile(const Conv2dShape& shape) {
  if (!ConvWinogradSupports(shape)) return WinogradTile::kNone;
  // Fewer channels than a block belong to the stem's kernel, or leave the products half empty.
  if (shape.in_channels < kChannelBlock / 2 || shape.out_channels < kChannelBlock / 2) {
    return WinogradTile::kNone;
  }
  WinogradTile best = WinogradTile::kNone;
  double least = DirectCost(shape);
  for (const WinogradTile tile : {WinogradTile::k2x2, WinogradTile::k4x4}) {
    const double cost = WinogradCost(shape, tile);
    if (cost < least) {
      least = cost;
      best = tile;
    }
  }
  return best;
}

}  // namespace tenon::kernels
