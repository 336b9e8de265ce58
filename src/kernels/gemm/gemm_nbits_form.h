// What the forms of integer products of many rows share, and how gemm_nbits_int8.cpp calls them.
#pragma once

#include "kernels/gemm/gemm_nbits.h"

namespace tenon::kernels {

inline size_t NBitsDepth(const NBitsMatrix& w) { return w.blocks() * w.block_size; }

// Where the byte of element i, of 16, comes from, so that it meets the quads of unpacked weights: a
// word of 32 bits has 32 / bits elements; the first bits of its bytes are a quad, and so on.
constexpr size_t NBitsRowOrder(size_t i, size_t bits) {
  const size_t in_word = i % (32 / bits);
  return i - in_word + in_word / 4 + in_word % 4 * (8 / bits);
}

// Weights of some columns, unpacked, without their zero points: quads of the depth,
// [depth / 4][columns][4], in the order of NBitsRowOrder; for each block and column the scale and,
// if not all are half the range, the zero point, as the form wants it.
struct NBitsPanel {
  uint8_t* weights;
  float* scales;
  int32_t* zeros;

  NBitsPanel(const NBitsMatrix& w, size_t columns, std::byte* memory)
      : weights(reinterpret_cast<uint8_t*>(memory)),
        scales(reinterpret_cast<float*>(memory + NBitsDepth(w) * columns)),
        zeros(w.zero_points ? reinterpret_cast<int32_t*>(scales + w.blocks() * columns) : nullptr) {
  }
};

// The rows of a tile, at its first one.
struct NBitsTileRows {
  const int8_t* bytes;
  size_t stride;
  const float* scales;
  const int32_t* starts;
  size_t blocks;
};

// The most rows of a tile, in any form.
inline constexpr size_t kMostNBitsTileRows = 7;

struct NBitsPanelForm {
  size_t most_bits;  // of a weight
  NBitsParts most_parts;
  size_t columns;    // of a panel, at most kNBitsPanelColumns
  size_t most_rows;  // of a tile
  // See Int8NBitsRows: writes the row's bytes, scales and starts.
  void (*set_row)(const NBitsMatrix& w, NBitsParts parts, const float* x, int8_t* bytes,
                  float* scales, int32_t* starts);
  // Fills a panel with rows [first, first + count) of w; the memory behind these is not read.
  NBitsPanel (*unpack)(const NBitsMatrix& w, size_t first, size_t count, std::byte* memory);
  // total: [rows][columns], aligned to 64.
  void (*run_tile)(const NBitsMatrix& w, NBitsParts parts, const NBitsTileRows& rows, size_t count,
                   const NBitsPanel& panel, float* total);
  // y = total + bias for the `count` columns of a row. bias: may be null.
  void (*store_row)(const float* total, const float* bias, size_t count, float* y);
};
extern const NBitsPanelForm kVnniNBitsPanels, kAvx2NBitsPanels;

}  // namespace tenon::kernels
