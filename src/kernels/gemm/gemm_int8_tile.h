// The building blocks of int8 products and convolutions, for the active target.
//
// Packed rows hold A in `group`s along the depth, brought to [-128, 127]; a packed panel holds `nr`
// columns of B, brought to [0, 255], the elements of a group next to each other; or A is unsigned
// and B signed. Both are padded with zeros to whole groups.
#pragma once

#include "kernels/gemm/gemm_int8_args.h"

namespace tenon::kernels {

struct Int8TileShape {
  size_t mr, nr;   // rows and columns of a tile
  size_t group;    // elements of the depth that one instruction adds up
  size_t a_bytes;  // of an element of packed rows
  bool a_is_unsigned = false;

  size_t Depth(size_t k) const { return (k + group - 1) / group * group; }
  size_t RowBytes(size_t k) const { return Depth(k) * a_bytes; }
  size_t PanelBytes(size_t k) const { return (Depth(k) * nr + 63) / 64 * 64; }
};
inline constexpr size_t kMaxInt8TileRows = 14;
inline constexpr size_t kMaxInt8TileColumns = 32;

// A row of sums and the terms for its output. With raw sums r of the packed values, S = r - a_zero
// * column_sum + row_term * b_zero + bias.
struct Int8RowOutput {
  size_t count;                // columns, at most nr
  const int32_t* sums;         // [nr]
  const int32_t* column_sums;  // [nr]
  const int32_t* b_zero;       // [nr], of the packed values
  int32_t a_zero;              // of the packed values
  int32_t row_term;            // k * a_zero - the row's sum
  size_t row;                  // in the output, for the epilogue's rows
  size_t column;               // of the first, for its columns
  void* c;
};

// A tile of sums and the terms for its output: S = r + column_term + row_term + row_factor *
// column_factor. The factors are needed where rows of A or columns of B have zero points of their
// own.
struct Int8TileOutput {
  size_t rows, columns;
  const int32_t* sums;                      // [rows][nr]
  const int32_t* row_terms;                 // [rows]
  const int32_t* column_terms;              // [nr]
  const int32_t* row_factors = nullptr;     // [rows]; null: 0
  const int32_t* column_factors = nullptr;  // [nr]; null if row_factors is
  const float* row_scales;                  // [rows]
  const float* column_scales = nullptr;     // [nr]; null: 1
  const float* column_biases = nullptr;     // [nr], of floats; null: 0
  int32_t zero_point;                       // of bytes
  bool is_signed;
  void* c;  // bytes or floats, rows ldc elements apart
  size_t ldc;
};

// A piece of a panel's row that is gathered from a plane: column i, if its bit is set, is
// plane[from + i * stride].
struct BytePiece {
  uint32_t columns;
  ptrdiff_t from;
};

// The columns of a panel as pixels of a convolution: row (channel, tap) holds the inputs for the
// tap.
struct Int8Pixels {
  const uint8_t* planes;  // one for each channel
  size_t plane_size, channels;
  size_t stride;            // 1 or 2
  const BytePiece* pieces;  // [taps][pieces_per_tap]
  size_t taps, pieces_per_tap;
  uint8_t zero;  // value outside all pieces
  bool is_signed;
};

struct Int8GemmTable {
  Int8TileShape shape;
  // Bytes after the column sums of a panel that pack_panel writes and run_tile reads; a multiple of
  // 64. May be null: none.
  size_t (*rest_bytes)(size_t depth) = nullptr;
  // Whether run_tile reads words with this panel, as widen_rows makes them of packed rows. May be
  // null: never.
  bool (*reads_words)(const uint8_t* panel, size_t depth) = nullptr;
  void (*widen_rows)(const void* a, size_t count, void* words) = nullptr;
  // Computes sums[i * nr + j] for `rows` packed rows and a panel.
  void (*run_tile)(const void* a, const uint8_t* panel, size_t depth, size_t rows, int32_t* sums);
  // row_sums: [rows], of the packed values.
  void (*pack_rows)(const Int8TileShape& shape, const Int8Matrix& a, size_t rows, size_t k,
                    void* out, int32_t* row_sums);
  // column_sums: [nr], of the packed values. lasts: the panel is for many products, so it may take
  // time to make.
  void (*pack_panel)(const Int8TileShape& shape, const Int8Matrix& b, size_t columns, size_t k,
                     bool lasts, uint8_t* out, int32_t* column_sums);
  void (*store_row)(const Int8RowOutput& row, const Int8Epilogue& epilogue);
  // Faster than pack_rows and pack_panel where the elements of a row are next to each other in
  // memory and a panel has nr columns; may be null.
  void (*pack_whole_rows)(const Int8Matrix& a, size_t rows, size_t k, size_t depth, void* out,
                          int32_t* row_sums);
  void (*pack_whole_panel)(const Int8Matrix& b, size_t k, uint8_t* out, int32_t* column_sums);
  // The sums of one packed row and of columns of B, a multiple of 64, and the column sums, from
  // the rows of B as they lie; may be null.
  void (*sum_row_in_place)(const void* a, const Int8Matrix& b, size_t k, size_t columns,
                           int32_t* sums, int32_t* column_sums);
  // Bytes, and floats; store_row does the same.
  void (*store_tile)(const Int8TileOutput& output);
  void (*store_float_tile)(const Int8TileOutput& output);
  // May be null, as gathering rows for pack_panel does the same.
  void (*pack_pixels)(const Int8Pixels& pixels, uint8_t* out, int32_t* column_sums);

  bool has_dot_products() const { return shape.group == 4; }

  void PackRows(const Int8Matrix& a, size_t rows, size_t k, void* out, int32_t* row_sums) const {
    if (pack_whole_rows && a.column_stride == 1) {
      pack_whole_rows(a, rows, k, shape.Depth(k), out, row_sums);
    } else {
      pack_rows(shape, a, rows, k, out, row_sums);
    }
  }

  void PackPanel(const Int8Matrix& b, size_t columns, size_t k, bool lasts, uint8_t* out,
                 int32_t* column_sums) const {
    if (pack_whole_panel && columns == shape.nr && b.column_stride == 1) {
      pack_whole_panel(b, k, out, column_sums);
    } else {
      pack_panel(shape, b, columns, k, lasts, out, column_sums);
    }
  }
};

// The table of the active target for products.
const Int8GemmTable& ActiveInt8Gemm();
// For convolutions whose weights are A, and pixels B: A is signed.
const Int8GemmTable& ActiveInt8Conv();

// A zero point in the range of the packed values.
inline int32_t PackedZero(bool is_signed, bool packed_is_signed, int32_t zero) {
  if (is_signed == packed_is_signed) return zero;
  return is_signed ? zero + 128 : zero - 128;
}
inline int32_t PackedZeroOfA(bool is_signed, int32_t zero) {
  return PackedZero(is_signed, true, zero);
}
inline int32_t PackedZeroOfB(bool is_signed, int32_t zero) {
  return PackedZero(is_signed, false, zero);
}

// Replaces what AVX2 does with bytes. Only for machines that have it.
void UseAvx2Bytes(Int8GemmTable* table);

// The functions that AVX-512's vpdpbusd speeds up; null if the machine lacks it.
struct VnniFunctions {
  void (*run_tile)(const void* a, const uint8_t* panel, size_t depth, size_t rows,
                   int32_t* sums) = nullptr;
  // As in Int8GemmTable.
  void (*pack_whole_rows)(const Int8Matrix& a, size_t rows, size_t k, size_t depth, void* out,
                          int32_t* row_sums) = nullptr;
  void (*pack_whole_panel)(const Int8Matrix& b, size_t k, uint8_t* out,
                           int32_t* column_sums) = nullptr;
  void (*sum_row_in_place)(const void* a, const Int8Matrix& b, size_t k, size_t columns,
                           int32_t* sums, int32_t* column_sums) = nullptr;
  void (*store_tile)(const Int8TileOutput& output) = nullptr;
  void (*pack_pixels)(const Int8Pixels& pixels, uint8_t* out, int32_t* column_sums) = nullptr;
};
// `shape` receives the tile's shape for these functions.
VnniFunctions FindVnni(Int8TileShape* shape);

}  // namespace tenon::kernels
