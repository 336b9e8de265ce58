// Copies between two strided views of memory: transposes, slices, tiles, parts of concatenations.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "base/thread_pool.h"
#include "kernels/copy.h"
#include "tensor/data_type.h"

namespace tenon {

// target[sum(index * target_stride)] = source[sum(index * source_stride)] for every index.
// Allocates nothing. Neighbouring axes that are contiguous in both views are merged when they are
// added.
class StridedCopy {
 public:
  static constexpr size_t kMaxAxes = kernels::kMaxCopyRank;

  // `type` is one of kWholeByteTypes.
  explicit StridedCopy(DataType type) : type_(type) {}

  // Appends an axis, outermost first; strides are in elements and may be 0 or negative. Distinct
  // indices must have distinct targets. Error: kNotImplemented beyond kMaxAxes that do not merge.
  Status AddAxis(int64_t size, int64_t source_stride, int64_t target_stride);

  // `source` and `target` are the elements at index 0. They must not overlap.
  Status Run(const void* source, void* target, ThreadPool& threads) const;

 private:
  void CopyStrings(const std::string* source, std::string* target) const;

  DataType type_;
  bool empty_ = false;
  size_t rank_ = 0;
  std::array<size_t, kMaxAxes> sizes_{};
  std::array<ptrdiff_t, kMaxAxes> source_strides_{};  // in elements, as the next
  std::array<ptrdiff_t, kMaxAxes> target_strides_{};
};

}  // namespace tenon
