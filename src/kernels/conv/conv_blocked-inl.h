// A task of a direct convolution in NCHW16c, on packed weights or on weights that it packs.

#if defined(TENON_KERNELS_CONV_BLOCKED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_KERNELS_CONV_BLOCKED_INL_H_
#undef TENON_KERNELS_CONV_BLOCKED_INL_H_
#else
#define TENON_KERNELS_CONV_BLOCKED_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/conv/conv_blocked_args.h"
#include "kernels/conv/conv_blocked_plan.h"
#include "kernels/conv/conv_rows-inl.h"
#include "kernels/conv/conv_tile.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {

// `weights`: the packed blocks of the task. `offsets`: room for the table of a tile's pixels.
template <class Form>
void RunOnPacked(const ConvBlockedArgs& args, const BlockedPlan& plan, const BlockedPlan::Task& at,
                 const float* weights, int32_t* offsets) {
  const Conv2dShape& shape = plan.shape;
  const TileLanes lanes = MakeTileLanes(args.epilogue.bias, shape.out_channels,
                                        at.out_block * kChannelBlock, at.blocks);
  const size_t in_plane = shape.in_height * shape.in_width * Form::kPixelFloats;
  const size_t out_plane = shape.out_height * shape.out_width * kChannelBlock;
  const size_t out_offset =
      (at.image * ChannelBlocks(shape.out_channels) + at.out_block) * out_plane;
  const ClampRange clamp = EpilogueClamp(args.epilogue);

  ConvTile tile;
  tile.plane_stride = static_cast<ptrdiff_t>(in_plane);
  tile.depth = Form::kPixelFloats;
  tile.weights_row_stride = shape.kernel_width * Form::kPixelFloats * kChannelBlock;
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
    tile.last_depth = last ? plan.last_depth : tile.depth;
    tile.weights = weights + chunk.first * tile.weights_plane_stride;
    tile.bias = c == 0 ? lanes.bias : nullptr;
    tile.addend = tile.out;
    if (c == 0)
      tile.addend = args.epilogue.residual ? args.epilogue.residual + out_offset : nullptr;
    tile.low = last ? clamp.low : kNoClamp.low;
    tile.high = last ? clamp.high : kNoClamp.high;
    const Finish finish(args.epilogue.activation, last);
    RunRows<Form>(shape, tile, at.blocks, at.rows, at.columns, finish, offsets);
  }
}

template <class Form>
void RunBlockedTask(const ConvBlockedArgs& args, size_t task, void* scratch) {
  const BlockedPlan plan(args.shape, Form::kPixelFloats);
  BlockedPlan::Task at = plan.Locate(task);
  if (args.weights != nullptr) {
    const float* weights = args.weights + at.out_block * plan.BlockFloats();
    return RunOnPacked<Form>(args, plan, at, weights, static_cast<int32_t*>(scratch));
  }
  float* const weights = static_cast<float*>(scratch);
  for (size_t b = 0; b < at.blocks; ++b) {
    (*args.pack)(at.out_block + b, weights + b * plan.BlockFloats());
  }
  auto* const offsets = reinterpret_cast<int32_t*>(weights + kMaxTileBlocks * plan.BlockFloats());
  for (; task < plan.TaskCount(); task += plan.WeightTasks()) {
    at = plan.Locate(task);
    RunOnPacked<Form>(args, plan, at, weights, offsets);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#endif
