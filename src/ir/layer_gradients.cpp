// The gradients of normalizations, Dropout and losses.
#include <array>

#include "ir/batch_normalization.h"
#include "ir/gradient_rules.h"

namespace tenon {
namespace {

// ---- normalizations -----------------------------------------------------------------------------

// 1 / sqrt(value + epsilon)
ValueId InverseRoot(Builder& b, ValueId value, float epsilon) {
  return b.Op("Reciprocal", {b.Op("Sqrt", {Plus(b, value, epsilon)})});
}

float EpsilonOf(const Node& node) { return node.GetFloat("epsilon", 1e-5f); }

// Of a value x that becomes (x - mean) * inverse along axes, or x * inverse of the mean square:
// the result, and the gradient of x for one of the result.
struct Normalized {
  ValueId inverse, y;
};

Normalized Normalize(Builder& b, ValueId x, std::span<const int64_t> axes, float epsilon,
                     bool has_mean = true) {
  const ValueId centred = has_mean ? Sub(b, x, MeanOver(b, x, axes)) : x;
  const ValueId inverse = InverseRoot(b, MeanOver(b, Square(b, centred), axes), epsilon);
  return {inverse, Mul(b, centred, inverse)};
}

ValueId NormalizedGradient(Builder& b, const Normalized& normalized, ValueId dy,
                           std::span<const int64_t> axes, bool has_mean = true) {
  const ValueId along = Mul(b, normalized.y, MeanOver(b, Mul(b, dy, normalized.y), axes));
  const ValueId across = has_mean ? Sub(b, dy, MeanOver(b, dy, axes)) : dy;
  return Mul(b, normalized.inverse, Sub(b, across, along));
}

// LayerNormalization, and those without a mean: x normalized from an axis on, scaled, shifted.
Result<Gradients> OverLastAxes(Builder& b, const Inputs& in, bool has_mean) {
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, in.x(0)));
  const int64_t axis = in.node.GetInt("axis", -1);
  const std::vector<int64_t> axes = AxesBetween(axis < 0 ? axis + rank : axis, rank);
  const Normalized normalized = Normalize(b, in.x(0), axes, EpsilonOf(in.node), has_mean);
  const ValueId scaled = Mul(b, in.dy(), in.x(1));
  Gradients all = {NormalizedGradient(b, normalized, scaled, axes, has_mean),
                   SumTo(b, in, Mul(b, in.dy(), normalized.y), in.x(1))};
  if (in.x(2) != ValueId::kNone) all.push_back(SumTo(b, in, in.dy(), in.x(2)));
  return all;
}

// Whether the scale has all elements of the axes, as the operators for gradients need.
bool HasWholeScale(const Builder& b, const Inputs& in) {
  const SymbolicShape* x = b.ShapeOf(in.x(0));
  const SymbolicShape* scale = b.ShapeOf(in.x(1));
  if (x == nullptr || scale == nullptr) return false;
  const Result<size_t> axis = NormalizeAxis(in.node.GetInt("axis", -1), x->rank());
  return axis && scale->rank() == x->rank() - *axis &&
         scale->NumElements() == x->Product(*axis, x->rank());
}

Result<Gradients> LayerNormalization(Builder& b, const Inputs& in) {
  TENON_RETURN_IF_ERROR(CheckOnlyFirst(in));
  if (!b.MayUseKernels(in.x(0)) || !HasWholeScale(b, in)) return OverLastAxes(b, in, true);
  return b.Ops(
      "LayerNormalizationGrad",
      std::array{in.dy(), in.x(0), in.x(1), b.OutputOf(in.node, 1), b.OutputOf(in.node, 2)}, 3,
      Attributes(Int("axis", in.node.GetInt("axis", -1))), kMicrosoft);
}

Result<Gradients> RmsNormalization(Builder& b, const Inputs& in) {
  TENON_RETURN_IF_ERROR(CheckOnlyFirst(in));
  return OverLastAxes(b, in, false);
}

Result<Gradients> SimplifiedLayerNormalization(Builder& b, const Inputs& in) {
  TENON_RETURN_IF_ERROR(CheckOnlyFirst(in));
  if (!b.MayUseKernels(in.x(0)) || !HasWholeScale(b, in)) return OverLastAxes(b, in, false);
  return b.Ops("SimplifiedLayerNormalizationGrad",
               std::array{in.dy(), in.x(0), in.x(1), b.OutputOf(in.node, 1)}, 2,
               Attributes(Int("axis", in.node.GetInt("axis", -1))), kMicrosoft);
}

// SkipLayerNormalization, SkipSimplifiedLayerNormalization: the sum of two inputs and a bias is
// normalized, and is a result, too.
template <bool has_mean>
Result<Gradients> SkipNormalization(Builder& b, const Inputs& in) {
  constexpr size_t kSkip = 1, kScale = 2, kShift = 3, kBias = has_mean ? 4 : 3, kSum = 3;
  const auto given = [&](size_t i) {
    return i < in.output_gradients.size() ? in.output_gradients[i] : ValueId::kNone;
  };
  if (given(1) != ValueId::kNone || given(2) != ValueId::kNone) {
    return NotImplemented("{} has no gradient yet for its statistics", in.node.Describe());
  }
  const ValueId sum = b.OutputOf(in.node, kSum);
  b.graph().value(sum).type = b.graph().value(in.x(0)).type;
  std::vector<ValueId> inputs = {sum, in.x(kScale)};
  if (has_mean && in.x(kShift) != ValueId::kNone) inputs.push_back(in.x(kShift));
  const ValueId y = b.Op(has_mean ? "LayerNormalization" : "SimplifiedLayerNormalization", inputs,
                         Attributes(Attribute("epsilon", in.node.GetFloat("epsilon", 1e-12f))));
  const Node& normalization = b.graph().node(b.graph().value(y).producer);
  const Inputs of_normalization = {normalization, in.output_gradients.first(1), in.differentiable};
  TENON_ASSIGN_OR_RETURN(const Gradients found,
                         FindGradientRule(normalization)(b, of_normalization));
  const ValueId ds = given(kSum) == ValueId::kNone ? found[0] : Add(b, found[0], given(kSum));
  Gradients all = {SumTo(b, in, ds, in.x(0)), SumTo(b, in, ds, in.x(kSkip)), found[1]};
  if (has_mean) all.push_back(found.size() > 2 ? found[2] : ValueId::kNone);
  if (in.x(kBias) != ValueId::kNone) all.push_back(SumTo(b, in, ds, in.x(kBias)));
  return all;
}

// What belongs to channels, of shape [C], as operand of a value [N, C, ...].
ValueId PerChannel(Builder& b, ValueId value, int64_t rank) {
  if (rank <= 2) return value;
  return b.Op("Unsqueeze", {value, b.Integers(AxesBetween(1, rank - 1))});
}

// All axes but that of the channels.
std::vector<int64_t> AxesAcrossChannels(int64_t rank) {
  std::vector<int64_t> axes = AxesBetween(2, rank);
  axes.insert(axes.begin(), 0);
  return axes;
}

// The gradients of scale and bias [C].
void AddScaleAndBias(Builder& b, const Inputs& in, ValueId normalized, int64_t rank,
                     Gradients& all) {
  const std::vector<int64_t> axes = AxesAcrossChannels(rank);
  all.push_back(SumOver(b, Mul(b, in.dy(), normalized), axes, false));
  all.push_back(SumOver(b, in.dy(), axes, false));
}

// With the statistics that it is given.
Gradients BatchNormalizationOfGiven(Builder& b, const Inputs& in, int64_t rank) {
  const ValueId inverse = InverseRoot(b, in.x(4), EpsilonOf(in.node));
  const ValueId factor = PerChannel(b, Mul(b, in.x(1), inverse), rank);
  const ValueId centred = Sub(b, in.x(0), PerChannel(b, in.x(3), rank));
  const ValueId normalized = Mul(b, centred, PerChannel(b, inverse, rank));
  const ValueId dx = Mul(b, in.dy(), factor);
  Gradients all = {dx};
  AddScaleAndBias(b, in, normalized, rank, all);
  const std::vector<int64_t> axes = AxesAcrossChannels(rank);
  all.push_back(b.Op("Neg", {SumOver(b, dx, axes, false)}));
  // d inverse / d variance = -inverse^3 / 2
  const ValueId stretched = SumOver(b, Mul(b, dx, normalized), axes, false);
  all.push_back(Times(b, Mul(b, stretched, inverse), -0.5));
  return all;
}

Result<Gradients> BatchNormalization(Builder& b, const Inputs& in) {
  TENON_RETURN_IF_ERROR(CheckOnlyFirst(in));
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, in.x(0)));
  if (!UsesBatchStatistics(in.node)) return BatchNormalizationOfGiven(b, in, rank);
  const std::vector<int64_t> axes = AxesAcrossChannels(rank);
  Gradients all;
  if (b.MayUseKernels(in.x(0))) {
    const ValueId mean = MeanOver(b, in.x(0), axes);
    const ValueId variance = MeanOver(b, Square(b, Sub(b, in.x(0), mean)), axes);
    const ValueId flat = b.Integers(std::array<int64_t, 1>{-1});
    const ValueId inverse = InverseRoot(b, b.Op("Reshape", {variance, flat}), EpsilonOf(in.node));
    all = b.Ops("BatchNormalizationGrad",
                std::array{in.dy(), in.x(0), in.x(1), b.Op("Reshape", {mean, flat}), inverse}, 3,
                {}, kMicrosoft);
  } else {
    const Normalized normalized = Normalize(b, in.x(0), axes, EpsilonOf(in.node));
    const ValueId scaled = Mul(b, in.dy(), PerChannel(b, in.x(1), rank));
    all = {NormalizedGradient(b, normalized, scaled, axes)};
    AddScaleAndBias(b, in, normalized.y, rank, all);
  }
  all.resize(in.node.inputs.size(), ValueId::kNone);  // the statistics of before have no effect
  return all;
}

Result<Gradients> InstanceNormalization(Builder& b, const Inputs& in) {
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, in.x(0)));
  const std::vector<int64_t> axes = AxesBetween(2, rank);
  const Normalized normalized = Normalize(b, in.x(0), axes, EpsilonOf(in.node));
  const ValueId scaled = Mul(b, in.dy(), PerChannel(b, in.x(1), rank));
  Gradients all = {NormalizedGradient(b, normalized, scaled, axes)};
  AddScaleAndBias(b, in, normalized.y, rank, all);
  return all;
}

// The groups are rows of [N, groups, elements].
Result<Gradients> GroupNormalization(Builder& b, const Inputs& in) {
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, in.x(0)));
  const int64_t axes[] = {2};
  const auto grouped = [&](ValueId value) {
    const int64_t sizes[] = {0, in.node.GetInt("num_groups", 1), -1};
    return b.Op("Reshape", {value, b.Integers(sizes)});
  };
  const Normalized normalized = Normalize(b, grouped(in.x(0)), axes, EpsilonOf(in.node));
  const ValueId scaled = Mul(b, in.dy(), PerChannel(b, in.x(1), rank));
  Gradients all = {
      ReshapeLike(b, NormalizedGradient(b, normalized, grouped(scaled), axes), in.x(0))};
  AddScaleAndBias(b, in, ReshapeLike(b, normalized.y, in.x(0)), rank, all);
  return all;
}

// y = x / |x|: dx = (dy - d|x| sum(y dy)) / |x|.
Result<Gradients> LpNormalization(Builder& b, const Inputs& in) {
  const std::vector<int64_t> axis = {in.node.GetInt("axis", -1)};
  const bool is_l1 = in.node.GetInt("p", 2) == 1;
  const ValueId x = in.x(0);
  const ValueId size = is_l1 ? b.Op("Abs", {x}) : Square(b, x);
  const ValueId sum = SumOver(b, size, axis);
  const ValueId norm = is_l1 ? sum : b.Op("Sqrt", {sum});
  const ValueId slope = is_l1 ? b.Op("Sign", {x}) : in.y();
  const ValueId along = Mul(b, slope, SumOver(b, Mul(b, in.y(), in.dy()), axis));
  return Gradients{Div(b, Sub(b, in.dy(), along), norm)};
}

// ---- Dropout ------------------------------------------------------------------------------------

// With ratio and mode as inputs; older versions drop nothing.
Result<Gradients> Dropout(Builder& b, const Inputs& in) {
  if (in.x(2) == ValueId::kNone) return Gradients{in.dy()};
  const ValueId mask = b.OutputOf(in.node, 1);
  if (b.MayUseKernels(in.x(0))) {
    return Gradients{b.Op("DropoutGrad", {in.dy(), mask, in.x(1), in.x(2)}, {}, kMicrosoft)};
  }
  // Outside training nothing is scaled.
  const ValueId like = in.x(0), one = b.Scalar(1, like);
  const ValueId ratio = in.x(1) == ValueId::kNone ? b.Scalar(0.5, like) : b.CastTo(in.x(1), like);
  const ValueId kept = Where(b, in.x(2), Sub(b, one, ratio), one);
  return Gradients{Where(b, mask, Div(b, in.dy(), kept), b.Scalar(0, like))};
}

// ---- losses -------------------------------------------------------------------------------------

// Of log-probabilities [N, C, d...] and labels [N, d...]: which class each label names, as ones
// among zeros, and what each label counts, both with an axis for the classes.
struct Choices {
  ValueId is_chosen, weight;
};

Result<Choices> ChoicesOf(Builder& b, const Inputs& in) {
  const ValueId scores = in.x(0), labels = in.x(1), weights = in.x(2);
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, scores));
  const ValueId along = b.Op("Unsqueeze", {labels, Integer(b, 1)});
  const ValueId count = b.Op("Gather", {b.Op("Shape", {scores}), b.IntegerScalar(1)});
  ValueId classes = b.Op("Range", {b.IntegerScalar(0), count, b.IntegerScalar(1)});
  classes = PerChannel(b, b.CastTo(classes, labels), rank);
  const ValueId is_chosen = b.CastTo(b.Op("Equal", {along, classes}), scores);
  ValueId weight = b.Filled(1, along, scores);
  if (weights != ValueId::kNone) {
    const int64_t axes[] = {1};
    weight = SumOver(b, Mul(b, is_chosen, PerChannel(b, weights, rank)), axes);
  }
  if (in.node.FindAttribute("ignore_index") != nullptr) {
    const ValueId ignored = b.CastTo(b.IntegerScalar(in.node.GetInt("ignore_index", 0)), labels);
    weight = Where(b, b.Op("Equal", {along, ignored}), b.Scalar(0, scores), weight);
  }
  return Choices{is_chosen, weight};
}

// What the loss of each label counts in the result.
ValueId LossFactor(Builder& b, const Inputs& in, ValueId weight) {
  const std::string_view reduction = in.node.GetString("reduction", "mean");
  if (reduction == "none") return Mul(b, weight, b.Op("Unsqueeze", {in.dy(), Integer(b, 1)}));
  if (reduction == "sum") return Mul(b, weight, in.dy());
  const ValueId whole = b.Op("ReduceSum", {weight}, Attributes(Int("keepdims", 0)));
  return Mul(b, weight, Div(b, in.dy(), whole));
}

Result<Gradients> NegativeLogLikelihoodLoss(Builder& b, const Inputs& in) {
  TENON_ASSIGN_OR_RETURN(const Choices choices, ChoicesOf(b, in));
  const ValueId factor = LossFactor(b, in, choices.weight);
  return Gradients{b.Op("Neg", {Mul(b, choices.is_chosen, factor)})};
}

// softmax(scores) - chosen
Result<Gradients> SoftmaxCrossEntropyLoss(Builder& b, const Inputs& in) {
  TENON_RETURN_IF_ERROR(CheckOnlyFirst(in));
  if (b.MayUseKernels(in.x(0))) {
    std::vector<ValueId> inputs = {in.dy(), b.OutputOf(in.node, 1), in.x(1)};
    if (in.x(2) != ValueId::kNone) inputs.push_back(in.x(2));
    return Gradients{
        b.Op("SoftmaxCrossEntropyLossGrad", inputs, AttributesBut(in.node), kMicrosoft)};
  }
  TENON_ASSIGN_OR_RETURN(const Choices choices, ChoicesOf(b, in));
  const ValueId logarithms = b.Op("LogSoftmax", {in.x(0)}, Attributes(Int("axis", 1)));
  const ValueId error = Sub(b, b.Op("Exp", {logarithms}), choices.is_chosen);
  return Gradients{Mul(b, error, LossFactor(b, in, choices.weight))};
}

constexpr NamedGradientRule kRules[] = {
    {"BatchNormalization", BatchNormalization, 7},
    {"Dropout", Dropout, 7},
    {"GroupNormalization", GroupNormalization, 21},
    {"InstanceNormalization", InstanceNormalization},
    {"LayerNormalization", LayerNormalization},
    {"LpNormalization", LpNormalization},
    {"NegativeLogLikelihoodLoss", NegativeLogLikelihoodLoss},
    {"RMSNormalization", RmsNormalization},
    {"SimplifiedLayerNormalization", SimplifiedLayerNormalization},
    {"SkipLayerNormalization", SkipNormalization<true>, 1, kMicrosoft},
    {"SkipSimplifiedLayerNormalization", SkipNormalization<false>, 1, kMicrosoft},
    {"SoftmaxCrossEntropyLoss", SoftmaxCrossEntropyLoss},
};

}  // namespace

std::span<const NamedGradientRule> LayerGradients() { return kRules; }

}  // namespace tenon
