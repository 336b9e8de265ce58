// Normalizations that exporters write as reductions and arithmetic.
#include <algorithm>

#include "ir/graph.h"
#include "ops/fusion/fusion.h"

namespace tenon {
namespace {

// The axes of a reduction that keeps its dimensions: an attribute before opset 18, an input since.
std::optional<std::vector<int64_t>> ReducedAxes(const Graph& graph, const Node& reduce,
                                                size_t rank) {
  if (reduce.GetInt("keepdims", 1) != 1) return std::nullopt;
  std::vector<int64_t> axes = reduce.GetInts("axes");
  if (reduce.has_input(1)) {
    const Tensor* constant = graph.ConstantOf(reduce.inputs[1]);
    const Result<Shape> entries = constant ? IntegersOf(*constant) : Result<Shape>(Shape());
    if (!entries) return std::nullopt;
    axes.assign(entries->begin(), entries->end());
  }
  for (int64_t& axis : axes) {
    if (axis < 0) axis += static_cast<int64_t>(rank);
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

// The first normalized axis of x, if every named reduction goes over exactly that axis and all
// later ones.
std::optional<size_t> NormalizedAxis(const Match& match, std::vector<std::string_view> reductions) {
  const SymbolicShape* x = match.shape("x");
  if (x == nullptr || x->rank() == 0) return std::nullopt;
  std::optional<size_t> first;
  for (const std::string_view name : reductions) {
    const auto axes = ReducedAxes(match.graph(), match.node(name), x->rank());
    if (!axes || axes->empty() || axes->size() > x->rank()) return std::nullopt;
    const size_t start = x->rank() - axes->size();
    for (size_t i = 0; i < axes->size(); ++i) {
      if ((*axes)[i] != static_cast<int64_t>(start + i)) return std::nullopt;
    }
    if (first && *first != start) return std::nullopt;
    first = start;
  }
  return first;
}

// Whether the value has exactly the shape that x has from `axis` on.
bool HasNormalizedShape(const Match& match, std::string_view name, size_t axis) {
  const SymbolicShape* x = match.shape("x");
  const SymbolicShape* shape = match.shape(name);
  return shape && shape->rank() == x->rank() - axis &&
         std::equal(shape->begin(), shape->end(), x->begin() + static_cast<ptrdiff_t>(axis));
}

std::function<bool(const Match&)> NormalizesLastAxes(std::vector<std::string_view> reductions,
                                                     std::vector<std::string_view> parameters) {
  return [=](const Match& match) {
    const auto axis = NormalizedAxis(match, reductions);
    return axis && std::all_of(parameters.begin(), parameters.end(), [&](std::string_view name) {
             return HasNormalizedShape(match, name, *axis);
           });
  };
}

std::vector<Attribute> NormalizationAttributes(const Replacement& r, std::string_view reduction) {
  const auto axis = static_cast<int64_t>(*NormalizedAxis(r, {reduction}));
  const auto rank = static_cast<int64_t>(r.shape("x")->rank());
  std::vector<Attribute> attributes;
  attributes.emplace_back("axis", axis - rank);
  attributes.emplace_back("epsilon", static_cast<float>(r.scalar("epsilon")));
  return attributes;
}

Pattern Mean(const Pattern& x, const char* name) {
  return Op("ReduceMean", {x}).WithMoreInputs().As(name);
}
Pattern Square(const Pattern& x) { return OneOf({Op("Pow", {x, Scalar(2)}), Op("Mul", {x, x})}); }
// sqrt(mean_square + epsilon)
Pattern Deviation(const Pattern& mean_square) {
  return Op("Sqrt", {Op("Add", {mean_square, Scalar("epsilon")})});
}
// a / b
Pattern Ratio(const Pattern& a, const Pattern& b) {
  return OneOf({Op("Div", {a, b}), Op("Mul", {a, Op("Reciprocal", {b})}),
                Op("Mul", {a, Op("Div", {Scalar(1), b})})});
}

Fusion LayerNormalization() {
  const Pattern x = Any("x");
  const Pattern centred = Op("Sub", {x, Mean(x, "mean")});
  const Pattern normalized = Ratio(centred, Deviation(Mean(Square(centred), "variance")));
  return {"",
          "LayerNormalization",
          {.name = "layer normalization",
           .pattern = Op("Mul", {normalized, Any("scale")}),
           .when = NormalizesLastAxes({"mean", "variance"}, {"scale"}),
           .replace = [](Replacement& r) {
             return r.Op("LayerNormalization", {r["x"], r["scale"]},
                         NormalizationAttributes(r, "mean"));
           }}};
}

// x (scale / deviation) + (bias - mean (scale / deviation)), as TensorFlow writes it.
Fusion ScaledLayerNormalization() {
  const Pattern x = Any("x");
  const Pattern mean = Mean(x, "mean");
  const Pattern variance = Mean(Square(Op("Sub", {x, mean})), "variance");
  const Pattern factor = OneOf({Op("Mul", {Op("Reciprocal", {Deviation(variance)}), Any("scale")}),
                                Op("Div", {Any("scale"), Deviation(variance)})});
  return {"",
          "LayerNormalization",
          {.name = "layer normalization with one factor",
           .pattern = Op("Add", {Op("Mul", {x, factor}),
                                 Op("Sub", {Any("bias"), Op("Mul", {mean, factor})})}),
           .when = NormalizesLastAxes({"mean", "variance"}, {"scale", "bias"}),
           .replace = [](Replacement& r) {
             return r.Op("LayerNormalization", {r["x"], r["scale"], r["bias"]},
                         NormalizationAttributes(r, "mean"));
           }}};
}

bool BiasHasShapeOfScale(const Match& match) {
  const SymbolicShape* scale = match.shape("scale");
  const SymbolicShape* bias = match.shape("bias");
  return scale && bias && *scale == *bias;
}

Fusion LayerNormalizationBias() {
  return {
      "",
      "LayerNormalization",
      {.name = "layer normalization bias",
       .pattern =
           Op("Add", {Op("LayerNormalization", {Any("x"), Any("scale")}).As("norm"), Any("bias")}),
       .when = BiasHasShapeOfScale,
       .replace = [](Replacement& r) {
         return r.Op("LayerNormalization", {r["x"], r["scale"], r["bias"]}, r.AttributesOf("norm"));
       }}};
}

Fusion RmsNormalization() {
  const Pattern x = Any("x");
  const Pattern normalized = Ratio(x, Deviation(Mean(Square(x), "mean_square")));
  return {"",
          "RMSNormalization",
          {.name = "RMS normalization",
           .pattern = Op("Mul", {normalized, Any("scale")}),
           .when = NormalizesLastAxes({"mean_square"}, {"scale"}),
           .replace = [](Replacement& r) {
             return r.Op("RMSNormalization", {r["x"], r["scale"]},
                         NormalizationAttributes(r, "mean_square"));
           }}};
}

// SkipLayerNormalization takes equal shapes and rows for scale and bias, and normalizes the last
// axis.
bool AddsEqualShapesBeforeLastAxis(const Match& match) {
  const SymbolicShape* input = match.shape("input");
  const SymbolicShape* skip = match.shape("skip");
  if (!input || !skip || !(*input == *skip) || input->rank() != 3) return false;
  for (const char* const name : {"scale", "bias"}) {
    if (match[name] == ValueId::kNone) continue;
    const SymbolicShape* row = match.shape(name);
    if (!row || row->rank() != 1 || !((*row)[0] == (*input)[2])) return false;
  }
  const int64_t axis = match.node("norm").GetInt("axis", -1);
  return axis == -1 || axis == 2;
}

Fusion SkipLayerNormalization() {
  return {"com.microsoft",
          "SkipLayerNormalization",
          {.name = "skip layer normalization",
           .pattern = Op("LayerNormalization",
                         {Op("Add", {Any("input"), Any("skip")}), Any("scale"), Maybe("bias")})
                          .As("norm"),
           .when = AddsEqualShapesBeforeLastAxis,
           .replace = [](Replacement& r) {
             std::vector<Attribute> attributes;
             attributes.emplace_back("epsilon", r.node("norm").GetFloat("epsilon", 1e-5F));
             return r.Op("SkipLayerNormalization", {r["input"], r["skip"], r["scale"], r["bias"]},
                         std::move(attributes), "com.microsoft");
           }}};
}

}  // namespace

std::vector<Fusion> NormalizationFusions() {
  std::vector<Fusion> fusions;
  fusions.push_back(LayerNormalization());
  fusions.push_back(ScaledLayerNormalization());
  fusions.push_back(LayerNormalizationBias());
  fusions.push_back(RmsNormalization());
  fusions.push_back(SkipLayerNormalization());
  return fusions;
}

}  // namespace tenon
