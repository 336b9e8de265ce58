// The rows of images that a task of a convolution in NHWC reads and writes; only for the files
// conv_int8_nhwc*.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/conv/conv_int8_args.h"
#include "kernels/conv/conv_int8_nhwc_form.h"

namespace tenon::kernels {

// The columns, or rows, of the input that `out` of the output need, with pads.
inline size_t PaddedExtent(const ConvDim& dim, size_t out) {
  return (out - 1) * dim.stride + (dim.kernel - 1) * dim.dilation + 1;
}

// Output rows [begin, end) of one image.
struct NhwcRows {
  size_t image, begin, end;
};

// Images in chunks of nearly equal numbers of output rows. There is an even number of them, so that
// two threads have the same work, and the same half of the image in each layer.
struct NhwcRowChunks {
  size_t rows;  // of one chunk, at most
  size_t chunks;

  NhwcRowChunks(const ConvGeneralShape& shape, size_t wanted_rows) {
    const size_t height = shape.dims[1].out;
    chunks = (height + wanted_rows - 1) / std::max<size_t>(1, wanted_rows);
    const size_t multiple = chunks > 4 ? 4 : chunks > 1 ? 2 : 1;
    chunks = std::clamp<size_t>((chunks + multiple - 1) / multiple * multiple, 1, height);
    rows = (height + chunks - 1) / chunks;
  }
  NhwcRows RowsOf(const ConvGeneralShape& shape, size_t chunk) const {
    const size_t height = shape.dims[1].out, index = chunk % chunks;
    return {chunk / chunks, height * index / chunks, height * (index + 1) / chunks};
  }
};

// The most rows of a chunk, so that an image has two bands or four if their tasks cost `least_cost`
// at least. Bands of few rows read more at their borders than they are worth.
inline size_t RowsOfBand(size_t height, double row_cost, double least_cost) {
  constexpr size_t kLeastRows = 7;
  for (const size_t bands : {4, 2}) {
    const size_t rows = height / bands;
    const bool is_worth = rows >= kLeastRows && static_cast<double>(rows) * row_cost >= least_cost;
    if (is_worth) return (height + bands - 1) / bands;
  }
  return height;
}

// Copies the input rows for output rows, with their pads, as unsigned bytes:
// [PaddedExtent(height)][PaddedExtent(width)][in_channels].
inline void CopyPaddedRows(const Int8ConvArgs& args, const NhwcRows& rows, uint8_t* into) {
  const ConvDim &height = args.shape.dims[1], &width = args.shape.dims[2];
  const size_t channels = args.shape.in_channels;
  const size_t columns = PaddedExtent(width, width.out), row_bytes = columns * channels;
  const uint8_t flip = args.in_is_signed ? 0x80 : 0;
  const auto zero = static_cast<uint8_t>(static_cast<uint8_t>(args.in_zero) ^ flip);
  const size_t first = std::min(width.pad_begin, columns);
  const size_t inside = std::min(width.in, columns - first) * channels;
  const size_t padded_rows = PaddedExtent(height, rows.end - rows.begin);
  for (size_t i = 0; i < padded_rows; ++i, into += row_bytes) {
    const size_t y = rows.begin * height.stride + i - height.pad_begin;  // huge above the image
    if (y >= height.in) {
      std::memset(into, zero, row_bytes);
      continue;
    }
    std::memset(into, zero, first * channels);
    const uint8_t* from = args.in + (rows.image * height.in + y) * width.in * channels;
    uint8_t* to = into + first * channels;
    if (flip == 0) {
      std::memcpy(to, from, inside);
    } else {
      for (size_t j = 0; j < inside; ++j) to[j] = from[j] ^ 0x80;
    }
    std::memset(to + inside, zero, row_bytes - first * channels - inside);
  }
}

// Convolutions with one channel in each group, for the functions of conv_int8_nhwc.h.
bool IsNhwcDepthwise(const ConvGeneralShape& shape);
bool HasDepthwiseNhwc(const ConvGeneralShape& shape, const NhwcForm& form);
size_t PackedDepthwiseNhwcSize(const ConvGeneralShape& shape);
void PackDepthwiseNhwc(const ConvGeneralShape& shape, const uint8_t* weights, bool is_signed,
                       std::byte* packed);
size_t DepthwiseNhwcTaskCount(const ConvGeneralShape& shape);
size_t DepthwiseNhwcScratchSize(const ConvGeneralShape& shape);
void RunDepthwiseNhwcTask(const Int8ConvArgs& args, size_t task, std::byte* scratch);

// Convolutions that Winograd's filtering computes, for the same functions.
bool IsNhwcWinograd(const ConvGeneralShape& shape);
size_t PackedWinogradNhwcSize(const ConvGeneralShape& shape);
size_t PackWinogradNhwcTaskCount(const ConvGeneralShape& shape);
void RunPackWinogradNhwcTask(const ConvGeneralShape& shape, const uint8_t* weights, bool is_signed,
                             size_t task, std::byte* packed);
size_t WinogradNhwcTaskCount(const ConvGeneralShape& shape);
size_t WinogradNhwcScratchSize(const ConvGeneralShape& shape);
void RunWinogradNhwcTask(const Int8ConvArgs& args, size_t task, std::byte* scratch);

}  // namespace tenon::kernels
