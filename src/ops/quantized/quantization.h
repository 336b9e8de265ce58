// Shared by the quantizing operators: the scale of each element.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/status.h"
#include "base/thread_pool.h"
#include "ir/shape_context.h"
#include "kernels/elementwise/quantize.h"
#include "tensor/tensor.h"

namespace tenon {

// The kernels' name of an element type; nothing if they have none.
std::optional<kernels::QuantizedType> QuantizedTypeOf(DataType type);

// The least and greatest integer of an integer type; nothing for other types.
struct IntegerRange {
  int64_t min, max;
};
std::optional<IntegerRange> IntegerRangeOf(DataType type);

// The parameters of DynamicQuantizeLinear-11 for floats: uint8 with a range that includes 0. Zeros
// only have the scale 1.
struct DynamicQuantization {
  float scale = 1;
  uint8_t zero_point = 0;
};
DynamicQuantization QuantizationOfRange(const kernels::FloatRange& range);
// Bytes of memory, aligned for floats, that this needs.
size_t DynamicRangeBytes(size_t n);
DynamicQuantization FindDynamicQuantization(std::span<const float> x, void* memory,
                                            ThreadPool& threads);
// y[i] = saturate(round(x[i] / scale) + zero_point).
void QuantizeDynamically(std::span<const float> x, const DynamicQuantization& found, uint8_t* y,
                         ThreadPool& threads);

// The same numbers as floats again, also in place.
void FakeQuantizeDynamically(std::span<const float> x, const DynamicQuantization& found, float* y,
                             ThreadPool& threads);

// The position of an element's scale. A tensor is treated as [outer, dim, inner], where `dim` is
// the size of the quantized axis.
class ScaleLayout {
 public:
  // `scales` has been accepted by Check. Error: an axis out of range.
  static Result<ScaleLayout> Make(const Shape& x, const Shape& scales, int64_t axis,
                                  int64_t block_size);

  // Checks that `scales` is a scalar or one element, a vector along the axis, or of the blocked
  // form. Unknown sizes pass. Error: kInvalidArgument.
  static Status Check(const SymbolicShape& x, const SymbolicShape& scales, int64_t axis,
                      int64_t block_size);

  // Divides elements [begin, end) into runs and calls f(first, count, scale, per_element) for each:
  // element first + i has the scale with index `scale`, plus i if per_element.
  template <class F>
  void ForEachRun(size_t begin, size_t end, F&& f) const {
    for (size_t position = begin; position < end;) {
      const size_t i = position % inner_;
      const size_t a = position / inner_ % dim_;
      const size_t outer = position / inner_ / dim_;
      const bool along_axis = inner_ == 1 && block_ == 1;
      size_t count = along_axis ? dim_ - a : inner_ - i;
      if (inner_ == 1 && !along_axis) count = std::min(block_ - a % block_, dim_ - a);
      count = std::min(count, end - position);
      const size_t scale = outer * outer_stride_ + a / block_ * axis_stride_ + i * inner_stride_;
      const size_t step = along_axis ? axis_stride_ : inner_ == 1 ? 0 : inner_stride_;
      f(position, count, scale, step != 0);
      position += count;
    }
  }

 private:
  size_t dim_ = 1, inner_ = 1, block_ = 1;
  size_t outer_stride_ = 0, axis_stride_ = 0, inner_stride_ = 0;  // of the scales
};

}  // namespace tenon
