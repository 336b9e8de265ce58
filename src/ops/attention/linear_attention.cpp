// LinearAttention of ai.onnx: attention as a recurrence over a state of one matrix per head.
#include <algorithm>
#include <cmath>

#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

enum Input : size_t { kQuery, kKey, kValue, kPast, kDecay, kBeta };

// LinearAttention-27. `chunk_size` is a hint that this kernel ignores.
struct LinearAttentionAttrs {
  int64_t q_heads = 0, kv_heads = 0;
  float scale = 0;  // 0: 1 / sqrt(d_k)
  std::string update_rule = "gated_delta";
  static constexpr auto Fields() {
    using A = LinearAttentionAttrs;
    return std::tuple(Field("q_num_heads", &A::q_heads), Field("kv_num_heads", &A::kv_heads),
                      Field("scale", &A::scale), Field("update_rule", &A::update_rule));
  }
  bool gated() const { return update_rule == "gated" || update_rule == "gated_delta"; }
  bool corrected() const { return update_rule == "delta" || update_rule == "gated_delta"; }
};

Status CheckAttributes(const LinearAttentionAttrs& attrs, const ShapeContext& context) {
  if (attrs.update_rule != "linear" && !attrs.gated() && !attrs.corrected()) {
    return InvalidArgument(
        "attribute 'update_rule': expected linear, gated, delta or gated_delta, got '{}'",
        attrs.update_rule);
  }
  if (attrs.kv_heads < 1 || attrs.q_heads < 1 || attrs.q_heads % attrs.kv_heads != 0) {
    return InvalidArgument("expected q_num_heads to be a multiple of kv_num_heads, got {} and {}",
                           attrs.q_heads, attrs.kv_heads);
  }
  if (context.HasInput(kDecay) != attrs.gated()) {
    return InvalidArgument("update_rule '{}': expected {}", attrs.update_rule,
                           attrs.gated() ? "the input decay" : "no input decay");
  }
  if (context.HasInput(kBeta) != attrs.corrected()) {
    return InvalidArgument("update_rule '{}': expected {}", attrs.update_rule,
                           attrs.corrected() ? "the input beta" : "no input beta");
  }
  return OkStatus();
}

// The size of each of `heads` heads in input `i`, [batch, length, heads * size].
Result<Dim> HeadSize(const ShapeContext& context, size_t i, int64_t heads,
                     const SymbolicShape& query) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.InputOfRank(i, 3));
  if (!MayEqual(x[0], query[0]) || !MayEqual(x[1], query[1])) {
    return InvalidArgument("input {}: expected the batch and length of {}, got {}", i, query, x);
  }
  if (x[2].is_number() && x[2].value() % heads != 0) {
    return InvalidArgument("input {}: expected {} heads of one size, got {}", i, heads, x);
  }
  return FloorDiv(x[2], Dim(heads));
}

// Checks that input `i`, if it is present, is [batch, length, a or b].
Status CheckGate(const ShapeContext& context, size_t i, const SymbolicShape& query, const Dim& a,
                 const Dim& b) {
  if (!context.HasInput(i)) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.InputOfRank(i, 3));
  if (MayEqual(x[0], query[0]) && MayEqual(x[1], query[1]) &&
      (MayEqual(x[2], a) || MayEqual(x[2], b))) {
    return OkStatus();
  }
  return InvalidArgument("input {}: expected [{}, {}, {} or {}], got {}", i, query[0], query[1], a,
                         b, x);
}

[[gnu::cold]] Status InferLinearAttention(const LinearAttentionAttrs& attrs,
                                          ShapeContext& context) {
  TENON_RETURN_IF_ERROR(CheckAttributes(attrs, context));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape query, context.InputOfRank(kQuery, 3));
  TENON_ASSIGN_OR_RETURN(const Dim d_q, HeadSize(context, kQuery, attrs.q_heads, query));
  TENON_ASSIGN_OR_RETURN(const Dim d_k, HeadSize(context, kKey, attrs.kv_heads, query));
  TENON_ASSIGN_OR_RETURN(const Dim d_v, HeadSize(context, kValue, attrs.kv_heads, query));
  if (!MayEqual(d_q, d_k)) {
    return InvalidArgument("expected heads of one size in query and key, got {} and {}", d_q, d_k);
  }
  const Dim heads(attrs.kv_heads);
  TENON_RETURN_IF_ERROR(CheckGate(context, kDecay, query, heads, heads * d_k));
  TENON_RETURN_IF_ERROR(CheckGate(context, kBeta, query, heads, Dim(1)));
  const SymbolicShape state = {query[0], heads, d_k, d_v};
  if (context.HasInput(kPast)) {
    TENON_RETURN_IF_ERROR(CheckDoubles(context, kQuery, kPast));
    TENON_ASSIGN_OR_RETURN(const SymbolicShape past, context.InputOfRank(kPast, 4));
    for (size_t i = 0; i < 4; ++i) {
      if (!MayEqual(past[i], state[i])) {
        return InvalidArgument("input 3: expected the state {}, got {}", state, past);
      }
    }
  }
  TENON_RETURN_IF_ERROR(context.SetOutput(0, {query[0], query[1], Dim(attrs.q_heads) * d_v}));
  // The state has the type of the previous one or, without one, the query's.
  const DataType type = context.ElementType(context.HasInput(kPast) ? kPast : kQuery);
  return type == DataType::kUndefined ? context.SetOutput(1, state)
                                      : context.SetOutput(1, state, type);
}

class LinearAttentionRun {
 public:
  LinearAttentionRun(const LinearAttentionAttrs& attrs, KernelContext& context)
      : attrs_(attrs), context_(context) {
    const Shape& query = context.Input(kQuery).shape();
    batch_ = static_cast<size_t>(query[0]);
    length_ = static_cast<size_t>(query[1]);
    q_heads_ = static_cast<size_t>(attrs.q_heads);
    kv_heads_ = static_cast<size_t>(attrs.kv_heads);
    d_k_ = static_cast<size_t>(query[2]) / q_heads_;
    d_v_ = static_cast<size_t>(context.Input(kValue).shape()[2]) / kv_heads_;
    scale_ = attrs.scale != 0 ? attrs.scale : 1 / std::sqrt(static_cast<float>(d_k_));
  }

  Status Run() const {
    const size_t state_floats = context_.HasOutput(1) ? 0 : d_k_ * d_v_;
    return context_.ForEachTask(batch_ * kv_heads_, (state_floats + d_v_) * sizeof(float),
                                [&](size_t task, std::byte* scratch) {
                                  auto* update = reinterpret_cast<float*>(scratch);
                                  float* state = update + d_v_;
                                  if (context_.HasOutput(1))
                                    state = context_.Output(1).data<float>() + task * d_k_ * d_v_;
                                  RunHead(task / kv_heads_, task % kv_heads_, state, update);
                                });
  }

 private:
  const float* Row(size_t input, size_t b, size_t t) const {
    const Tensor& x = context_.Input(input);
    return x.data<float>() + (b * length_ + t) * static_cast<size_t>(x.shape()[2]);
  }

  void RunHead(size_t b, size_t head, float* state, float* update) const {
    if (context_.HasInput(kPast)) {
      std::copy_n(context_.Input(kPast).data<float>() + (b * kv_heads_ + head) * d_k_ * d_v_,
                  d_k_ * d_v_, state);
    } else {
      std::fill_n(state, d_k_ * d_v_, 0.0f);
    }
    for (size_t t = 0; t < length_; ++t) {
      if (attrs_.gated()) Decay(b, t, head, state);
      Write(b, t, head, state, update);
      if (context_.HasOutput(0)) Read(b, t, head, state);
    }
  }

  // state *= exp(decay), one number for the head or one for each of its rows.
  void Decay(size_t b, size_t t, size_t head, float* state) const {
    const float* decay = Row(kDecay, b, t);
    const bool per_head = static_cast<size_t>(context_.Input(kDecay).shape()[2]) == kv_heads_;
    for (size_t i = 0; i < d_k_; ++i) {
      const float factor = std::exp(per_head ? decay[head] : decay[head * d_k_ + i]);
      for (size_t j = 0; j < d_v_; ++j) state[i * d_v_ + j] *= factor;
    }
  }

  // state += key x update, where the update is the value, or the part of it that the state lacks.
  void Write(size_t b, size_t t, size_t head, float* state, float* update) const {
    const float* key = Row(kKey, b, t) + head * d_k_;
    const float* value = Row(kValue, b, t) + head * d_v_;
    if (attrs_.corrected()) {
      std::fill_n(update, d_v_, 0.0f);
      for (size_t i = 0; i < d_k_; ++i) {
        for (size_t j = 0; j < d_v_; ++j) update[j] += state[i * d_v_ + j] * key[i];
      }
      const bool is_shared = context_.Input(kBeta).shape()[2] == 1;
      const float beta = Row(kBeta, b, t)[is_shared ? 0 : head];
      for (size_t j = 0; j < d_v_; ++j) update[j] = beta * (value[j] - update[j]);
    } else {
      std::copy_n(value, d_v_, update);
    }
    for (size_t i = 0; i < d_k_; ++i) {
      for (size_t j = 0; j < d_v_; ++j) state[i * d_v_ + j] += key[i] * update[j];
    }
  }

  // output = scale * query' state, for each query head that shares the state.
  void Read(size_t b, size_t t, size_t head, const float* state) const {
    const size_t group = q_heads_ / kv_heads_;
    for (size_t h = head * group; h < (head + 1) * group; ++h) {
      const float* query = Row(kQuery, b, t) + h * d_k_;
      float* y = context_.Output(0).data<float>() + ((b * length_ + t) * q_heads_ + h) * d_v_;
      std::fill_n(y, d_v_, 0.0f);
      for (size_t i = 0; i < d_k_; ++i) {
        for (size_t j = 0; j < d_v_; ++j) y[j] += query[i] * state[i * d_v_ + j];
      }
      for (size_t j = 0; j < d_v_; ++j) y[j] *= scale_;
    }
  }

  const LinearAttentionAttrs& attrs_;
  KernelContext& context_;
  size_t batch_ = 0, length_ = 0, q_heads_ = 0, kv_heads_ = 0, d_k_ = 0, d_v_ = 0;
  float scale_ = 1;
};

Status RunLinearAttention(const LinearAttentionAttrs& attrs, KernelContext& context) {
  return LinearAttentionRun(attrs, context).Run();
}

constexpr OpRow kRows[] = {
    Op<InferLinearAttention, RunLinearAttention>("LinearAttention",
                                                 {.since = 27, .types = kFloat32Only}),
};

}  // namespace

TENON_OP_FAMILY(LinearAttention, kRows);

}  // namespace tenon
