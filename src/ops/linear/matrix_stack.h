// Operands of a product as stacks of matrices that broadcast against each other.
#pragma once

#include "base/status.h"
#include "ir/dim.h"
#include "tensor/shape.h"

namespace tenon {

// The meaning of an operand's axes.
struct OperandForm {
  // The matrices are transposed.
  bool transposed = false;
  // The first axis of a matrix is the operand's first, before the batch axes, and not the last but
  // one: com.microsoft's transBatchA and transBatchB.
  bool split_by_batch = false;
};

enum class Side { kLeft, kRight };

// A tensor as a stack of matrices. Element (i, j) of matrix number b, counted over the batch axes,
// is data[b * matrix_stride + i * row_stride + j * column_stride].
struct MatrixStack {
  Shape batch;
  size_t rows = 0, columns = 0;
  size_t row_stride = 0, column_stride = 0, matrix_stride = 0;

  size_t count() const { return static_cast<size_t>(batch.NumElements()); }
};

// A vector is a row on the left, a column on the right. `shape` has been accepted by InferProduct.
MatrixStack StackOf(const Shape& shape, OperandForm form, Side side);

// MatMul-13's shape rule, NumPy's matmul: the shape of A x B. A vector's added axis is removed.
// Errors: kInvalidArgument if an operand is a scalar or the sizes do not fit.
Result<SymbolicShape> InferProduct(const SymbolicShape& a, OperandForm a_form,
                                   const SymbolicShape& b, OperandForm b_form);

// Pairs the matrices of two stacks by broadcasting their batch axes.
class BatchPairs {
 public:
  struct Pair {
    size_t a, b;  // numbers of matrices
  };

  // The batch axes have been accepted by InferProduct.
  BatchPairs(const Shape& a, const Shape& b);

  size_t count() const { return static_cast<size_t>(batch_.NumElements()); }
  // The pair that makes matrix `index` of the product.
  Pair At(size_t index) const;

 private:
  Shape batch_;
  Shape a_strides_, b_strides_;  // in matrices; 0 along axes that are broadcast
};

}  // namespace tenon
