// Tensors of indices, which are checked before they are used.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "ir/dim.h"
#include "tensor/tensor.h"

namespace tenon {

// Calls visit(const int32_t* or const int64_t*).
template <class Visit>
decltype(auto) VisitIndices(const Tensor& indices, Visit&& visit) {
  if (indices.type() == DataType::kInt32) return visit(indices.data<int32_t>());
  return visit(indices.data<int64_t>());
}

// An index in [-dim, dim), negative ones counted from the back.
template <class I>
size_t WrapIndex(I index, size_t dim) {
  return static_cast<size_t>(index) + (index < 0 ? dim : 0);
}

// Checks that every element of `indices`, of type int32 or int64, is in [-dim, dim). Error:
// kInvalidArgument naming the first that is not, and the axis that it indexes.
Status CheckIndices(const Tensor& indices, int64_t dim, size_t axis);

// Elements of a tensor of numbers, which must be whole: operators of opset 1 take sizes and axes as
// floats. Error: kInvalidArgument naming the first that is not whole, or too large.
Result<Shape> WholeNumbersOf(const Tensor& tensor);

// The requirements of GatherElements and ScatterElements: equal ranks, and no axis of the indices
// but `axis` is longer than that of the data.
Status CheckIndicesFit(const SymbolicShape& data, const SymbolicShape& indices, size_t axis);

// For each element of `indices`, the element of the data with the same coordinates except along
// `axis`, where the index is used.
class AxisIndexer {
 public:
  // Error: kNotImplemented for a rank above kMaxRank.
  static Result<AxisIndexer> Make(const Shape& data, const Shape& indices, size_t axis);

  // The indices are `rows` runs of `row_size` elements, one per position of the last axis.
  size_t rows() const { return rows_; }
  size_t row_size() const { return row_size_; }

  // Calls f(position in the indices, offset in the data) for rows [begin, end).
  template <class I, class F>
  void ForEach(size_t begin, size_t end, const I* indices, F&& f) const {
    const size_t row_size = row_size_, dim = axis_dim_, stride = axis_stride_;
    for (size_t row = begin; row < end; ++row) {
      const size_t base = RowOffset(row), start = row * row_size;
      const I* own = indices + start;
      if (last_stride_ == 0) {  // the last axis is `axis`
        for (size_t j = 0; j < row_size; ++j) f(start + j, base + WrapIndex(own[j], dim));
      } else {
        for (size_t j = 0; j < row_size; ++j) {
          f(start + j, base + j + WrapIndex(own[j], dim) * stride);
        }
      }
    }
  }

 private:
  static constexpr size_t kMaxRank = 32;
  size_t RowOffset(size_t row) const;

  size_t rows_ = 0, row_size_ = 1, last_stride_ = 0;
  size_t axis_dim_ = 1, axis_stride_ = 1;
  size_t rank_ = 0;  // of the axes before the last
  std::array<size_t, kMaxRank> sizes_{};
  std::array<size_t, kMaxRank> strides_{};  // in the data; 0 for `axis`
};

// For each coordinate tuple in the last axis of `indices`, the slice of the data at these
// coordinates; the first `batch_dims` axes of both are shared. All tuples are checked once, by
// Make.
class CoordinateIndexer {
 public:
  // `indices` is an int64 tensor, which must outlive the indexer. The shapes fit each other.
  // Errors: kInvalidArgument naming the first coordinate out of range.
  static Result<CoordinateIndexer> Make(const Shape& data, const Tensor& indices,
                                        size_t batch_dims);

  size_t count() const { return count_; }  // of tuples
  size_t slice() const { return slice_; }  // elements that a tuple names
  size_t OffsetOf(size_t tuple) const {
    // A division takes longer than the rest.
    size_t offset = tuple < tuples_per_batch_ ? 0 : tuple / tuples_per_batch_ * batch_stride_;
    const int64_t* coordinates = indices_ + tuple * depth_;
    for (size_t k = 0; k < depth_; ++k) {
      offset += WrapIndex(coordinates[k], dims_[k]) * strides_[k];
    }
    return offset;
  }

 private:
  static constexpr size_t kMaxDepth = 32;
  const int64_t* indices_ = nullptr;
  size_t count_ = 0, slice_ = 1, depth_ = 0;
  size_t tuples_per_batch_ = 1, batch_stride_ = 0;
  std::array<size_t, kMaxDepth> dims_{};
  std::array<size_t, kMaxDepth> strides_{};
};

}  // namespace tenon
