// Kernels in which each work group handles one row of a row-major tensor: reductions, softmax,
// normalizations.
#pragma once

#include <string>

#include "planner.h"

namespace codegen {

// A tensor as rows of the elements that are reduced together.
struct Rows {
  TensorRef tensor;  // row-major, with the reduced axes last
  int64_t rows = 1;
  int64_t columns = 1;
};

// Brings the axes of a tensor to its end; they are in [0, rank) and sorted.
Result<Rows> MakeRows(Planner& planner, const TensorRef& tensor, const std::vector<size_t>& axes);

// A kernel for rows. `code` may use ROW, COLUMNS, LANE (0 ... GROUP - 1),
//   FOR_COLUMNS statement
// which executes the statement for each `column` of the lane, X(column), an element of the row, and
//   REDUCE(result, start, combine, element)
// which declares `result`, a float or, for integers, a long: all `element`s of the row, which are
// expressions of `column`, combined by combine(a, b). It stores elements by STORE. With
// `holds_rows`, X may only be used of FOR_COLUMNS's `column`: short rows are read from memory once.
KernelBody WriteRows(KernelWriter& writer, const Rows& rows, const char* name, std::string code,
                     size_t group_size, bool holds_rows);
// Items of a work group for such rows.
size_t RowGroupSize(const Planner& planner, const Rows& rows);

}  // namespace codegen
