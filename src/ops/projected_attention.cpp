// Attention of com.microsoft: the projections of its input, then attention among their heads.
#include <cmath>

#include "base/arithmetic.h"
#include "ops/families.h"
#include "ops/head_rows.h"
#include "ops/input_projection.h"

namespace tenon {
namespace {

enum Input : size_t { kX, kWeights, kBias, kPadding, kPast, kScoreBias, kPastLength };
enum Output : size_t { kY, kPresent };

struct AttentionAttrs {
  int64_t heads = 1;
  std::vector<int64_t> hidden;
  std::optional<float> scale;
  float filter = -10000;
  bool is_causal = false;
  bool do_rotary = false;
  static constexpr auto Fields() {
    using A = AttentionAttrs;
    return std::tuple(Field("num_heads", &A::heads), Field("qkv_hidden_sizes", &A::hidden),
                      Field("scale", &A::scale), Field("mask_filter_value", &A::filter),
                      Field("unidirectional", &A::is_causal), Field("do_rotary", &A::do_rotary));
  }
};

// The rows of the cache, [2, batch, heads, rows, size], of which `used` counts.
struct PastRows {
  Dim rows = Dim(0), used = Dim(0);
};

Result<PastRows> CheckPast(const ShapeContext& context, const Dim& batch, int64_t heads,
                           const std::optional<QkvColumns>& columns) {
  if (!context.HasInput(kPast)) return PastRows();
  TENON_ASSIGN_OR_RETURN(const SymbolicShape past, context.InputOfRank(kPast, 5));
  bool fits =
      MayEqual(past[0], Dim(2)) && MayEqual(past[1], batch) && MayEqual(past[2], Dim(heads));
  if (columns) {
    fits = fits && columns->key == columns->value && MayEqual(past[4], Dim(columns->key / heads));
  }
  if (!fits) {
    return InvalidArgument("input 4: expected a past of {} sequences with {} heads, got {}", batch,
                           heads, past);
  }
  PastRows rows = {past[3], past[3]};
  if (!context.HasInput(kPastLength)) return rows;
  rows.used = Dim::Unknown();
  const Tensor* length = context.InputData(kPastLength);
  if (length == nullptr || !past[3].is_number()) return rows;
  const int64_t used = length->size() > 0 ? length->data<int32_t>()[0] : -1;
  if (used < 0 || used > past[3].value()) {
    return InvalidArgument("input 6: expected a length in [0, {}], got {}", past[3], used);
  }
  rows.used = Dim(used);
  return rows;
}

Status InferAttention(const AttentionAttrs& attrs, ShapeContext& context) {
  if (attrs.do_rotary) return NotImplemented("do_rotary = 1");
  if (attrs.heads < 1) return InvalidArgument("expected num_heads >= 1, got {}", attrs.heads);
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.InputOfRank(kX, 3));
  TENON_ASSIGN_OR_RETURN(const auto columns,
                         CheckProjection(context, x[2], attrs.hidden, attrs.heads));
  TENON_ASSIGN_OR_RETURN(const PastRows past, CheckPast(context, x[0], attrs.heads, columns));
  const Dim keys = past.used + x[1];
  const bool is_shared = context.HasInput(kPastLength) && context.HasInput(kPast);
  if (is_shared && keys.is_number() && past.rows.is_number() && keys.value() > past.rows.value()) {
    return InvalidArgument("{} keys do not fit into a cache of {}", keys, past.rows);
  }
  TENON_RETURN_IF_ERROR(CheckPaddingMask(context, kPadding, x[0], x[1], keys, true));
  TENON_RETURN_IF_ERROR(CheckScoreBias(context, kScoreBias, x[0], Dim(attrs.heads), x[1], keys));
  const Dim size = columns ? Dim(columns->key / attrs.heads) : Dim::Unknown();
  if (columns && columns->key != columns->value && context.HasOutput(kPresent)) {
    return InvalidArgument("present needs keys and values of one size, got {} and {}", columns->key,
                           columns->value);
  }
  TENON_RETURN_IF_ERROR(context.SetOutput(
      kPresent, {Dim(2), x[0], Dim(attrs.heads), is_shared ? past.rows : keys, size}));
  return context.SetOutput(kY, {x[0], x[1], columns ? Dim(columns->value) : Dim::Unknown()});
}

class ProjectedAttention final : public StatefulKernel<InferAttention> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    projection_.Prepare(info);
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    const Shape& x = context.Input(kX).shape();
    TENON_ASSIGN_OR_RETURN(
        const QkvColumns columns,
        SplitColumns(attrs_.hidden, context.Input(kWeights).shape()[1], attrs_.heads));
    const Heads heads = HeadsOf(x, columns);
    size_t past = 0;
    if (context.HasInput(kPast)) {
      past = static_cast<size_t>(context.HasInput(kPastLength)
                                     ? context.Input(kPastLength).data<int32_t>()[0]
                                     : context.Input(kPast).shape()[3]);
    }
    const size_t keys = past + heads.q.length;
    FloatPieces pieces;
    const size_t width = static_cast<size_t>(columns.query + columns.key + columns.value);
    const size_t product_piece = pieces.Add(heads.q.batch * heads.q.length * width);
    const bool is_joined = context.HasInput(kPast) || context.HasOutput(kPresent);
    const HeadMatrices cache = CacheOf(context, heads, keys);
    const size_t cache_piece = is_joined && !context.HasOutput(kPresent)
                                   ? pieces.Add(2 * cache.batch * cache.batch_stride)
                                   : 0;
    ScoreAddends addends(OptionalInput(context, kPadding), OptionalInput(context, kScoreBias),
                         attrs_.filter, {heads.q.batch, heads.q.heads, heads.q.length, keys, past});
    const size_t table = pieces.Add(addends.table_floats());
    const auto visible = [&](size_t, size_t query) {
      return KeyRange{0, attrs_.is_causal ? std::min(keys, past + query + 1) : keys};
    };
    const auto row = [&](size_t b, size_t h, size_t query, float* buffer) {
      return addends.Row(b, h, query, buffer);
    };
    AttentionOperands in = {
        .q = heads.q,
        .k = is_joined ? cache : heads.k,
        .v = is_joined ? cache : heads.v,
        .y = HeadsLast(heads.q.batch, heads.q.length, heads.q.heads, heads.v.size),
        .y_data = context.Output(kY).data<float>(),
        .visible = visible,
        .addends = row};
    in.k.length = in.v.length = keys;
    in.scale = attrs_.scale.value_or(1 / std::sqrt(static_cast<float>(heads.q.size)));
    const DotProductAttention attention(in);
    TENON_ASSIGN_OR_RETURN(kernels::GemmArgs product, projection_.Product(context, nullptr));
    const size_t task_bytes =
        std::max(context.TaskScratchBytes(attention.task_count(), attention.scratch_bytes()),
                 context.TaskScratchBytes(ProductTasks(product), ProductScratch(product)));
    const auto bytes = CheckedAdd(pieces.bytes(), task_bytes);
    auto* memory = bytes ? static_cast<std::byte*>(context.Scratch(*bytes)) : nullptr;
    if (memory == nullptr) return RuntimeException("out of memory for {} keys", keys);
    auto* floats = reinterpret_cast<float*>(memory);
    std::byte* task_memory = memory + pieces.bytes();
    product.c = floats + product_piece;
    context.ForEachTaskIn(task_memory, ProductTasks(product), ProductScratch(product),
                          [&](size_t task, std::byte* scratch) {
                            kernels::RunGemmTask(product, task, reinterpret_cast<float*>(scratch));
                          });
    in.q_data = product.c;
    in.k_data = product.c + columns.query;
    in.v_data = in.k_data + columns.key;
    if (is_joined) {
      float* joined = context.HasOutput(kPresent) ? context.Output(kPresent).data<float>()
                                                  : floats + cache_piece;
      Join(context, heads, cache, past, &in, joined);
    }
    addends.Prepare(floats + table);
    context.ForEachTaskIn(task_memory, attention.task_count(), attention.scratch_bytes(),
                          [&](size_t task, std::byte* scratch) {
                            attention.RunTask(task, reinterpret_cast<float*>(scratch));
                          });
    return OkStatus();
  }

 private:
  // The heads in the rows of the product.
  struct Heads {
    HeadMatrices q, k, v;
  };

  static const Tensor* OptionalInput(const KernelContext& context, size_t i) {
    return context.HasInput(i) ? &context.Input(i) : nullptr;
  }

  Heads HeadsOf(const Shape& x, const QkvColumns& columns) const {
    const auto heads = static_cast<size_t>(attrs_.heads);
    const auto width = static_cast<size_t>(columns.query + columns.key + columns.value);
    const auto part = [&](int64_t size) {
      HeadMatrices m = HeadsLast(static_cast<size_t>(x[0]), static_cast<size_t>(x[1]), heads,
                                 static_cast<size_t>(size) / heads);
      m.row_stride = width;
      m.batch_stride = m.length * width;
      return m;
    };
    return {part(columns.query), part(columns.key), part(columns.value)};
  }

  static HeadMatrices CacheOf(KernelContext& context, const Heads& heads, size_t keys) {
    const size_t rows = context.HasOutput(kPresent)
                            ? static_cast<size_t>(context.Output(kPresent).shape()[3])
                            : keys;
    return HeadsFirst(heads.k.batch, heads.k.heads, rows, heads.k.size);
  }

  // Keys, then values: the past's rows and the new ones.
  static void Join(KernelContext& context, const Heads& heads, const HeadMatrices& cache,
                   size_t past, AttentionOperands* in, float* joined) {
    const size_t half = cache.batch * cache.batch_stride;
    if (context.HasInput(kPast)) {
      const Tensor& old = context.Input(kPast);
      const HeadMatrices m =
          HeadsFirst(cache.batch, cache.heads, static_cast<size_t>(old.shape()[3]), cache.size);
      const float* from = old.data<float>();
      const size_t rows = std::min(m.length, cache.length);
      CopyCache(context.threads(), m, from, cache, joined, [&](size_t) { return rows; });
      CopyCache(context.threads(), m, from + m.batch * m.batch_stride, cache, joined + half,
                [&](size_t) { return rows; });
    }
    const auto first = [&](size_t) { return past; };
    CopyRows(context.threads(), {heads.k, in->k_data}, cache, joined, first);
    CopyRows(context.threads(), {heads.v, in->v_data}, cache, joined + half, first);
    in->k_data = joined;
    in->v_data = joined + half;
  }

  InputProjection projection_;
};

constexpr OpRow kRows[] = {
    OpClass<ProjectedAttention>("Attention", {.domain = "com.microsoft", .types = kFloat32Only}),
};

}  // namespace

const std::span<const OpRow> kProjectedAttentionFamily = kRows;

}  // namespace tenon
