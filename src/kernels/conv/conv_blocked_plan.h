// Divides a blocked convolution into tasks and steps; only for conv_blocked*.cpp.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/conv/conv_shape.h"
#include "kernels/conv/conv_tile.h"

namespace tenon::kernels {

// A kernel of one tap without stride and padding does not depend on rows: all pixels form one row.
inline Conv2dShape WithoutNeedlessRows(Conv2dShape shape) {
  const bool pointwise = shape.kernel_height == 1 && shape.kernel_width == 1 &&
                         shape.stride_height == 1 && shape.stride_width == 1 &&
                         shape.pad_top == 0 && shape.pad_left == 0 &&
                         shape.in_height == shape.out_height && shape.in_width == shape.out_width;
  if (pointwise) {
    shape.in_width = shape.out_width = shape.in_height * shape.in_width;
    shape.in_height = shape.out_height = 1;
  }
  return shape;
}

struct BlockedPlan {
  // `pixel_floats`: what the channels of a block take in an input pixel; 16, or 8 for pairs of
  // bfloat16 numbers. The tasks do not depend on it.
  BlockedPlan(const Conv2dShape& given, size_t pixel_floats)
      : shape(WithoutNeedlessRows(given)),
        pixel_floats(pixel_floats),
        in_blocks(ChannelBlocks(given.in_channels / given.groups)),
        out_blocks(ChannelBlocks(given.out_channels / given.groups)),
        tiles(CeilDiv(out_blocks, kMaxTileBlocks)) {
    const size_t taps = shape.kernel_height * shape.kernel_width;
    const size_t plane_bytes = kMaxTileBlocks * taps * pixel_floats * kChannelBlock * sizeof(float);
    // The weights of a chunk stay in L2 while the task processes its pixels.
    constexpr size_t kChunkBytes = 384 << 10;
    chunks =
        in_blocks == 0 ? 1 : CeilDiv(in_blocks, std::max<size_t>(1, kChunkBytes / plane_bytes));
    const size_t last_channels =
        in_blocks == 0 ? 0 : given.in_channels / given.groups - (in_blocks - 1) * kChannelBlock;
    last_depth = CeilDiv(last_channels, kChannelBlock / pixel_floats);
    // A task with fewer pixels would wait for the weights, which come from L3 or memory once a
    // task.
    constexpr size_t kMinPixels = 56;
    const size_t depth = given.in_channels / given.groups * taps;
    // In bands each thread reads all weights, but only its pixels, which another core may have
    // written: those cost more.
    const size_t weight_floats = shape.groups * out_blocks * BlockFloats();
    const size_t in_floats = shape.in_height * shape.in_width * shape.in_channels;
    split = SplitPixels(shape, {.flops_per_pixel = 2 * depth * kMaxTileBlocks * kChannelBlock,
                                .min_pixels = kMinPixels,
                                .tasks_per_part = shape.batch * WeightTasks(),
                                .in_bands = weight_floats / 4 <= in_floats});
    // Few tasks of one size would leave threads without work at the end.
    constexpr size_t kFewTiles = 16;
    const bool few = split.parts() == 1 && shape.batch * WeightTasks() < kFewTiles;
    if (few && out_blocks % 2 == 0 && tiles % 2 == 1) ++tiles;
  }

  // Tasks on packed weights; of those with equal numbers modulo WeightTasks, the weights are the
  // same.
  size_t TaskCount() const { return shape.batch * split.parts() * WeightTasks(); }
  size_t WeightTasks() const { return shape.groups * tiles; }
  size_t BlockFloats() const {
    return in_blocks * shape.kernel_height * shape.kernel_width * pixel_floats * kChannelBlock;
  }

  struct Task {
    size_t image;
    size_t group;
    size_t out_block;  // of all groups
    size_t blocks;
    Range rows;
    Range columns;
  };
  // Consecutive tasks share the pixels, so that these stay in L2.
  Task Locate(size_t task) const {
    const size_t tile = task % tiles;
    task /= tiles;
    const size_t group = task % shape.groups;
    task /= shape.groups;
    const size_t part = task % split.parts();
    const Range blocks = PartOf(out_blocks, tiles, tile);
    return {task / split.parts(),
            group,
            group * out_blocks + blocks.first,
            blocks.size(),
            PartOf(shape.out_height, split.row_parts, part / split.column_parts),
            PartOf(shape.out_width, split.column_parts, part % split.column_parts)};
  }

  Conv2dShape shape;
  size_t pixel_floats;
  size_t in_blocks;   // of a group
  size_t out_blocks;  // of a group
  size_t tiles;       // of output blocks, a group
  size_t chunks;      // of input blocks, a group
  size_t last_depth;  // floats of the last input block in a pixel
  PixelSplit split;
};

}  // namespace tenon::kernels
