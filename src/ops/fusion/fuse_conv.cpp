// Fuses convolutions with what follows them: normalization, bias, residual, activation.
#include <algorithm>
#include <optional>

#include "ir/graph.h"
#include "ops/conv/channel_affine.h"
#include "ops/conv/nchwc.h"
#include "ops/conv/weights_scale.h"
#include "ops/fusion/fuse_epilogue.h"
#include "ops/fusion/fusion.h"

namespace tenon {
namespace {

constexpr const char* kMicrosoft = "com.microsoft";

const Shape& WeightsShape(const Match& match) {
  return match.graph().StoredConstantOf(match["W"])->shape();
}

// Whether the convolution's weights are constants into which the affine map can be folded.
bool HasFoldableWeights(const Match& match) {
  const Tensor* weights = match.graph().StoredConstantOf(match["W"]);
  if (!kFoldableWeights.Contains(weights->type()) || weights->rank() < 3) return false;
  return match["B"] == ValueId::kNone || IsFloatVector(match.constant("B"), weights->shape()[0]);
}

// Multiplies the factors of the convolution's weights by those of `scale`.
void AddWeightsScale(const std::vector<double>& scale, std::vector<Attribute>& attributes) {
  if (std::all_of(scale.begin(), scale.end(), [](double s) { return s == 1; })) return;
  std::vector<float> factors(scale.begin(), scale.end());
  for (const Attribute& attribute : attributes) {
    if (attribute.name != kWeightsScale) continue;
    const auto& before = *attribute.get<std::vector<float>>();
    for (size_t c = 0; c < factors.size(); ++c) {
      factors[c] = static_cast<float>(before[c] * scale[c]);
    }
  }
  SetAttribute(attributes, std::string(kWeightsScale), std::move(factors));
}

ValueId FoldIntoConv(Replacement& r, const ChannelAffine& affine) {
  const Tensor* bias = r.constant("B");
  const size_t channels = affine.scale.size();
  Result<Tensor> shifted =
      Tensor::Allocate(DataType::kFloat, Shape({static_cast<int64_t>(channels)}));
  if (!shifted) return ValueId::kNone;
  for (size_t c = 0; c < channels; ++c) {
    const double before = bias ? bias->data<float>()[c] : 0;
    shifted->data<float>()[c] = static_cast<float>(before * affine.scale[c] + affine.shift[c]);
  }
  std::vector<Attribute> attributes = r.AttributesOf("conv");
  AddWeightsScale(affine.scale, attributes);
  return r.Op("Conv", {r["X"], r["W"], r.Constant("bias", std::move(*shifted))},
              std::move(attributes));
}

// --- BatchNormalization ---

std::optional<ChannelAffine> Normalization(const Match& match) {
  return AffineOfNormalization(match.graph(), match.node("norm"), WeightsShape(match)[0]);
}

bool IsFoldableNormalization(const Match& match) {
  return HasFoldableWeights(match) && Normalization(match).has_value();
}

ValueId FoldNormalization(Replacement& r) { return FoldIntoConv(r, *Normalization(r)); }

// --- Constants per channel ---

std::optional<std::vector<double>> PerChannelConstant(const Match& match) {
  const Shape& weights = WeightsShape(match);
  return PerChannel(*match.constant("c"), weights.rank(), weights[0]);
}

bool IsPerChannel(const Match& match) {
  return HasFoldableWeights(match) && PerChannelConstant(match).has_value();
}

ValueId FoldScale(Replacement& r) {
  const std::vector<double> scale = *PerChannelConstant(r);
  return FoldIntoConv(r, {scale, std::vector<double>(scale.size(), 0)});
}

ValueId FoldShift(Replacement& r) {
  const std::vector<double> shift = *PerChannelConstant(r);
  return FoldIntoConv(r, {std::vector<double>(shift.size(), 1), shift});
}

// --- Epilogues ---

// Fused convolutions, in NCHW or in the blocked layout.
Pattern FusedConv(std::vector<Pattern> inputs, bool is_blocked) {
  const Pattern conv = is_blocked ? Op("NchwcConv", std::move(inputs)).In(kNchwcDomain)
                                  : Op("FusedConv", std::move(inputs)).In(kMicrosoft);
  return conv.Where(HasNoActivation).As("conv");
}

ValueId MakeFusedConv(Replacement& r, std::vector<Attribute> attributes) {
  const bool is_blocked = r.node("conv").domain == kNchwcDomain;
  return r.Op(is_blocked ? "NchwcConv" : "FusedConv", {r["X"], r["W"], r["B"], r["Z"]},
              std::move(attributes), std::string(is_blocked ? kNchwcDomain : kMicrosoft));
}

ValueId AddResidual(Replacement& r) { return MakeFusedConv(r, r.AttributesOf("conv")); }

ValueId AddConvActivation(Replacement& r) {
  std::vector<Attribute> attributes = r.AttributesOf("conv");
  AddActivation(r, attributes);
  return MakeFusedConv(r, std::move(attributes));
}

// Adds the residual to one of `plain`, the activation to one of `open`, which may have a residual.
std::vector<Fusion> Epilogues(const Pattern& plain, const Pattern& open, std::string_view domain,
                              std::string_view op_type) {
  std::vector<Fusion> fusions;
  fusions.push_back({domain,
                     op_type,
                     {.name = "conv residual",
                      .pattern = Op("Add", {plain, Any("Z")}),
                      .when = [](const Match& m) { return AddsItsOwnShape(m, "Z", "conv"); },
                      .replace = AddResidual}});
  for (const Pattern& pattern : ActivationsOf(open)) {
    fusions.push_back({domain,
                       op_type,
                       {.name = "conv activation",
                        .pattern = pattern,
                        .when = HasKnownParameters,
                        .replace = AddConvActivation}});
  }
  return fusions;
}

}  // namespace

std::vector<Fusion> ConvFoldings() {
  const Pattern conv = Op("Conv", {Any("X"), Constant("W"), Maybe("B")}).As("conv");
  std::vector<Fusion> fusions;
  fusions.push_back(
      {"",
       "Conv",
       {.name = "conv batch normalization",
        .pattern = Op("BatchNormalization", {conv, Constant("gamma"), Constant("beta"),
                                             Constant("mean"), Constant("variance")})
                       .As("norm"),
        .when = IsFoldableNormalization,
        .replace = FoldNormalization}});
  fusions.push_back({"",
                     "Conv",
                     {.name = "conv scale",
                      .pattern = Op("Mul", {conv, Constant("c")}),
                      .when = IsPerChannel,
                      .replace = FoldScale}});
  fusions.push_back({"",
                     "Conv",
                     {.name = "conv shift",
                      .pattern = Op("Add", {conv, Constant("c")}),
                      .when = IsPerChannel,
                      .replace = FoldShift}});
  return fusions;
}

std::vector<Fusion> ConvFusions() {
  const Pattern x = Any("X"), w = Any("W"), b = Maybe("B");
  const Pattern conv = Op("Conv", {x, w, b}).As("conv");
  return Epilogues(OneOf({conv, FusedConv({x, w, b}, false)}),
                   OneOf({conv, FusedConv({x, w, b, Maybe("Z")}, false)}), kMicrosoft, "FusedConv");
}

std::vector<Fusion> NchwcConvFusions() {
  const Pattern x = Any("X"), w = Any("W"), b = Maybe("B");
  return Epilogues(FusedConv({x, w, b}, true), FusedConv({x, w, b, Maybe("Z")}, true), kNchwcDomain,
                   "NchwcConv");
}

}  // namespace tenon
