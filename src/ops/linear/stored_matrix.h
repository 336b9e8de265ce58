// The constant right side of products as a model stores it, and in the packed form that float32
// products read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/gemm/gemm.h"
#include "ops/linear/matrix_stack.h"
#include "tensor/tensor.h"

namespace tenon {

// One matrix, [depth, columns], of float32 or float16 numbers, which need not be aligned. Packed
// matrices have the type of the stored one.
class StoredMatrix {
 public:
  // Matrix `i` of a stack. The memory is the constant's.
  StoredMatrix(const Tensor& constant, const MatrixStack& stack, size_t i = 0)
      : data_(static_cast<const std::byte*>(constant.raw())),
        row_stride_(stack.row_stride),
        column_stride_(stack.column_stride),
        columns_(stack.columns),
        depth_(stack.rows),
        is_half_(constant.type() == DataType::kFloat16) {
    data_ += i * stack.matrix_stride * element_size();
  }

  // The matrix of the columns from `first` on, at most so many.
  StoredMatrix Columns(size_t first, size_t count) const {
    StoredMatrix some = *this;
    some.data_ += first * column_stride_ * element_size();
    some.columns_ = std::min(count, columns_ - first);
    return some;
  }

  size_t PackedBytes() const {
    return is_half_ ? kernels::PackedHalfGemmBSize(columns_, depth_)
                    : kernels::PackedGemmBSize(columns_, depth_);
  }
  size_t PackTasks() const { return kernels::PackGemmBTaskCount(columns_, depth_); }
  // packed: PackedBytes(), aligned to 64. Any order, any threads.
  void Pack(size_t task, void* packed) const {
    if (is_half_) {
      kernels::RunPackHalfGemmBTask(
          {reinterpret_cast<const uint16_t*>(data_), row_stride_, column_stride_}, columns_, depth_,
          task, static_cast<uint16_t*>(packed));
    } else {
      kernels::RunPackGemmBTask(
          {reinterpret_cast<const float*>(data_), row_stride_, column_stride_}, columns_, depth_,
          task, static_cast<float*>(packed));
    }
  }

  bool is_half() const { return is_half_; }

  // Gives a product its packed right side.
  void SetPacked(const void* packed, kernels::GemmArgs& args) const {
    if (is_half_) {
      args.packed_half_b = static_cast<const uint16_t*>(packed);
    } else {
      args.packed_b = static_cast<const float*>(packed);
    }
  }

 private:
  size_t element_size() const { return is_half_ ? sizeof(uint16_t) : sizeof(float); }

  const std::byte* data_;
  size_t row_stride_, column_stride_;
  size_t columns_, depth_;
  bool is_half_;
};

}  // namespace tenon
