// Arguments of the register tile in conv_tile-inl.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/conv/block_activation.h"
#include "kernels/conv/conv_epilogue.h"
#include "kernels/conv/conv_shape.h"

namespace tenon::kernels {

alignas(64) inline constexpr float kZeroPixel[kChannelBlock] = {};

// The most output channels of one tile, in blocks. Shapes are divided by this on every target.
constexpr size_t kMaxTileBlocks = 2;
// The most output pixels of a tile, on any target.
constexpr size_t kMaxTilePixels = 14;

// Output rows of so few pixels that a tile of one would wait for its sums; tiles then go on in the
// next row.
constexpr size_t kNarrowRow = 3;

// A sum over planes x rows x columns x depth products for each output channel and pixel. For an
// NCHW16c input a plane is a block of input channels and depth its 16 channels; for NCHW a plane is
// one channel and depth the tap columns. Strides count floats.
struct ConvTile {
  const float* in = nullptr;  // plane 0, row 0
  ptrdiff_t plane_stride = 0;
  ptrdiff_t row_stride = 0;
  // Strided pixels: tap column s of pixel 0 is column_offset + s * column_stride after the row.
  ptrdiff_t column_offset = 0;
  ptrdiff_t column_stride = 0;
  // Tabulated pixels: [columns][pixels] offsets from the row, negative for zero pixels.
  const int32_t* pixel_offsets = nullptr;
  size_t planes = 0;
  size_t rows = 0;
  size_t columns = 0;
  size_t depth = 0;
  size_t last_depth = 0;  // depth of the last plane

  // [blocks][planes][all rows][all columns][depth][16], at the first row in use; the first column
  // in use is column_weights further.
  const float* weights = nullptr;
  size_t weights_block_stride = 0;
  size_t weights_plane_stride = 0;
  size_t weights_row_stride = 0;
  size_t column_weights = 0;

  const float* bias = nullptr;    // [blocks][16], or null
  const float* addend = nullptr;  // as `out`, which it may equal; or null
  float* out = nullptr;           // [blocks][pixels][16]
  size_t out_block_stride = 0;
  float low = 0;  // results are clamped to [low, high]; NaN stays
  float high = 0;
  const float* masks = nullptr;  // [blocks][16]: all bits set for real channels, else zero
};

// Bias and masks of up to kMaxTileBlocks blocks of output channels, in a tile's form.
struct TileLanes {
  alignas(64) float bias[kMaxTileBlocks * kChannelBlock];
  alignas(64) float masks[kMaxTileBlocks * kChannelBlock];
};
// For `blocks` blocks from channel `first_channel` of `out_channels`; `bias` as in ConvEpilogue.
TileLanes MakeTileLanes(const float* bias, size_t out_channels, size_t first_channel,
                        size_t blocks);

// The clamp that an epilogue's activation is or includes; [-inf, inf] if there is none.
struct ClampRange {
  float low;
  float high;
};
constexpr ClampRange kNoClamp = {-std::numeric_limits<float>::infinity(),
                                 std::numeric_limits<float>::infinity()};
ClampRange EpilogueClamp(const ConvEpilogue& epilogue);

// The part of an activation that is not a tile's clamp, applied after a tile was run.
class Finish {
 public:
  explicit Finish(const ActivationSpec& activation, bool enabled = true)
      : activation_(activation), enabled_(enabled && activation_) {}
  void operator()(const ConvTile& tile, size_t blocks, size_t pixels) const {
    if (!enabled_) return;
    for (size_t b = 0; b < blocks; ++b) {
      activation_(tile.masks + b * kChannelBlock, pixels, tile.out + b * tile.out_block_stride);
    }
  }

 private:
  BlockActivation activation_;
  bool enabled_;
};

// How the output pixels of an image are divided into parts, each for one task or more.
struct PixelSplit {
  size_t row_parts;
  size_t column_parts;
  size_t parts() const { return row_parts * column_parts; }
};
struct PixelSplitOptions {
  size_t flops_per_pixel;  // of a task
  size_t min_pixels = 1;   // of a part, as far as whole rows allow
  size_t tasks_per_part;   // of all images
  // Divides all but small images into bands: threads that each take tasks of neighbouring pixels
  // then work on the same band in one layer after another.
  bool in_bands = true;
};
// A task has about 4 MFLOP (35 us on an AVX2 core), or less, down to 0.5 MFLOP, if there would be
// too few tasks for a few threads to end at about the same time.
PixelSplit SplitPixels(const Conv2dShape& shape, const PixelSplitOptions& options);

}  // namespace tenon::kernels
