// The orders in which cuBLASLt keeps the elements of a matrix.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "ir/dim.h"
#include "tensor/shape.h"

namespace tenon {

// The numbers of com.microsoft's attributes order_*. The last three store columns in groups of 32,
// one group after the other.
enum class MatrixOrder : int64_t {
  kColumns,
  kRows,
  kColumns32,        // rows of a group one below the other
  kColumns4Rows8,    // COL4_4R2_8C: in tiles of 8 rows
  kColumns32Rows32,  // COL32_2R_4R4: in tiles of 32 rows
};

// Error: kInvalidArgument naming the attribute.
Result<MatrixOrder> MatrixOrderOf(std::string_view attribute, int64_t value);

// A tensor as a stack of matrices; one of rank 0 or 1 is a row.
struct OrderedSizes {
  size_t count = 1, rows = 1, columns = 1;
  size_t matrix_size() const { return rows * columns; }
};
OrderedSizes OrderedSizesOf(const Shape& shape);

// Checks that the rows and columns fill the order's tiles. Unknown sizes pass. Error:
// kInvalidArgument naming the input.
Status CheckMatrixOrder(MatrixOrder order, const SymbolicShape& shape, size_t input);

// The position of element (row, column) of a matrix.
inline size_t OrderedOffset(MatrixOrder order, const OrderedSizes& sizes, size_t row,
                            size_t column) {
  const size_t group = column / 32 * 32 * sizes.rows, in_group = column % 32;
  switch (order) {
    case MatrixOrder::kColumns:
      return column * sizes.rows + row;
    case MatrixOrder::kRows:
      return row * sizes.columns + column;
    case MatrixOrder::kColumns32:
      return group + row * 32 + in_group;
    case MatrixOrder::kColumns4Rows8: {
      // A tile of 8 rows: the even rows' columns in eights, then the odd rows'; an eight holds the
      // first four columns of the four rows, then the last four.
      const size_t eight = row % 2 * 4 + in_group / 8;
      const size_t four = in_group % 8 / 4 * 4 + row % 8 / 2;
      return group + row / 8 * 256 + eight * 32 + four * 4 + column % 4;
    }
    default: {
      const size_t in_tile = row % 32;
      const size_t line = (in_tile % 8 / 2 * 4 + in_tile / 8) * 2 + in_tile % 2;
      return group + row / 32 * 1024 + line * 32 + in_group;
    }
  }
}

}  // namespace tenon
