#include "ops/framework/node_composites.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/graph.h"
#include "ops/framework/node_builder.h"
#include "ops/framework/training_composites.h"

namespace tenon {
namespace {

constexpr const char* kMicrosoft = "com.microsoft";

std::vector<Attribute> One(const char* name, int64_t value) {
  std::vector<Attribute> attributes;
  attributes.emplace_back(name, value);
  return attributes;
}

std::vector<Attribute> CloneAll(const std::vector<Attribute>& attributes) {
  std::vector<Attribute> clones;
  for (const Attribute& attribute : attributes) clones.push_back(CloneAttribute(attribute));
  return clones;
}

// Weights of DynamicQuantizeLSTM, [directions, k, n], as floats, [directions, n, k]. Scales and
// zero points are those of each direction, or of each column in it.
ValueId DequantizedWeights(NodeBuilder& build, ValueId weights, ValueId scale, ValueId zero,
                           ValueId column_shape) {
  const auto as_float = [&](ValueId value) {
    return build.Op("Cast", {value}, One("to", static_cast<int64_t>(DataType::kFloat)));
  };
  const ValueId zeros = build.Op("Reshape", {as_float(zero), column_shape});
  const ValueId scales = build.Op("Reshape", {scale, column_shape});
  const ValueId values = build.Op("Mul", {build.Op("Sub", {as_float(weights), zeros}), scales});
  std::vector<Attribute> turned;
  turned.emplace_back("perm", std::vector<int64_t>{0, 2, 1});
  return build.Op("Transpose", {values}, std::move(turned));
}

// Constant bytes [directions, k, n] as [directions, n, k]; nothing if they are something else, or
// none.
std::optional<Tensor> TurnedBytes(const Tensor* bytes) {
  if (!bytes || bytes->rank() != 3 || bytes->size() == 0 || DataTypeBits(bytes->type()) != 8) {
    return std::nullopt;
  }
  const int64_t directions = bytes->shape()[0], k = bytes->shape()[1], n = bytes->shape()[2];
  Result<Tensor> turned = Tensor::Allocate(bytes->type(), Shape({directions, n, k}));
  if (!turned) return std::nullopt;
  const auto* from = static_cast<const uint8_t*>(bytes->raw());
  auto* to = static_cast<uint8_t*>(turned->raw());
  for (int64_t d = 0; d < directions; ++d, from += k * n) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < k; ++i) *to++ = from[i * n + j];
    }
  }
  return *std::move(turned);
}

// The steps of X [steps, batch, size] before the end of the longest sequence.
ValueId UsedSteps(NodeBuilder& build, ValueId x, ValueId lens, ValueId zero) {
  return build.Op("Slice", {x, zero, build.Op("ReduceMax", {lens}), zero});
}

// DynamicQuantizeLSTM-1 is LSTM with the weights' values. Its inputs and states are rounded as if
// to uint8: all inputs that the sequences have together, and the states of a step together.
// Constant weights of the states stay bytes: see ops/recurrent/byte_recurrence.h.
bool ExpandDynamicQuantizeLstm(Graph& graph, NodeId id) {
  enum Input : size_t {
    kX,
    kW,
    kR,
    kLens = 4,
    kOfLstm = 8,
    kWScale = 8,
    kWZero,
    kRScale,
    kRZero,
    kAll
  };
  const Node& node = graph.node(id);
  if (node.inputs.size() != kAll) return false;
  Result<Tensor> shape = Tensor::Allocate(DataType::kInt64, Shape({3}));
  Result<Tensor> first = Tensor::Allocate(DataType::kInt32, Shape({1}));
  if (!shape || !first) return false;
  first->data<int32_t>()[0] = 0;
  const int64_t columns[] = {0, 1, -1};
  std::copy_n(columns, 3, shape->data<int64_t>());
  std::vector<ValueId> inputs = node.inputs, outputs = node.outputs;
  std::vector<Attribute> attributes = CloneAll(node.attributes);
  NodeBuilder build(graph, node.name.empty() ? node.op_type : node.name);
  graph.RemoveNode(id);
  const ValueId column_shape =
      graph.AddInitializer(graph.UnusedName("column_shape"), *std::move(shape));
  inputs[kW] = DequantizedWeights(build, inputs[kW], inputs[kWScale], inputs[kWZero], column_shape);
  const ValueId scale = inputs[kRScale], zero = inputs[kRZero];
  std::optional<Tensor> bytes;
  if (graph.ConstantOf(scale) && graph.ConstantOf(zero)) {
    bytes = TurnedBytes(graph.ConstantOf(inputs[kR]));
  }
  inputs.resize(kOfLstm);
  if (bytes) {
    inputs[kR] = graph.AddInitializer(graph.UnusedName("recurrence"), *std::move(bytes));
    inputs.insert(inputs.end(), {scale, zero});
  } else {
    inputs[kR] = DequantizedWeights(build, inputs[kR], scale, zero, column_shape);
  }
  if (inputs[kLens] == ValueId::kNone) {
    inputs[kX] = build.Rounded(inputs[kX]);
  } else {
    const ValueId zero = graph.AddInitializer(graph.UnusedName("first"), *std::move(first));
    inputs[kX] = build.Rounded(inputs[kX], UsedSteps(build, inputs[kX], inputs[kLens], zero));
  }
  build.Add("LSTM", std::move(inputs), std::move(outputs), std::move(attributes), "com.tenon");
  return true;
}

// GemmaRotaryEmbedding-1: q and k are rotated by angles [batch, length, size] that all heads share.
bool ExpandGemmaRotaryEmbedding(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  Result<Tensor> heads = Tensor::Allocate(DataType::kInt64, Shape({1}));
  if (node.inputs.size() != 5 || !heads) return false;
  heads->data<int64_t>()[0] = 1;
  const std::vector<ValueId> in = node.inputs, outputs = node.outputs;
  NodeBuilder build(graph, node.name.empty() ? node.op_type : node.name);
  graph.RemoveNode(id);
  const auto type = static_cast<int64_t>(graph.value(in[1]).type.element_type);
  const ValueId axes = graph.AddInitializer(graph.UnusedName("heads"), *std::move(heads));
  const auto factor = [&](const char* function) {
    const ValueId rounded = build.Op("Cast", {build.Op(function, {in[0]})}, One("to", type));
    return build.Op("Unsqueeze", {rounded, axes});
  };
  const ValueId cos = factor("Cos"), sin = factor("Sin");
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ValueId kept = build.Op("Mul", {in[1 + 2 * i], cos});
    build.Add("Add", {kept, build.Op("Mul", {in[2 + 2 * i], sin})}, {outputs[i]}, {});
  }
  return true;
}

// BiasDropout-1: Dropout(data + bias) + residual.
bool ExpandBiasDropout(Graph& graph, NodeId id) {
  enum Input : size_t { kData, kBias, kResidual, kRatio, kTraining, kAll };
  const Node& node = graph.node(id);
  std::vector<ValueId> in = node.inputs, outputs = node.outputs;
  in.resize(kAll, ValueId::kNone);
  std::vector<Attribute> attributes = CloneAll(node.attributes);
  NodeBuilder build(graph, node.name.empty() ? node.op_type : node.name);
  graph.RemoveNode(id);
  const ValueId y = outputs[0];
  const bool has_residual = in[kResidual] != ValueId::kNone;
  if (has_residual) outputs[0] = graph.AddValue(graph.UnusedName("dropped"));
  const ValueId dropped = outputs[0], sum = build.Op("Add", {in[kData], in[kBias]});
  build.Add("Dropout", {sum, in[kRatio], in[kTraining]}, std::move(outputs), std::move(attributes));
  if (has_residual) build.Add("Add", {dropped, in[kResidual]}, {y}, {});
  return true;
}

std::vector<Attribute> Kept(const std::vector<Attribute>& attributes,
                            std::initializer_list<std::string_view> names) {
  std::vector<Attribute> kept;
  for (const Attribute& attribute : attributes) {
    if (std::find(names.begin(), names.end(), attribute.name) == names.end()) continue;
    kept.push_back(CloneAttribute(attribute));
  }
  return kept;
}

// Shared by MatMulNBitsQkv-1 and MatMulNBitsMlp-1: products of one matrix, x, after an optional RMS
// normalization.
class ProductsByFewBits {
 public:
  // Replaces the node, which it removes. `sum` gets the input of the normalization, or is kNone.
  ProductsByFewBits(Graph& graph, NodeId id, ValueId sum)
      : inputs_(graph.node(id).inputs),
        attributes_(CloneAll(graph.node(id).attributes)),
        build_(graph, graph.node(id).name.empty() ? graph.node(id).op_type : graph.node(id).name) {
    enum Input : size_t { kX, kSkip, kScale };
    graph.RemoveNode(id);
    x_ = At(kX);
    if (At(kSkip) != ValueId::kNone) {
      x_ = graph.AddValue(graph.UnusedName("normalized"));
      build_.Add("SkipSimplifiedLayerNormalization", {At(kX), At(kSkip), At(kScale)},
                 {x_, ValueId::kNone, ValueId::kNone, sum}, Kept(attributes_, {"epsilon"}),
                 kMicrosoft);
    } else if (At(kScale) != ValueId::kNone) {
      x_ = build_.Op("SimplifiedLayerNormalization", {At(kX), At(kScale)},
                     Kept(attributes_, {"epsilon"}));
    }
  }
  NodeBuilder& build() { return build_; }

  // By the weights with scales and bias from input `first` on; an attribute has their number of
  // columns.
  void Multiply(size_t first, std::string_view columns, ValueId y) {
    std::vector<Attribute> attributes =
        Kept(attributes_, {"K", "bits", "block_size", "accuracy_level"});
    for (Attribute& attribute : Kept(attributes_, {columns})) {
      attribute.name = "N";
      attributes.push_back(std::move(attribute));
    }
    build_.Add("MatMulNBits",
               {x_, At(first), At(first + 1), ValueId::kNone, ValueId::kNone, At(first + 2)}, {y},
               std::move(attributes), kMicrosoft);
  }

 private:
  ValueId At(size_t i) const { return i < inputs_.size() ? inputs_[i] : ValueId::kNone; }

  const std::vector<ValueId> inputs_;
  const std::vector<Attribute> attributes_;
  NodeBuilder build_;
  ValueId x_;
};

bool ExpandMatMulNBitsQkv(Graph& graph, NodeId id) {
  std::vector<ValueId> outputs = graph.node(id).outputs;
  outputs.resize(4, ValueId::kNone);
  ProductsByFewBits products(graph, id, outputs[3]);
  const char* const columns[] = {"Nq", "Nkv", "Nkv"};
  for (size_t i = 0; i < 3; ++i) products.Multiply(3 + 3 * i, columns[i], outputs[i]);
  return true;
}

// onnxruntime only has SiLU as the activation.
bool ExpandMatMulNBitsMlp(Graph& graph, NodeId id) {
  std::vector<ValueId> outputs = graph.node(id).outputs;
  outputs.resize(2, ValueId::kNone);
  if (graph.node(id).GetString("activation", "") != "silu") return false;
  ProductsByFewBits products(graph, id, outputs[1]);
  const ValueId gate = graph.AddValue(graph.UnusedName("gate"));
  const ValueId up = graph.AddValue(graph.UnusedName("up"));
  products.Multiply(3, "N", gate);
  products.Multiply(6, "N", up);
  NodeBuilder& build = products.build();
  const ValueId activated = build.Op("Mul", {gate, build.Op("Sigmoid", {gate})});
  build.Add("Mul", {activated, up}, {outputs[0]}, {});
  return true;
}

struct NodeComposition {
  std::string_view op_type;
  bool (*expand)(Graph&, NodeId);
};
constexpr NodeComposition kNodeCompositions[] = {
    {"BiasDropout", ExpandBiasDropout},
    {"DynamicQuantizeLSTM", ExpandDynamicQuantizeLstm},
    {"GemmaRotaryEmbedding", ExpandGemmaRotaryEmbedding},
    {"MatMulNBitsMlp", ExpandMatMulNBitsMlp},
    {"MatMulNBitsQkv", ExpandMatMulNBitsQkv},
};

}  // namespace

bool ExpandNodeComposite(Graph& graph, NodeId id) {
  const auto* found =
      std::find_if(std::begin(kNodeCompositions), std::end(kNodeCompositions),
                   [&](const NodeComposition& c) { return c.op_type == graph.node(id).op_type; });
  if (found == std::end(kNodeCompositions)) return ExpandTrainingComposite(graph, id);
  return found->expand(graph, id);
}

}  // namespace tenon
