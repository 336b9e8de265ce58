// com.microsoft's attentions: MultiHeadAttention, GroupQueryAttention with its cache, and
// RotaryEmbedding.

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention.h"
#include "kernels.h"
#include "operators.h"

namespace cuda {
namespace {

int ElementOf(DataType type) {
  return type == DataType::kFloat16 ? 1 : type == DataType::kBFloat16 ? 2 : 3;
}

bool Has(const Node& node, size_t input) {
  return node.inputs.size() > input && node.inputs[input] >= 0;
}

int32_t Number32(int64_t value) { return static_cast<int32_t>(value); }

constexpr unsigned kThreads = 256;

unsigned BlocksOf(int64_t items) {
  return static_cast<unsigned>((items + kThreads - 1) / kThreads);
}

// [batch, length, heads * depth], or a part of its columns, as [batch, heads, length, depth].
Result<TensorRef> Heads(Planner& planner, const TensorRef& tensor, int64_t heads, int64_t depth,
                        int64_t first_column) {
  PLUGIN_RETURN_IF_ERROR(planner.Store(tensor));
  const Shape& s = tensor->shape;
  const Shape& t = tensor->strides;
  if (s.size() != 3 || s[2] < first_column + heads * depth) {
    return Failure("expected [batch, length, {} or more], got {}", first_column + heads * depth, s);
  }
  return planner.View(tensor, {s[0], heads, s[1], depth}, {t[0], depth * t[2], t[1], t[2]},
                      first_column * t[2]);
}

// [batch, heads, length, depth], in memory as Attend leaves it, as [batch, length, heads * depth].
Result<TensorRef> WithoutHeads(Planner& planner, const TensorRef& tensor) {
  PLUGIN_RETURN_IF_ERROR(planner.Store(tensor));
  const Shape s = tensor->shape;
  const Shape t = tensor->strides;
  PLUGIN_ASSIGN_OR_RETURN(const TensorRef view, planner.View(tensor, {s[0], s[2], s[1], s[3]},
                                                             {t[0], t[2], t[1], t[3]}, 0));
  return planner.Reshape(view, {s[0], s[2], s[1] * s[3]});
}

// --- rotary embeddings ---

struct Rotation {
  TensorRef cosines;
  TensorRef sines;
  TensorRef places;  // lengths (int32), or positions (int64)
  int kind;          // POSITIONS of the kernel
  bool is_interleaved;
};

// x [batch, heads, length, depth] in memory; the result is made in [batch, length, heads, depth].
Result<TensorRef> Rotate(Planner& planner, const TensorRef& x, const Rotation& rotation) {
  const Shape& s = x->shape;
  const int64_t rotated = 2 * rotation.cosines->shape.back();
  if (rotated > s[3] || s[3] % 2 != 0 || x->strides[3] != 1) {
    return Failure("expected caches for {} elements, got {}", s[3], rotation.cosines->shape);
  }
  auto call = std::make_shared<KernelCall>(
      ContextOf(planner).device, "rotary",
      fmt::format("#define ELEMENT {}\n#define DEPTH {}\n#define INTERLEAVED {}\n"
                  "#define POSITIONS {}\n",
                  ElementOf(x->type), s[3], rotation.is_interleaved ? 1 : 0, rotation.kind) +
          kRotarySource,
      std::vector{x, rotation.cosines, rotation.sines, rotation.places});
  call->strides = {s[1] * s[2] * s[3], s[3], s[1] * s[3], 1};
  const int64_t count = ElementCount(s) / 2;
  call->numbers = {Number32(count), Number32(s[1]), Number32(s[2]), Number32(rotated)};
  for (const Shape* strides : {&x->strides, &call->strides}) {
    for (size_t axis = 0; axis < 3; ++axis) call->numbers.emplace_back((*strides)[axis]);
  }
  call->grid = {BlocksOf(count), 1, 1};
  call->block = {kThreads, 1, 1};
  return planner.FromCall(x->type, s, std::move(call));
}

// x is [batch, length, hidden] or [batch, heads, length, depth].
Status LowerRotaryEmbedding(Planner& planner, const Node& node) {
  const TensorRef x = planner.Input(node, 0);
  Rotation rotation;
  PLUGIN_ASSIGN_OR_RETURN(rotation.cosines, planner.Contiguous(planner.Input(node, 2)));
  PLUGIN_ASSIGN_OR_RETURN(rotation.sines, planner.Contiguous(planner.Input(node, 3)));
  PLUGIN_ASSIGN_OR_RETURN(rotation.places, planner.Contiguous(planner.Input(node, 1)));
  rotation.kind = ElementCount(rotation.places->shape) == 1 ? 2 : 1;
  rotation.is_interleaved = node.Int("interleaved", 0) != 0;
  const bool is_flat = x->shape.size() == 3;
  TensorRef heads = x;
  if (is_flat) {
    int64_t depth = 2 * rotation.cosines->shape.back();
    if (const int64_t count = node.Int("num_heads", 0)) depth = x->shape[2] / count;
    PLUGIN_ASSIGN_OR_RETURN(heads, Heads(planner, x, x->shape[2] / depth, depth, 0));
  } else {
    PLUGIN_RETURN_IF_ERROR(planner.Store(x));
    if (x->strides.back() != 1) {
      PLUGIN_ASSIGN_OR_RETURN(heads, planner.Contiguous(x));
    }
  }
  PLUGIN_ASSIGN_OR_RETURN(TensorRef y, Rotate(planner, heads, rotation));
  if (is_flat) {
    PLUGIN_ASSIGN_OR_RETURN(y, WithoutHeads(planner, y));
  }
  return planner.SetOutput(node, 0, std::move(y));
}

bool IsPlainRotary(const Graph& graph, const Node& node) {
  const auto& x = graph.value(node.inputs[0]).shape;
  return x && (x->size() == 3 || x->size() == 4) && node.Int("is_packed_batching", 0) == 0 &&
         node.Float("scale", 1) == 1;
}

// --- GroupQueryAttention ---

struct Groups {
  int64_t batch;
  int64_t length;
  int64_t heads;
  int64_t kv_heads;
  int64_t depth;
  int64_t past;  // positions of the last cache
  int64_t all;   // of the new one
};

// `fresh` [batch, heads, length, depth] behind the last cache; output `index` of the node.
Result<TensorRef> Append(Planner& planner, const Node& node, size_t index, const Groups& g,
                         const TensorRef& fresh, const TensorRef& past, const TensorRef& lengths) {
  PLUGIN_RETURN_IF_ERROR(planner.Store(fresh));
  TensorRef source = fresh;
  const auto is_odd = [](int64_t stride) { return stride % 8 != 0; };
  if (fresh->strides[3] != 1 || fresh->offset % 8 != 0 || is_odd(fresh->strides[0]) ||
      is_odd(fresh->strides[1]) || is_odd(fresh->strides[2])) {
    PLUGIN_ASSIGN_OR_RETURN(
        source, planner.Contiguous(planner.Expression(fresh->type, fresh->shape, "$0", {fresh})));
  }
  std::vector<TensorRef> operands = {source};
  if (past) operands.push_back(past);
  operands.push_back(lengths);
  auto call = std::make_shared<KernelCall>(
      ContextOf(planner).device, "append_cache",
      fmt::format("#define ELEMENT {}\n#define DEPTH {}\n#define HAS_PAST {}\n",
                  ElementOf(fresh->type), g.depth, past ? 1 : 0) +
          kAppendCacheSource,
      std::move(operands));
  const int64_t count = g.batch * g.kv_heads * g.all * g.depth / 8;
  call->numbers = {Number32(count), Number32(g.kv_heads), Number32(g.length), Number32(g.past),
                   Number32(g.all), source->strides[0],   source->strides[1], source->strides[2]};
  call->grid = {BlocksOf(count), 1, 1};
  call->block = {kThreads, 1, 1};
  const TensorRef present =
      planner.FromCall(fresh->type, {g.batch, g.kv_heads, g.all, g.depth}, std::move(call));
  return planner.StoreOutput(node, index, present);
}

Result<Groups> ReadGroups(Planner& planner, const Node& node) {
  Groups g{};
  const Shape& query = planner.Input(node, 0)->shape;
  if (query.size() != 3) return Failure("input 0: expected 3 axes, got {}", query);
  g.batch = query[0];
  g.length = query[1];
  g.heads = node.Int("num_heads", 0);
  g.kv_heads = node.Int("kv_num_heads", 0);
  if (g.heads < 1 || g.kv_heads < 1 || g.heads % g.kv_heads != 0) {
    return Failure("expected heads in equal groups, got {} and {}", g.heads, g.kv_heads);
  }
  const bool is_packed = !planner.HasInput(node, 1);
  g.depth = query[2] / (is_packed ? g.heads + 2 * g.kv_heads : g.heads);
  PLUGIN_ASSIGN_OR_RETURN(const auto total, planner.KnownInput(node, 6));
  if (planner.HasInput(node, 3)) g.past = planner.Input(node, 3)->shape[2];
  g.all = std::max(g.past, total.empty() ? 0 : total[0]);
  return g;
}

Status LowerGroupQueryAttention(Planner& planner, const Node& node) {
  PLUGIN_ASSIGN_OR_RETURN(const Groups g, ReadGroups(planner, node));
  const bool is_packed = !planner.HasInput(node, 1);
  const TensorRef query = planner.Input(node, 0);
  const TensorRef key = is_packed ? query : planner.Input(node, 1);
  const TensorRef value = is_packed ? query : planner.Input(node, 2);
  const int64_t key_column = is_packed ? g.heads * g.depth : 0;
  const int64_t value_column = is_packed ? (g.heads + g.kv_heads) * g.depth : 0;
  AttentionInputs inputs;
  PLUGIN_ASSIGN_OR_RETURN(inputs.q, Heads(planner, query, g.heads, g.depth, 0));
  PLUGIN_ASSIGN_OR_RETURN(TensorRef k, Heads(planner, key, g.kv_heads, g.depth, key_column));
  PLUGIN_ASSIGN_OR_RETURN(const TensorRef v,
                          Heads(planner, value, g.kv_heads, g.depth, value_column));
  PLUGIN_ASSIGN_OR_RETURN(inputs.lengths, planner.Contiguous(planner.Input(node, 5)));
  if (node.Int("do_rotary", 0) != 0) {
    Rotation rotation{.cosines = nullptr,
                      .sines = nullptr,
                      .places = inputs.lengths,
                      .kind = 0,
                      .is_interleaved = node.Int("rotary_interleaved", 0) != 0};
    PLUGIN_ASSIGN_OR_RETURN(rotation.cosines, planner.Contiguous(planner.Input(node, 7)));
    PLUGIN_ASSIGN_OR_RETURN(rotation.sines, planner.Contiguous(planner.Input(node, 8)));
    PLUGIN_ASSIGN_OR_RETURN(inputs.q, Rotate(planner, inputs.q, rotation));
    PLUGIN_ASSIGN_OR_RETURN(k, Rotate(planner, k, rotation));
  }
  TensorRef past_key;
  TensorRef past_value;
  if (planner.HasInput(node, 3)) {
    PLUGIN_ASSIGN_OR_RETURN(past_key, planner.Contiguous(planner.Input(node, 3)));
    PLUGIN_ASSIGN_OR_RETURN(past_value, planner.Contiguous(planner.Input(node, 4)));
  }
  PLUGIN_ASSIGN_OR_RETURN(inputs.k, Append(planner, node, 1, g, k, past_key, inputs.lengths));
  PLUGIN_ASSIGN_OR_RETURN(inputs.v, Append(planner, node, 2, g, v, past_value, inputs.lengths));
  const float scale = node.Float("scale", 0);
  inputs.scale = scale != 0 ? scale : 1 / std::sqrt(static_cast<float>(g.depth));
  inputs.is_causal = true;
  inputs.window = Number32(std::max<int64_t>(0, node.Int("local_window_size", -1)));
  inputs.softcap = node.Float("softcap", 0);
  inputs.length_offset = 1;
  PLUGIN_ASSIGN_OR_RETURN(TensorRef y, Attend(planner, inputs));
  PLUGIN_ASSIGN_OR_RETURN(y, WithoutHeads(planner, y));
  return planner.SetOutput(node, 0, std::move(y));
}

bool IsPlainGroupQuery(const Graph& graph, const Node& node) {
  const ValueInfo& query = graph.value(node.inputs[0]);
  if (!query.shape || query.shape->size() != 3 || query.shape->back() < 1) return false;
  const int64_t heads = node.Int("num_heads", 0);
  const int64_t kv_heads = node.Int("kv_num_heads", 0);
  const int64_t parts = Has(node, 1) ? heads : heads + 2 * kv_heads;
  if (parts < 1 || query.shape->back() % parts != 0) return false;
  for (size_t input = 9; input < node.inputs.size(); ++input) {
    if (Has(node, input)) return false;  // positions, bias, sinks, quantized caches
  }
  return CanAttend(query.type, query.shape->back() / parts) && Has(node, 5) && Has(node, 6) &&
         Has(node, 3) == Has(node, 4) && node.Int("smooth_softmax", 0) <= 0 &&
         node.Int("qk_output", 0) == 0 && node.String("k_quant_type", "NONE") == "NONE" &&
         (node.Int("do_rotary", 0) == 0 || (Has(node, 7) && Has(node, 8))) &&
         (!Has(node, 3) || graph.value(node.inputs[3]).type == query.type) &&
         (node.outputs.size() < 4 || node.outputs[3] < 0);
}

// --- MultiHeadAttention ---

// Adds columns [first, first + n) of the bias to x [batch, length, n].
Result<TensorRef> AddBias(Planner& planner, const Node& node, const TensorRef& x, int64_t first) {
  if (!planner.HasInput(node, 3)) return x;
  const TensorRef bias = planner.Input(node, 3);
  PLUGIN_RETURN_IF_ERROR(planner.Store(bias));
  PLUGIN_ASSIGN_OR_RETURN(
      const TensorRef part,
      planner.View(bias, {x->shape.back()}, {bias->strides[0]}, first * bias->strides[0]));
  return planner.Expression(x->type, x->shape, "$0 + $1", {x, part});
}

// What is added to the scores, or says which keys are there; null if there is nothing.
Result<TensorRef> MaskOf(Planner& planner, const Node& node) {
  const TensorRef bias = planner.HasInput(node, 5) ? planner.Input(node, 5) : nullptr;
  if (!planner.HasInput(node, 4)) return bias;
  const TensorRef keys = planner.Input(node, 4);
  PLUGIN_ASSIGN_OR_RETURN(const TensorRef wide,
                          planner.Reshape(keys, {keys->shape[0], 1, 1, keys->shape[1]}));
  if (!bias) {
    const TensorRef mask = planner.Expression(DataType::kBool, wide->shape, "$0 != 0", {wide});
    PLUGIN_RETURN_IF_ERROR(planner.Store(mask));
    return mask;
  }
  PLUGIN_ASSIGN_OR_RETURN(Shape shape, BroadcastShape(bias->shape, wide->shape));
  return planner.Expression(bias->type, std::move(shape), "$1 != 0 ? $0 : -INFINITY", {bias, wide});
}

Status LowerMultiHeadAttention(Planner& planner, const Node& node) {
  const int64_t heads = node.Int("num_heads", 0);
  const TensorRef query = planner.Input(node, 0);
  const int64_t width = query->shape.back();
  if (heads < 1 || width % heads != 0)
    return Failure("expected {} heads, got {}", heads, query->shape);
  const int64_t depth = width / heads;
  AttentionInputs inputs;
  TensorRef* const parts[] = {&inputs.q, &inputs.k, &inputs.v};
  for (size_t i = 0; i < 3; ++i) {
    TensorRef part = planner.Input(node, i);
    if (part->shape.size() == 3) {
      PLUGIN_ASSIGN_OR_RETURN(part, AddBias(planner, node, part, static_cast<int64_t>(i) * width));
      PLUGIN_ASSIGN_OR_RETURN(part, Heads(planner, part, heads, depth, 0));
    }
    *parts[i] = std::move(part);
  }
  PLUGIN_ASSIGN_OR_RETURN(inputs.mask, MaskOf(planner, node));
  inputs.masked = -std::numeric_limits<float>::infinity();
  const float scale = node.Float("scale", 0);
  inputs.scale = scale != 0 ? scale : 1 / std::sqrt(static_cast<float>(depth));
  inputs.is_causal = node.Int("unidirectional", 0) != 0;
  PLUGIN_ASSIGN_OR_RETURN(TensorRef y, Attend(planner, inputs));
  PLUGIN_ASSIGN_OR_RETURN(y, WithoutHeads(planner, y));
  return planner.SetOutput(node, 0, std::move(y));
}

bool IsPlainMultiHead(const Graph& graph, const Node& node) {
  const ValueInfo& query = graph.value(node.inputs[0]);
  const int64_t heads = node.Int("num_heads", 0);
  if (!query.shape || query.shape->size() != 3 || query.shape->back() < 1 || heads < 1)
    return false;
  if (!Has(node, 1) || !Has(node, 2) || !CanAttend(query.type, query.shape->back() / heads)) {
    return false;
  }
  for (size_t i = 1; i < 3; ++i) {
    const ValueInfo& part = graph.value(node.inputs[i]);
    if (!part.shape || part.shape->size() < 3 || part.shape->size() > 4) return false;
    if (part.shape->size() == 3 && part.shape->back() != query.shape->back()) return false;
  }
  for (size_t input = 6; input < node.inputs.size(); ++input) {
    if (Has(node, input)) return false;  // caches
  }
  for (size_t output = 1; output < node.outputs.size(); ++output) {
    if (node.outputs[output] >= 0) return false;
  }
  if (Has(node, 5) && graph.value(node.inputs[5]).type != query.type) return false;
  if (!Has(node, 4)) return true;
  const auto& keys = graph.value(node.inputs[4]).shape;
  return keys && keys->size() == 2;
}

}  // namespace

std::span<const Operator> DecoderOperators() {
  constexpr unsigned kHalves = BitOf(DataType::kFloat16) | BitOf(DataType::kBFloat16);
  static constexpr Operator kRows[] = {
      {.type = "GroupQueryAttention",
       .lower = LowerGroupQueryAttention,
       .types = kHalves | BitOf(DataType::kInt32),
       .known_inputs = 1u << 6,
       .accepts = IsPlainGroupQuery,
       .domain = "com.microsoft"},
      {.type = "MultiHeadAttention",
       .lower = LowerMultiHeadAttention,
       .types = kHalves | BitOf(DataType::kInt32),
       .accepts = IsPlainMultiHead,
       .domain = "com.microsoft"},
      {.type = "RotaryEmbedding",
       .lower = LowerRotaryEmbedding,
       .types = kFloats | BitOf(DataType::kInt64),
       .accepts = IsPlainRotary,
       .domain = "com.microsoft"},
  };
  return kRows;
}

}  // namespace cuda
