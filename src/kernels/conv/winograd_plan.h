// Divides a Winograd convolution into tasks, and lays out their scratch; only for
// conv_winograd.cpp.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/conv/conv_shape.h"
#include "kernels/conv/conv_tile.h"
#include "kernels/conv/winograd_tile.h"

namespace tenon::kernels {

struct WinogradPlan {
  WinogradPlan(const Conv2dShape& shape, WinogradTile tile, bool packed_weights)
      : out_side(static_cast<size_t>(tile)),
        positions((out_side + 2) * (out_side + 2)),
        in_blocks(ChannelBlocks(shape.in_channels)),
        out_blocks(ChannelBlocks(shape.out_channels)),
        tile_rows(CeilDiv(shape.out_height, out_side)),
        tile_columns(CeilDiv(shape.out_width, out_side)),
        tiles(shape.batch * tile_rows * tile_columns) {
    // The transformed input of a group of tiles stays in L2, through which the weights are
    // streamed.
    constexpr size_t kGroupFloats = (512 << 10) / sizeof(float);
    const size_t fitting =
        kGroupFloats / std::max<size_t>(1, positions * in_blocks * kChannelBlock);
    const size_t most = std::clamp<size_t>(fitting / kMaxTilePixels, 1, 4) * kMaxTilePixels;
    // Weights that are not packed are packed once for all tiles.
    groups = packed_weights ? CeilDiv(tiles, most) : std::min<size_t>(tiles, 1);
    // A small image is also divided by channels, at the price of transforming it for each part.
    constexpr size_t kWantedTasks = 8;
    const size_t blocks_to_pay = packed_weights ? 8 : kMaxTileBlocks;
    const size_t most_parts = std::max<size_t>(1, out_blocks / blocks_to_pay);
    out_parts = groups == 0 ? 1 : std::clamp<size_t>(CeilDiv(kWantedTasks, groups), 1, most_parts);
    group_tiles = groups == 0 ? 0 : CeilDiv(tiles, groups);
    // One line more than a power of two, so that the positions fall in different sets of L1.
    in_stride = in_blocks * group_tiles * kChannelBlock + kChannelBlock;
    out_stride = kMaxTileBlocks * group_tiles * kChannelBlock + kChannelBlock;
    block_floats = positions * in_blocks * kChannelBlock * kChannelBlock;
    scratch_blocks = packed_weights ? 0 : kMaxTileBlocks;
  }

  size_t TaskCount() const { return groups * out_parts; }
  size_t ScratchFloats() const {
    return positions * (in_stride + out_stride) + scratch_blocks * block_floats;
  }

  size_t out_side;   // of a tile
  size_t positions;  // products per tile and pair of channels
  size_t in_blocks;
  size_t out_blocks;
  size_t tile_rows;
  size_t tile_columns;
  size_t tiles;        // of all images
  size_t groups;       // of tiles
  size_t out_parts;    // of output blocks
  size_t group_tiles;  // at most
  size_t in_stride;    // from one position to the next, in floats
  size_t out_stride;
  size_t block_floats;    // weights of a block of output channels
  size_t scratch_blocks;  // of weights that a task packs at a time
};

}  // namespace tenon::kernels
