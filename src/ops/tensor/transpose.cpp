// Transpose: axes in another order.
#include "ops/framework/element.h"
#include "ops/framework/op_row.h"
#include "ops/framework/strided_copy.h"

namespace tenon {
namespace {

// Transpose-13: without `perm` the axes are reversed.
struct TransposeAttrs {
  std::optional<std::vector<int64_t>> perm;
  static constexpr auto Fields() { return std::tuple(Field("perm", &TransposeAttrs::perm)); }
};

size_t SourceAxis(const TransposeAttrs& attrs, size_t i, size_t rank) {
  if (!attrs.perm) return rank - 1 - i;
  return static_cast<size_t>((*attrs.perm)[i]);
}

Status CheckPermutation(const std::vector<int64_t>& perm, size_t rank) {
  std::vector<bool> seen(rank, false);
  bool valid = perm.size() == rank;
  for (const int64_t axis : perm) {
    valid = valid && axis >= 0 && axis < static_cast<int64_t>(rank) && !seen[axis];
    if (valid) seen[axis] = true;
  }
  if (valid) return OkStatus();
  return InvalidArgument("expected attribute 'perm' to be a permutation of {} axes, got {}", rank,
                         Shape(perm));
}

Status InferTranspose(const TransposeAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape input, context.Input(0));
  if (attrs.perm) TENON_RETURN_IF_ERROR(CheckPermutation(*attrs.perm, input.rank()));
  SymbolicShape output;
  for (size_t i = 0; i < input.rank(); ++i) {
    output.Append(input[SourceAxis(attrs, i, input.rank())]);
  }
  return context.SetOutput(0, std::move(output));
}

Status RunTranspose(const TransposeAttrs& attrs, KernelContext& context) {
  const Tensor& input = context.Input(0);
  const Shape& shape = input.shape();
  const size_t rank = shape.rank();
  Shape strides(rank, 1);
  for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  if (input.size() == 0) return OkStatus();
  StridedCopy copy(input.type());
  int64_t target_stride = input.size();
  for (size_t i = 0; i < rank; ++i) {
    const size_t axis = SourceAxis(attrs, i, rank);
    target_stride /= shape[axis];
    TENON_RETURN_IF_ERROR(copy.AddAxis(shape[axis], strides[axis], target_stride));
  }
  return copy.Run(input.raw(), context.Output(0).raw(), context.threads());
}

constexpr OpRow kRows[] = {
    Op<InferTranspose, RunTranspose>("Transpose", {.since = 1, .types = kWholeByteTypes}),
};

}  // namespace

TENON_OP_FAMILY(Transpose, kRows);

}  // namespace tenon
