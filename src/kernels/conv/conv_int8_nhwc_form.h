// What convolutions of bytes in NHWC do with the instructions of one processor family: the tiles of
// dense ones and the rows of depthwise ones. Only for the files conv_int8_nhwc*.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::kernels {

// Inputs that one instruction multiplies and adds up.
inline constexpr size_t kQuad = 4;

// A tile: output pixels times a panel's output channels.
struct NhwcTile {
  const uint8_t* const* pixels;  // where the window of each begins
  const int32_t* offsets;        // bytes from there to each quad: [runs][run_quads]
  size_t runs, run_quads;
  const int8_t* weights;
  const std::byte* rests;  // of the panel's vectors
  size_t rest_bytes;       // from a vector's to the next
  const int32_t* starts;   // of the sums, [panel]
  const float* scales;     // [panel]
  int32_t zero_point;
  bool is_signed;
  uint8_t* out;
  size_t out_stride;
  size_t channels;        // that are there
  bool has_small_scales;  // all below 1, so that scaled sums fit in 32 bits
  bool reads_words;       // as the form's reads_words says: the pixels are words
};

// Up to `lanes` rows of weights, of up to kWeightChunk bytes, that become a part of a panel.
struct NhwcWeightChunk {
  const uint8_t* rows[16];
  size_t count, bytes;
  uint8_t flip;          // makes the bytes signed
  int8_t* into;          // where the first quad goes
  size_t quad_distance;  // bytes from a quad to the next
  int32_t* sums;         // [lanes], of the weights, which are added
};
inline constexpr size_t kWeightChunk = 64;

// Rows of an image that a depthwise convolution interleaves.
inline constexpr size_t kInterleavedRows = 4;

// A row of the output of a depthwise convolution.
struct NhwcDepthwiseRow {
  const uint8_t* bands;  // interleaved rows
  size_t band_bytes;
  size_t bands_count, kernel_width;
  size_t tap_stride, step;  // bytes from a tap, or an output pixel, to the next
  const int8_t* weights;
  size_t weight_stride;  // bytes from a tap to the next
  const int32_t* starts;
  const float* scales;
  int32_t zero_point;
  bool is_signed;
  size_t width, channels;
  uint8_t* out;
};

struct NhwcForm {
  size_t lanes, panel;  // output channels of a vector, and of a panel, which has two
  size_t most_pixels;   // of a tile
  void (*run_tile)(const NhwcTile& tile, size_t pixels, bool is_wide);
  // Bytes for the rests of a vector's weights of so many quads; a multiple of 64.
  size_t (*rest_bytes)(size_t quads);
  void (*pack_weights)(const NhwcWeightChunk& chunk);
  // What is left to do when the vectors of a panel are packed, at `weights`: rests are split off.
  // Null: nothing.
  void (*finish_panel)(int8_t* weights, size_t quads, size_t vectors, const std::byte* rests);
  // Whether a panel with these rests reads its pixels as words; null: none does.
  bool (*reads_words)(const std::byte* rests, size_t quads);
  void (*widen)(const uint8_t* from, size_t count, int16_t* to);
  // Element i of the rows, xor `flip`, becomes bytes [4 i, 4 i + 4). Whole vectors only; returns
  // the number of elements.
  size_t (*interleave)(const uint8_t* const (&rows)[kInterleavedRows], size_t count, uint8_t flip,
                       uint8_t* out);
  size_t most_taps;  // columns of bands that run_depthwise_row takes
  void (*run_depthwise_row)(const NhwcDepthwiseRow& row);
};

// Null if the machine lacks the instructions.
const NhwcForm* VnniNhwcForm();
// Only for machines with AVX2.
const NhwcForm* Avx2NhwcForm();
// The active target's; null if there is none.
const NhwcForm* ActiveNhwcForm();

}  // namespace tenon::kernels
