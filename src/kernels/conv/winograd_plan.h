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
  WinogradPlan(const Conv2dShape& shape, WinogradTile tile, bool packed_weights, size_t threads)
      : out_side(static_cast<size_t>(tile)),
        positions((out_side + 2) * (out_side + 2)),
        in_blocks(shape.frames.kernel * ChannelBlocks(shape.in_channels)),
        out_blocks(ChannelBlocks(shape.out_channels)),
        tile_rows(CeilDiv(shape.out_height, out_side)),
        tile_columns(CeilDiv(shape.out_width, out_side)),
        tiles(shape.batch * shape.frames.out * tile_rows * tile_columns) {
    // Weights that are not packed are packed once for all tiles.
    groups = packed_weights ? CeilDiv(tiles, MostTiles()) : std::min<size_t>(tiles, 1);
    out_parts = 1;
    if (groups > 0 && threads > 1) Divide(2 * threads, packed_weights);
    group_tiles = groups == 0 ? 0 : CeilDiv(tiles, groups);
    // One line more than a power of two, so that the positions fall in different sets of L1.
    in_stride = in_blocks * group_tiles * kChannelBlock + kChannelBlock;
    out_stride = kMaxTileBlocks * group_tiles * kChannelBlock + kChannelBlock;
    block_floats = positions * in_blocks * kChannelBlock * kChannelBlock;
    scratch_blocks = packed_weights ? 0 : kMaxTileBlocks;
  }

  // The transformed input of a group of tiles stays in L2, through which the weights are streamed;
  // but reading an input of few tiles for each pair of blocks costs no more than weights do.
  size_t MostTiles() const {
    constexpr size_t kGroupFloats = (512 << 10) / sizeof(float);
    constexpr size_t kFewTiles = kMaxTileBlocks * kChannelBlock;
    if (tiles <= kFewTiles) return kFewTiles;
    const size_t fitting =
        kGroupFloats / std::max<size_t>(1, positions * in_blocks * kChannelBlock);
    return std::clamp<size_t>(fitting / kMaxTilePixels, 1, 4) * kMaxTilePixels;
  }

  // Makes some `wanted` tasks: another group reads all weights again, another part of the output
  // blocks transforms the input again.
  void Divide(size_t wanted, bool packed_weights) {
    while (groups * out_parts < wanted) {
      const bool more_groups = packed_weights && 2 * groups * kMaxTilePixels <= tiles;
      const bool more_parts = 2 * out_parts * kMaxTileBlocks <= out_blocks;
      if (!more_groups && !more_parts) break;
      // In multiply-adds for each position and input channel; see winograd_choice.cpp.
      const size_t group_cost = 4 * groups * out_blocks * kChannelBlock;
      const size_t part_cost = 8 * out_parts * tiles;
      if (more_groups && (!more_parts || group_cost < part_cost)) {
        groups *= 2;
      } else {
        out_parts *= 2;
      }
    }
  }

  size_t TaskCount() const { return groups * out_parts; }
  size_t ScratchFloats() const {
    return positions * (in_stride + out_stride) + scratch_blocks * block_floats;
  }

  size_t out_side;   // of a tile
  size_t positions;  // products per tile and pair of channels
  size_t in_blocks;  // of all taps over frames, [taps][blocks of channels]
  size_t out_blocks;
  size_t tile_rows;
  size_t tile_columns;
  size_t tiles;        // of all images and frames
  size_t groups;       // of tiles
  size_t out_parts;    // of output blocks
  size_t group_tiles;  // at most
  size_t in_stride;    // from one position to the next, in floats
  size_t out_stride;
  size_t block_floats;    // weights of a block of output channels
  size_t scratch_blocks;  // of weights that a task packs at a time
};

}  // namespace tenon::kernels
