#include "kernels/conv/conv_winograd.h"

#include <algorithm>

#include "kernels/conv/conv_tile.h"
#include "kernels/conv/winograd_plan.h"
#include "kernels/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/conv_winograd.cpp"
#include <hwy/foreach_target.h>

#include "kernels/conv/conv_tile-inl.h"
#include "kernels/conv/winograd_transform-inl.h"
#include "kernels/min_max-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
using ConvWinogradTask = void (*)(const ConvWinogradArgs&, size_t, void*);

namespace HWY_NAMESPACE {
namespace {

// The group of tiles that a task computes, and its scratch memory.
struct Group {
  const ConvWinogradArgs& args;
  const WinogradPlan& plan;
  Range tiles;
  float* weights;  // [plan.scratch_blocks][plan.block_floats]
  float* in;       // [positions][in_blocks][tiles][16], positions plan.in_stride apart
  float* out;      // [positions][blocks][tiles][16], positions plan.out_stride apart
};

// The position of a tile.
struct TilePosition {
  size_t image;
  size_t frame;
  size_t y;  // of the first output pixel
  size_t x;
};
TilePosition Locate(const Group& group, size_t tile) {
  const WinogradPlan& plan = group.plan;
  const size_t row = tile / plan.tile_columns;
  const size_t frame = row / plan.tile_rows, frames = group.args.shape.frames.out;
  return {frame / frames, frame % frames, row % plan.tile_rows * plan.out_side,
          tile % plan.tile_columns * plan.out_side};
}

template <class W>
void TransformInputs(const Group& group) {
  const Conv2dShape& shape = group.args.shape;
  const WinogradPlan& plan = group.plan;
  const size_t row = shape.in_width * kChannelBlock;
  const size_t plane = shape.in_height * row;
  const ConvDim& frames = shape.frames;
  const size_t blocks = plan.in_blocks / frames.kernel;  // of channels
  const size_t count = group.tiles.size();
  for (size_t t = 0; t < count; ++t) {
    const TilePosition at = Locate(group, group.tiles.first + t);
    const ptrdiff_t y = FirstTap(at.y, 1, shape.pad_top);
    const ptrdiff_t x = FirstTap(at.x, 1, shape.pad_left);
    const TapRange rows = ValidTaps(y, 1, W::kSize, shape.in_height);
    const TapRange columns = ValidTaps(x, 1, W::kSize, shape.in_width);
    const float* in = group.args.in + at.image * blocks * frames.in * plane;
    const ptrdiff_t first_frame = FirstTap(at.frame, frames.stride, frames.pad_begin);
    const TapRange taps = ValidTaps(first_frame, frames.dilation, frames.kernel, frames.in);
    const ptrdiff_t offset = y * static_cast<ptrdiff_t>(row) + x * ptrdiff_t{kChannelBlock};
    float* out = group.in + t * kChannelBlock;
    for (size_t tap = 0; tap < frames.kernel; ++tap) {
      // Nothing is read of a frame in the pads.
      const bool is_inside = tap >= taps.first && tap < taps.last;
      const size_t last_row = is_inside ? rows.last : rows.first;
      const ptrdiff_t frame = first_frame + static_cast<ptrdiff_t>(tap * frames.dilation);
      const float* from = in + (is_inside ? static_cast<size_t>(frame) * plane : 0);
      for (size_t b = 0; b < blocks; ++b, from += frames.in * plane, out += count * kChannelBlock) {
        for (size_t lane = 0; lane < kChannelBlock; lane += kBlockLanes) {
          TransformInput<W>(from + offset + static_cast<ptrdiff_t>(lane), row,
                            {rows.first, last_row}, {columns.first, columns.last}, out + lane,
                            plan.in_stride);
        }
      }
    }
  }
}

// The packed weights of `blocks` blocks of filters from `first` on.
const float* Weights(const Group& group, size_t first, size_t blocks) {
  const size_t block_floats = group.plan.block_floats;
  if (group.args.weights != nullptr) return group.args.weights + first * block_floats;
  for (size_t b = 0; b < blocks; ++b) {
    (*group.args.pack)(first + b, group.weights + b * block_floats);
  }
  return group.weights;
}

// Multiplies, for each position, all tiles by `blocks` blocks of filters.
void Multiply(const Group& group, const float* weights, size_t blocks, const TileLanes& lanes) {
  const WinogradPlan& plan = group.plan;
  const size_t count = group.tiles.size();
  const size_t parts = CeilDiv(count, kTilePixels);
  const size_t position_weights = plan.in_blocks * kChannelBlock * kChannelBlock;
  ConvTile tile;
  tile.planes = plan.in_blocks;
  tile.plane_stride = static_cast<ptrdiff_t>(count * kChannelBlock);
  tile.rows = 1;
  tile.columns = 1;
  tile.depth = kChannelBlock;
  const size_t blocks_of_tap = plan.in_blocks / group.args.shape.frames.kernel;
  tile.last_depth = group.args.shape.in_channels - (blocks_of_tap - 1) * kChannelBlock;
  tile.weights_plane_stride = kChannelBlock * kChannelBlock;
  tile.weights_block_stride = plan.block_floats;
  tile.out_block_stride = count * kChannelBlock;
  tile.low = kNoClamp.low;
  tile.high = kNoClamp.high;
  tile.masks = lanes.masks;
  for (size_t position = 0; position < plan.positions; ++position) {
    tile.weights = weights + position * position_weights;
    for (size_t p = 0; p < parts; ++p) {
      const Range part = PartOf(count, parts, p);
      tile.in = group.in + position * plan.in_stride + part.first * kChannelBlock;
      tile.out = group.out + position * plan.out_stride + part.first * kChannelBlock;
      RunTileBlocks<StridedPixels<kChannelBlock>>(tile, blocks, part.size());
    }
  }
}

// The pixels of one tile and block: offset of the first, and the rows and columns inside the image.
struct Patch {
  size_t offset;
  size_t rows;
  size_t columns;
};

template <class W>
HWY_INLINE void StorePatch(const Group& group, const Patch& patch, const float* bias,
                           const float* mask, size_t lane, const VBlock (&sums)[W::kOut][W::kOut],
                           const ClampRange& clamp) {
  const DBlock d;
  const VBlock bias_lanes = hn::LoadU(d, bias + lane);
  const VBlock mask_lanes = hn::LoadU(d, mask + lane);
  const VBlock low = hn::Set(d, clamp.low);
  const VBlock high = hn::Set(d, clamp.high);
  const float* residual = group.args.epilogue.residual;
  for (size_t r = 0; r < patch.rows; ++r) {
    const size_t row = patch.offset + r * group.args.shape.out_width * kChannelBlock + lane;
    for (size_t c = 0; c < patch.columns; ++c) {
      const size_t at = row + c * kChannelBlock;
      VBlock y = hn::Add(sums[r][c], bias_lanes);
      if (residual) y = hn::Add(y, hn::LoadU(d, residual + at));
      y = MinOrSecond(high, MaxOrSecond(low, y));
      hn::StoreU(hn::And(y, mask_lanes), d, group.args.out + at);
    }
  }
}

template <class W>
void TransformOutputs(const Group& group, size_t first, size_t blocks, const TileLanes& lanes) {
  const Conv2dShape& shape = group.args.shape;
  const WinogradPlan& plan = group.plan;
  const BlockActivation activate(group.args.epilogue.activation);
  const ClampRange clamp = EpilogueClamp(group.args.epilogue);
  const size_t count = group.tiles.size();
  for (size_t b = 0; b < blocks; ++b) {
    const float* bias = lanes.bias + b * kChannelBlock;
    const float* mask = lanes.masks + b * kChannelBlock;
    for (size_t t = 0; t < count; ++t) {
      const TilePosition at = Locate(group, group.tiles.first + t);
      const size_t plane = (at.image * plan.out_blocks + first + b) * shape.frames.out + at.frame;
      const Patch patch = {
          ((plane * shape.out_height + at.y) * shape.out_width + at.x) * kChannelBlock,
          std::min(W::kOut, shape.out_height - at.y), std::min(W::kOut, shape.out_width - at.x)};
      for (size_t lane = 0; lane < kChannelBlock; lane += kBlockLanes) {
        VBlock sums[W::kOut][W::kOut];
        TransformOutput<W>(group.out + (b * count + t) * kChannelBlock + lane, plan.out_stride,
                           sums);
        StorePatch<W>(group, patch, bias, mask, lane, sums, clamp);
      }
      if (!activate) continue;
      for (size_t r = 0; r < patch.rows; ++r) {
        activate(mask, patch.columns,
                 group.args.out + patch.offset + r * shape.out_width * kChannelBlock);
      }
    }
  }
}

template <class W>
void RunGroup(const Group& group, const Range& out_blocks) {
  TransformInputs<W>(group);
  for (size_t o = out_blocks.first; o < out_blocks.last; o += kMaxTileBlocks) {
    const size_t blocks = std::min(kMaxTileBlocks, out_blocks.last - o);
    const TileLanes lanes = MakeTileLanes(group.args.epilogue.bias, group.args.shape.out_channels,
                                          o * kChannelBlock, blocks);
    Multiply(group, Weights(group, o, blocks), blocks, lanes);
    TransformOutputs<W>(group, o, blocks, lanes);
  }
}

void RunTask(const ConvWinogradArgs& args, size_t task, void* scratch) {
  const WinogradPlan plan(args.shape, args.tile, args.weights != nullptr, args.threads);
  float* const weights = static_cast<float*>(scratch);
  float* const in = weights + plan.scratch_blocks * plan.block_floats;
  const Group group = {args,    plan, PartOf(plan.tiles, plan.groups, task / plan.out_parts),
                       weights, in,   in + plan.positions * plan.in_stride};
  const Range blocks = PartOf(plan.out_blocks, plan.out_parts, task % plan.out_parts);
  if (args.tile == WinogradTile::k4x4) {
    RunGroup<Winograd4>(group, blocks);
  } else {
    RunGroup<Winograd2>(group, blocks);
  }
}

}  // namespace

const ConvWinogradTask kConvWinogradTask = &RunTask;

}  // namespace HWY_NAMESPACE

#if HWY_ONCE
size_t ConvWinogradTaskCount(const Conv2dShape& shape, WinogradTile tile, bool packed_weights,
                             size_t threads) {
  return WinogradPlan(shape, tile, packed_weights, threads).TaskCount();
}

size_t ConvWinogradScratchSize(const Conv2dShape& shape, WinogradTile tile, bool packed_weights,
                               size_t threads) {
  return WinogradPlan(shape, tile, packed_weights, threads).ScratchFloats() * sizeof(float);
}

void RunConvWinogradTask(const ConvWinogradArgs& args, size_t task, void* scratch) {
  TENON_SELECT_TABLE(ConvWinogradTask, kConvWinogradTask)(args, task, scratch);
}
#endif

}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();
