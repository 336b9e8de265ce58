// Running sums and products along an axis: CumSum-14, CumProd-26.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/element_type.h"

namespace tenon::kernels {

enum class CumulativeOp : uint8_t { kSum, kProduct };

// x and y are [outer, n, inner]; the middle axis is walked.
struct CumulativePlan {
  CumulativeOp op;
  size_t outer, n, inner;
  bool exclusive = false;  // y[i] is made of the elements before x[i]
  bool reverse = false;    // from the last element to the first

  // Units of work, which are independent, and about how many elements each has.
  size_t tasks() const { return outer * blocks(); }
  size_t task_elements() const { return n * (inner < kColumns ? inner : kColumns); }

  // Neighbouring columns that are walked together, so that memory is read along its rows.
  static constexpr size_t kColumns = 256;
  size_t blocks() const { return (inner + kColumns - 1) / kColumns; }
};

// Does the tasks [begin, end). y may be x. Integers wrap around. Products are of float, double, or
// integers of 32 or 64 bits. May be called from several threads at once.
void Cumulate(const CumulativePlan& plan, ElementType type, const void* x, void* y, size_t begin,
              size_t end);

}  // namespace tenon::kernels
