// Sums of convolutions of one value, and of its normalization, which are one convolution. Networks
// such as RepVGG and MobileOne have them as they are trained.
#include <algorithm>
#include <optional>

#include "ir/graph.h"
#include "ops/conv/channel_affine.h"
#include "ops/conv/weights_scale.h"
#include "ops/conv/window.h"
#include "ops/framework/float_rows.h"
#include "ops/fusion/fusion.h"
#include "tensor/lasting_memory.h"

namespace tenon {
namespace {

constexpr size_t kMostSummands = 32;

// A convolution with constant weights. A normalization is one whose weights are ones from each
// channel to itself.
struct Summand {
  const Node* node;
  Window window;
  Shape shape;             // of the weights
  const Tensor* weights;   // null: those of a normalization
  ChannelAffine affine;    // of what the weights give
  std::vector<size_t> at;  // the taps of the largest summand where its own are

  int64_t group() const { return node->GetInt("group", 1); }
  size_t taps() const {
    int64_t taps = 1;
    for (size_t i = 2; i < shape.rank(); ++i) taps *= shape[i];
    return static_cast<size_t>(taps);
  }
};

std::optional<Summand> ConvSummand(const Graph& graph, const Node& conv) {
  const Tensor* w = conv.inputs.size() > 1 ? graph.StoredConstantOf(conv.inputs[1]) : nullptr;
  if (w == nullptr || !kFoldableWeights.Contains(w->type()) || w->rank() < 3 || w->size() == 0) {
    return std::nullopt;
  }
  const auto channels = static_cast<size_t>(w->shape()[0]);
  const Tensor* b = conv.has_input(2) ? graph.ConstantOf(conv.inputs[2]) : nullptr;
  if (conv.has_input(2) && !IsFloatVector(b, w->shape()[0])) return std::nullopt;
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
  return Summand{&conv, *window, w->shape(), w, std::move(affine), {}};
}

// The normalization as a convolution whose weights have the shape of `conv`'s but for the kernel.
std::optional<Summand> NormalizationSummand(const Graph& graph, const Node& norm,
                                            const Summand& conv) {
  const int64_t channels = conv.shape[0];
  if (conv.shape[1] * conv.group() != channels) return std::nullopt;
  std::optional<ChannelAffine> affine = AffineOfNormalization(graph, norm, channels);
  if (!affine) return std::nullopt;
  Shape shape = conv.shape;
  for (size_t i = 2; i < shape.rank(); ++i) shape[i] = 1;
  Window window = conv.window;
  std::fill_n(window.dims.begin(), window.rank, kOneElement);
  return Summand{&norm, window, std::move(shape), nullptr, *std::move(affine), {}};
}

// Where the taps of `small` lie among those of `large` along one axis, for any input; absent if
// they do not.
std::optional<size_t> FirstTap(const WindowDim& large, const WindowDim& small) {
  const int64_t begin = large.pad_begin - small.pad_begin;
  const int64_t first = begin / large.dilation;
  const bool fits = large.stride == small.stride && begin >= 0 && begin % large.dilation == 0 &&
                    (small.kernel == 1 || small.dilation == large.dilation) &&
                    first + small.kernel <= large.kernel &&
                    large.pad_end - small.pad_end == large.extent() - small.extent() - begin;
  return fits ? std::optional(static_cast<size_t>(first)) : std::nullopt;
}

// Sets small.at. Returns false if `large` lacks a tap of it, or other things differ.
bool PlaceIn(const Summand& large, Summand& small) {
  if (large.weights == nullptr || large.window.rank != small.window.rank ||
      large.shape[0] != small.shape[0] || large.shape[1] != small.shape[1] ||
      (small.weights != nullptr && large.group() != small.group())) {
    return false;
  }
  std::vector<size_t> at = {0};  // of the taps along the axes so far
  for (size_t axis = 0; axis < large.window.rank; ++axis) {
    const std::optional<size_t> first = FirstTap(large.window.dims[axis], small.window.dims[axis]);
    if (!first) return false;
    std::vector<size_t> longer;
    for (const size_t before : at) {
      for (size_t tap = 0; tap < static_cast<size_t>(small.window.dims[axis].kernel); ++tap) {
        longer.push_back(before * static_cast<size_t>(large.window.dims[axis].kernel) + *first +
                         tap);
      }
    }
    at = std::move(longer);
  }
  small.at = std::move(at);
  return true;
}

// The nodes whose results a tree of Adds sums up.
class AddTree {
 public:
  AddTree(const Graph& graph, const Node& root) : graph_(graph), provider_(root.provider) {
    is_whole_ = root.inputs.size() == 2 && Collect(root.inputs[0]) && Collect(root.inputs[1]);
  }

  // All summands, the largest first; none if they are not one convolution.
  std::vector<Summand> Summands() const {
    std::vector<Summand> all;
    const Node* const largest = is_whole_ ? LargestConv() : nullptr;
    if (largest == nullptr) return all;
    const auto take = [&](const Node& node) {
      std::optional<Summand> each = node.op_type == "Conv"
                                        ? ConvSummand(graph_, node)
                                        : NormalizationSummand(graph_, node, all.front());
      if (!each || !PlaceIn(all.empty() ? *each : all.front(), *each)) return false;
      all.push_back(*std::move(each));
      return true;
    };
    bool fits = take(*largest);
    for (const Node* node : terms_) fits = fits && (node == largest || take(*node));
    if (!fits) all.clear();
    return all;
  }

  // Those, and the Adds between them and the root.
  std::vector<const Node*> Nodes() const {
    std::vector<const Node*> nodes = adds_;
    nodes.insert(nodes.end(), terms_.begin(), terms_.end());
    return nodes;
  }

 private:
  // That with most weights; null if there is none.
  const Node* LargestConv() const {
    const Node* largest = nullptr;
    int64_t most = 0;
    for (const Node* node : terms_) {
      const bool is_conv = node->op_type == "Conv" && node->inputs.size() > 1;
      const Tensor* w = is_conv ? graph_.StoredConstantOf(node->inputs[1]) : nullptr;
      if (w == nullptr || w->size() <= most) continue;
      largest = node;
      most = w->size();
    }
    return largest;
  }

  bool Collect(ValueId value) {
    const NodeId producer = graph_.value(value).producer;
    if (producer == NodeId::kNone || !graph_.HasOneUse(value)) return false;
    const Node& node = graph_.node(producer);
    if (!node.domain.empty() || node.provider != provider_) return false;
    if (terms_.size() + adds_.size() > 2 * kMostSummands) return false;
    if (node.op_type == "Add") {
      adds_.push_back(&node);
      return node.inputs.size() == 2 && Collect(node.inputs[0]) && Collect(node.inputs[1]);
    }
    if (node.op_type != "Conv" && node.op_type != "BatchNormalization") return false;
    terms_.push_back(&node);
    return node.inputs[0] == terms_.front()->inputs[0];
  }

  const Graph& graph_;
  const int32_t provider_;  // of all nodes
  std::vector<const Node*> terms_, adds_;
  bool is_whole_ = false;
};

std::vector<Summand> SummandsOf(const Match& match) {
  return AddTree(match.graph(), match.root()).Summands();
}

// Whether the root is such a sum, and not a part of a larger one.
bool IsConvSum(const Match& match) {
  const Graph& graph = match.graph();
  if (SummandsOf(match).empty()) return false;
  const ValueId sum = match.root().outputs[0];
  if (!graph.HasOneUse(sum)) return true;
  const Node& consumer = graph.node(graph.value(sum).consumers.front());
  return consumer.op_type != "Add" || !consumer.domain.empty() ||
         AddTree(graph, consumer).Summands().empty();
}

// The sum of all weights, [O, I, taps...].
Result<Tensor> AddWeights(const std::vector<Summand>& summands) {
  const Shape& shape = summands.front().shape;
  TENON_ASSIGN_OR_RETURN(Tensor sum,
                         Tensor::Allocate(DataType::kFloat, shape, SharedLastingMemory()));
  const auto out_channels = static_cast<size_t>(shape[0]);
  const auto in_channels = static_cast<size_t>(shape[1]);
  std::vector<double> row(summands.front().taps());
  std::vector<float> own(row.size());  // of a summand
  for (size_t r = 0; r < out_channels * in_channels; ++r) {
    const size_t channel = r / in_channels;
    std::fill(row.begin(), row.end(), 0.0);
    for (const Summand& each : summands) {
      const size_t taps = each.at.size();
      const double scale = each.affine.scale[channel];
      if (each.weights == nullptr) {
        own[0] = r % in_channels == channel % in_channels ? 1 : 0;
      } else {
        CopyFloatRow(*each.weights, r * taps, taps, own.data());
      }
      for (size_t tap = 0; tap < taps; ++tap) row[each.at[tap]] += own[tap] * scale;
    }
    std::transform(row.begin(), row.end(), sum.data<float>() + r * row.size(),
                   [](double x) { return static_cast<float>(x); });
  }
  return sum;
}

Result<Tensor> AddShifts(const std::vector<Summand>& summands) {
  const int64_t channels = summands.front().shape[0];
  TENON_ASSIGN_OR_RETURN(Tensor sum, Tensor::Allocate(DataType::kFloat, Shape({channels})));
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    double shift = 0;
    for (const Summand& each : summands) shift += each.affine.shift[c];
    sum.data<float>()[c] = static_cast<float>(shift);
  }
  return sum;
}

ValueId AddConvs(Replacement& r) {
  const AddTree tree(r.graph(), r.root());
  const std::vector<Summand> summands = tree.Summands();
  Result<Tensor> weights = AddWeights(summands);
  Result<Tensor> bias = AddShifts(summands);
  if (!weights || !bias) return ValueId::kNone;
  const Node& largest = *summands.front().node;
  std::vector<Attribute> attributes;
  for (const Attribute& attribute : largest.attributes) {
    if (attribute.name != kWeightsScale) attributes.push_back(CloneAttribute(attribute));
  }
  const ValueId x = largest.inputs[0];
  for (const Node* node : tree.Nodes()) r.Covers(*node);
  return r.Op("Conv",
              {x, r.Constant("weights", *std::move(weights)), r.Constant("bias", *std::move(bias))},
              std::move(attributes));
}

}  // namespace

std::vector<Fusion> ConvSumFusions() {
  std::vector<Fusion> fusions;
  fusions.push_back({"",
                     "Conv",
                     {.name = "conv sum",
                      .pattern = Op("Add", {Any("left"), Any("right")}),
                      .when = IsConvSum,
                      .replace = AddConvs}});
  return fusions;
}

}  // namespace tenon
