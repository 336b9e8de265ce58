// Decides which convolutions the Winograd transform makes faster.
#include <initializer_list>

#include "kernels/conv/conv_winograd.h"
#include "kernels/conv/conv_winograd_planar.h"
#include "kernels/conv/winograd_gradient.h"

namespace tenon::kernels {
namespace {

// Costs are multiply-adds per pair of channels and tap over frames. Their constants were fitted to
// an EPYC 9004, 1 to 512 channels at 1x1 to 320x320.

// Reading a weight costs as much as using it for this many pixels or tiles.
constexpr double kWeightCost = 4;
// The same cost for weights that no shared cache holds.
constexpr double kDistantWeightCost = 7;
constexpr double kDistantBytes = 24 << 20;

double DirectCost(const Conv2dShape& shape) {
  const double pixels =
      static_cast<double>(shape.batch * shape.frames.out * shape.out_height * shape.out_width);
  return 9 * (pixels + kWeightCost);
}

double WinogradCost(const Conv2dShape& shape, WinogradTile tile) {
  const size_t side = static_cast<size_t>(tile);
  const double tiles =
      static_cast<double>(shape.batch * shape.frames.out * CeilDiv(shape.out_height, side) *
                          CeilDiv(shape.out_width, side));
  const double taps = static_cast<double>(shape.frames.kernel);
  const double positions = static_cast<double>((side + 2) * (side + 2));
  const double pairs = static_cast<double>(shape.in_channels * shape.out_channels);
  const double blocks = static_cast<double>(ChannelBlocks(shape.in_channels)) +
                        static_cast<double>(ChannelBlocks(shape.out_channels)) / taps;
  // Transforming a block of one tile: some 8 vector operations and accesses a position.
  const double transforms = 8 * positions * blocks * kChannelBlock / pairs;
  const double bytes = positions * pairs * taps * sizeof(float);
  const double weights = bytes > kDistantBytes ? kDistantWeightCost : kWeightCost;
  return positions * (tiles + weights) + tiles * transforms;
}

// Copying an element from one layout to the other.
constexpr double kCopyCost = 40;
// Transforming a weight in each run, for one position, there or back.
constexpr double kPackCost = 40;
// The products with gathered inputs, relative to the direct convolution.
constexpr double kGeneralCost = 1.2;

double CopyCost(const Conv2dShape& shape) {
  const ConvDim& frames = shape.frames;
  const auto in = static_cast<double>(shape.batch * frames.in * shape.in_height * shape.in_width);
  const auto out =
      static_cast<double>(shape.batch * frames.out * shape.out_height * shape.out_width);
  return kCopyCost *
         (in / static_cast<double>(shape.out_channels) +
          out / static_cast<double>(shape.in_channels)) /
         static_cast<double>(frames.kernel);
}

bool HasEnoughChannels(const Conv2dShape& shape) {
  // With fewer than a block, the stem's kernel is used or the products are half empty.
  return shape.in_channels >= kChannelBlock / 2 && shape.out_channels >= kChannelBlock / 2;
}

}  // namespace

bool ConvWinogradSupports(const Conv2dShape& shape) {
  return shape.groups == 1 && shape.kernel_height == 3 && shape.kernel_width == 3 &&
         shape.stride_height == 1 && shape.stride_width == 1 && shape.dilation_height == 1 &&
         shape.dilation_width == 1;
}

WinogradTile ChooseWinogradTile(const Conv2dShape& shape) {
  if (!ConvWinogradSupports(shape)) return WinogradTile::kNone;
  if (!HasEnoughChannels(shape)) return WinogradTile::kNone;
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

WinogradTile ChoosePlanarWinogradTile(const Conv2dShape& shape) {
  if (!ConvWinogradSupports(shape) || !HasEnoughChannels(shape)) return WinogradTile::kNone;
  WinogradTile best = WinogradTile::kNone;
  double least = kGeneralCost * DirectCost(shape);
  for (const WinogradTile tile : {WinogradTile::k2x2, WinogradTile::k4x4}) {
    const size_t side = static_cast<size_t>(tile) + 2;
    const double cost =
        WinogradCost(shape, tile) + CopyCost(shape) + kPackCost * static_cast<double>(side * side);
    if (cost < least) {
      least = cost;
      best = tile;
    }
  }
  return best;
}

bool WinogradGradientWorthwhile(const Conv2dShape& shape) {
  if (!ConvWinogradSupports(shape) || !HasEnoughChannels(shape)) return false;
  if (shape.frames != ConvDim()) return false;
  constexpr double kPositions = 36;
  const double cost =
      WinogradCost(shape, WinogradTile::k4x4) + CopyCost(shape) / 2 + kPackCost * kPositions;
  return cost < kGeneralCost * DirectCost(shape);
}

}  // namespace tenon::kernels
