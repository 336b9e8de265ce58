#include "ops/framework/strided_copy.h"

#include <algorithm>
#include <string>

#include "kernels/copy.h"

namespace tenon {

Status StridedCopy::AddAxis(int64_t size, int64_t source_stride, int64_t target_stride) {
  if (size == 0) empty_ = true;
  if (size == 1 || empty_) return OkStatus();
  if (rank_ > 0) {
    const size_t outer = rank_ - 1;
    const auto inner_size = static_cast<ptrdiff_t>(size);
    if (source_strides_[outer] == source_stride * inner_size &&
        target_strides_[outer] == target_stride * inner_size) {
      sizes_[outer] *= static_cast<size_t>(size);
      source_strides_[outer] = source_stride;
      target_strides_[outer] = target_stride;
      return OkStatus();
    }
  }
  if (rank_ == kMaxAxes) return NotImplemented("tensors of more than {} axes", kMaxAxes);
  sizes_[rank_] = static_cast<size_t>(size);
  source_strides_[rank_] = source_stride;
  target_strides_[rank_] = target_stride;
  ++rank_;
  return OkStatus();
}

void StridedCopy::CopyStrings(const std::string* source, std::string* target) const {
  std::array<size_t, kMaxAxes> index{};
  for (;;) {
    *target = *source;
    size_t axis = rank_;
    for (;;) {
      if (axis == 0) return;
      --axis;
      source += source_strides_[axis];
      target += target_strides_[axis];
      if (++index[axis] < sizes_[axis]) break;
      source -= source_strides_[axis] * static_cast<ptrdiff_t>(sizes_[axis]);
      target -= target_strides_[axis] * static_cast<ptrdiff_t>(sizes_[axis]);
      index[axis] = 0;
    }
  }
}

Status StridedCopy::Run(const void* source, void* target, ThreadPool& threads) const {
  if (empty_) return OkStatus();
  if (type_ == DataType::kString) {
    CopyStrings(static_cast<const std::string*>(source), static_cast<std::string*>(target));
    return OkStatus();
  }
  TENON_ASSIGN_OR_RETURN(
      const kernels::CopyPlan plan,
      kernels::MakeCopyPlan({sizes_.data(), rank_}, {source_strides_.data(), rank_},
                            {target_strides_.data(), rank_}, DataTypeBits(type_) / 8));
  threads.ParallelFor(plan.units, plan.grain, [&](size_t begin, size_t end) {
    kernels::RunCopy(plan, source, target, begin, end);
  });
  return OkStatus();
}

}  // namespace tenon
