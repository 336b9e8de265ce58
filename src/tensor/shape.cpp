#include "tensor/shape.h"

namespace tenon {

Shape::Shape(size_t rank, int64_t fill) {
  if (rank > kInlineRank) heap_ = std::make_unique<int64_t[]>(rank);
  rank_ = rank;
  std::fill_n(data(), rank, fill);
}

void Shape::Assign(std::span<const int64_t> dims) {
  if (dims.size() > kInlineRank) {
    auto heap = std::make_unique<int64_t[]>(dims.size());
    std::copy(dims.begin(), dims.end(), heap.get());
    heap_ = std::move(heap);
  } else {
    std::copy(dims.begin(), dims.end(), inline_);
    heap_.reset();
  }
  rank_ = dims.size();
}

void Shape::Append(int64_t dim) {
  if (rank_ < kInlineRank) {
    inline_[rank_++] = dim;
    return;
  }
  auto heap = std::make_unique<int64_t[]>(rank_ + 1);
  std::copy(begin(), end(), heap.get());
  heap[rank_] = dim;
  heap_ = std::move(heap);
  ++rank_;
}

int64_t Shape::Product(size_t first, size_t last) const {
  int64_t product = 1;
  for (size_t i = first; i < last; ++i) product *= data()[i];
  return product;
}

int64_t Shape::NumElements() const { return Product(0, rank_); }

Result<int64_t> Shape::CheckedNumElements() const {
  int64_t product = 1;
  bool overflow = false;
  bool has_zero = false;
  for (const int64_t dim : *this) {
    if (dim < 0) return InvalidArgument("expected dimensions >= 0, got {}", ToString());
    has_zero |= dim == 0;
    overflow |= __builtin_mul_overflow(product, std::max<int64_t>(dim, 1), &product);
  }
  if (overflow) return InvalidArgument("the number of elements of {} overflows", ToString());
  return has_zero ? 0 : product;
}

std::string Shape::ToString() const {
  std::string text = "[";
  for (size_t i = 0; i < rank_; ++i) {
    if (i > 0) text += ", ";
    text += Format("{}", (*this)[i]);
  }
  return text + "]";
}

Result<size_t> NormalizeAxis(int64_t axis, size_t rank) {
  const auto signed_rank = static_cast<int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank) {
    return InvalidArgument("expected axis in [{}, {}] for rank {}, got {}", -signed_rank,
                           signed_rank - 1, rank, axis);
  }
  return static_cast<size_t>(axis < 0 ? axis + signed_rank : axis);
}

}  // namespace tenon
