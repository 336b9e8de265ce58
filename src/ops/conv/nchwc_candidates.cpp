#include "ops/conv/nchwc_candidates.h"

#include <algorithm>
#include <string_view>

#include "base/unary_functions.h"
#include "ir/graph.h"
#include "kernels/conv/conv_tile.h"
#include "kernels/gemm/gemm.h"
#include "ops/conv/channel_affine.h"
#include "ops/conv/image_moves.h"
#include "ops/conv/nchwc_conv.h"
#include "ops/framework/attributes.h"

namespace tenon {
namespace {

using kernels::Conv2dShape;

// Of a core with AVX2; only ratios matter.
constexpr double kMacsPerNs = 24;         // products of a convolution, in either layout
constexpr double kGatherNs = 0.25;        // an element of the matrix that NCHW gathers
constexpr double kNchwChannelNs = 0.2;    // a product in NCHW with few channels a group
constexpr double kReorderNs = 0.5;        // an element that changes its layout
constexpr double kTileStartPixels = 1.1;  // what a tile takes before its first pixel, in pixels

// Inputs with up to so many channels are read in place.
constexpr size_t kMostStemChannels = 8;

// Whether a value is a float tensor [N, C, H, W] with known C.
const SymbolicShape* ImageShape(const Graph& graph, ValueId id) {
  if (id == ValueId::kNone) return nullptr;
  const ValueType& type = graph.value(id).type;
  const bool is_image = type.is_tensor() && type.element_type == DataType::kFloat && type.shape &&
                        type.shape->rank() == 4 && (*type.shape)[1].is_number();
  return is_image ? &*type.shape : nullptr;
}

size_t RoundedChannels(size_t channels) {
  return kernels::ChannelBlocks(channels) * kernels::kChannelBlock;
}

// The share of kMacsPerNs that the product of NCHW has: its weights are not packed, and the pixels
// of an image may not fill its panels.
double NchwRate(const Conv2dShape& shape) {
  constexpr double kUnpacked = 0.93;
  const size_t pixels = shape.out_height * shape.out_width;
  const size_t panel = kernels::GemmPanelColumns();
  const size_t filled = kernels::CeilDiv(pixels, panel) * panel;
  return kUnpacked * static_cast<double>(pixels) / static_cast<double>(std::max<size_t>(1, filled));
}

// How much faster the convolution is in the blocked layout.
double ConvGain(const Conv2dShape& shape, NchwcMethod method) {
  const auto taps = static_cast<double>(shape.kernel_height * shape.kernel_width);
  const auto pixels = static_cast<double>(shape.batch * shape.out_height * shape.out_width);
  const auto in = static_cast<double>(shape.in_channels),
             out = static_cast<double>(shape.out_channels);
  const double macs = pixels * taps * in * out / static_cast<double>(shape.groups);
  const bool is_pointwise = taps == 1 && shape.stride_height == 1 && shape.stride_width == 1;
  const double gathered = is_pointwise ? 0 : pixels * taps * in;
  const bool few_channels = shape.in_channels / shape.groups < kernels::kChannelBlock;
  const double nchw = gathered * kGatherNs + macs / (kMacsPerNs * NchwRate(shape)) +
                      (few_channels && shape.groups > 1 ? macs * kNchwChannelNs : 0);
  double blocked = 0;
  switch (method) {
    case NchwcMethod::kDepthwise:
      blocked = macs / kMacsPerNs * 2;
      break;
    case NchwcMethod::kGrouped:
      blocked = pixels * taps * in * 8 / kMacsPerNs;
      break;
    case NchwcMethod::kWinograd:
      blocked = macs / kMacsPerNs / 2;
      break;
    case NchwcMethod::kStem:
      blocked = macs / out * static_cast<double>(RoundedChannels(shape.out_channels)) / kMacsPerNs;
      break;
    case NchwcMethod::kDirect: {
      // A tile's pixels are neighbours in a row; the fewer there are, the longer it waits for sums.
      // Of the narrowest rows it takes several.
      const bool joins_rows = is_pointwise || shape.out_width <= kernels::kNarrowRow;
      const double row = joins_rows ? pixels : static_cast<double>(shape.out_width);
      blocked = macs / out * static_cast<double>(RoundedChannels(shape.out_channels)) *
                (1 + kTileStartPixels / std::max(1.0, row)) / kMacsPerNs;
      break;
    }
  }
  return nchw - blocked;
}

bool IsConv(const Node& node) {
  return (node.domain.empty() && node.op_type == "Conv") ||
         (node.domain == "com.microsoft" && node.op_type == "FusedConv");
}

std::optional<LayoutCandidate> ConvCandidate(const Graph& graph, const Node& node,
                                             const std::function<bool(ValueId)>& is_blocked) {
  const SymbolicShape* x = ImageShape(graph, node.inputs[0]);
  const Tensor* weights = node.has_input(1) ? graph.StoredConstantOf(node.inputs[1]) : nullptr;
  const Result<ConvAttrs> attrs = BindAttributes<ConvAttrs>(node);
  if (!x || !weights || !attrs || !ImageShape(graph, node.outputs[0])) return std::nullopt;
  const std::optional<Conv2dShape> shape = TypicalConvShape(*attrs, *x, weights->shape());
  if (!shape) return std::nullopt;
  const bool is_planar =
      shape->groups == 1 && shape->in_channels <= kMostStemChannels && !is_blocked(node.inputs[0]);
  const std::optional<NchwcMethod> method = ChooseNchwcMethod(*shape, is_planar);
  if (!method) return std::nullopt;
  LayoutCandidate candidate = {LayoutRole::kConv, {}, ConvGain(*shape, *method)};
  if (!is_planar) candidate.inputs.push_back(0);
  if (node.has_input(3)) candidate.inputs.push_back(3);
  return candidate;
}

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The lanes past the channels must stay finite, whatever they hold.
bool IsUnary(const Node& node) {
  const std::optional<UnaryOp> op = FindUnaryOperator(node.domain, node.op_type);
  return op && InfoOf(*op).Has(kFinite);
}

bool IsBinary(std::string_view op_type) {
  return IsOneOf(op_type, {"Add", "Max", "Min", "Mul", "Sub"});
}

bool IsScalar(const Graph& graph, ValueId id) {
  const Tensor* constant = graph.StoredConstantOf(id);
  return constant && constant->size() == 1 && constant->rank() <= 4;
}

// The same channels in all operands, which broadcast only along other axes.
std::optional<std::vector<size_t>> BinaryInputs(const Graph& graph, const Node& node) {
  if (node.inputs.size() != 2) return std::nullopt;
  std::vector<size_t> images;
  for (size_t i = 0; i < 2; ++i) {
    if (IsScalar(graph, node.inputs[i])) continue;
    if (!ImageShape(graph, node.inputs[i])) return std::nullopt;
    images.push_back(i);
  }
  if (images.size() == 2) {
    const SymbolicShape& a = *ImageShape(graph, node.inputs[0]);
    const SymbolicShape& b = *ImageShape(graph, node.inputs[1]);
    for (const size_t axis : {0, 1, 2, 3}) {
      const bool broadcasts = axis != 1 && (a[axis] == Dim(1) || b[axis] == Dim(1));
      if (!(a[axis] == b[axis]) && !broadcasts) return std::nullopt;
    }
  }
  return images;
}

// Whether images along the channels can be joined, or come from one, as they lie in memory.
bool AreWholeBlocks(const Graph& graph, std::span<const ValueId> images) {
  // Only the last may have lanes to spare.
  for (size_t i = 0; i < images.size(); ++i) {
    const SymbolicShape* shape = ImageShape(graph, images[i]);
    if (!shape) return false;
    const bool is_whole = (*shape)[1].value() % static_cast<int64_t>(kernels::kChannelBlock) == 0;
    if (!is_whole && i + 1 < images.size()) return false;
  }
  return true;
}

// The lanes past the channels would widen the range.
bool IsFakeQuantizationOfBlocks(const Graph& graph, const Node& node) {
  const SymbolicShape* shape = ImageShape(graph, node.inputs[0]);
  return node.domain == "com.tenon" && node.op_type == "DynamicFakeQuantize" && shape &&
         (*shape)[1].value() % static_cast<int64_t>(kernels::kChannelBlock) == 0;
}

bool IsConcatOfBlocks(const Graph& graph, const Node& node) {
  const int64_t axis = node.GetInt("axis", 1);
  return (axis == 1 || axis == -3) && AreWholeBlocks(graph, node.inputs);
}

// The mean over H and W that keeps these axes.
bool IsSpatialMean(const Graph& graph, const Node& node) {
  if (node.GetInt("keepdims", 1) != 1) return false;
  std::vector<int64_t> axes = node.GetInts("axes");
  if (node.has_input(1)) {
    const Tensor* constant = graph.ConstantOf(node.inputs[1]);
    const Result<Shape> values = constant ? IntegersOf(*constant) : Result<Shape>(Shape());
    if (!values) return false;
    axes.assign(values->begin(), values->end());
  }
  for (int64_t& axis : axes) axis += axis < 0 ? 4 : 0;
  std::sort(axes.begin(), axes.end());
  return axes == std::vector<int64_t>{2, 3};
}

// The input that the node scales and shifts by constants per channel, and does nothing else to.
std::optional<size_t> AffineInput(const Graph& graph, const Node& node) {
  for (size_t i = 0; i < std::min<size_t>(2, node.inputs.size()); ++i) {
    const SymbolicShape* image = ImageShape(graph, node.inputs[i]);
    const bool has_scalar = node.inputs.size() == 2 && IsScalar(graph, node.inputs[1 - i]);
    if (image && !has_scalar && AffineOf(graph, node, i, image->rank(), (*image)[1].value())) {
      return i;
    }
  }
  return std::nullopt;
}

std::optional<LayoutCandidate> FollowerCandidate(const Graph& graph, const Node& node) {
  LayoutCandidate candidate = {LayoutRole::kAsItIs, {0}};
  const std::string& op_type = node.op_type;
  if (IsUnary(node) || IsFakeQuantizationOfBlocks(graph, node)) return candidate;
  if (!node.domain.empty()) return std::nullopt;
  if (op_type == "MaxPool") {
    candidate.role = LayoutRole::kMaxPool;
  } else if (op_type == "AveragePool") {
    candidate.role = LayoutRole::kAveragePool;
  } else if (op_type == "GlobalAveragePool") {
    candidate.role = LayoutRole::kGlobalAveragePool;
  } else if (op_type == "ReduceMean") {
    if (!IsSpatialMean(graph, node)) return std::nullopt;
    candidate.role = LayoutRole::kGlobalAveragePool;
  } else if (op_type == "Concat") {
    if (!IsConcatOfBlocks(graph, node)) return std::nullopt;
    candidate.role = LayoutRole::kConcat;
    for (size_t i = 1; i < node.inputs.size(); ++i) candidate.inputs.push_back(i);
  } else if (IsChannelSplit(node)) {
    if (!AreWholeBlocks(graph, node.outputs)) return std::nullopt;
    candidate.role = LayoutRole::kSplit;
    candidate.outputs = node.outputs.size();
  } else if (IsSpatialResize(graph, node)) {
    candidate.role = LayoutRole::kResize;
  } else if (const std::optional<size_t> image = AffineInput(graph, node)) {
    candidate = {LayoutRole::kChannelAffine, {*image}};
  } else if (IsBinary(op_type)) {
    auto inputs = BinaryInputs(graph, node);
    if (!inputs) return std::nullopt;
    candidate.inputs = std::move(*inputs);
  } else {
    return std::nullopt;
  }
  return candidate;
}

}  // namespace

std::optional<LayoutCandidate> FindNchwcCandidate(const Graph& graph, const Node& node,
                                                  const std::function<bool(ValueId)>& is_blocked) {
  if (!node.has_input(0) || !node.has_output(0)) return std::nullopt;
  if (IsConv(node)) return ConvCandidate(graph, node, is_blocked);
  if (!ImageShape(graph, node.outputs[0])) return std::nullopt;
  std::optional<LayoutCandidate> candidate = FollowerCandidate(graph, node);
  if (!candidate || candidate->inputs.empty()) return std::nullopt;
  for (size_t i = candidate->outputs; i < node.outputs.size(); ++i) {
    if (node.has_output(i)) return std::nullopt;
  }
  for (const size_t i : candidate->inputs) {
    if (!ImageShape(graph, node.inputs[i]) || !is_blocked(node.inputs[i])) return std::nullopt;
  }
  return candidate;
}

double NchwcReorderCost(const ValueType& type) {
  double elements = 1;
  constexpr int64_t kTypicalSizes[] = {1, 1, 56, 56};
  for (size_t i = 0; i < 4; ++i) {
    elements *= static_cast<double>((*type.shape)[i].number().value_or(kTypicalSizes[i]));
  }
  return elements * kReorderNs;
}

}  // namespace tenon
