// The gradients of operators that are computed again by simpler ones, which a Gradient of their own
// then differentiates, or by themselves: Attention, RotaryEmbedding and LRN.
#include "ir/gradient_rules.h"

namespace tenon {
namespace {

// ---- Attention ----------------------------------------------------------------------------------

enum AttentionInput : size_t { kQ, kK, kV, kMask, kPastKey, kPastValue, kKeyLengths };

// [batch, heads, length, size]
ValueId HeadsFirst(Builder& b, ValueId value, int64_t rank, int64_t heads) {
  if (rank == 4) return value;
  const int64_t sizes[] = {0, 0, heads, -1};
  return Transposed(b, b.Op("Reshape", {value, b.Integers(sizes)}), {0, 2, 1, 3});
}

// Which keys each query sees, to be broadcast to the scores; kNone if all.
ValueId SeenKeys(Builder& b, const Inputs& in, ValueId q, ValueId keys) {
  ValueId seen = ValueId::kNone;
  const auto also = [&](ValueId condition) {
    seen = seen == ValueId::kNone ? condition : b.Op("And", {seen, condition});
  };
  const ValueId key = Numbers(b, keys, 2);
  ValueId position = Unsqueezed(b, Numbers(b, q, 2), 1);
  if (in.x(kPastKey) != ValueId::kNone) position = Add(b, position, Sizes(b, in.x(kPastKey), 2, 3));
  if (in.x(kKeyLengths) != ValueId::kNone) {
    const int64_t axes[] = {1, 2, 3};
    const ValueId count = b.Op("Unsqueeze", {in.x(kKeyLengths), b.Integers(axes)});
    also(b.Op("Less", {key, count}));
    position = Add(b, position, Sub(b, count, Sizes(b, q, 2, 3)));
  }
  const int64_t left = in.node.GetInt("left_window_size", -1);
  int64_t right = in.node.GetInt("right_window_size", -1);
  if (in.node.GetInt("is_causal", 0) != 0) right = 0;
  const auto moved = [&](int64_t by) { return Add(b, position, b.IntegerScalar(by)); };
  if (right >= 0) also(b.Op("Less", {key, moved(right + 1)}));
  if (left >= 0) also(b.Op("Greater", {key, moved(-left - 1)}));
  const ValueId mask = in.x(kMask);
  if (mask != ValueId::kNone && b.graph().value(mask).type.element_type == DataType::kBool) {
    also(mask);
  }
  return seen;
}

Result<Gradients> Attention(Builder& b, const Inputs& in) {
  TENON_RETURN_IF_ERROR(CheckOnlyFirst(in));
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, in.x(kQ)));
  const int64_t q_heads = in.node.GetInt("q_num_heads", 0);
  const int64_t kv_heads = in.node.GetInt("kv_num_heads", 0);
  return OfComposition(b, in, [&](const std::vector<ValueId>& inputs) {
    const auto input = [&](size_t i) { return i < inputs.size() ? inputs[i] : ValueId::kNone; };
    const ValueId q = HeadsFirst(b, inputs[kQ], rank, q_heads);
    ValueId k = HeadsFirst(b, inputs[kK], rank, kv_heads);
    ValueId v = HeadsFirst(b, inputs[kV], rank, kv_heads);
    if (input(kPastKey) != ValueId::kNone) {
      k = Joined(b, {inputs[kPastKey], k}, 2);
      v = Joined(b, {inputs[kPastValue], v}, 2);
    }
    ValueId scale;
    if (in.node.FindAttribute("scale") != nullptr) {
      scale = b.Scalar(static_cast<double>(in.node.GetFloat("scale", 1)), q);
    } else {
      scale = b.Op("Reciprocal", {b.Op("Sqrt", {b.CastTo(Sizes(b, q, 3, 4), q)})});
    }
    // Query heads that share a key head, as an axis of their own.
    const ValueId any = Integer(b, -1),
                  all_scores = Joined(b, {Sizes(b, q, 0, 3), Sizes(b, k, 2, 3)}, 0);
    const auto grouped = [&](ValueId value) {
      const ValueId shape = Joined(b, {Sizes(b, k, 0, 2), any, Sizes(b, value, 2, 4)}, 0);
      return b.Op("Reshape", {value, shape});
    };
    const ValueId turned = Transposed(b, Unsqueezed(b, k, 2), {0, 1, 2, 4, 3});
    ValueId scores =
        b.Op("Reshape", {b.Op("MatMul", {grouped(Mul(b, q, scale)), turned}), all_scores});
    if (const float cap = in.node.GetFloat("softcap", 0); cap > 0) {
      const auto limit = static_cast<double>(cap);
      scores = Times(b, b.Op("Tanh", {Times(b, scores, 1 / limit)}), limit);
    }
    const ValueId seen = SeenKeys(b, in, q, k);
    const ValueId mask = input(kMask);
    if (mask != ValueId::kNone && b.graph().value(mask).type.element_type != DataType::kBool) {
      scores = Add(b, scores, mask);
    }
    constexpr double kVeryLow = -1e30;
    if (seen != ValueId::kNone) scores = Where(b, seen, scores, b.Scalar(kVeryLow, q));
    ValueId weights = b.Op("Softmax", {scores}, Attributes(Int("axis", -1)));
    if (seen != ValueId::kNone) weights = Where(b, seen, weights, b.Scalar(0, q));
    const ValueId product = b.Op("MatMul", {grouped(weights), Unsqueezed(b, v, 2)});
    const ValueId heads =
        b.Op("Reshape", {product, Joined(b, {Sizes(b, q, 0, 3), Sizes(b, v, 3, 4)}, 0)});
    if (rank == 4) return heads;
    const int64_t sizes[] = {0, 0, -1};
    return b.Op("Reshape", {Transposed(b, heads, {0, 2, 1, 3}), b.Integers(sizes)});
  });
}

// ---- RotaryEmbedding ----------------------------------------------------------------------------

// Rotates back: the angles have the other sign.
template <size_t sin>
Result<Gradients> RotaryEmbedding(Builder& b, const Inputs& in) {
  std::vector<ValueId> inputs = in.node.inputs;
  inputs[0] = in.dy();
  inputs[sin] = b.Op("Neg", {inputs[sin]});
  return Gradients{b.Op("RotaryEmbedding", inputs, AttributesBut(in.node), in.node.domain.c_str())};
}

// ---- LRN ----------------------------------------------------------------------------------------

// x / (bias + alpha / size * the squares of neighbouring channels)^beta
Result<Gradients> Lrn(Builder& b, const Inputs& in) {
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, in.x(0)));
  const int64_t size = in.node.GetInt("size", 1), before = (size - 1) / 2;
  const auto setting = [&](const char* name, float otherwise) {
    return static_cast<double>(in.node.GetFloat(name, otherwise));
  };
  std::vector<int64_t> pads(static_cast<size_t>(2 * rank), 0);
  pads[1] = before;
  pads[static_cast<size_t>(rank) + 1] = size - 1 - before;
  return OfComposition(b, in, [&](const std::vector<ValueId>& inputs) {
    const ValueId x = inputs[0], padded = b.Op("Pad", {Square(b, x), b.Integers(pads)});
    const ValueId count = Sizes(b, x, 1, 2);
    ValueId sum = ValueId::kNone;
    for (int64_t i = 0; i < size; ++i) {
      const ValueId end = Add(b, count, Integer(b, i));
      const ValueId part = b.Op("Slice", {padded, Integer(b, i), end, Integer(b, 1)});
      sum = sum == ValueId::kNone ? part : Add(b, sum, part);
    }
    const double alpha = setting("alpha", 1e-4f) / static_cast<double>(size);
    const ValueId base = Plus(b, Times(b, sum, alpha), setting("bias", 1));
    return Mul(b, x, b.Op("Pow", {base, b.Scalar(-setting("beta", 0.75f), x)}));
  });
}

constexpr NamedGradientRule kRules[] = {
    {"Attention", Attention, 23},
    {"LRN", Lrn},
    {"RotaryEmbedding", RotaryEmbedding<2>, 23},
    {"RotaryEmbedding", RotaryEmbedding<3>, 1, kMicrosoft},
};

}  // namespace

std::span<const NamedGradientRule> ComposedGradients() { return kRules; }

}  // namespace tenon
