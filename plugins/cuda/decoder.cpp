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

// Turns queries and keys and fills the caches: operands are q, k, v, lengths, the cosines and sines
// if there are such, and the last caches if there are such.
class CacheCall : public DeviceCall {
 public:
  CacheCall(Context& context, const Groups& groups, std::string source, std::vector<TensorRef> read,
            bool has_past, bool is_rotated)
      : DeviceCall(std::move(read)),
        device_(context.device),
        groups_(groups),
        source_(std::move(source)),
        has_past_(has_past),
        is_rotated_(is_rotated) {
    const Groups& g = groups_;
    count_ = g.batch * g.length * (g.heads + 2 * g.kv_heads) * g.depth / 2;
    numbers_ = {Number32(count_), Number32(g.heads), Number32(g.kv_heads), Number32(g.length),
                Number32(g.all)};
    for (size_t i = 0; i < 3; ++i) {
      for (size_t axis = 0; axis < 3; ++axis) numbers_.emplace_back(operands[i]->strides[axis]);
    }
    strides = {g.heads * g.length * g.depth, g.depth, g.heads * g.depth, 1};
  }

  const char* name() const override { return "cache"; }
  const std::string* source() const override { return &source_; }

  Status Load() override {
    PLUGIN_ASSIGN_OR_RETURN(append_, device_.programs().Find(source_, "rotate_append"));
    PLUGIN_ASSIGN_OR_RETURN(copy_, device_.programs().Find(source_, "copy_cache"));
    return Status();
  }

  Status Run(CUstream stream, std::span<void* const> arguments) override {
    const size_t inputs = is_rotated_ ? 6 : 4;
    const size_t after = inputs + (has_past_ ? 2 : 0);
    void* const present_k = arguments[after];
    void* const present_v = arguments[after + 1];
    std::vector<void*> addresses(arguments.begin(),
                                 arguments.begin() + static_cast<ptrdiff_t>(inputs));
    addresses.insert(addresses.end(), {present_k, present_v, arguments[after + 2]});
    PLUGIN_RETURN_IF_ERROR(LaunchKernel(append_, {BlocksOf(count_), 1, 1}, {kThreads, 1, 1}, 0,
                                        stream, addresses, numbers_));
    if (!has_past_ || arguments[inputs] == present_k) return Status();
    const Groups& g = groups_;
    const int64_t count = g.batch * g.kv_heads * g.past * g.depth / 8;
    if (count == 0) return Status();
    Number numbers[] = {Number32(count), Number32(g.kv_heads), Number32(g.length), Number32(g.past),
                        Number32(g.all)};
    void* const copied[] = {arguments[inputs], arguments[inputs + 1], arguments[3], present_k,
                            present_v};
    return LaunchKernel(copy_, {BlocksOf(count), 1, 1}, {kThreads, 1, 1}, 0, stream, copied,
                        numbers);
  }

 private:
  Device& device_;
  Groups groups_;
  std::string source_;
  bool has_past_;
  bool is_rotated_;
  int64_t count_ = 0;
  std::vector<Number> numbers_;
  CUfunction append_ = nullptr;
  CUfunction copy_ = nullptr;
};

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
  PLUGIN_ASSIGN_OR_RETURN(const TensorRef k, Heads(planner, key, g.kv_heads, g.depth, key_column));
  PLUGIN_ASSIGN_OR_RETURN(const TensorRef v,
                          Heads(planner, value, g.kv_heads, g.depth, value_column));
  PLUGIN_ASSIGN_OR_RETURN(inputs.lengths, planner.Contiguous(planner.Input(node, 5)));
  std::vector<TensorRef> operands = {inputs.q, k, v, inputs.lengths};
  const bool is_rotated = node.Int("do_rotary", 0) != 0;
  int64_t rotated = 0;
  for (size_t input = 7; is_rotated && input < 9; ++input) {
    PLUGIN_ASSIGN_OR_RETURN(TensorRef table, planner.Contiguous(planner.Input(node, input)));
    rotated = 2 * table->shape.back();
    operands.push_back(std::move(table));
  }
  if (rotated > g.depth)
    return Failure("expected caches for {} elements, got {}", g.depth, rotated);
  const bool has_past = planner.HasInput(node, 3);
  for (size_t input = 3; has_past && input < 5; ++input) {
    PLUGIN_ASSIGN_OR_RETURN(TensorRef past, planner.Contiguous(planner.Input(node, input)));
    operands.push_back(std::move(past));
  }
  auto call = std::make_shared<CacheCall>(
      ContextOf(planner), g,
      fmt::format("#define ELEMENT {}\n#define DEPTH {}\n#define ROTATED {}\n"
                  "#define INTERLEAVED {}\n",
                  ElementOf(query->type), g.depth, rotated,
                  node.Int("rotary_interleaved", 0) != 0 ? 1 : 0) +
          kRotateAppendSource,
      std::move(operands), has_past, is_rotated);
  const Shape cache = {g.batch, g.kv_heads, g.all, g.depth};
  inputs.k = planner.AllocateOutput(node, 1, query->type, cache);
  inputs.v = planner.AllocateOutput(node, 2, query->type, cache);
  call->also_writes = {inputs.k, inputs.v};
  const Shape shape = inputs.q->shape;
  inputs.q = planner.FromCall(query->type, shape, std::move(call));
  PLUGIN_RETURN_IF_ERROR(planner.Store(inputs.q));
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
