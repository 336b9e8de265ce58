// The recurrence of an LSTM whose state is rounded to bytes: the product with R as
// DynamicQuantizeLSTM of com.microsoft computes it.
#pragma once

#include <vector>

#include "kernels/gemm/gemm_int8.h"
#include "ops/framework/lazy_weights.h"
#include "ops/recurrent/recurrent.h"

namespace tenon {

// Inputs of com.tenon LSTM where R has bytes: R = (bytes - zero) * scale. One of each for a
// direction, [directions], or one for each row of R, [directions, 4 * hidden].
enum ByteRecurrenceInput : size_t { kInputRScale = 8, kInputRZero = 9 };

// Immutable once prepared.
class ByteRecurrence {
 public:
  // Keeps R if it is a constant of bytes, which has constant scales and zero points. Errors: other
  // scales or zero points, no memory.
  Status Prepare(KernelInfo& info);
  // Whether there is such an R; else R is of floats.
  bool is_kept() const { return packed_.is_kept(); }

  // Floats of RecurrentStep::work, and bytes of its task_memory, that the functions below need.
  static size_t WorkFloats(const RecurrentSizes& sizes);
  size_t TaskBytes(const KernelContext& context, const RecurrentSizes& sizes) const;

  // Adds the rounded state times R' to the gates.
  void AddTo(const RecurrentStep& step) const;
  // The rounded state as floats, for an R of floats.
  static const float* RoundedState(const RecurrentStep& step);

 private:
  kernels::Int8GemmArgs Product(const RecurrentSizes& sizes) const;
  const uint8_t* Packed(const RecurrentSizes& sizes, size_t direction) const;

  LazyWeights packed_;
  size_t packed_bytes_ = 0;  // of a direction
  bool is_signed_ = false;
  std::vector<float> scales_;   // [directions, 4 * hidden]
  std::vector<int32_t> zeros_;  // likewise
};

}  // namespace tenon
