#include "ops/attention/grouped_heads.h"

#include "base/arithmetic.h"

namespace tenon {
namespace {

enum Input : size_t { kQuery, kKey, kValue };

}  // namespace

Status CheckGroups(const GroupedHeads& groups) {
  if (groups.kv_heads >= 1 && groups.heads >= 1 && groups.heads % groups.kv_heads == 0) {
    return OkStatus();
  }
  return InvalidArgument("expected num_heads to be a multiple of kv_num_heads, got {} and {}",
                         groups.heads, groups.kv_heads);
}

Result<int64_t> HeadsInQuery(const GroupedHeads& groups, const ShapeContext& context) {
  const auto packed = CheckedMul<int64_t>(groups.kv_heads, context.HasInput(kKey) ? 0 : 2);
  const auto heads = packed ? CheckedAdd(groups.heads, *packed) : std::nullopt;
  if (heads) return *heads;
  return InvalidArgument("expected fewer heads than {} and {}", groups.heads, groups.kv_heads);
}

Result<Dim> GroupedHeadSize(const GroupedHeads& groups, const SymbolicShape& q,
                            const ShapeContext& context) {
  if (context.HasInput(kKey) != context.HasInput(kValue)) {
    return InvalidArgument("key and value are given together or not at all");
  }
  TENON_ASSIGN_OR_RETURN(const int64_t heads, HeadsInQuery(groups, context));
  if (q[2].is_number() && q[2].value() % heads != 0) {
    return InvalidArgument("input 0: expected heads of one size, got {}", q);
  }
  const Dim size = FloorDiv(q[2], Dim(heads));
  for (const size_t i : {kKey, kValue}) {
    TENON_RETURN_IF_ERROR(CheckInputShape(context, i, {q[0], q[1], Dim(groups.kv_heads) * size}));
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

Rotation RotationOf(const KernelContext& context, size_t cos, bool interleaved) {
  const Tensor& table = context.Input(cos);
  return {table.data<float>(), context.Input(cos + 1).data<float>(),
          static_cast<size_t>(table.shape()[1]), interleaved};
}

GroupedSources GroupedSourcesOf(const GroupedHeads& groups, const KernelContext& context) {
  const Shape& q = context.Input(kQuery).shape();
  const auto batch = static_cast<size_t>(q[0]), length = static_cast<size_t>(q[1]);
  const auto heads = static_cast<size_t>(groups.heads);
  const auto kv_heads = static_cast<size_t>(groups.kv_heads);
  const bool has_keys = context.HasInput(kKey);
  const size_t all_heads = heads + (has_keys ? 0 : 2 * kv_heads);
  GroupedSources sources;
  sources.size = static_cast<size_t>(q[2]) / all_heads;
  sources.q = {HeadsLast(batch, length, all_heads, sources.size),
               context.Input(kQuery).data<float>()};
  if (has_keys) {
    sources.k = {HeadsLast(batch, length, kv_heads, sources.size),
                 context.Input(kKey).data<float>()};
    sources.v = {sources.k.matrices, context.Input(kValue).data<float>()};
  } else {
    sources.k = sources.v = sources.q;
    sources.k.data += heads * sources.size;
    sources.v.data = sources.k.data + kv_heads * sources.size;
  }
  sources.q.matrices.heads = heads;
  sources.k.matrices.heads = sources.v.matrices.heads = kv_heads;
  return sources;
}

}  // namespace tenon
