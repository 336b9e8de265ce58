#include "ops/conv/nhwc_layout.h"

// Only x86 has kernels for it; other builds leave the layout out.
#if defined(__x86_64__)

#include <algorithm>
#include <string_view>

#include "ir/permutation.h"
#include "ir/rewrite_limit.h"
#include "ir/scalar.h"
#include "kernels/conv/conv_int8_nhwc.h"
#include "ops/conv/channels_last_shape.h"
#include "ops/conv/conv_shapes.h"
#include "ops/conv/image_moves.h"
#include "ops/conv/layout_regions.h"
#include "ops/framework/attributes.h"
#include "ops/framework/registry.h"

namespace tenon {
namespace {

constexpr std::string_view kMicrosoft = "com.microsoft";
constexpr std::string_view kTenon = "com.tenon";

// Of a Zen 4 core; only ratios matter.
constexpr double kGatherNs = 0.06;     // a byte that NCHW gathers for a window
constexpr double kOutputNs = 0.08;     // an output
constexpr double kDepthwiseNs = 0.05;  // an output of a depthwise convolution
constexpr double kReorderNs = 0.07;    // a byte that changes its place
constexpr double kNodeNs = 1000;       // a node more

constexpr size_t kSequenceRank = 3, kImageRank = 4;

bool IsByteType(DataType type) { return type == DataType::kInt8 || type == DataType::kUint8; }

// The shape of an image, or of a sequence [N, C, W], of bytes with a known number of channels; null
// for other values.
const SymbolicShape* ImageShape(const Graph& graph, ValueId id) {
  if (id == ValueId::kNone) return nullptr;
  const ValueType& type = graph.value(id).type;
  const bool is_image = type.is_tensor() && IsByteType(type.element_type) && type.shape &&
                        type.shape->rank() >= kSequenceRank && type.shape->rank() <= kImageRank &&
                        (*type.shape)[1].is_number();
  return is_image ? &*type.shape : nullptr;
}

// The elements of a value, with typical sizes for those that are not known.
double ElementsOf(const SymbolicShape& shape) {
  constexpr int64_t kTypicalSizes[] = {1, 64, 56, 56};
  double elements = 1;
  for (size_t i = 0; i < shape.rank(); ++i) {
    elements *= static_cast<double>(shape[i].number().value_or(kTypicalSizes[i]));
  }
  return elements;
}

enum ConvInput : size_t {
  kX,
  kXScale,
  kXZero,
  kW,
  kWScale,
  kWZero,
  kYScale,
  kYZero,
  kBias,
  kTable
};

// Whether the weights less their zero points are what int8 holds.
bool AreSymmetric(const Graph& graph, const Node& conv, const Tensor& weights) {
  const Tensor* zeros = conv.has_input(kWZero) ? graph.ConstantOf(conv.inputs[kWZero]) : nullptr;
  if (zeros == nullptr || zeros->type() != weights.type()) return false;
  const uint8_t expected = weights.type() == DataType::kInt8 ? 0 : 128;
  const auto* bytes = static_cast<const uint8_t*>(zeros->raw());
  return std::all_of(bytes, bytes + zeros->size(), [=](uint8_t b) { return b == expected; });
}

// The kernels' shape, with only the sizes that decide whether there is a kernel.
std::optional<kernels::ConvGeneralShape> KernelShape(const ConvAttrs& attrs, const Tensor& weights,
                                                     int64_t in_channels) {
  if (weights.rank() < kSequenceRank || weights.rank() > kImageRank || attrs.group < 1 ||
      in_channels % attrs.group != 0 || weights.shape()[0] % attrs.group != 0 ||
      weights.size() == 0) {
    return std::nullopt;
  }
  const Result<Window> window = MakeWindow(attrs, weights.shape().dims().subspan(2));
  if (!window) return std::nullopt;
  Shape image = weights.shape(), out = image;
  for (size_t i = 0; i < image.rank(); ++i) image[i] = out[i] = 1;
  image[1] = in_channels;
  out[1] = weights.shape()[0];
  return GeneralConvShape(*window, image, out, attrs.group);
}

std::optional<LayoutCandidate> ConvCandidate(const Graph& graph, const Node& node) {
  const SymbolicShape* x = ImageShape(graph, node.inputs[kX]);
  const SymbolicShape* y = ImageShape(graph, node.outputs[0]);
  const Tensor* weights = node.has_input(kW) ? graph.StoredConstantOf(node.inputs[kW]) : nullptr;
  const Result<ConvAttrs> attrs = BindAttributes<ConvAttrs>(node);
  if (!x || !y || !weights || !attrs || !IsByteType(weights->type()) ||
      !AreSymmetric(graph, node, *weights)) {
    return std::nullopt;
  }
  const auto shape = KernelShape(*attrs, *weights, (*x)[1].value());
  if (!shape || !kernels::HasInt8NhwcConv(*shape)) return std::nullopt;
  // Groups of few channels use few lanes of a vector, unless each has one channel.
  constexpr int64_t kLeastChannels = 4;
  const int64_t group_outputs = weights->shape()[0] / attrs->group;
  const bool is_depthwise = attrs->group > 1 && weights->shape()[1] == 1 && group_outputs == 1;
  if (attrs->group > 1 && !is_depthwise &&
      (weights->shape()[1] < kLeastChannels || group_outputs < kLeastChannels)) {
    return std::nullopt;
  }
  const auto taps = static_cast<double>(weights->shape().Product(2, weights->rank()));
  const double outputs = ElementsOf(*y);
  const double gathered = outputs / static_cast<double>(weights->shape()[0]) * taps *
                          static_cast<double>((*x)[1].value());
  const double gain =
      is_depthwise ? outputs * kDepthwiseNs : outputs * kOutputNs + gathered * kGatherNs;
  return LayoutCandidate{LayoutRole::kConv, {kX}, gain};
}

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Both operands are images with the same channels; other axes may broadcast.
bool HaveSameChannels(const Graph& graph, const Node& node, size_t i, size_t j) {
  const SymbolicShape* a = node.has_input(i) ? ImageShape(graph, node.inputs[i]) : nullptr;
  const SymbolicShape* b = node.has_input(j) ? ImageShape(graph, node.inputs[j]) : nullptr;
  return a && b && a->rank() == b->rank() && (*a)[1] == (*b)[1];
}

// The images that a QLinearConcat or a Concat joins along the channels.
std::optional<std::vector<size_t>> JoinedImages(const Graph& graph, const Node& node, size_t first,
                                                size_t step) {
  const SymbolicShape* y = ImageShape(graph, node.outputs[0]);
  const int64_t axis = node.GetInt("axis", 0);
  if (!y || (axis != 1 && axis != 1 - static_cast<int64_t>(y->rank()))) return std::nullopt;
  std::vector<size_t> images;
  for (size_t i = first; i < node.inputs.size(); i += step) images.push_back(i);
  return images;
}

std::optional<LayoutCandidate> FollowerCandidate(const Graph& graph, const Node& node) {
  LayoutCandidate candidate = {LayoutRole::kAsItIs, {0}};
  const std::string& op_type = node.op_type;
  const SymbolicShape* y = ImageShape(graph, node.outputs[0]);
  const bool is_image = y && y->rank() == kImageRank;
  if (node.domain.empty()) {
    if (op_type == "Clip") return candidate;
    if (op_type == "MaxPool" && is_image && HasOpRow(kMicrosoft, "NhwcMaxPool")) {
      candidate.role = LayoutRole::kMaxPool;
      return candidate;
    }
    if (is_image && IsChannelSplit(node)) {
      return LayoutCandidate{LayoutRole::kSplit, {0}, 0, node.outputs.size()};
    }
    if (IsSpatialResize(graph, node)) return LayoutCandidate{LayoutRole::kResize, {0}};
    if (op_type != "Concat") return std::nullopt;
    auto images = JoinedImages(graph, node, 0, 1);
    if (!images) return std::nullopt;
    return LayoutCandidate{LayoutRole::kConcat, std::move(*images)};
  }
  if (node.domain == kTenon) {
    if (!IsOneOf(op_type, {"QLinearActivation", "QLinearTable"})) return std::nullopt;
    return candidate;
  }
  if (node.domain != kMicrosoft) return std::nullopt;
  if (IsOneOf(op_type, {"QLinearLeakyRelu", "QLinearSigmoid"})) return candidate;
  if (IsOneOf(op_type, {"QLinearAdd", "QLinearMul"})) {
    constexpr size_t kB = 3;
    if (!HaveSameChannels(graph, node, 0, kB)) return std::nullopt;
    candidate.inputs = {0, kB};
    return candidate;
  }
  if (op_type == "QLinearConcat") {
    auto images = JoinedImages(graph, node, 2, 3);
    if (!images) return std::nullopt;
    return LayoutCandidate{LayoutRole::kConcat, std::move(*images)};
  }
  if (!is_image || node.GetInt("channels_last", 0) != 0) return std::nullopt;
  if (op_type == "QLinearAveragePool") {
    candidate.role = LayoutRole::kAveragePool;
  } else if (op_type == "QLinearGlobalAveragePool") {
    candidate.role = LayoutRole::kGlobalAveragePool;
  } else {
    return std::nullopt;
  }
  return candidate;
}

class NhwcLayout final : public ImageLayout {
 public:
  std::string_view name() const override { return "nhwc"; }

  std::optional<LayoutCandidate> Find(const Graph& graph, const Node& node,
                                      const std::function<bool(ValueId)>& is_there) const override {
    if (!node.has_input(0) || !node.has_output(0)) return std::nullopt;
    if (node.domain.empty() && node.op_type == "QLinearConv") return ConvCandidate(graph, node);
    const auto is_used = [&](ValueId id) { return id != ValueId::kNone && !graph.IsUnused(id); };
    std::optional<LayoutCandidate> candidate = FollowerCandidate(graph, node);
    if (!candidate) return std::nullopt;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const bool is_right = i < candidate->outputs ? ImageShape(graph, node.outputs[i]) != nullptr
                                                   : !is_used(node.outputs[i]);
      if (!is_right) return std::nullopt;
    }
    for (const size_t i : candidate->inputs) {
      if (!ImageShape(graph, node.inputs[i]) || !is_there(node.inputs[i])) return std::nullopt;
    }
    return candidate;
  }

  double ReorderCost(const ValueType& standard) const override {
    return kNodeNs + ElementsOf(*standard.shape) * kReorderNs;
  }

  ValueType TypeOf(const ValueType& standard) const override {
    ValueType type = standard;
    type.shape = ChannelsLast(*standard.shape);
    return type;
  }

  void Convert(Graph& graph, Node& node, const LayoutCandidate& candidate,
               const ValueType& standard) const override {
    switch (candidate.role) {
      case LayoutRole::kConv:
        node.op_type = "NhwcQLinearConv";
        node.domain = kTenon;
        node.opset = 1;
        break;
      case LayoutRole::kMaxPool:
        node.op_type = "NhwcMaxPool";
        node.domain = kMicrosoft;
        node.opset = 1;
        node.RemoveAttribute("storage_order");
        if (node.outputs.size() > 1) node.outputs.resize(1);
        break;
      case LayoutRole::kAveragePool:
      case LayoutRole::kGlobalAveragePool:
        node.SetAttribute("channels_last", int64_t{1});
        break;
      case LayoutRole::kConcat:
      case LayoutRole::kSplit:
        node.SetAttribute("axis", static_cast<int64_t>(standard.shape->rank()) - 1);
        break;
      case LayoutRole::kResize:
        ResizeAt(graph, node, 1);
        break;
      case LayoutRole::kAsItIs:
      case LayoutRole::kChannelAffine:  // there is no such candidate
        break;
    }
    node.schema = FindSchema(node.domain, node.op_type, node.opset);
  }

  NodeSpec ReorderInto(const ValueType& standard) const override {
    return Transpose(ToChannelsLast(standard.shape->rank()));
  }
  NodeSpec ReorderBack(const ValueType& standard) const override {
    return Transpose(ToChannelsFirst(standard.shape->rank()));
  }

 private:
  static NodeSpec Transpose(Permutation permutation) {
    constexpr int32_t kOpset = 13;
    NodeSpec spec;
    spec.op_type = "Transpose";
    spec.opset = kOpset;
    spec.attributes.emplace_back("perm", std::move(permutation));
    return spec;
  }
};

// Lets convolutions look their results up where nothing else reads them.
void TakeTablesIn(Graph& graph, int32_t provider) {
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    Node* const node = graph.FindNode(static_cast<NodeId>(i));
    if (node == nullptr) continue;
    for (Graph* subgraph : node->Subgraphs()) TakeTablesIn(*subgraph, provider);
    if (node->provider != provider || node->domain != kTenon || node->op_type != "QLinearTable") {
      continue;
    }
    const ValueInfo& x = graph.value(node->inputs[0]);
    if (x.producer == NodeId::kNone || x.consumers.size() != 1 || x.output_uses > 0) continue;
    const Node& conv = graph.node(x.producer);
    if (conv.domain != kTenon || conv.op_type != "NhwcQLinearConv" || conv.has_input(kTable) ||
        !RewriteLimit::Allows("nhwc table", *node)) {
      continue;
    }
    const ValueId table = node->inputs[1], y = node->outputs[0];
    graph.RemoveNode(node->id);
    graph.SetInput(conv.id, kTable, table);
    graph.SetOutputValue(conv.id, 0, y);
  }
}

}  // namespace

void UseNhwcLayout(Graph& graph, int32_t provider) {
  static const bool has_rows = HasOpRow(kTenon, "NhwcQLinearConv") && HasOpRow("", "Transpose");
  if (!has_rows) return;
  UseLayout(graph, provider, NhwcLayout());
  TakeTablesIn(graph, provider);
}

}  // namespace tenon

#else

namespace tenon {

void UseNhwcLayout(Graph&, int32_t) {}

}  // namespace tenon

#endif
