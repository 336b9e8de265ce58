// Sizes of a two-dimensional convolution or pooling, and the channel-blocked layout.
//
// NCHW16c is [N, ceil(C / 16), H, W, 16]: channel c lies in block c / 16 at lane c % 16. The lanes
// past C in the last block are zero, and every kernel that writes the layout keeps them zero. The
// block is 16 on every target, so packed weights and activations do not depend on the machine.
#pragma once

#include <cstddef>

namespace tenon::kernels {

constexpr size_t kChannelBlock = 16;

constexpr size_t CeilDiv(size_t a, size_t b) { return (a + b - 1) / b; }
constexpr size_t ChannelBlocks(size_t channels) { return CeilDiv(channels, kChannelBlock); }

// Floats in an NCHW16c tensor.
constexpr size_t BlockedSize(size_t batch, size_t channels, size_t pixels) {
  return batch * ChannelBlocks(channels) * pixels * kChannelBlock;
}

// One spatial dimension. In Conv, output coordinate y and tap r use input coordinate y * stride + r
// * dilation - pad_begin. In ConvTranspose, input coordinate x and tap r contribute to output
// coordinate x * stride + r * dilation - pad_begin. Missing leading dimensions have the defaults.
struct ConvDim {
  size_t in = 1;
  size_t out = 1;
  size_t kernel = 1;
  size_t stride = 1;
  size_t dilation = 1;
  size_t pad_begin = 0;

  bool operator==(const ConvDim&) const = default;
};

// Output pixel (y, x) and tap (r, s) read input pixel
// (y * stride_height + r * dilation_height - pad_top, x * stride_width + s * dilation_width -
// pad_left), or zero where that is outside the input. Padding at the bottom and right follows from
// the output size.
//
// With `frames`, an image has a third, outer axis: [N, C, frames, H, W], and NCHW16c becomes
// [N, ceil(C / 16), frames, H, W, 16]. Only conv_winograd.h supports it.
struct Conv2dShape {
  size_t batch = 1;
  size_t in_channels = 0;  // of all groups
  size_t in_height = 0;
  size_t in_width = 0;
  size_t out_channels = 0;  // of all groups
  size_t out_height = 0;
  size_t out_width = 0;
  size_t groups = 1;
  size_t kernel_height = 1;
  size_t kernel_width = 1;
  size_t stride_height = 1;
  size_t stride_width = 1;
  size_t dilation_height = 1;
  size_t dilation_width = 1;
  size_t pad_top = 0;
  size_t pad_left = 0;
  ConvDim frames = {};
};

// The range of taps r in [first, last) for which start + r * dilation lies in [0, size). `start`
// may be negative or past the end; then the range may be empty (first == last).
struct TapRange {
  size_t first;
  size_t last;
};
constexpr TapRange ValidTaps(ptrdiff_t start, size_t dilation, size_t taps, size_t size) {
  // Divisions take longer than all else here.
  const auto taps_before = [dilation](ptrdiff_t offset) {
    if (offset <= 0) return size_t{0};
    return dilation == 1 ? static_cast<size_t>(offset)
                         : CeilDiv(static_cast<size_t>(offset), dilation);
  };
  size_t first = taps_before(-start);
  size_t last = taps_before(static_cast<ptrdiff_t>(size) - start);
  if (last > taps) last = taps;
  if (first > last) first = last;
  return {first, last};
}

// Input coordinate of tap 0 for output coordinate `out`.
constexpr ptrdiff_t FirstTap(size_t out, size_t stride, size_t pad) {
  return static_cast<ptrdiff_t>(out * stride) - static_cast<ptrdiff_t>(pad);
}

// Part of [0, size).
struct Range {
  size_t first;
  size_t last;
  size_t size() const { return last - first; }
};
// Part `index` of `parts` of [0, size); the parts differ in length by at most one.
constexpr Range PartOf(size_t size, size_t parts, size_t index) {
  return {size * index / parts, size * (index + 1) / parts};
}

// The output coordinates whose taps all lie in [0, in_size).
constexpr Range InsideOutputs(size_t out_size, size_t in_size, size_t taps, size_t stride,
                              size_t dilation, size_t pad) {
  const size_t reach = (taps - 1) * dilation;
  const size_t padded = in_size + pad;
  const size_t first = CeilDiv(pad, stride) < out_size ? CeilDiv(pad, stride) : out_size;
  const size_t last = padded > reach ? (padded - reach - 1) / stride + 1 : 0;
  if (last <= first) return {first, first};
  return {first, last < out_size ? last : out_size};
}

}  // namespace tenon::kernels
