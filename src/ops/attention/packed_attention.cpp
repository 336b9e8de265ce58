// PackedAttention and PackedMultiHeadAttention of com.microsoft: attention within sequences whose
// tokens follow each other without padding.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/arithmetic.h"
#include "ops/attention/head_rows.h"
#include "ops/attention/input_projection.h"
#include "ops/framework/stateful_kernel.h"

namespace tenon {
namespace {

// The positions of the sums of sequence lengths and of the bias of scores in the inputs.
struct InputOrder {
  size_t offsets, sums, score_bias;
};
constexpr InputOrder kProjectedOrder = {3, 4, 5};
constexpr InputOrder kHeadsOrder = {4, 5, 6};

struct PackedAttrs {
  int64_t heads = 1;
  std::vector<int64_t> hidden;
  std::optional<float> scale;
  static constexpr auto Fields() {
    using A = PackedAttrs;
    return std::tuple(Field("num_heads", &A::heads), Field("qkv_hidden_sizes", &A::hidden),
                      Field("scale", &A::scale));
  }
};

Status CheckSequences(const InputOrder& order, int64_t heads, const ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape offsets, context.InputOfRank(order.offsets, 2));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape sums, context.InputOfRank(order.sums, 1));
  if (!MayEqual(sums[0], offsets[0] + Dim(1))) {
    return InvalidArgument("input {}: expected [{}], got {}", order.sums, offsets[0] + Dim(1),
                           sums);
  }
  return CheckScoreBias(context, order.score_bias, offsets[0], Dim(heads), offsets[1], offsets[1]);
}

// The tokens of each sequence.
class Sequences {
 public:
  Sequences(const Tensor& sums, size_t longest) : sums_(sums), longest_(longest) {}

  // Checks that the sums rise from 0 to `tokens` by at most `longest`.
  Status Check(size_t tokens) const {
    const int32_t* sums = sums_.data<int32_t>();
    const int64_t count = sums_.size();
    for (int64_t i = 0; i < count; ++i) {
      const int64_t before = i == 0 ? 0 : sums[i - 1];
      const auto room = static_cast<int64_t>(i == 0 ? 0 : longest_);
      if (sums[i] >= before && sums[i] <= before + room) continue;
      return InvalidArgument("cumulative_sequence_length: expected a sum in [{}, {}], got {}",
                             before, before + room, sums[i]);
    }
    const int64_t last = count > 0 ? sums[count - 1] : 0;
    if (last == static_cast<int64_t>(tokens)) return OkStatus();
    return InvalidArgument("cumulative_sequence_length: expected {} tokens, got {}", tokens, last);
  }
  size_t SequenceOf(size_t token) const {
    const int32_t* sums = sums_.data<int32_t>();
    const int32_t* above = std::upper_bound(sums, sums + sums_.size(), static_cast<int32_t>(token));
    return static_cast<size_t>(above - sums) - 1;
  }
  KeyRange TokensOf(size_t sequence) const {
    const int32_t* sums = sums_.data<int32_t>();
    return {static_cast<size_t>(sums[sequence]), static_cast<size_t>(sums[sequence + 1])};
  }

 private:
  const Tensor& sums_;
  const size_t longest_;
};

struct PackedHeads {
  HeadSource q, k, v;
};

// All tokens are one batch, in which each sees those of its sequence.
class PackedRun {
 public:
  PackedRun(const PackedAttrs& attrs, const InputOrder& order, KernelContext& context,
            const PackedHeads& in)
      : context_(context),
        in_(in),
        longest_(static_cast<size_t>(context.Input(order.offsets).shape()[1])),
        sequences_(context.Input(order.sums), longest_),
        scale_(attrs.scale.value_or(1 / std::sqrt(static_cast<float>(in.q.matrices.size)))) {
    const size_t batch = static_cast<size_t>(context.Input(order.offsets).shape()[0]);
    const Tensor* bias =
        context.HasInput(order.score_bias) ? &context.Input(order.score_bias) : nullptr;
    has_bias_ = bias != nullptr;
    addends_ = ScoreAddends(nullptr, bias, 0, {batch, in.q.matrices.heads, longest_, longest_, 0});
  }

  Status Check() const { return sequences_.Check(in_.q.matrices.length); }

  KeyRange VisibleKeys(size_t query) const {
    return sequences_.TokensOf(sequences_.SequenceOf(query));
  }
  const float* Addends(size_t h, size_t query, KeyRange keys) const {
    if (!has_bias_) return nullptr;
    const size_t sequence = sequences_.SequenceOf(query);
    const size_t first = sequences_.TokensOf(sequence).begin;
    const KeyRange own = {keys.begin - first, keys.end - first};
    return addends_.Row(sequence, h, query - first, own, nullptr);
  }

  template <class Visible, class Row>
  AttentionOperands Operands(const Visible& visible, const Row& row) const {
    const HeadMatrices& q = in_.q.matrices;
    return {.q = q,
            .k = in_.k.matrices,
            .v = in_.v.matrices,
            .y = HeadsLast(1, q.length, q.heads, in_.v.matrices.size),
            .q_data = in_.q.data,
            .k_data = in_.k.data,
            .v_data = in_.v.data,
            .y_data = context_.Output(0).data<float>(),
            .scale = scale_,
            .visible = visible,
            .addends = row};
  }

 private:
  KernelContext& context_;
  const PackedHeads& in_;
  const size_t longest_;
  const Sequences sequences_;
  const float scale_;
  bool has_bias_ = false;
  ScoreAddends addends_;
};

// Columns [first, first + heads * size) of rows of `width` elements.
HeadSource ColumnsOf(const float* rows, size_t tokens, size_t width, size_t first, size_t heads,
                     size_t size) {
  HeadSource source = {HeadsLast(1, tokens, heads, size), rows + first};
  source.matrices.row_stride = width;
  source.matrices.batch_stride = tokens * width;
  return source;
}

// --- PackedAttention-1 ---

Status InferPacked(const PackedAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.InputOfRank(0, 2));
  TENON_ASSIGN_OR_RETURN(const auto columns,
                         CheckProjection(context, x[1], attrs.hidden, attrs.heads));
  TENON_RETURN_IF_ERROR(CheckSequences(kProjectedOrder, attrs.heads, context));
  return context.SetOutput(0, {x[0], columns ? Dim(columns->value) : Dim::Unknown()});
}

class PackedAttention final : public StatefulKernel<InferPacked> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    projection_.Prepare(info);
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    const auto tokens = static_cast<size_t>(context.Input(0).shape()[0]);
    TENON_ASSIGN_OR_RETURN(const QkvColumns columns,
                           SplitColumns(attrs_.hidden, context.Input(1).shape()[1], attrs_.heads));
    const auto heads = static_cast<size_t>(attrs_.heads);
    const auto query = static_cast<size_t>(columns.query);
    const auto value = static_cast<size_t>(columns.value);
    const size_t width = 2 * query + value;
    PackedHeads in = {ColumnsOf(nullptr, tokens, width, 0, heads, query / heads),
                      ColumnsOf(nullptr, tokens, width, 0, heads, query / heads),
                      ColumnsOf(nullptr, tokens, width, 0, heads, value / heads)};
    const PackedRun run(attrs_, kProjectedOrder, context, in);
    TENON_RETURN_IF_ERROR(run.Check());
    const auto visible = [&](size_t, size_t token) { return run.VisibleKeys(token); };
    const auto row = [&](size_t, size_t h, size_t token, KeyRange keys, float*) {
      return run.Addends(h, token, keys);
    };
    AttentionOperands operands = run.Operands(visible, row);
    const DotProductAttention attention(operands);
    TENON_ASSIGN_OR_RETURN(kernels::GemmArgs product, projection_.Product(context, nullptr));
    FloatPieces pieces;
    pieces.Add(tokens * width);
    const size_t task_bytes =
        std::max(attention.task_bytes(context),
                 context.TaskScratchBytes(ProductTasks(product), ProductScratch(product)));
    const auto bytes = CheckedAdd(pieces.bytes(), task_bytes);
    auto* memory = bytes ? static_cast<std::byte*>(context.Scratch(*bytes)) : nullptr;
    if (memory == nullptr) return RuntimeException("out of memory for {} tokens", tokens);
    product.c = reinterpret_cast<float*>(memory);
    context.ForEachTaskIn(memory + pieces.bytes(), ProductTasks(product), ProductScratch(product),
                          [&](size_t task, std::byte* scratch) {
                            kernels::RunGemmTask(product, task, reinterpret_cast<float*>(scratch));
                          });
    operands.q_data = product.c;
    operands.k_data = product.c + query;
    operands.v_data = product.c + 2 * query;
    attention.RunIn(context, memory + pieces.bytes());
    return OkStatus();
  }

 private:
  InputProjection projection_;
};

// --- PackedMultiHeadAttention-1 ---

enum HeadsInput : size_t { kQuery, kKey, kValue, kBias };

Status InferPackedHeads(const PackedAttrs& attrs, ShapeContext& context) {
  if (attrs.heads < 1) return InvalidArgument("expected num_heads >= 1, got {}", attrs.heads);
  TENON_ASSIGN_OR_RETURN(const SymbolicShape q, context.Input(kQuery));
  TENON_RETURN_IF_ERROR(CheckSequences(kHeadsOrder, attrs.heads, context));
  const Dim heads(attrs.heads);
  if (q.rank() == 4) {
    if (!MayEqual(q[1], heads) || !MayEqual(q[2], Dim(3)) || context.HasInput(kKey)) {
      return InvalidArgument("input 0: expected [tokens, {}, 3, size] alone, got {}", heads, q);
    }
    TENON_RETURN_IF_ERROR(CheckElementCount(context, kBias, heads * q[2] * q[3]));
    return context.SetOutput(0, {q[0], heads * q[3]});
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape k, context.InputOfRank(kKey, 2));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape v, context.InputOfRank(kValue, 2));
  const auto divides = [&](const Dim& dim) {
    return !dim.is_number() || dim.value() % attrs.heads == 0;
  };
  const bool fits = q.rank() == 2 && MayEqual(k[0], q[0]) && MayEqual(k[1], q[1]) &&
                    MayEqual(v[0], q[0]) && divides(q[1]) && divides(v[1]);
  if (!fits) {
    return InvalidArgument("query {}, key {} and value {} do not fit to {} heads", q, k, v, heads);
  }
  TENON_RETURN_IF_ERROR(CheckElementCount(context, kBias, q[1] + k[1] + v[1]));
  return context.SetOutput(0, {q[0], v[1]});
}

// Adds the bias of each head, first of queries, then of keys, then of values. Returns the memory in
// which `in` then has the sums.
Result<Tensor> AddBias(KernelContext& context, PackedHeads* in) {
  const float* bias = context.Input(kBias).data<float>();
  const std::array<HeadSource*, 3> parts = {&in->q, &in->k, &in->v};
  size_t floats = 0;
  for (const HeadSource* part : parts) {
    const HeadMatrices& m = part->matrices;
    floats += m.heads * m.length * m.size;
  }
  TENON_ASSIGN_OR_RETURN(
      Tensor sums, context.AllocateTensor(DataType::kFloat, Shape({static_cast<int64_t>(floats)})));
  auto* into = sums.data<float>();
  for (HeadSource* part : parts) {
    const HeadMatrices& m = part->matrices;
    const HeadMatrices target = HeadsLast(1, m.length, m.heads, m.size);
    part->bias = bias;
    CopyRows(context.threads(), *part, target, into, [](size_t) { return size_t{0}; });
    *part = {target, into};
    into += target.heads * target.length * target.size;
    bias += target.heads * target.size;
  }
  return sums;
}

Status RunPackedHeads(const PackedAttrs& attrs, KernelContext& context) {
  const Tensor& q = context.Input(kQuery);
  const auto tokens = static_cast<size_t>(q.shape()[0]), heads = static_cast<size_t>(attrs.heads);
  PackedHeads in;
  if (q.rank() == 4) {
    const auto size = static_cast<size_t>(q.shape()[3]);
    const HeadMatrices m = {1,        heads,           tokens, size, tokens * heads * 3 * size,
                            3 * size, 3 * heads * size};
    const float* data = q.data<float>();
    in = {{m, data}, {m, data + size}, {m, data + 2 * size}};
  } else {
    const auto part = [&](size_t i) {
      const Tensor& x = context.Input(i);
      const auto width = static_cast<size_t>(x.shape()[1]);
      return ColumnsOf(x.data<float>(), tokens, width, 0, heads, width / heads);
    };
    in = {part(kQuery), part(kKey), part(kValue)};
  }
  Tensor sums;
  if (context.HasInput(kBias)) {
    TENON_ASSIGN_OR_RETURN(sums, AddBias(context, &in));
  }
  const PackedRun run(attrs, kHeadsOrder, context, in);
  TENON_RETURN_IF_ERROR(run.Check());
  const auto visible = [&](size_t, size_t token) { return run.VisibleKeys(token); };
  const auto row = [&](size_t, size_t h, size_t token, KeyRange keys, float*) {
    return run.Addends(h, token, keys);
  };
  const AttentionOperands operands = run.Operands(visible, row);
  const DotProductAttention attention(operands);
  return attention.Run(context);
}

constexpr const char* kMicrosoft = "com.microsoft";

constexpr OpRow kRows[] = {
    OpClass<PackedAttention>("PackedAttention", {.domain = kMicrosoft, .types = kFloat32Only}),
    Op<InferPackedHeads, RunPackedHeads>("PackedMultiHeadAttention",
                                         {.domain = kMicrosoft, .types = kFloat32Only}),
};

}  // namespace

TENON_OP_FAMILY(PackedAttention, kRows);

}  // namespace tenon
