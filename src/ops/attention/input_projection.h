// The first product of Attention: rows times merged weights of queries, keys and values.
#pragma once

#include "ir/shape_context.h"
#include "kernels/gemm/gemm.h"
#include "ops/framework/lazy_weights.h"
#include "runtime/kernel_context.h"
#include "runtime/kernel_info.h"

namespace tenon {

// rows x weights + bias, of inputs 0, 1 and 2 (which may be absent). Weights are [k, n]; if they
// are constant, the first run packs them. Immutable once prepared.
class InputProjection {
 public:
  void Prepare(KernelInfo& info);

  // The product of `context`'s inputs, to be written to `output`, [rows, n].
  // error  out of memory
  Result<kernels::GemmArgs> Product(KernelContext& context, float* output) const;

 private:
  LazyWeights packed_;
};

// The scratch memory that each running task of the product needs.
inline size_t ProductScratch(const kernels::GemmArgs& args) {
  return kernels::GemmScratchSize(args.sizes, args.packed_b != nullptr);
}
inline size_t ProductTasks(const kernels::GemmArgs& args) {
  return kernels::GemmTaskCount(args.sizes, args.packed_b != nullptr);
}

// The sizes of the columns of queries, keys and values. `hidden` is attribute qkv_hidden_sizes,
// empty for thirds of all columns.
struct QkvColumns {
  int64_t query, key, value;
};
// errors kInvalidArgument if the parts do not fit the columns and heads, or queries do not fit keys
Result<QkvColumns> SplitColumns(const std::vector<int64_t>& hidden, int64_t columns, int64_t heads);

// Checks that inputs 1 and 2 are weights and bias for rows of `row_size` elements; returns the
// columns, if known.
Result<std::optional<QkvColumns>> CheckProjection(const ShapeContext& context, const Dim& row_size,
                                                  const std::vector<int64_t>& hidden,
                                                  int64_t heads);

}  // namespace tenon
