// Attention and QAttention of com.microsoft: the projections of the input, then attention among
// their heads.
#include <cmath>

#include "base/arithmetic.h"
#include "ops/attention/head_rows.h"
#include "ops/attention/input_projection.h"
#include "ops/framework/stateful_kernel.h"
#include "ops/linear/int8_product.h"

namespace tenon {
namespace {

enum Input : size_t { kX, kWeights, kBias };

// The positions of the other inputs; absent ones are beyond the inputs.
struct InputSlots {
  static constexpr size_t kNone = 99;
  size_t padding = 3, past = 4, score_bias = 5, past_length = 6;
};
constexpr InputSlots kFloatSlots = {};
constexpr InputSlots kByteSlots = {
    .padding = 5, .past = 8, .score_bias = InputSlots::kNone, .past_length = InputSlots::kNone};
enum ByteInput : size_t { kXScale = 3, kWeightScale, kXZero = 6, kWeightZero };

enum Output : size_t { kY, kPresent };

struct AttentionAttrs {
  int64_t heads = 1;
  std::vector<int64_t> hidden;
  std::optional<float> scale;
  float filter = -10000;
  bool is_causal = false;
  bool do_rotary = false;
  int64_t rotated = 0;  // elements of a head; 0: all
  static constexpr auto Fields() {
    using A = AttentionAttrs;
    return std::tuple(Field("num_heads", &A::heads), Field("qkv_hidden_sizes", &A::hidden),
                      Field("scale", &A::scale), Field("mask_filter_value", &A::filter),
                      Field("unidirectional", &A::is_causal), Field("do_rotary", &A::do_rotary),
                      Field("rotary_embedding_dim", &A::rotated));
  }
};

Status CheckRotary(const AttentionAttrs& attrs, const std::optional<QkvColumns>& columns) {
  if (!attrs.do_rotary || !columns) return OkStatus();
  const int64_t size = columns->key / attrs.heads;
  const int64_t rotated = attrs.rotated == 0 ? size : attrs.rotated;
  if (rotated >= 0 && rotated <= size && rotated % 2 == 0) return OkStatus();
  return InvalidArgument("expected an even rotary_embedding_dim in [0, {}] with do_rotary, got {}",
                         size, rotated);
}

// The rows of the cache, [2, batch, heads, rows, size], of which `used` counts.
struct PastRows {
  Dim rows = Dim(0), used = Dim(0);
};

Result<PastRows> CheckPast(const ShapeContext& context, const InputSlots& in, const Dim& batch,
                           int64_t heads, const std::optional<QkvColumns>& columns) {
  if (!context.HasInput(in.past)) return PastRows();
  TENON_ASSIGN_OR_RETURN(const SymbolicShape past, context.InputOfRank(in.past, 5));
  bool fits =
      MayEqual(past[0], Dim(2)) && MayEqual(past[1], batch) && MayEqual(past[2], Dim(heads));
  if (columns) {
    fits = fits && columns->key == columns->value && MayEqual(past[4], Dim(columns->key / heads));
  }
  if (!fits) {
    return InvalidArgument("input {}: expected a past of {} sequences with {} heads, got {}",
                           in.past, batch, heads, past);
  }
  PastRows rows = {past[3], past[3]};
  if (!context.HasInput(in.past_length)) return rows;
  rows.used = Dim::Unknown();
  const Tensor* length = context.InputData(in.past_length);
  if (length == nullptr || !past[3].is_number()) return rows;
  const int64_t used = length->size() > 0 ? length->data<int32_t>()[0] : -1;
  if (used < 0 || used > past[3].value()) {
    return InvalidArgument("input 6: expected a length in [0, {}], got {}", past[3], used);
  }
  rows.used = Dim(used);
  return rows;
}

Status InferProjected(const AttentionAttrs& attrs, const InputSlots& in, ShapeContext& context) {
  if (attrs.heads < 1) return InvalidArgument("expected num_heads >= 1, got {}", attrs.heads);
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.InputOfRank(kX, 3));
  TENON_ASSIGN_OR_RETURN(const auto columns,
                         CheckProjection(context, x[2], attrs.hidden, attrs.heads));
  TENON_RETURN_IF_ERROR(CheckRotary(attrs, columns));
  TENON_ASSIGN_OR_RETURN(const PastRows past, CheckPast(context, in, x[0], attrs.heads, columns));
  const Dim keys = past.used + x[1];
  const bool is_shared = context.HasInput(in.past_length) && context.HasInput(in.past);
  if (is_shared && keys.is_number() && past.rows.is_number() && keys.value() > past.rows.value()) {
    return InvalidArgument("{} keys do not fit into a cache of {}", keys, past.rows);
  }
  TENON_RETURN_IF_ERROR(CheckPaddingMask(context, in.padding, x[0], x[1], keys, true));
  TENON_RETURN_IF_ERROR(CheckScoreBias(context, in.score_bias, x[0], Dim(attrs.heads), x[1], keys));
  const Dim size = columns ? Dim(columns->key / attrs.heads) : Dim::Unknown();
  if (columns && columns->key != columns->value && context.HasOutput(kPresent)) {
    return InvalidArgument("present needs keys and values of one size, got {} and {}", columns->key,
                           columns->value);
  }
  TENON_RETURN_IF_ERROR(context.SetOutput(
      kPresent, {Dim(2), x[0], Dim(attrs.heads), is_shared ? past.rows : keys, size}));
  return context.SetOutput(kY, {x[0], x[1], columns ? Dim(columns->value) : Dim::Unknown()});
}

Status InferAttention(const AttentionAttrs& attrs, ShapeContext& context) {
  return InferProjected(attrs, kFloatSlots, context);
}

Status InferQAttention(const AttentionAttrs& attrs, ShapeContext& context) {
  const Result<SymbolicShape> weights = context.Input(kWeights);
  if (weights && weights->rank() == 2) {
    const SymbolicShape columns = {(*weights)[1]};
    TENON_RETURN_IF_ERROR(CheckLineValues(context, kWeightScale, columns, columns[0]));
    TENON_RETURN_IF_ERROR(CheckLineValues(context, kWeightZero, columns, columns[0]));
  }
  TENON_RETURN_IF_ERROR(CheckLineValues(context, kXScale, {}, Dim(1)));
  TENON_RETURN_IF_ERROR(CheckLineValues(context, kXZero, {}, Dim(1)));
  return InferProjected(attrs, kByteSlots, context);
}

const Tensor* OptionalInput(const KernelContext& context, size_t i) {
  return context.HasInput(i) ? &context.Input(i) : nullptr;
}

// The source of queries, keys and values, [rows, columns]: products of floats ...
class FloatProjection {
 public:
  static constexpr const InputSlots& kSlots = kFloatSlots;
  Status Prepare(KernelInfo& info) {
    projection_.Prepare(info);
    return OkStatus();
  }

  // The scratch memory that Run needs.
  Result<size_t> ScratchBytes(KernelContext& context) const {
    TENON_ASSIGN_OR_RETURN(const kernels::GemmArgs product, projection_.Product(context, nullptr));
    return context.TaskScratchBytes(ProductTasks(product), ProductScratch(product));
  }
  Status Run(KernelContext& context, std::byte* memory, float* output) const {
    TENON_ASSIGN_OR_RETURN(const kernels::GemmArgs product, projection_.Product(context, output));
    context.ForEachTaskIn(memory, ProductTasks(product), ProductScratch(product),
                          [&](size_t task, std::byte* scratch) {
                            kernels::RunGemmTask(product, task, reinterpret_cast<float*>(scratch));
                          });
    return OkStatus();
  }

 private:
  InputProjection projection_;
};

// ... or of int8.
class ByteProjection {
 public:
  static constexpr const InputSlots& kSlots = kByteSlots;
  Status Prepare(KernelInfo& info) { return product_.Prepare(info, kWeights); }

  Result<size_t> ScratchBytes(KernelContext& context) const {
    return product_.ScratchBytes(context, CallOf(context, nullptr));
  }
  Status Run(KernelContext& context, std::byte* memory, float* output) const {
    return product_.RunIn(memory, context, CallOf(context, output));
  }

 private:
  static Int8ProductCall CallOf(const KernelContext& context, float* output) {
    return {.a = &context.Input(kX),
            .b = &context.Input(kWeights),
            .a_zero = OptionalInput(context, kXZero),
            .b_zero = OptionalInput(context, kWeightZero),
            .a_scale = &context.Input(kXScale),
            .b_scale = &context.Input(kWeightScale),
            .float_bias = context.Input(kBias).data<float>(),
            .type = kernels::Int8Output::kFloat,
            .y = output};
  }

  Int8Product product_;
};

// The lengths of the keys in a mask of one row, which begins with them.
Status CheckKeyLengths(const Tensor* padding, int64_t batch) {
  if (padding == nullptr || padding->rank() != 1) return OkStatus();
  for (const int32_t length : padding->values<int32_t>().first(static_cast<size_t>(batch))) {
    if (length < 0) return InvalidArgument("mask_index: expected lengths >= 0, got {}", length);
  }
  return OkStatus();
}

template <auto Infer, class Projection>
class ProjectedAttention final : public StatefulKernel<Infer> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(this->Bind(info));
    return projection_.Prepare(info);
  }

  Status Run(KernelContext& context) const override {
    const Shape& x = context.Input(kX).shape();
    TENON_RETURN_IF_ERROR(CheckKeyLengths(OptionalInput(context, kSlots.padding), x[0]));
    TENON_ASSIGN_OR_RETURN(
        const QkvColumns columns,
        SplitColumns(this->attrs_.hidden, context.Input(kWeights).shape()[1], this->attrs_.heads));
    const Heads heads = HeadsOf(x, columns);
    size_t past = 0;
    if (context.HasInput(kSlots.past)) {
      past = static_cast<size_t>(context.HasInput(kSlots.past_length)
                                     ? context.Input(kSlots.past_length).data<int32_t>()[0]
                                     : context.Input(kSlots.past).shape()[3]);
    }
    const size_t keys = past + heads.q.length;
    FloatPieces pieces;
    const size_t width = static_cast<size_t>(columns.query + columns.key + columns.value);
    const size_t product_piece = pieces.Add(heads.q.batch * heads.q.length * width);
    const bool is_joined = context.HasInput(kSlots.past) || context.HasOutput(kPresent);
    const HeadMatrices cache = CacheOf(context, heads, keys);
    const size_t cache_piece = is_joined && !context.HasOutput(kPresent)
                                   ? pieces.Add(2 * cache.batch * cache.batch_stride)
                                   : 0;
    ScoreAddends addends(OptionalInput(context, kSlots.padding),
                         OptionalInput(context, kSlots.score_bias), this->attrs_.filter,
                         {heads.q.batch, heads.q.heads, heads.q.length, keys, past});
    const size_t table = pieces.Add(addends.table_floats());
    const size_t half = PairsOf(heads.k);
    const size_t angles = pieces.Add(2 * heads.q.length * half);
    const auto visible = [&](size_t, size_t query) {
      return KeyRange{0, this->attrs_.is_causal ? std::min(keys, past + query + 1) : keys};
    };
    const auto row = [&](size_t b, size_t h, size_t query, KeyRange of, float* buffer) {
      return addends.Row(b, h, query, of, buffer);
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
    in.scale = this->attrs_.scale.value_or(1 / std::sqrt(static_cast<float>(heads.q.size)));
    const DotProductAttention attention(in);
    TENON_ASSIGN_OR_RETURN(const size_t product_bytes, projection_.ScratchBytes(context));
    const size_t task_bytes = std::max(attention.task_bytes(context), product_bytes);
    const auto bytes = CheckedAdd(pieces.bytes(), task_bytes);
    auto* memory = bytes ? static_cast<std::byte*>(context.Scratch(*bytes)) : nullptr;
    if (memory == nullptr) return RuntimeException("out of memory for {} keys", keys);
    auto* floats = reinterpret_cast<float*>(memory);
    std::byte* task_memory = memory + pieces.bytes();
    float* product = floats + product_piece;
    TENON_RETURN_IF_ERROR(projection_.Run(context, task_memory, product));
    in.q_data = product;
    in.k_data = product + columns.query;
    in.v_data = in.k_data + columns.key;
    if (half > 0) {
      const Rotation rotation = FillAngles(past, heads.q.length, half, floats + angles);
      RotateHeads(context, rotation, heads.q, product);
      RotateHeads(context, rotation, heads.k, product + columns.query);
    }
    if (is_joined) {
      float* joined = context.HasOutput(kPresent) ? context.Output(kPresent).data<float>()
                                                  : floats + cache_piece;
      Join(context, heads, cache, past, &in, joined);
    }
    addends.Prepare(floats + table);
    attention.RunIn(context, task_memory);
    return OkStatus();
  }

 private:
  // The heads in the rows of the product.
  struct Heads {
    HeadMatrices q, k, v;
  };

  static constexpr const InputSlots& kSlots = Projection::kSlots;

  Heads HeadsOf(const Shape& x, const QkvColumns& columns) const {
    const auto heads = static_cast<size_t>(this->attrs_.heads);
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

  // Pairs of elements of a head that are rotated.
  size_t PairsOf(const HeadMatrices& m) const {
    if (!this->attrs_.do_rotary) return 0;
    return (this->attrs_.rotated > 0 ? static_cast<size_t>(this->attrs_.rotated) : m.size) / 2;
  }

  // As in GPT-NeoX, the elements of a pair are half apart, and pair i is rotated by 10000^(-i /
  // half) per position.
  static Rotation FillAngles(size_t first, size_t length, size_t half, float* cos) {
    float* sin = cos + length * half;
    for (size_t i = 0; i < half; ++i) {
      const double speed = std::pow(10000, -static_cast<double>(i) / static_cast<double>(half));
      for (size_t position = 0; position < length; ++position) {
        const double angle = static_cast<double>(first + position) * speed;
        cos[position * half + i] = static_cast<float>(std::cos(angle));
        sin[position * half + i] = static_cast<float>(std::sin(angle));
      }
    }
    return {cos, sin, half, false};
  }

  // In place: rotates each row by the angles of its position among the new ones.
  static void RotateHeads(KernelContext& context, const Rotation& rotation, const HeadMatrices& m,
                          float* data) {
    const auto edit = [&](size_t, size_t, size_t i, float* row) { Rotate(rotation, i, row); };
    const RowEdit row_edit = edit;
    CopyRows(
        context.threads(), {m, data}, m, data, [](size_t) { return 0; }, &row_edit);
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
    if (context.HasInput(kSlots.past)) {
      const Tensor& old = context.Input(kSlots.past);
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

  Projection projection_;
};

constexpr OpRow kRows[] = {
    OpClass<ProjectedAttention<InferAttention, FloatProjection>>(
        "Attention", {.domain = "com.microsoft", .types = kFloat32Only}),
    OpClass<ProjectedAttention<InferQAttention, ByteProjection>>(
        "QAttention", {.domain = "com.microsoft", .has_wide_floats = true, .types = kByteTypes}),
};

}  // namespace

TENON_OP_FAMILY(ProjectedAttention, kRows);

}  // namespace tenon
