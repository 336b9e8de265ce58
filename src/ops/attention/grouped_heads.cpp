#include "ops/attention/grouped_heads.h"

#include <cmath>

#include "base/arithmetic.h"
#include "kernels/normalization.h"

namespace tenon {
namespace {

enum Input : size_t { kQuery, kKey, kValue };

}  // namespace

Status CheckGroups(const GroupedAttrs& attrs) {
  if (attrs.kv_heads >= 1 && attrs.heads >= 1 && attrs.heads % attrs.kv_heads == 0) {
    return OkStatus();
  }
  return InvalidArgument("expected num_heads to be a multiple of kv_num_heads, got {} and {}",
                         attrs.heads, attrs.kv_heads);
}

Result<int64_t> HeadsInQuery(const GroupedAttrs& attrs, const ShapeContext& context) {
  const auto packed = CheckedMul<int64_t>(attrs.kv_heads, context.HasInput(kKey) ? 0 : 2);
  const auto heads = packed ? CheckedAdd(attrs.heads, *packed) : std::nullopt;
  if (heads) return *heads;
  return InvalidArgument("expected fewer heads than {} and {}", attrs.heads, attrs.kv_heads);
}

Result<Dim> GroupedHeadSize(const GroupedAttrs& attrs, const SymbolicShape& q, const Dim& keys,
                            const ShapeContext& context) {
  if (context.HasInput(kKey) != context.HasInput(kValue)) {
    return InvalidArgument("key and value are given together or not at all");
  }
  TENON_ASSIGN_OR_RETURN(const int64_t heads, HeadsInQuery(attrs, context));
  if (q[2].is_number() && q[2].value() % heads != 0) {
    return InvalidArgument("input 0: expected heads of one size, got {}", q);
  }
  const Dim size = FloorDiv(q[2], Dim(heads));
  for (const size_t i : {kKey, kValue}) {
    TENON_RETURN_IF_ERROR(CheckInputShape(context, i, {q[0], keys, Dim(attrs.kv_heads) * size}));
  }
  return size;
}

Status CheckAngleTables(const ShapeContext& context, size_t cos, const Dim& most) {
  if (!context.HasInput(cos) || !context.HasInput(cos + 1)) {
    return InvalidArgument("do_rotary needs the inputs cos_cache and sin_cache");
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape table, context.InputOfRank(cos, 2));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape other, context.InputOfRank(cos + 1, 2));
  const bool is_known = table[1].is_number() && most.is_number();
  if (MayEqual(table, other) && (!is_known || table[1].value() <= most.value() / 2)) {
    return OkStatus();
  }
  return InvalidArgument("input {}: expected angles for heads of {} elements, got {} and {}", cos,
                         most, table, other);
}

GroupedRun::GroupedRun(const GroupedAttrs& attrs, KernelContext& context, size_t cos)
    : context_(context),
      heads_(static_cast<size_t>(attrs.heads)),
      kv_heads_(static_cast<size_t>(attrs.kv_heads)) {
  const Shape& q = context.Input(kQuery).shape();
  if (q.rank() == 3) batch_ = static_cast<size_t>(q[0]);
  queries_ = static_cast<size_t>(q[q.rank() - 2]);
  const bool has_keys = context.HasInput(kKey);
  keys_ = queries_;
  const size_t all_heads = heads_ + (has_keys ? 0 : 2 * kv_heads_);
  size_ = static_cast<size_t>(q[q.rank() - 1]) / all_heads;
  q_ = {HeadsLast(batch_, queries_, all_heads, size_), context.Input(kQuery).data<float>()};
  if (has_keys) {
    const Shape& key = context.Input(kKey).shape();
    keys_ = static_cast<size_t>(key[key.rank() - 2]);
    k_ = {HeadsLast(batch_, keys_, kv_heads_, size_), context.Input(kKey).data<float>()};
    v_.matrices = k_.matrices;
    if (context.HasInput(kValue)) v_.data = context.Input(kValue).data<float>();
  } else {
    k_ = v_ = q_;
    k_.data += heads_ * size_;
    v_.data = k_.data + kv_heads_ * size_;
  }
  q_.matrices.heads = heads_;
  k_.matrices.heads = v_.matrices.heads = kv_heads_;
  if (attrs.do_rotary) {
    const Tensor& table = context.Input(cos);
    rotation_ = {table.data<float>(), context.Input(cos + 1).data<float>(),
                 static_cast<size_t>(table.shape()[1]), attrs.rotary_interleaved};
  }
  scale_ = attrs.scale.value_or(0);
  if (scale_ == 0) scale_ = 1 / std::sqrt(static_cast<float>(size_));
}

void GroupedRun::Normalize(size_t norm, float epsilon, float* row) const {
  if (!context_.HasInput(norm)) return;
  kernels::RmsNorm({row}, row, 1, size_, {epsilon, context_.Input(norm).data<float>()});
}

}  // namespace tenon
