// Scaled dot-product attention as exporters write it: softmax(scale Q K^T + mask) V.
#include <algorithm>
#include <array>
#include <span>

#include "ir/graph.h"
#include "ops/fusion/fuse_epilogue.h"
#include "ops/fusion/fusion.h"

namespace tenon {
namespace {

using Permutation = std::array<int64_t, 4>;

// [batch * heads, length, size] with the last two axes exchanged.
constexpr std::array<int64_t, 3> kSwapFlat = {0, 2, 1};

// [batch, heads, length, size] with the last two axes exchanged.
constexpr Permutation kSwapLast = {0, 1, 3, 2};
// [batch, length, heads, size] to [batch, heads, size, length].
constexpr Permutation kHeadsAndSwap = {0, 2, 3, 1};
// [batch, length, heads, size] to [batch, heads, length, size], and back.
constexpr Permutation kSwapHeads = {0, 2, 1, 3};

bool Permutes(const Node& transpose, std::span<const int64_t> permutation) {
  const std::vector<int64_t> actual = transpose.GetInts("perm");
  return std::equal(actual.begin(), actual.end(), permutation.begin(), permutation.end());
}
bool SwapsFlat(const Node& transpose) { return Permutes(transpose, kSwapFlat); }
bool SwapsHeads(const Node& transpose) { return Permutes(transpose, kSwapHeads); }

const SymbolicShape* ShapeOf(const Match& match, ValueId id) {
  const auto& shape = match.graph().value(id).type.shape;
  return shape ? &*shape : nullptr;
}
const SymbolicShape* OutputShape(const Match& match, std::string_view node) {
  return ShapeOf(match, match.node(node).outputs[0]);
}
bool HasRank(const SymbolicShape* shape, size_t rank) { return shape && shape->rank() == rank; }

bool IsLastAxis(const Node& softmax) {
  // Before opset 13, Softmax is over all axes from `axis` on, which is 1 by default.
  const int64_t axis = softmax.GetInt("axis", softmax.opset < 13 ? 1 : -1);
  return axis == -1 || axis == 3;
}

// Whether the mask broadcasts to the scores without enlarging them. Along the keys it must not
// broadcast: Attention takes a shorter mask to hide the remaining keys.
bool MaskFits(const Match& match) {
  if (match["mask"] == ValueId::kNone) return true;
  const SymbolicShape* mask = match.shape("mask");
  const SymbolicShape* scores = OutputShape(match, "scores");
  const SymbolicShape* masked = OutputShape(match, "masked");
  return mask && mask->rank() >= 2 && scores && masked && *scores == *masked &&
         mask->dims().back() == scores->dims().back();
}

// Whether `k`, with its first two axes merged, gets its last two axes exchanged.
bool SwapsFlatKeys(const Match& match, const SymbolicShape& k) {
  const SymbolicShape* flat = OutputShape(match, "flat");
  const SymbolicShape* keys = OutputShape(match, "keys");
  return HasRank(flat, 3) && HasRank(keys, 4) && (*flat)[1] == k[2] && (*flat)[2] == k[3] &&
         (*keys)[0] == k[0] && (*keys)[1] == k[1] && (*keys)[2] == k[3] && (*keys)[3] == k[2];
}

// The names of a value whose heads are repeated, and of the nodes that repeat them.
struct RepeatedHeads {
  const char* value;
  const char* group;   // an Unsqueeze to [batch, heads, 1, length, size]
  const char* repeat;  // an Expand to [batch, heads, repeats, length, size]
};
constexpr RepeatedHeads kRepeatedKeys = {"K", "k_group", "k_repeat"};
constexpr RepeatedHeads kRepeatedValues = {"V", "v_group", "v_repeat"};

Pattern Repeated(const RepeatedHeads& heads) {
  const Pattern group = Op("Unsqueeze", {Any(heads.value)}).WithMoreInputs().As(heads.group);
  return Op("Expand", {group}).WithMoreInputs().As(heads.repeat);
}

// The shape [batch, heads * repeats, length, size] of a value of rank 4 with its heads repeated, or
// its own shape if the pattern repeats none. Empty if something else is repeated.
std::optional<SymbolicShape> RepeatedShape(const Match& match, const RepeatedHeads& heads) {
  SymbolicShape x = *match.shape(heads.value);
  if (!match.FindNode(heads.repeat)) return x;
  const SymbolicShape* group = OutputShape(match, heads.group);
  const SymbolicShape* repeat = OutputShape(match, heads.repeat);
  if (!HasRank(repeat, 5) || !group || *group != SymbolicShape{x[0], x[1], Dim(1), x[2], x[3]} ||
      *repeat != SymbolicShape{x[0], x[1], (*repeat)[2], x[2], x[3]}) {
    return std::nullopt;
  }
  x[1] = x[1] * (*repeat)[2];
  // Attention divides the numbers of heads, so they must be known and not 0.
  return x[1].is_number() && x[1].value() > 0 ? std::optional(x) : std::nullopt;
}

// Whether the node's output, if there is such a node, has this shape.
bool MayHaveShape(const Match& match, std::string_view node, const SymbolicShape& shape) {
  const SymbolicShape* actual = match.FindNode(node) ? OutputShape(match, node) : &shape;
  return actual && *actual == shape;
}

bool IsAttention(const Match& match) {
  const SymbolicShape* q = match.shape("Q");
  if (!HasRank(q, 4) || !HasRank(match.shape("K"), 4) || !HasRank(match.shape("V"), 4)) {
    return false;
  }
  const std::optional<SymbolicShape> k = RepeatedShape(match, kRepeatedKeys);
  const std::optional<SymbolicShape> v = RepeatedShape(match, kRepeatedValues);
  if (!k || !v || !MayHaveShape(match, "k_join", *k) || !MayHaveShape(match, "v_join", *v)) {
    return false;
  }
  const bool is_flat = match.FindNode("flat") != nullptr;
  if (is_flat && !SwapsFlatKeys(match, *k)) return false;
  const bool heads_first = is_flat || Permutes(match.node("transpose"), kSwapLast);
  // Keys of the other layout are [batch, length, heads, size]; no pattern repeats heads there.
  const bool heads_third = !heads_first && !match.FindNode(kRepeatedKeys.repeat) &&
                           Permutes(match.node("transpose"), kHeadsAndSwap);
  if (!heads_first && !heads_third) return false;
  const size_t heads_axis = heads_first ? 1 : 2;
  const bool same_batch = (*q)[0] == (*k)[0] && (*q)[0] == (*v)[0];
  const bool same_heads = (*q)[1] == (*k)[heads_axis] && (*q)[1] == (*v)[1];
  return same_batch && same_heads && IsLastAxis(match.node("softmax")) && MaskFits(match);
}

float ScaleOf(const Match& match) {
  double scale = 1;
  for (const char* factor : {"scale", "q_scale", "k_scale"}) {
    if (match.constant(factor)) scale *= match.scalar(factor);
  }
  for (const char* divisor : {"divisor", "q_divisor"}) {
    if (match.constant(divisor)) scale /= match.scalar(divisor);
  }
  return static_cast<float>(scale);
}

ValueId MakeAttention(Replacement& r) {
  ValueId keys = r["K"];
  if (!r.FindNode("flat") && Permutes(r.node("transpose"), kHeadsAndSwap)) {
    std::vector<Attribute> attributes;
    attributes.emplace_back("perm", std::vector<int64_t>(kSwapHeads.begin(), kSwapHeads.end()));
    keys = r.Op("Transpose", {keys}, std::move(attributes));
  }
  std::vector<Attribute> attributes;
  attributes.emplace_back("scale", ScaleOf(r));
  return r.Op("Attention", {r["Q"], keys, r["V"], r["mask"]}, std::move(attributes));
}

// `x` itself, or multiplied by `factor`, or divided by `divisor`, which are scalars.
Pattern MaybeScaled(const Pattern& x, const char* factor, const char* divisor) {
  return OneOf({Op("Mul", {x, Scalar(factor)}), Op("Div", {x, Scalar(divisor)}), x});
}

// The pattern that becomes Attention. With `repeats_heads`, each head of the keys and values serves
// several heads of the queries, which exporters write as copies of it.
Fusion DotProductAttention(const char* name, bool repeats_heads) {
  const auto joined = [](const RepeatedHeads& heads, const char* join) {
    return Op("Reshape", {Repeated(heads)}).WithMoreInputs().As(join);
  };
  const Pattern k = repeats_heads ? joined(kRepeatedKeys, "k_join") : Any("K");
  const Pattern v = repeats_heads ? joined(kRepeatedValues, "v_join") : Any("V");
  // PyTorch's exporter merges the axes of batch and heads while it exchanges the others.
  const Pattern flat =
      Op("Reshape", {repeats_heads ? Repeated(kRepeatedKeys) : k}).WithMoreInputs().As("flat");
  const Pattern keys = OneOf(
      {Op("Transpose", {k}).As("transpose"),
       Op("Reshape", {Op("Transpose", {flat}).Where(SwapsFlat)}).WithMoreInputs().As("keys")});
  const Pattern scores = Op("MatMul", {MaybeScaled(Any("Q"), "q_scale", "q_divisor"),
                                       OneOf({Op("Mul", {keys, Scalar("k_scale")}), keys})})
                             .As("scores");
  const Pattern scaled = MaybeScaled(scores, "scale", "divisor");
  const Pattern masked = OneOf({Op("Add", {scaled, Any("mask")}).As("masked"), scaled});
  const Pattern softmax = Op("Softmax", {masked}).As("softmax");
  // If the mask leaves a query no key, PyTorch gives it weights of 0, as Attention does.
  const Pattern weights =
      OneOf({softmax, Op("Where", {Op("IsNaN", {softmax}), ExactScalar(0), softmax})});
  return {"",
          "Attention",
          {.name = name,
           .pattern = Op("MatMul", {weights, v}),
           .when = IsAttention,
           .replace = MakeAttention}};
}

// --- The same on [batch, length, heads * size] ---

Pattern SplitHeads(const char* x, const char* reshape) {
  return Op("Transpose", {Op("Reshape", {Any(x)}).WithMoreInputs().As(reshape)}).Where(SwapsHeads);
}

// If the reshape splits the last axis of a [batch, length, heads * size] value: the heads.
std::optional<int64_t> HeadsOf(const Match& match, std::string_view x, std::string_view reshape) {
  const SymbolicShape* flat = match.shape(x);
  const SymbolicShape* split = OutputShape(match, reshape);
  if (!HasRank(flat, 3) || !HasRank(split, 4)) return std::nullopt;
  const bool keeps = (*flat)[0] == (*split)[0] && (*flat)[1] == (*split)[1] &&
                     (*flat)[2] == (*split)[2] * (*split)[3];
  return keeps ? (*split)[2].number() : std::nullopt;
}

bool SplitsAndJoinsHeads(const Match& match) {
  const auto heads = HeadsOf(match, "q", "q_reshape");
  const auto kv_heads = HeadsOf(match, "k", "k_reshape");
  const SymbolicShape* q = match.shape("q");
  const SymbolicShape* values = OutputShape(match, "v_reshape");
  const auto& output = match.output_type().shape;
  if (!heads || !kv_heads || HeadsOf(match, "v", "v_reshape") != kv_heads || *kv_heads < 1 ||
      *heads < 1 || *heads % *kv_heads != 0) {
    return false;
  }
  return output && output->rank() == 3 && (*output)[0] == (*q)[0] && (*output)[1] == (*q)[1] &&
         (*output)[2] == Dim(*heads) * (*values)[3];
}

Fusion JoinedHeadsAttention() {
  const Pattern attention =
      Op("Attention", {SplitHeads("q", "q_reshape"), SplitHeads("k", "k_reshape"),
                       SplitHeads("v", "v_reshape"), Maybe("mask")})
          .As("attention")
          .Where([](const Node& node) { return node.FindAttribute("q_num_heads") == nullptr; });
  const Pattern swapped = Op("Transpose", {attention}).Where(SwapsHeads);
  return {"",
          "Attention",
          {.name = "attention of joined heads",
           .pattern = Op("Reshape", {swapped}).WithMoreInputs(),
           .when = SplitsAndJoinsHeads,
           .replace = [](Replacement& r) {
             std::vector<Attribute> attributes = r.AttributesOf("attention");
             SetAttribute(attributes, "q_num_heads", *HeadsOf(r, "q", "q_reshape"));
             SetAttribute(attributes, "kv_num_heads", *HeadsOf(r, "k", "k_reshape"));
             return r.Op("Attention", {r["q"], r["k"], r["v"], r["mask"]}, std::move(attributes));
           }}};
}

}  // namespace

std::vector<Fusion> AttentionFusions() {
  std::vector<Fusion> fusions;
  fusions.push_back(DotProductAttention("attention of repeated heads", true));
  fusions.push_back(DotProductAttention("attention", false));
  fusions.push_back(JoinedHeadsAttention());
  return fusions;
}

}  // namespace tenon
