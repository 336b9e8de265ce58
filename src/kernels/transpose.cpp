#include "kernels/transpose.h"

#include <array>

namespace tenon::kernels {

Result<CopyPlan> MakeTransposePlan(std::span<const size_t> shape,
                                   std::span<const size_t> permutation, size_t element_size) {
  const size_t rank = shape.size();
  if (rank > kMaxCopyRank) {
    return InvalidArgument("expected a rank of at most {}, got {}", kMaxCopyRank, rank);
  }
  if (permutation.size() != rank) {
    return InvalidArgument("expected a permutation of {} axes, got {}", rank, permutation.size());
  }
  std::array<ptrdiff_t, kMaxCopyRank> strides;
  ptrdiff_t stride = 1;
  for (size_t axis = rank; axis-- > 0;) {
    strides[axis] = stride;
    stride *= static_cast<ptrdiff_t>(shape[axis]);
  }
  std::array<size_t, kMaxCopyRank> result_shape;
  std::array<ptrdiff_t, kMaxCopyRank> src_strides;
  std::array<bool, kMaxCopyRank> seen{};
  for (size_t i = 0; i < rank; ++i) {
    const size_t axis = permutation[i];
    if (axis >= rank || seen[axis]) {
      return InvalidArgument("expected a permutation of {} axes, got axis {} at {}", rank, axis, i);
    }
    seen[axis] = true;
    result_shape[i] = shape[axis];
    src_strides[i] = strides[axis];
  }
  std::array<ptrdiff_t, kMaxCopyRank> dst_strides;
  stride = 1;
  for (size_t i = rank; i-- > 0;) {
    dst_strides[i] = stride;
    stride *= static_cast<ptrdiff_t>(result_shape[i]);
  }
  return MakeCopyPlan({result_shape.data(), rank}, {src_strides.data(), rank},
                      {dst_strides.data(), rank}, element_size);
}

}  // namespace tenon::kernels
