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
  if (shape.in_channels < 16 || shape.out_channels < 16) return WinogradTile::kNone;
  return WinogradTile::k4x4;
}

}  // namespace tenon::kernels
