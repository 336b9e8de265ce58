// The gradients of RotaryEmbedding, which is computed by itself, and of LRN, which is computed
// again by simpler operators, which a Gradient of their own then differentiates.
#include "ir/gradient_rules.h"

namespace tenon {
namespace {

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
    return Gradients{Mul(b, x, b.Op("Pow", {base, b.Scalar(-setting("beta", 0.75f), x)}))};
  });
}

constexpr NamedGradientRule kRules[] = {
    {"LRN", Lrn},
    {"RotaryEmbedding", RotaryEmbedding<2>, 23},
    {"RotaryEmbedding", RotaryEmbedding<3>, 1, kMicrosoft},
};

}  // namespace

std::span<const NamedGradientRule> ComposedGradients() { return kRules; }

}  // namespace tenon
