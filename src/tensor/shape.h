// The size of a tensor along each axis.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"

namespace tenon {

// Dimensions of a tensor, each >= 0 once checked. Rank 0 is a scalar. Up to kInlineRank axes are
// held without an allocation.
class Shape {
 public:
  static constexpr size_t kInlineRank = 8;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) { Assign({dims.begin(), dims.size()}); }
  explicit Shape(std::span<const int64_t> dims) { Assign(dims); }
  // `rank` axes of size `fill`.
  Shape(size_t rank, int64_t fill);
  Shape(const Shape& other) { Assign(other.dims()); }
  Shape& operator=(const Shape& other) {
    if (this != &other) Assign(other.dims());
    return *this;
  }
  Shape(Shape&& other) noexcept { *this = std::move(other); }
  Shape& operator=(Shape&& other) noexcept {
    std::copy_n(other.inline_, kInlineRank, inline_);
    heap_ = std::move(other.heap_);
    rank_ = std::exchange(other.rank_, 0);
    return *this;
  }

  size_t rank() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  int64_t* data() { return heap_ ? heap_.get() : inline_; }
  const int64_t* data() const { return heap_ ? heap_.get() : inline_; }
  std::span<const int64_t> dims() const { return {data(), rank_}; }
  std::span<int64_t> dims() { return {data(), rank_}; }
  int64_t operator[](size_t axis) const { return data()[axis]; }
  int64_t& operator[](size_t axis) { return data()[axis]; }
  const int64_t* begin() const { return data(); }
  const int64_t* end() const { return data() + rank_; }
  int64_t back() const { return data()[rank_ - 1]; }

  void Append(int64_t dim);
  void Assign(std::span<const int64_t> dims);

  bool operator==(const Shape& other) const {
    return rank_ == other.rank_ && std::equal(begin(), end(), other.begin());
  }

  // Product of all dimensions, 1 for a scalar. The shape must have passed Check().
  int64_t NumElements() const;
  // Product of the dimensions [first, last).
  int64_t Product(size_t first, size_t last) const;
  // The product, or an error if a dimension is negative or the product exceeds 2^63 - 1.
  Result<int64_t> CheckedNumElements() const;

  // "[2, 3, 224]"
  std::string ToString() const;

 private:
  int64_t inline_[kInlineRank] = {};
  std::unique_ptr<int64_t[]> heap_;
  size_t rank_ = 0;
};

// `axis` counted from the front: [-rank, rank) becomes [0, rank); anything else is an error.
Result<size_t> NormalizeAxis(int64_t axis, size_t rank);

}  // namespace tenon

template <>
struct fmt::formatter<tenon::Shape> : tenon::ToStringFormatter {};
