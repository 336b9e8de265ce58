#include "ops/conv/nchwc.h"

namespace tenon {

SymbolicShape BlockedShape(const SymbolicShape& nchw) {
  const Dim block(static_cast<int64_t>(kernels::kChannelBlock));
  return {nchw[0], CeilDiv(nchw[1], block), nchw[2], nchw[3], block};
}

Result<SymbolicShape> NchwShape(const SymbolicShape& blocked, const Dim& channels) {
  constexpr auto kBlock = static_cast<int64_t>(kernels::kChannelBlock);
  if (blocked.rank() != 5 || (blocked[4].is_number() && !(blocked[4] == Dim(kBlock)))) {
    return InvalidArgument("input 0: expected [N, blocks, H, W, {}], got {}", kBlock, blocked);
  }
  const Dim blocks = CeilDiv(channels, Dim(kBlock));
  if (blocks.is_number() && blocked[1].is_number() && !(blocks == blocked[1])) {
    return InvalidArgument("input 0: expected {} blocks for {} channels, got {}", blocks, channels,
                           blocked);
  }
  return SymbolicShape({blocked[0], channels, blocked[2], blocked[3]});
}

kernels::Conv2dShape WindowShape2d(const Window& window, const Shape& x, const Shape& y) {
  const WindowDim rows = PaddedDim(window, 0, x[2]);
  const WindowDim columns = PaddedDim(window, 1, x[3]);
  kernels::Conv2dShape shape;
  shape.batch = static_cast<size_t>(x[0]);
  shape.in_channels = static_cast<size_t>(x[1]);
  shape.in_height = static_cast<size_t>(x[2]);
  shape.in_width = static_cast<size_t>(x[3]);
  shape.out_channels = static_cast<size_t>(y[1]);
  shape.out_height = static_cast<size_t>(y[2]);
  shape.out_width = static_cast<size_t>(y[3]);
  shape.kernel_height = static_cast<size_t>(rows.kernel);
  shape.kernel_width = static_cast<size_t>(columns.kernel);
  shape.stride_height = static_cast<size_t>(rows.stride);
  shape.stride_width = static_cast<size_t>(columns.stride);
  shape.dilation_height = static_cast<size_t>(rows.dilation);
  shape.dilation_width = static_cast<size_t>(columns.dilation);
  shape.pad_top = static_cast<size_t>(rows.pad_begin);
  shape.pad_left = static_cast<size_t>(columns.pad_begin);
  return shape;
}

}  // namespace tenon
