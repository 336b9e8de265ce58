// Products of float matrices for kernels that compute many of them, one after the other.
#pragma once

#include <cstddef>

#include "kernels/gemm/gemm_args.h"
#include "runtime/kernel_context.h"
#include "runtime/kernel_info.h"

namespace tenon {

// How a kernel multiplies: floats, or floats that are rounded to bfloat16 where the session or the
// model (kFromBfloat16) allows it and that is faster. Sums are of floats.
class FloatGemm {
 public:
  FloatGemm() = default;
  explicit FloatGemm(const KernelInfo& info);

  bool rounds() const { return rounds_; }

  // Floats of a packed [k, n] matrix; a multiple of 16.
  size_t PackedFloats(size_t n, size_t k) const;
  void Pack(const kernels::GemmMatrix& b, size_t n, size_t k, float* packed) const;

  // Bytes of memory that Run needs; a multiple of 64.
  size_t TaskBytes(const KernelContext& context, const kernels::GemmSizes& sizes,
                   bool is_packed) const;
  // args.packed_b: as Pack wrote it, or null. args.threads need not be set. memory: aligned to 64.
  // is_backward: the tasks and their panels of B are run in the opposite order.
  void Run(KernelContext& context, kernels::GemmArgs args, std::byte* memory,
           bool is_backward = false) const;

 private:
  bool rounds_ = false;
};

}  // namespace tenon
