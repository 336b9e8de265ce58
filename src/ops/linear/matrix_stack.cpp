#include "ops/linear/matrix_stack.h"

#include <algorithm>
#include <utility>

#include "ir/shape_context.h"

namespace tenon {
namespace {

// The positions of the axes of an operand with rank >= 2.
struct Axes {
  size_t batch_begin, batch_end, row, column;
};

Axes AxesOf(size_t rank, OperandForm form) {
  Axes axes =
      form.split_by_batch ? Axes{1, rank - 1, 0, rank - 1} : Axes{0, rank - 2, rank - 2, rank - 1};
  if (form.transposed) std::swap(axes.row, axes.column);
  return axes;
}

struct SymbolicStack {
  SymbolicShape batch;
  Dim rows, columns;
};

Result<SymbolicStack> SymbolicStackOf(const SymbolicShape& shape, OperandForm form, Side side) {
  if (shape.rank() == 0) {
    return InvalidArgument("input {}: expected a vector or matrices, got a scalar",
                           side == Side::kLeft ? 0 : 1);
  }
  if (shape.rank() == 1) {
    if (side == Side::kLeft) return SymbolicStack{{}, Dim(1), shape[0]};
    return SymbolicStack{{}, shape[0], Dim(1)};
  }
  const Axes axes = AxesOf(shape.rank(), form);
  SymbolicStack stack = {{}, shape[axes.row], shape[axes.column]};
  for (size_t i = axes.batch_begin; i < axes.batch_end; ++i) stack.batch.Append(shape[i]);
  return stack;
}

// Strides in matrices along `batch`, right-aligned, 0 where `own` has size 1.
Shape BroadcastStrides(const Shape& own, size_t rank) {
  Shape strides(rank, 0);
  int64_t stride = 1;
  for (size_t back = 1; back <= own.rank(); ++back) {
    const int64_t dim = own[own.rank() - back];
    if (dim != 1) strides[rank - back] = stride;
    stride *= dim;
  }
  return strides;
}

}  // namespace

MatrixStack StackOf(const Shape& shape, OperandForm form, Side side) {
  MatrixStack stack;
  if (shape.rank() == 1) {
    const auto size = static_cast<size_t>(shape[0]);
    if (side == Side::kLeft) {
      stack.rows = 1, stack.columns = size, stack.row_stride = size, stack.column_stride = 1;
    } else {
      stack.rows = size, stack.columns = 1, stack.row_stride = 1, stack.column_stride = size;
    }
    stack.matrix_stride = size;
    return stack;
  }
  const Axes axes = AxesOf(shape.rank(), form);
  stack.batch.Assign(shape.dims().subspan(axes.batch_begin, axes.batch_end - axes.batch_begin));
  const auto stride = [&](size_t axis) {
    return static_cast<size_t>(shape.Product(axis + 1, shape.rank()));
  };
  stack.rows = static_cast<size_t>(shape[axes.row]);
  stack.columns = static_cast<size_t>(shape[axes.column]);
  stack.row_stride = stride(axes.row);
  stack.column_stride = stride(axes.column);
  stack.matrix_stride =
      form.split_by_batch ? static_cast<size_t>(shape.back()) : stack.rows * stack.columns;
  return stack;
}

Result<SymbolicShape> InferProduct(const SymbolicShape& a, OperandForm a_form,
                                   const SymbolicShape& b, OperandForm b_form) {
  TENON_ASSIGN_OR_RETURN(const SymbolicStack left, SymbolicStackOf(a, a_form, Side::kLeft));
  TENON_ASSIGN_OR_RETURN(const SymbolicStack right, SymbolicStackOf(b, b_form, Side::kRight));
  if (left.columns.is_number() && right.rows.is_number() && !(left.columns == right.rows)) {
    return InvalidArgument("input 1: expected {} rows to match input 0 {}, got {} in {}",
                           left.columns, a, right.rows, b);
  }
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, BroadcastShapes(left.batch, right.batch));
  if (a.rank() > 1) y.Append(left.rows);
  if (b.rank() > 1) y.Append(right.columns);
  return y;
}

BatchPairs::BatchPairs(const Shape& a, const Shape& b) {
  const size_t rank = std::max(a.rank(), b.rank());
  a_strides_ = BroadcastStrides(a, rank);
  b_strides_ = BroadcastStrides(b, rank);
  batch_ = Shape(rank, 1);
  for (const Shape* shape : {&a, &b}) {
    for (size_t back = 1; back <= shape->rank(); ++back) {
      const int64_t dim = (*shape)[shape->rank() - back];
      if (dim != 1) batch_[rank - back] = dim;
    }
  }
}

BatchPairs::Pair BatchPairs::At(size_t index) const {
  Pair pair = {0, 0};
  for (size_t axis = batch_.rank(); axis-- > 0 && index > 0;) {
    const auto dim = static_cast<size_t>(batch_[axis]);
    const size_t position = index % dim;
    index /= dim;
    pair.a += position * static_cast<size_t>(a_strides_[axis]);
    pair.b += position * static_cast<size_t>(b_strides_[axis]);
  }
  return pair;
}

}  // namespace tenon
