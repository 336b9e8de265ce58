#include "ir/channels_last.h"

#include <algorithm>
#include <optional>

#include "base/unary_functions.h"
#include "ir/contrib_schema.h"
#include "ir/schema.h"

namespace tenon {
namespace {

constexpr size_t kLeastRank = 3;
constexpr int32_t kResizeWithRoi = 11;

// How an operator that accepts any order of axes uses its inputs.
enum class Inputs {
  kOneImage,   // the first; the others are constants of one element
  kBroadcast,  // all, broadcast against each other
  kJoined,     // all, along `axis`
};
struct AnyOrder {
  std::string_view op_type;
  Inputs inputs = Inputs::kOneImage;
};
// Beside the functions of base/unary_functions.inc.
constexpr AnyOrder kAnyOrder[] = {
    {"Add", Inputs::kBroadcast}, {"Cast"},
    {"Concat", Inputs::kJoined}, {"DequantizeLinear"},
    {"Div", Inputs::kBroadcast}, {"Identity"},
    {"Max", Inputs::kBroadcast}, {"Min", Inputs::kBroadcast},
    {"Mul", Inputs::kBroadcast}, {"PRelu", Inputs::kBroadcast},
    {"Pow", Inputs::kBroadcast}, {"QuantizeLinear"},
    {"Sub", Inputs::kBroadcast}, {"Sum", Inputs::kBroadcast},
};

// How the node treats its inputs; nothing if it does not take any order of axes.
std::optional<Inputs> FindAnyOrder(const Node& node) {
  if (FindUnaryOperator(node.domain, node.op_type)) return Inputs::kOneImage;
  // Before opset 7, an attribute aligns the operands.
  if (!node.domain.empty() || node.FindAttribute("broadcast") != nullptr) return std::nullopt;
  const auto* const found =
      std::find_if(std::begin(kAnyOrder), std::end(kAnyOrder),
                   [&](const AnyOrder& known) { return known.op_type == node.op_type; });
  return found == std::end(kAnyOrder) ? std::nullopt : std::optional(found->inputs);
}

std::optional<size_t> ImageRank(const Graph& graph, const Node& node) {
  if (!node.has_input(0) || !node.has_output(0)) return std::nullopt;
  const ValueType& image = graph.value(node.inputs[0]).type;
  if (!image.is_tensor() || !image.shape || image.shape->rank() < kLeastRank) return std::nullopt;
  return image.shape->rank();
}

// Whether the input has one element for each axis of the image, in their order.
bool IsByAxis(const Node& node, size_t input) {
  const bool is_roi = node.opset >= kResizeWithRoi && input == 1;
  return input > 0 && !is_roi && node.has_input(input) && node.FindAttribute("axes") == nullptr;
}

bool MayTurnResize(const Graph& graph, const Node& node, size_t rank) {
  if (node.GetString("coordinate_transformation_mode", "") == "tf_crop_and_resize") return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!IsByAxis(node, i)) continue;
    const Tensor* const constant = graph.ConstantOf(node.inputs[i]);
    if (constant == nullptr) return false;
    const DataType type = constant->type();
    if (type != DataType::kFloat && type != DataType::kInt64) return false;
    if (constant->size() != 0 && constant->size() != static_cast<int64_t>(rank)) return false;
  }
  const auto limit = static_cast<int64_t>(rank);
  const std::vector<int64_t> axes = node.GetInts("axes");
  return std::all_of(axes.begin(), axes.end(),
                     [&](int64_t axis) { return axis >= -limit && axis < limit; });
}

bool MayTurn(const Graph& graph, const Node& node) {
  const std::optional<size_t> rank = ImageRank(graph, node);
  if (!rank) return false;
  if (node.op_type == "Resize") return MayTurnResize(graph, node, *rank);
  if (node.op_type == "MaxPool") return !node.has_output(1) || graph.IsUnused(node.outputs[1]);
  return node.op_type != "MaxUnpool";
}

ValueType Permuted(const ValueType& type, const Permutation& permutation) {
  ValueType permuted = ValueType::Tensor(type.element_type);
  if (!type.shape || type.shape->rank() != permutation.size()) return permuted;
  permuted.shape.emplace();
  for (const int64_t axis : permutation) {
    permuted.shape->Append((*type.shape)[static_cast<size_t>(axis)]);
  }
  return permuted;
}

// The axis along which it joins; nothing if there is no such axis.
std::optional<size_t> AxisOf(const Node& concat, size_t rank) {
  int64_t axis = concat.GetInt("axis", 0);
  if (axis < 0) axis += static_cast<int64_t>(rank);
  if (axis < 0 || axis >= static_cast<int64_t>(rank)) return std::nullopt;
  return static_cast<size_t>(axis);
}

// A value that is broadcast against images of `rank` axes, and has at most one axis that is not 1:
// the order of its elements does not depend on the position of that axis.
bool IsChannelConstant(const Tensor& constant, size_t rank) {
  const auto is_long = [](int64_t size) { return size != 1; };
  return constant.rank() <= rank &&
         std::count_if(constant.shape().begin(), constant.shape().end(), is_long) <= 1;
}

// Reorders elements that belong to axes for another order of the axes.
template <class T>
Tensor Picked(const Tensor& constant, const Permutation& permutation) {
  std::vector<T> picked;
  for (const int64_t axis : permutation)
    picked.push_back(constant.values<T>()[static_cast<size_t>(axis)]);
  return Tensor::Of<T>(constant.shape(), std::span<const T>(picked));
}

Tensor PermutedChannels(const Tensor& constant, const Permutation& permutation) {
  std::vector<int64_t> sizes(permutation.size() - constant.rank(), 1);
  sizes.insert(sizes.end(), constant.shape().begin(), constant.shape().end());
  return constant.Reshaped(Shape(Composed(sizes, permutation)));
}

}  // namespace

bool MayPutChannelsLast(const Graph& graph, const Node& node) {
  return node.domain.empty() &&
         FindSchema(contrib::kInternalNhwc, node.op_type, node.opset) != nullptr &&
         MayTurn(graph, node);
}

bool MayPutChannelsFirst(const Graph& graph, const Node& node) {
  return node.domain == contrib::kInternalNhwc &&
         FindSchema("", node.op_type, node.opset) != nullptr && MayTurn(graph, node);
}

ChannelLayout::ChannelLayout(Graph& graph, std::span<const NodeId> nodes)
    : graph_(graph), roles_(graph.node_capacity(), Role::kNone) {
  for (const NodeId id : nodes) roles_[Index(id)] = Role::kGiven;
}

ChannelLayout::Role ChannelLayout::RoleOf(NodeId id) const {
  return id != NodeId::kNone && Index(id) < roles_.size() ? roles_[Index(id)] : Role::kNone;
}

void ChannelLayout::Turn(NodeId id, bool to_last) {
  Node& node = graph_.node(id);
  const size_t rank = graph_.value(node.inputs[0]).type.shape->rank();
  const Permutation there = to_last ? ToChannelsLast(rank) : ToChannelsFirst(rank);
  const std::string domain = node.domain;
  node.domain = "";  // of the Transposes
  graph_.SetInput(id, 0, Transposed(node.inputs[0], there, node));
  TransposeOutput(node, Inverse(there));
  if (node.op_type == "Resize") TurnResize(node, there);
  node.domain = to_last ? contrib::kInternalNhwc : "";
  node.schema = FindSchema(node.domain, node.op_type, node.opset);
}

void ChannelLayout::TurnResize(Node& node, const Permutation& permutation) {
  if (node.FindAttribute("axes") != nullptr) {
    const Permutation places = Inverse(permutation);
    std::vector<int64_t> axes = node.GetInts("axes");
    for (int64_t& axis : axes) {
      if (axis < 0) axis += static_cast<int64_t>(permutation.size());
      axis = places[static_cast<size_t>(axis)];
    }
    node.SetAttribute("axes", std::move(axes));
    return;
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!IsByAxis(node, i)) continue;
    const Tensor& constant = *graph_.ConstantOf(node.inputs[i]);
    if (constant.size() == 0) continue;
    const std::string name = graph_.UnusedName(graph_.value(node.inputs[i]).name + "/permuted");
    Tensor permuted = constant.type() == DataType::kInt64 ? Picked<int64_t>(constant, permutation)
                                                          : Picked<float>(constant, permutation);
    graph_.SetInput(node.id, i, graph_.AddInitializer(name, std::move(permuted)));
  }
}

// --- Transposes ---

// The value with its axes in that order, by an existing Transpose or a new one.
ValueId ChannelLayout::Transposed(ValueId value, const Permutation& permutation,
                                  const Node& neighbour) {
  for (const NodeId id : graph_.value(value).consumers) {
    if (RoleOf(id) != Role::kAdded) continue;
    const Node& reader = graph_.node(id);
    if (reader.op_type == "Transpose" && PermutationOf(reader, permutation.size()) == permutation) {
      return reader.outputs[0];
    }
  }
  const ValueInfo& info = graph_.value(value);
  const ValueId turned = graph_.AddValue(graph_.UnusedName(info.name + "/Transpose"),
                                         Permuted(info.type, permutation));
  AddTranspose(value, turned, permutation, neighbour);
  return turned;
}

// The node makes a new value, and a Transpose of it makes the former output.
void ChannelLayout::TransposeOutput(Node& node, const Permutation& permutation) {
  const ValueId output = node.outputs[0];
  const ValueInfo& info = graph_.value(output);
  const ValueId made = graph_.AddValue(graph_.UnusedName(info.name + "/Transpose"),
                                       Permuted(info.type, Inverse(permutation)));
  graph_.SetOutputValue(node.id, 0, made);
  AddTranspose(made, output, permutation, node);
}

void ChannelLayout::AddTranspose(ValueId from, ValueId to, const Permutation& permutation,
                                 const Node& neighbour) {
  std::vector<Attribute> attributes;
  attributes.emplace_back("perm", permutation);
  Node& transpose = graph_.AddNode({.op_type = "Transpose",
                                    .domain = "",
                                    .inputs = {from},
                                    .outputs = {to},
                                    .attributes = std::move(attributes),
                                    .name = graph_.value(to).name,
                                    .opset = neighbour.opset});
  transpose.schema = FindSchema("", "Transpose", neighbour.opset);
  roles_.resize(graph_.node_capacity(), Role::kNone);
  roles_[Index(transpose.id)] = Role::kAdded;
}

// The Transpose that makes the value, if it has at least that role; otherwise null.
const Node* ChannelLayout::InnerTranspose(ValueId value, Role least) const {
  const NodeId producer = value == ValueId::kNone ? NodeId::kNone : graph_.value(value).producer;
  if (RoleOf(producer) < least) return nullptr;
  const Node& node = graph_.node(producer);
  return node.op_type == "Transpose" && node.domain.empty() ? &node : nullptr;
}

void ChannelLayout::Settle() {
  const Result<std::vector<NodeId>> order = graph_.TopologicalOrder();
  if (!order) return;  // the planner reports the error
  for (const NodeId id : *order) {
    if (RoleOf(id) == Role::kNone) continue;
    Node& node = graph_.node(id);
    if (node.op_type == "Transpose" && node.domain.empty()) {
      MergeWithInner(node);
    } else {
      SinkInto(node);
    }
  }
  DropUnused();
}

// The permutation of the added Transposes that make inputs of the node, if one may be put after it
// instead; otherwise empty.
Permutation ChannelLayout::CommonPermutation(const Node& node) const {
  const std::optional<Inputs> inputs = FindAnyOrder(node);
  if (!inputs || node.outputs.size() != 1 || !node.has_output(0)) return {};
  Permutation common;
  for (const ValueId input : node.inputs) {
    const Node* const inner = InnerTranspose(input, Role::kAdded);
    if (inner == nullptr) continue;
    Permutation permutation = inner->GetInts("perm");
    if (!common.empty() && permutation != common) return {};
    common = std::move(permutation);
  }
  if (common.empty()) return {};
  for (const ValueId input : node.inputs) {
    if (input == ValueId::kNone || InnerTranspose(input, Role::kAdded) != nullptr) continue;
    const Tensor* const constant = graph_.ConstantOf(input);
    const bool fits =
        constant != nullptr && IsChannelConstant(*constant, common.size()) &&
        (*inputs == Inputs::kBroadcast || (*inputs == Inputs::kOneImage && constant->size() == 1));
    if (!fits) return {};
  }
  if (*inputs == Inputs::kJoined && !AxisOf(node, common.size())) return {};
  return common;
}

// y = node(Transpose(x)) becomes y = Transpose(node(x)).
void ChannelLayout::SinkInto(Node& node) {
  const Permutation permutation = CommonPermutation(node);
  if (permutation.empty()) return;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId input = node.inputs[i];
    if (const Node* const inner = InnerTranspose(input, Role::kAdded)) {
      graph_.SetInput(node.id, i, inner->inputs[0]);
    } else if (input != ValueId::kNone && graph_.ConstantOf(input)->size() != 1) {
      const std::string name = graph_.UnusedName(graph_.value(input).name + "/permuted");
      Tensor permuted = PermutedChannels(*graph_.ConstantOf(input), Inverse(permutation));
      graph_.SetInput(node.id, i, graph_.AddInitializer(name, std::move(permuted)));
    }
  }
  if (node.op_type == "Concat") {
    node.SetAttribute("axis", permutation[*AxisOf(node, permutation.size())]);
  }
  TransposeOutput(node, permutation);
}

void ChannelLayout::MergeWithInner(Node& transpose) {
  const Node* const inner = InnerTranspose(transpose.inputs[0], Role::kGiven);
  if (inner == nullptr) return;
  // Added Transposes have a permutation; for the others, the rank of their input tells it.
  const auto permutation_of = [&](const Node& node) {
    const ValueType& type = graph_.value(node.inputs[0]).type;
    return PermutationOf(node, type.shape ? type.shape->rank() : node.GetInts("perm").size());
  };
  const Permutation first = permutation_of(*inner), second = permutation_of(transpose);
  if (first.empty() || first.size() != second.size()) return;
  Permutation both = Composed(first, second);
  const ValueId x = inner->inputs[0], y = transpose.outputs[0];
  if (!IsIdentity(both)) {
    graph_.SetInput(transpose.id, 0, x);
    transpose.SetAttribute("perm", std::move(both));
  } else if (graph_.value(y).output_uses == 0) {
    graph_.ReplaceUses(y, x);
  } else if (graph_.value(x).producer != NodeId::kNone && graph_.value(x).output_uses == 0) {
    // An output of the graph keeps a producer of its own: the producer of x makes y instead.
    const NodeId producer = graph_.value(x).producer;
    const auto index = static_cast<size_t>(graph_.value(x).output_index);
    graph_.RemoveNode(transpose.id);
    graph_.ReplaceUses(x, y);
    graph_.SetOutputValue(producer, index, y);
  }
}

void ChannelLayout::DropUnused() {
  for (bool removed = true; removed;) {
    removed = false;
    for (size_t i = 0; i < roles_.size(); ++i) {
      const Node* const node = graph_.FindNode(static_cast<NodeId>(i));
      const bool goes = roles_[i] != Role::kNone && node != nullptr &&
                        node->op_type == "Transpose" && graph_.IsUnused(node->outputs[0]);
      if (!goes) continue;
      graph_.RemoveNode(node->id);
      removed = true;
    }
  }
}

size_t PutUnownedChannelsFirst(Graph& graph) {
  std::vector<NodeId> unowned, turning;
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* const node = graph.FindNode(static_cast<NodeId>(i));
    if (node == nullptr || node->provider >= 0) continue;
    unowned.push_back(node->id);
    if (MayPutChannelsFirst(graph, *node)) turning.push_back(node->id);
  }
  if (turning.empty()) return 0;
  ChannelLayout layout(graph, unowned);
  for (const NodeId id : turning) layout.PutChannelsFirst(id);
  layout.Settle();
  return turning.size();
}

}  // namespace tenon
