// Sums of convolutions of one value, and of its normalization, which are one convolution. Networks
// such as RepVGG and MobileOne have them as they are trained.
#include <algorithm>
#include <optional>

#include "ir/graph.h"
#include "ops/conv/channel_affine.h"
#include "ops/conv/weights_scale.h"
#include "ops/conv/window.h"
#include "ops/fusion/fusion.h"
#include "tensor/lasting_memory.h"

namespace tenon {
namespace {

using Dims = std::vector<WindowDim>;

// A convolution with constant weights. A normalization is one whose weights are ones from each
// channel to itself.
struct Summand {
  const Node* node;
  Dims dims;
  Shape shape;           // of the weights
  const float* weights;  // null: those of a normalization
  ChannelAffine affine;  // of what the weights give
};

std::optional<Summand> ConvSummand(const Match& match, std::string_view node,
                                   std::string_view weights, std::string_view bias) {
  const Node& conv = match.node(node);
  const Tensor* w = match.constant(weights);
  const Tensor* b = match.constant(bias);
  if (w->type() != DataType::kFloat || w->rank() < 3) return std::nullopt;
  const auto channels = static_cast<size_t>(w->shape()[0]);
  if (match[bias] != ValueId::kNone && !IsFloatVector(b, w->shape()[0])) return std::nullopt;
  const Result<Window> window = MakeWindow({.strides = conv.GetInts("strides"),
                                            .dilations = conv.GetInts("dilations"),
                                            .pads = conv.GetInts("pads")},
                                           w->shape().dims().subspan(2));
  if (!window || conv.GetString("auto_pad", "NOTSET") != "NOTSET") return std::nullopt;
  ChannelAffine affine = {std::vector<double>(channels, 1), std::vector<double>(channels, 0)};
  if (b) affine.shift.assign(b->data<float>(), b->data<float>() + channels);
  if (const Attribute* scale = conv.FindAttribute(kWeightsScale)) {
    const auto& factors = *scale->get<std::vector<float>>();
    affine.scale.assign(factors.begin(), factors.end());
  }
  return Summand{&conv, Dims(window->dims.begin(), window->dims.begin() + window->rank), w->shape(),
                 w->data<float>(), std::move(affine)};
}

// The normalization as a convolution whose weights have the shape of `conv`'s but for the kernel.
std::optional<Summand> NormalizationSummand(const Match& match, const Summand& conv) {
  const int64_t channels = conv.shape[0];
  if (conv.shape[1] * conv.node->GetInt("group", 1) != channels) return std::nullopt;
  std::optional<ChannelAffine> affine =
      AffineOfNormalization(match.graph(), match.node("norm"), channels);
  if (!affine) return std::nullopt;
  Shape shape = conv.shape;
  for (size_t i = 2; i < shape.rank(); ++i) shape[i] = 1;
  return Summand{&match.node("norm"), Dims(conv.dims.size(), kOneElement), std::move(shape),
                 nullptr, *std::move(affine)};
}

// Where the taps of `small` lie among those of `large` along one axis, for any input; absent if
// they do not.
std::optional<int64_t> FirstTap(const WindowDim& large, const WindowDim& small) {
  const int64_t begin = large.pad_begin - small.pad_begin;
  const int64_t first = begin / large.dilation;
  const bool fits = large.stride == small.stride && begin >= 0 && begin % large.dilation == 0 &&
                    (small.kernel == 1 || small.dilation == large.dilation) &&
                    first + small.kernel <= large.kernel &&
                    large.pad_end - small.pad_end == large.extent() - small.extent() - begin;
  return fits ? std::optional(first) : std::nullopt;
}

// The same for all axes.
std::optional<std::vector<int64_t>> FirstTaps(const Summand& large, const Summand& small) {
  const auto group = [](const Summand& s) { return s.node->GetInt("group", 1); };
  if (large.weights == nullptr || large.dims.size() != small.dims.size() ||
      large.shape[0] != small.shape[0] || large.shape[1] != small.shape[1] ||
      (small.weights != nullptr && group(large) != group(small))) {
    return std::nullopt;
  }
  std::vector<int64_t> first;
  for (size_t i = 0; i < large.dims.size(); ++i) {
    const std::optional<int64_t> tap = FirstTap(large.dims[i], small.dims[i]);
    if (!tap) return std::nullopt;
    first.push_back(*tap);
  }
  return first;
}

// Both summands, the first of which has taps wherever the second does.
struct Sum {
  Summand large, small;
  std::vector<int64_t> first;  // taps of `large` at those of `small`
};

std::optional<Sum> SumOf(const Match& match) {
  std::optional<Summand> a = ConvSummand(match, "conv", "W", "B");
  if (!a) return std::nullopt;
  std::optional<Summand> b = match.FindNode("norm") ? NormalizationSummand(match, *a)
                                                    : ConvSummand(match, "other", "V", "C");
  if (!b) return std::nullopt;
  if (auto first = FirstTaps(*a, *b)) return Sum{*std::move(a), *std::move(b), *std::move(first)};
  if (auto first = FirstTaps(*b, *a)) return Sum{*std::move(b), *std::move(a), *std::move(first)};
  return std::nullopt;
}

// The weights of both, [O, I, taps...].
Result<Tensor> AddWeights(const Sum& sum) {
  const auto& [large, small, first] = sum;
  TENON_ASSIGN_OR_RETURN(Tensor weights,
                         Tensor::Allocate(DataType::kFloat, large.shape, SharedLastingMemory()));
  const auto out_channels = static_cast<size_t>(large.shape[0]);
  const auto in_channels = static_cast<size_t>(large.shape[1]);
  const auto taps_of = [](const Summand& s) {
    int64_t taps = 1;
    for (const WindowDim& dim : s.dims) taps *= dim.kernel;
    return static_cast<size_t>(taps);
  };
  const size_t taps = taps_of(large), few_taps = taps_of(small);
  std::vector<size_t> tap_of(few_taps);  // of `large`
  for (size_t i = 0; i < few_taps; ++i) {
    size_t rest = i, stride = 1;
    for (size_t axis = large.dims.size(); axis-- > 0;) {
      const auto kernel = static_cast<size_t>(small.dims[axis].kernel);
      tap_of[i] += (static_cast<size_t>(first[axis]) + rest % kernel) * stride;
      rest /= kernel;
      stride *= static_cast<size_t>(large.dims[axis].kernel);
    }
  }
  for (size_t row = 0; row < out_channels * in_channels; ++row) {
    const size_t o = row / in_channels;
    float* const to = weights.data<float>() + row * taps;
    const float* const from = large.weights + row * taps;
    const double scale = large.affine.scale[o];
    for (size_t t = 0; t < taps; ++t) to[t] = static_cast<float>(from[t] * scale);
    for (size_t i = 0; i < few_taps; ++i) {
      const double one =
          small.weights ? small.weights[row * few_taps + i] : row % in_channels == o % in_channels;
      const size_t t = tap_of[i];
      to[t] = static_cast<float>(from[t] * scale + one * small.affine.scale[o]);
    }
  }
  return weights;
}

ValueId AddConvs(Replacement& r) {
  const std::optional<Sum> sum = SumOf(r);
  const std::vector<double>&a = sum->large.affine.shift, &b = sum->small.affine.shift;
  Result<Tensor> weights = AddWeights(*sum);
  Result<Tensor> bias = Tensor::Allocate(DataType::kFloat, Shape({static_cast<int64_t>(a.size())}));
  if (!weights || !bias) return ValueId::kNone;
  std::transform(a.begin(), a.end(), b.begin(), bias->data<float>(),
                 [](double x, double y) { return static_cast<float>(x + y); });
  std::vector<Attribute> attributes =
      r.AttributesOf(r.FindNode("conv") == sum->large.node ? "conv" : "other");
  std::erase_if(attributes, [](const Attribute& each) { return each.name == kWeightsScale; });
  return r.Op(
      "Conv",
      {r["X"], r.Constant("weights", *std::move(weights)), r.Constant("bias", *std::move(bias))},
      std::move(attributes));
}

}  // namespace

std::vector<Fusion> ConvSumFusions() {
  const Pattern x = Any("X");
  const Pattern normalization = Op("BatchNormalization", {x, Constant("gamma"), Constant("beta"),
                                                          Constant("mean"), Constant("variance")})
                                    .As("norm");
  std::vector<Fusion> fusions;
  fusions.push_back(
      {"",
       "Conv",
       {.name = "conv sum",
        .pattern = Op("Add", {Op("Conv", {x, Constant("W"), Maybe("B")}).As("conv"),
                              OneOf({Op("Conv", {x, Constant("V"), Maybe("C")}).As("other"),
                                     normalization})}),
        .when = [](const Match& match) { return SumOf(match).has_value(); },
        .replace = AddConvs}});
  return fusions;
}

}  // namespace tenon
