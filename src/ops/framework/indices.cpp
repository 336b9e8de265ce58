#include "ops/framework/indices.h"

#include <algorithm>
#include <cmath>

#include "ops/framework/element.h"

namespace tenon {
namespace {

// The position of the first index out of range, or `n`. The common case, in which there is none, is
// one pass for the extremes, which the compiler vectorizes.
template <class I>
size_t FindOutOfRange(const I* indices, size_t n, int64_t dim) {
  I lowest = 0;
  I highest = -1;
  for (size_t i = 0; i < n; ++i) {
    lowest = std::min(lowest, indices[i]);
    highest = std::max(highest, indices[i]);
  }
  if (lowest >= -dim && highest < dim) return n;
  return static_cast<size_t>(
      std::find_if(indices, indices + n, [dim](I i) { return i < -dim || i >= dim; }) - indices);
}

}  // namespace

Status CheckIndices(const Tensor& indices, int64_t dim, size_t axis) {
  return VisitIndices(indices, [&](const auto* values) -> Status {
    const auto count = static_cast<size_t>(indices.size());
    const size_t bad = FindOutOfRange(values, count, dim);
    if (bad == count) return OkStatus();
    return InvalidArgument("index {} at position {} is out of range [{}, {}] of axis {}",
                           values[bad], bad, -dim, dim - 1, axis);
  });
}

Result<Shape> WholeNumbersOf(const Tensor& tensor) {
  if (tensor.type() == DataType::kInt64 || tensor.type() == DataType::kInt32) {
    return IntegersOf(tensor);
  }
  constexpr double kMost = 1e15;  // a double holds every whole number below
  Shape numbers;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double number = VisitNumber(
        tensor.type(), [&]<class T>(T) { return static_cast<double>(Widen(tensor.data<T>()[i])); });
    if (!(std::abs(number) < kMost) || number != std::floor(number)) {
      return InvalidArgument("expected whole numbers, got {} at {}", number, i);
    }
    numbers.Append(static_cast<int64_t>(number));
  }
  return numbers;
}

Status CheckIndicesFit(const SymbolicShape& data, const SymbolicShape& indices, size_t axis) {
  bool fits = data.rank() == indices.rank();
  for (size_t i = 0; fits && i < data.rank(); ++i) {
    fits = i == axis || !data[i].is_number() || !indices[i].is_number() ||
           indices[i].value() <= data[i].value();
  }
  if (fits) return OkStatus();
  return InvalidArgument("expected indices within data {} but for axis {}, got {}", data, axis,
                         indices);
}

Result<AxisIndexer> AxisIndexer::Make(const Shape& data, const Shape& indices, size_t axis) {
  const size_t rank = data.rank();
  if (rank > kMaxRank) return NotImplemented("tensors of more than {} axes", kMaxRank);
  AxisIndexer indexer;
  indexer.axis_dim_ = static_cast<size_t>(data[axis]);
  indexer.axis_stride_ = static_cast<size_t>(data.Product(axis + 1, rank));
  indexer.rank_ = rank - 1;
  indexer.rows_ = static_cast<size_t>(indices.Product(0, rank - 1));
  indexer.row_size_ = static_cast<size_t>(indices[rank - 1]);
  indexer.last_stride_ = axis == rank - 1 ? 0 : 1;
  for (size_t i = 0; i + 1 < rank; ++i) {
    indexer.sizes_[i] = static_cast<size_t>(indices[i]);
    indexer.strides_[i] = i == axis ? 0 : static_cast<size_t>(data.Product(i + 1, rank));
  }
  return indexer;
}

size_t AxisIndexer::RowOffset(size_t row) const {
  size_t offset = 0;
  for (size_t i = rank_; i-- > 0;) {
    offset += row % sizes_[i] * strides_[i];
    row /= sizes_[i];
  }
  return offset;
}

Result<CoordinateIndexer> CoordinateIndexer::Make(const Shape& data, const Tensor& indices,
                                                  size_t batch_dims) {
  const Shape& shape = indices.shape();
  CoordinateIndexer indexer;
  indexer.indices_ = indices.data<int64_t>();
  indexer.depth_ = static_cast<size_t>(shape.back());
  if (indexer.depth_ > kMaxDepth) return NotImplemented("more than {} coordinates", kMaxDepth);
  indexer.count_ = static_cast<size_t>(shape.Product(0, shape.rank() - 1));
  indexer.tuples_per_batch_ =
      static_cast<size_t>(std::max<int64_t>(1, shape.Product(batch_dims, shape.rank() - 1)));
  indexer.batch_stride_ = static_cast<size_t>(data.Product(batch_dims, data.rank()));
  indexer.slice_ = static_cast<size_t>(data.Product(batch_dims + indexer.depth_, data.rank()));
  for (size_t k = 0; k < indexer.depth_; ++k) {
    indexer.dims_[k] = static_cast<size_t>(data[batch_dims + k]);
    indexer.strides_[k] = static_cast<size_t>(data.Product(batch_dims + k + 1, data.rank()));
  }
  const int64_t* index = indexer.indices_;
  for (size_t tuple = 0; tuple < indexer.count_; ++tuple) {
    for (size_t k = 0; k < indexer.depth_; ++k, ++index) {
      const auto dim = static_cast<int64_t>(indexer.dims_[k]);
      if (*index >= -dim && *index < dim) continue;
      return InvalidArgument("index {} at position {} is out of range [{}, {}] of axis {}", *index,
                             index - indexer.indices_, -dim, dim - 1, batch_dims + k);
    }
  }
  return indexer;
}

}  // namespace tenon
