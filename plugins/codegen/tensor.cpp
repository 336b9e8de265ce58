#include "tensor.h"

#include <algorithm>

namespace codegen {

Tensor::Tensor(DataType element_type, Shape sizes)
    : type(element_type),
      stored_type(element_type),
      shape(std::move(sizes)),
      strides(RowMajorStrides(shape)) {}

bool Tensor::IsContiguous() const { return AreSameLayout(shape, strides, RowMajorStrides(shape)); }

bool Tensor::IsChannelsLast() const {
  return shape.size() >= 3 && !IsContiguous() &&
         AreSameLayout(shape, strides, ChannelsLastStrides(shape));
}

bool AreSameLayout(const Shape& shape, const Shape& a, const Shape& b) {
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1 && a[i] != b[i]) return false;
  }
  return true;
}

// Axes of both shapes are taken in groups of as many elements. The old axes of a group must lie as
// one; the new ones divide it.
std::optional<Shape> ReshapedStrides(const Shape& shape, const Shape& strides,
                                     const Shape& reshaped) {
  Shape result(reshaped.size(), 0);
  if (ElementCount(shape) == 0) return RowMajorStrides(reshaped);
  size_t next = 0;
  size_t made = 0;
  while (made < reshaped.size()) {
    if (reshaped[made] == 1) {
      ++made;
      continue;
    }
    while (shape[next] == 1) ++next;
    int64_t old_count = shape[next];
    int64_t new_count = reshaped[made];
    size_t last = made;
    size_t inner = next;
    while (old_count != new_count) {
      if (new_count < old_count) {
        new_count *= reshaped[++last];
        continue;
      }
      do ++inner;
      while (shape[inner] == 1);
      old_count *= shape[inner];
    }
    int64_t stride = strides[inner];
    for (size_t i = inner; i-- > next;) {
      if (shape[i] == 1) continue;
      size_t below = i + 1;
      while (shape[below] == 1) ++below;
      if (strides[i] != strides[below] * shape[below]) return std::nullopt;
    }
    for (size_t i = last + 1; i-- > made;) {
      result[i] = stride;
      stride *= reshaped[i];
    }
    next = inner + 1;
    made = last + 1;
  }
  return result;
}

Shape ChannelsLastStrides(const Shape& shape) {
  Shape strides(shape.size());
  int64_t stride = shape[1];
  for (size_t i = shape.size(); i-- > 2;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  strides[1] = 1;
  strides[0] = stride;
  return strides;
}

Shape RowMajorStrides(const Shape& shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

Result<Shape> BroadcastShape(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()));
  for (size_t i = 0; i < result.size(); ++i) {  // from the last axis
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) {
      return Failure("expected shapes that broadcast, got {} and {}", a, b);
    }
    result[result.size() - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

Shape BroadcastStrides(const Tensor& tensor, const Shape& shape) {
  Shape strides(shape.size(), 0);
  const size_t lead = shape.size() - tensor.shape.size();
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] != 1) strides[lead + i] = tensor.strides[i];
  }
  return strides;
}

Result<size_t> NormalizeAxis(int64_t axis, size_t rank) {
  const auto signed_rank = static_cast<int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank) {
    return Failure("expected an axis in [{}, {}], got {}", -signed_rank, signed_rank - 1, axis);
  }
  return static_cast<size_t>(axis < 0 ? axis + signed_rank : axis);
}

}  // namespace codegen
