#include "kernels/conv/reorder.h"

#include <algorithm>

#include "kernels/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/reorder.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
using ReorderFunction = void (*)(const ReorderArgs&, size_t);
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Transposes 4 x 4 floats between rows in_stride and out_stride apart.
HWY_INLINE void Transpose4x4(const float* in, size_t in_stride, float* out, size_t out_stride) {
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> dd;
  const auto a = hn::LoadU(d, in);
  const auto b = hn::LoadU(d, in + in_stride);
  const auto c = hn::LoadU(d, in + 2 * in_stride);
  const auto e = hn::LoadU(d, in + 3 * in_stride);
  const auto ab_low = hn::BitCast(dd, hn::InterleaveLower(d, a, b));
  const auto ab_high = hn::BitCast(dd, hn::InterleaveUpper(d, a, b));
  const auto ce_low = hn::BitCast(dd, hn::InterleaveLower(d, c, e));
  const auto ce_high = hn::BitCast(dd, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, ab_low, ce_low)), d, out);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, ab_low, ce_low)), d, out + out_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, ab_high, ce_high)), d, out + 2 * out_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, ab_high, ce_high)), d, out + 3 * out_stride);
}

// out[c][r] = in[r][c], rows in_stride and out_stride apart.
HWY_INLINE void Transpose(const float* in, size_t rows, size_t columns, size_t in_stride,
                          float* out, size_t out_stride) {
  const size_t whole_rows = rows / 4 * 4;
  const size_t whole_columns = columns / 4 * 4;
  for (size_t c = 0; c < whole_columns; c += 4) {
    for (size_t r = 0; r < whole_rows; r += 4) {
      Transpose4x4(in + r * in_stride + c, in_stride, out + c * out_stride + r, out_stride);
    }
  }
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = r < whole_rows ? whole_columns : 0; c < columns; ++c) {
      out[c * out_stride + r] = in[r * in_stride + c];
    }
  }
}

// Channels of block `task % blocks` of image `task / blocks`: their planar and blocked position.
struct BlockPosition {
  size_t planar;
  size_t blocked;
  size_t channels;
};
BlockPosition Locate(const ReorderArgs& args, size_t task) {
  const size_t blocks = ChannelBlocks(args.channels);
  const size_t first = task % blocks * kChannelBlock;
  return {(task / blocks * args.channels + first) * args.pixels, task * args.pixels * kChannelBlock,
          std::min(kChannelBlock, args.channels - first)};
}

// Pixels are taken 16 at a time, so that the lines that are written stay in L1.
constexpr size_t kPixelTile = 16;

void ToBlocked(const ReorderArgs& args, size_t task) {
  const BlockPosition at = Locate(args, task);
  const float* in = args.in + at.planar;
  float* out = args.out + at.blocked;
  for (size_t p = 0; p < args.pixels; p += kPixelTile) {
    const size_t count = std::min(kPixelTile, args.pixels - p);
    float* tile = out + p * kChannelBlock;
    if (at.channels < kChannelBlock) std::fill_n(tile, count * kChannelBlock, 0.0f);
    Transpose(in + p, at.channels, count, args.pixels, tile, kChannelBlock);
  }
}

void ToPlanar(const ReorderArgs& args, size_t task) {
  const BlockPosition at = Locate(args, task);
  const float* in = args.in + at.blocked;
  float* out = args.out + at.planar;
  for (size_t p = 0; p < args.pixels; p += kPixelTile) {
    const size_t count = std::min(kPixelTile, args.pixels - p);
    Transpose(in + p * kChannelBlock, count, at.channels, kChannelBlock, out + p, args.pixels);
  }
}

}  // namespace

const ReorderFunction kToBlocked = &ToBlocked;
const ReorderFunction kToPlanar = &ToPlanar;

}  // namespace HWY_NAMESPACE

#if HWY_ONCE
size_t ReorderTaskCount(const ReorderArgs& args) {
  return args.batch * ChannelBlocks(args.channels);
}

void RunReorderToBlockedTask(const ReorderArgs& args, size_t task) {
  TENON_SELECT_TABLE(ReorderFunction, kToBlocked)(args, task);
}

void RunReorderToPlanarTask(const ReorderArgs& args, size_t task) {
  TENON_SELECT_TABLE(ReorderFunction, kToPlanar)(args, task);
}
#endif

}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();
