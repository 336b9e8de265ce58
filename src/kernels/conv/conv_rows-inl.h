// Rows of output pixels of a convolution in NCHW16c, tile by tile.

#if defined(TENON_KERNELS_CONV_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_KERNELS_CONV_ROWS_INL_H_
#undef TENON_KERNELS_CONV_ROWS_INL_H_
#else
#define TENON_KERNELS_CONV_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "kernels/conv/conv_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {

// Positions of the taps of output pixels [first, first + pixels) of a row, which is computed in
// `Form`.
template <class Form>
class Columns {
 public:
  Columns(const Conv2dShape& shape, size_t first, size_t pixels)
      : shape_(shape),
        pixels_(pixels),
        start_(FirstTap(first, shape.stride_width, shape.pad_left)),
        reach_(static_cast<ptrdiff_t>((pixels - 1) * shape.stride_width)) {}

  // Whether no tap lies outside the input.
  bool Inside() const {
    const size_t taps_reach = (shape_.kernel_width - 1) * shape_.dilation_width;
    return start_ >= 0 && start_ + reach_ + static_cast<ptrdiff_t>(taps_reach) <
                              static_cast<ptrdiff_t>(shape_.in_width);
  }

  void SetStrided(ConvTile& tile) const {
    tile.columns = shape_.kernel_width;
    tile.column_weights = 0;
    tile.column_offset = start_ * ptrdiff_t{Form::kPixelFloats};
    tile.column_stride = static_cast<ptrdiff_t>(shape_.dilation_width * Form::kPixelFloats);
  }

  // Fills the table of offsets, without the columns of taps that are outside the input.
  void SetTabulated(int32_t* offsets, ConvTile& tile) const {
    const TapRange of_first = Valid(start_);
    const TapRange of_last = Valid(start_ + reach_);
    const size_t first = std::min(of_first.first, of_last.first);
    const size_t last = std::max(of_first.last, of_last.last);
    tile.columns = last - first;
    tile.column_weights = first * tile.depth * Form::kChannels;
    tile.pixel_offsets = offsets;
    for (size_t s = first; s < last; ++s) {
      for (size_t p = 0; p < pixels_; ++p) {
        const size_t offset = p * shape_.stride_width + s * shape_.dilation_width;
        const ptrdiff_t x = start_ + static_cast<ptrdiff_t>(offset);
        const bool inside = x >= 0 && x < static_cast<ptrdiff_t>(shape_.in_width);
        *offsets++ = inside ? static_cast<int32_t>(x * ptrdiff_t{Form::kPixelFloats}) : -1;
      }
    }
  }

 private:
  TapRange Valid(ptrdiff_t start) const {
    return ValidTaps(start, shape_.dilation_width, shape_.kernel_width, shape_.in_width);
  }

  const Conv2dShape& shape_;
  size_t pixels_;
  ptrdiff_t start_;
  ptrdiff_t reach_;
};

// How a row is computed: in blocks of 16 channels, or in one half block of 8. An input pixel takes
// kPixelFloats floats.
struct WholeBlocks {
  static constexpr size_t kChannels = kChannelBlock;
  static constexpr size_t kPixelFloats = kChannelBlock;
  static constexpr size_t kMaxPixels = kTilePixels;
  // Stride 2 uses the table: it is 3 % slower for 3x3 and 7 % for 1x1, but a separate set of
  // functions would increase the compile time by half.
  static constexpr size_t kMaxFixedStride = 1;
  template <class Pixels>
  static HWY_INLINE void Run(const ConvTile& tile, size_t blocks, size_t pixels) {
    RunTileBlocks<Pixels>(tile, blocks, pixels);
  }
};
struct HalfBlock {
  static constexpr size_t kChannels = kChannelBlock / 2;
  static constexpr size_t kPixelFloats = kChannelBlock;
  static constexpr size_t kMaxPixels = kTilePixelsOf<kChannels>;
  static constexpr size_t kMaxFixedStride = 2;
  template <class Pixels>
  static HWY_INLINE void Run(const ConvTile& tile, size_t, size_t pixels) {
    RunHalfTile<Pixels>(tile, pixels);
  }
};

// Sets the columns of `tile`, which is set up for the row, and runs it.
template <class Form>
void RunColumns(const Conv2dShape& shape, ConvTile& tile, size_t blocks, size_t first,
                size_t pixels, int32_t* offsets) {
  const Columns<Form> columns(shape, first, pixels);
  const bool strided = shape.stride_width <= Form::kMaxFixedStride && columns.Inside();
  if (!strided) {
    columns.SetTabulated(offsets, tile);
    Form::template Run<TabulatedPixels>(tile, blocks, pixels);
    return;
  }
  columns.SetStrided(tile);
  if constexpr (Form::kMaxFixedStride == 2) {
    if (shape.stride_width == 2) {
      return Form::template Run<StridedPixels<2 * Form::kPixelFloats>>(tile, blocks, pixels);
    }
  }
  Form::template Run<StridedPixels<Form::kPixelFloats>>(tile, blocks, pixels);
}

// `tile` is set up for the blocks of channels; row and columns are missing.
template <class Form>
void RunRow(const Conv2dShape& shape, ConvTile tile, size_t blocks, size_t row,
            const Range& columns, const Finish& finish, int32_t* offsets) {
  const ptrdiff_t y = FirstTap(row, shape.stride_height, shape.pad_top);
  const TapRange taps = ValidTaps(y, shape.dilation_height, shape.kernel_height, shape.in_height);
  const ptrdiff_t in_row = static_cast<ptrdiff_t>(shape.in_width * Form::kPixelFloats);
  tile.rows = taps.last - taps.first;
  tile.row_stride = static_cast<ptrdiff_t>(shape.dilation_height) * in_row;
  if (tile.rows > 0) tile.in += y * in_row + static_cast<ptrdiff_t>(taps.first) * tile.row_stride;
  tile.weights += taps.first * tile.weights_row_stride;
  const size_t tiles = CeilDiv(columns.size(), Form::kMaxPixels);
  const size_t row_offset = row * shape.out_width * kChannelBlock;
  float* const out = tile.out + row_offset;
  const float* const addend = tile.addend ? tile.addend + row_offset : nullptr;
  for (size_t t = 0; t < tiles; ++t) {
    const Range part = PartOf(columns.size(), tiles, t);
    const size_t first = columns.first + part.first;
    tile.out = out + first * kChannelBlock;
    if (addend) tile.addend = addend + first * kChannelBlock;
    RunColumns<Form>(shape, tile, blocks, first, part.size(), offsets);
    finish(tile, blocks, part.size());
  }
}

inline bool HasNarrowRows(const Conv2dShape& shape) {
  constexpr size_t kMostPixels = size_t{1} << 26;  // offsets of floats fit in 32 bits
  return shape.out_width <= kNarrowRow &&
         shape.in_height < kMostPixels / std::max<size_t>(1, shape.in_width);
}

// The output rows of which no tap lies above or below the input.
inline Range RowsInside(const Conv2dShape& shape) {
  const size_t reach = (shape.kernel_height - 1) * shape.dilation_height;
  const size_t padded = shape.in_height + shape.pad_top;
  const size_t first = CeilDiv(shape.pad_top, shape.stride_height);
  const size_t last = padded > reach ? (padded - reach - 1) / shape.stride_height + 1 : 0;
  return {first, std::clamp(last, first, std::max(first, shape.out_height))};
}

// `rows` are inside. `tile` is set up for the blocks of channels.
template <class Form>
void RunNarrowRows(const Conv2dShape& shape, ConvTile tile, size_t blocks, const Range& rows,
                   const Finish& finish, int32_t* offsets) {
  const size_t width = shape.out_width;
  const ptrdiff_t in_row = static_cast<ptrdiff_t>(shape.in_width * Form::kPixelFloats);
  tile.in += FirstTap(rows.first, shape.stride_height, shape.pad_top) * in_row;
  tile.rows = shape.kernel_height;
  tile.row_stride = static_cast<ptrdiff_t>(shape.dilation_height) * in_row;
  tile.columns = shape.kernel_width;
  tile.column_weights = 0;
  tile.pixel_offsets = offsets;
  const size_t first_offset = rows.first * width * kChannelBlock;
  float* const out = tile.out + first_offset;
  const float* const addend = tile.addend ? tile.addend + first_offset : nullptr;
  const size_t pixels = rows.size() * width, tiles = CeilDiv(pixels, Form::kMaxPixels);
  for (size_t t = 0; t < tiles; ++t) {
    const Range part = PartOf(pixels, tiles, t);
    int32_t* offset = offsets;
    for (size_t s = 0; s < shape.kernel_width; ++s) {
      for (size_t p = part.first; p < part.last; ++p) {
        const ptrdiff_t x = FirstTap(p % width, shape.stride_width, shape.pad_left) +
                            static_cast<ptrdiff_t>(s * shape.dilation_width);
        const bool inside = x >= 0 && x < static_cast<ptrdiff_t>(shape.in_width);
        const size_t row = p / width * shape.stride_height * shape.in_width;
        *offset++ =
            inside ? static_cast<int32_t>((row + static_cast<size_t>(x)) * Form::kPixelFloats) : -1;
      }
    }
    tile.out = out + part.first * kChannelBlock;
    if (addend) tile.addend = addend + part.first * kChannelBlock;
    Form::template Run<TabulatedPixels>(tile, blocks, part.size());
    finish(tile, blocks, part.size());
  }
}

// `tile` is set up for the blocks of channels; rows and columns are missing.
template <class Form>
void RunRows(const Conv2dShape& shape, const ConvTile& tile, size_t blocks, const Range& rows,
             const Range& columns, const Finish& finish, int32_t* offsets) {
  Range narrow = {rows.last, rows.last};
  if (HasNarrowRows(shape)) {
    const Range inside = RowsInside(shape);
    narrow.first = std::clamp(inside.first, rows.first, rows.last);
    narrow.last = std::clamp(inside.last, narrow.first, rows.last);
  }
  for (size_t row = rows.first; row < rows.last; ++row) {
    if (row == narrow.first && narrow.size() > 0) {
      RunNarrowRows<Form>(shape, tile, blocks, narrow, finish, offsets);
      row = narrow.last - 1;
    } else {
      RunRow<Form>(shape, tile, blocks, row, columns, finish, offsets);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#endif
