// Decides which convolutions the Winograd transform makes faster.
#include <initializer_list>

#include "kernels/conv/conv_winograd.h"

namespace tenon::kernels {
namespace {

// Costs are multiply-adds per pair of channels. Their constants were fitted to an EPYC 9004, 1 to
// 512 channels at 1x1 to 320x320.

// Reading a weight costs as much as using it for this many pixels or tiles.
constexpr double kWeightCost = 4;
// The same cost for weights that no shared cache holds.
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

bool ConvWinogradSupports(const Conv2dShape& shape) {
  return shape.groups == 1 && shape.kernel_height == 3 && shape.kernel_width == 3 &&
         shape.stride_height == 1 && shape.stride_width == 1 && shape.dilation_height == 1 &&
         shape.dilation_width == 1;
}

WinogradTile ChooseWinogradTile(const Conv2dShape& shape) {
  if (!ConvWinogradSupports(shape)) return WinogradTile::kNone;
  // With fewer channels than a block, the stem's kernel is used or the products are half empty.
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
