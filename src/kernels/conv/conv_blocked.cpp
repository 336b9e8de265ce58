#include "kernels/conv/conv_blocked.h"

#include <algorithm>

#include "kernels/conv/conv_blocked_plan.h"
#include "kernels/conv/conv_tile.h"
#include "kernels/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/conv_blocked.cpp"
#include <hwy/foreach_target.h>

#include "kernels/conv/conv_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
using ConvBlockedTask = void (*)(const ConvBlockedArgs&, size_t, void*);

namespace HWY_NAMESPACE {
namespace {

// `weights`: the packed blocks of the task. `offsets`: ConvBlockedScratchSize bytes without
// weights.
void RunOnPacked(const ConvBlockedArgs& args, const BlockedPlan& plan, const BlockedPlan::Task& at,
                 const float* weights, int32_t* offsets) {
  const Conv2dShape& shape = plan.shape;
  const TileLanes lanes = MakeTileLanes(args.epilogue.bias, shape.out_channels,
                                        at.out_block * kChannelBlock, at.blocks);
  const size_t in_plane = shape.in_height * shape.in_width * kChannelBlock;
  const size_t out_plane = shape.out_height * shape.out_width * kChannelBlock;
  const size_t out_offset =
      (at.image * ChannelBlocks(shape.out_channels) + at.out_block) * out_plane;
  const ClampRange clamp = EpilogueClamp(args.epilogue);

  ConvTile tile;
  tile.plane_stride = static_cast<ptrdiff_t>(in_plane);
  tile.depth = kChannelBlock;
  tile.weights_row_stride = shape.kernel_width * kChannelBlock * kChannelBlock;
  tile.weights_plane_stride = shape.kernel_height * tile.weights_row_stride;
  tile.weights_block_stride = plan.BlockFloats();
  tile.out = args.out + out_offset;
  tile.out_block_stride = out_plane;
  tile.masks = lanes.masks;

  for (size_t c = 0; c < plan.chunks; ++c) {
    const Range chunk = PartOf(plan.in_blocks, plan.chunks, c);
    const bool last = c + 1 == plan.chunks;
    const size_t first_plane =
        at.image * ChannelBlocks(shape.in_channels) + at.group * plan.in_blocks + chunk.first;
    tile.in = args.in + first_plane * in_plane;
    tile.planes = chunk.size();
    tile.last_depth = last ? plan.last_depth : kChannelBlock;
    tile.weights = weights + chunk.first * tile.weights_plane_stride;
    tile.bias = c == 0 ? lanes.bias : nullptr;
    tile.addend = tile.out;
    if (c == 0)
      tile.addend = args.epilogue.residual ? args.epilogue.residual + out_offset : nullptr;
    tile.low = last ? clamp.low : kNoClamp.low;
    tile.high = last ? clamp.high : kNoClamp.high;
    const Finish finish(args.epilogue.activation, last);
    for (size_t row = at.rows.first; row < at.rows.last; ++row) {
      RunRow<WholeBlocks>(shape, tile, at.blocks, row, at.columns, finish, offsets);
    }
  }
}

void RunTask(const ConvBlockedArgs& args, size_t task, void* scratch) {
  const BlockedPlan plan(args.shape);
  BlockedPlan::Task at = plan.Locate(task);
  if (args.weights != nullptr) {
    const float* weights = args.weights + at.out_block * plan.BlockFloats();
    return RunOnPacked(args, plan, at, weights, static_cast<int32_t*>(scratch));
  }
  float* const weights = static_cast<float*>(scratch);
  for (size_t b = 0; b < at.blocks; ++b) {
    (*args.pack)(at.out_block + b, weights + b * plan.BlockFloats());
  }
  auto* const offsets = reinterpret_cast<int32_t*>(weights + kMaxTileBlocks * plan.BlockFloats());
  for (; task < plan.TaskCount(); task += plan.WeightTasks()) {
    at = plan.Locate(task);
    RunOnPacked(args, plan, at, weights, offsets);
  }
}

}  // namespace

const ConvBlockedTask kConvBlockedTask = &RunTask;

}  // namespace HWY_NAMESPACE

#if HWY_ONCE
bool ConvBlockedSupports(const Conv2dShape& shape) {
  const bool whole_groups = shape.groups > 0 &&
                            shape.in_channels % (shape.groups * kChannelBlock) == 0 &&
                            shape.out_channels % (shape.groups * kChannelBlock) == 0;
  return (shape.groups == 1 || whole_groups) && shape.in_width < (size_t{1} << 26);
}

size_t ConvBlockedTaskCount(const Conv2dShape& shape, bool packed_weights) {
  const BlockedPlan plan(shape);
  return packed_weights ? plan.TaskCount() : std::min(plan.TaskCount(), plan.WeightTasks());
}

size_t ConvBlockedScratchSize(const Conv2dShape& shape, bool packed_weights) {
  const size_t offsets = shape.kernel_width * kMaxTilePixels * sizeof(int32_t);
  if (packed_weights) return offsets;
  return kMaxTileBlocks * BlockedPlan(shape).BlockFloats() * sizeof(float) + offsets;
}

void RunConvBlockedTask(const ConvBlockedArgs& args, size_t task, void* scratch) {
  TENON_SELECT_TABLE(ConvBlockedTask, kConvBlockedTask)(args, task, scratch);
}
#endif

}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();
