#include "ops/framework/composites.h"

#include <algorithm>
#include <utility>

#include "ir/graph.h"
#include "ops/framework/node_composites.h"

namespace tenon {
namespace {

constexpr const char* kMicrosoft = "com.microsoft";
constexpr int64_t kRowOrder = 1;  // of cuBLASLt

std::vector<Attribute> One(const char* name, int64_t value) {
  std::vector<Attribute> attributes;
  attributes.emplace_back(name, value);
  return attributes;
}

// The attributes of the matched node with these names.
std::vector<Attribute> Kept(Replacement& r, std::initializer_list<std::string_view> names) {
  std::vector<Attribute> attributes = r.AttributesOf("node");
  std::erase_if(attributes, [&](const Attribute& attribute) {
    return std::find(names.begin(), names.end(), attribute.name) == names.end();
  });
  return attributes;
}

ValueId CastTo(Replacement& r, ValueId value, DataType type) {
  return r.Op("Cast", {value}, One("to", static_cast<int64_t>(type)));
}

// A rule for nodes of com.microsoft with these inputs.
Rule Composite(const char* op_type, std::vector<Pattern> inputs,
               std::function<ValueId(Replacement&)> replace) {
  return {.name = op_type,
          .pattern = Op(op_type, std::move(inputs)).In(kMicrosoft).As("node"),
          .replace = std::move(replace)};
}

// MulInteger-1: (A - A_zero_point) * (B - B_zero_point) in 32 bits.
ValueId ExpandMulInteger(Replacement& r) {
  const auto shifted = [&](const char* x, const char* zero) {
    const ValueId wide = CastTo(r, r[x], DataType::kInt32);
    if (r[zero] == ValueId::kNone) return wide;
    return r.Op("Sub", {wide, CastTo(r, r[zero], DataType::kInt32)});
  };
  return r.Op("Mul", {shifted("a", "a_zero"), shifted("b", "b_zero")});
}

ValueId Dequantized(Replacement& r, const char* x, const char* scale) {
  return r.Op("DequantizeLinear", {r[x], r[scale]});
}

ValueId QuantizedToInt8(Replacement& r, ValueId x, const char* scale) {
  Result<Tensor> zero = Tensor::Allocate(DataType::kInt8, Shape());
  if (!zero) return ValueId::kNone;
  *zero->data<int8_t>() = 0;
  return r.Op("QuantizeLinear", {x, r[scale], r.Constant("zero_point", *std::move(zero))});
}

// QOrderedGelu-1. The result does not depend on the order of elements.
ValueId ExpandOrderedGelu(Replacement& r) {
  const ValueId y = r.Op("Gelu", {Dequantized(r, "x", "x_scale")}, {}, kMicrosoft);
  return QuantizedToInt8(r, y, "y_scale");
}

std::vector<Attribute> Orders(int64_t from, int64_t to) {
  std::vector<Attribute> attributes = One("order_input", from);
  attributes.emplace_back("order_output", to);
  return attributes;
}

int64_t IntegerOf(const Node& node, std::string_view name, int64_t otherwise) {
  const Attribute* attribute = node.FindAttribute(name);
  const auto* value = attribute ? attribute->get<int64_t>() : nullptr;
  return value ? *value : otherwise;
}

// int8 elements in an order of cuBLASLt as floats, by rows.
ValueId DequantizedRows(Replacement& r, ValueId x, ValueId scale, int64_t order) {
  std::vector<Attribute> attributes = Orders(order, kRowOrder);
  attributes.emplace_back("to", static_cast<int64_t>(DataType::kFloat));
  return r.Op("DequantizeWithOrder", {x, scale}, std::move(attributes), kMicrosoft);
}

// QOrderedLayerNormalization-1, in rows.
ValueId ExpandOrderedLayerNormalization(Replacement& r) {
  const int64_t from = IntegerOf(r.node("node"), "order_X", kRowOrder);
  const int64_t to = IntegerOf(r.node("node"), "order_Y", kRowOrder);
  std::vector<Attribute> attributes = Kept(r, {"axis", "epsilon"});
  std::vector<ValueId> inputs = {DequantizedRows(r, r["x"], r["x_scale"], from),
                                 CastTo(r, r["gamma"], DataType::kFloat)};
  if (r["beta"] != ValueId::kNone) inputs.push_back(CastTo(r, r["beta"], DataType::kFloat));
  const ValueId y = r.Op("LayerNormalization", std::move(inputs), std::move(attributes));
  return r.Op("QuantizeWithOrder", {y, r["y_scale"]}, Orders(kRowOrder, to), kMicrosoft);
}

// Weights by rows, [k, n], with one scale or one for each column.
ValueId DequantizedMatrix(Replacement& r, ValueId weights, ValueId scale, int64_t order) {
  Result<Tensor> one = Tensor::Allocate(DataType::kFloat, Shape());
  if (!one) return ValueId::kNone;
  *one->data<float>() = 1;
  const ValueId whole = DequantizedRows(r, weights, r.Constant("one", *std::move(one)), order);
  return r.Op("Mul", {whole, scale});
}

// QOrderedAttention-1. Queries, keys, values and scores are not rounded to int8 in between.
ValueId ExpandOrderedAttention(Replacement& r) {
  enum Input : size_t { kX, kXScale, kWeights = 5, kWeightScales = 8, kBiases = 11, kYScale = 16 };
  enum MoreInput : size_t { kMask = 17, kPast, kScoreBias };
  const Node& node = r.node("node");
  const std::vector<ValueId> in = node.inputs;
  if (node.has_input(kPast) || in.size() <= kYScale) return ValueId::kNone;
  const int64_t weight_order = IntegerOf(node, "order_weight", 0);
  std::vector<Attribute> attributes = Kept(r, {"num_heads", "unidirectional", "qkv_hidden_sizes"});
  const int64_t from = IntegerOf(node, "order_input", kRowOrder);
  const int64_t to = IntegerOf(node, "order_output", kRowOrder);
  std::vector<ValueId> weights, biases;
  for (size_t i = 0; i < 3; ++i) {
    weights.push_back(DequantizedMatrix(r, in[kWeights + i], in[kWeightScales + i], weight_order));
    biases.push_back(in[kBiases + i]);
  }
  std::vector<ValueId> inputs = {DequantizedRows(r, in[kX], in[kXScale], from),
                                 r.Op("Concat", std::move(weights), One("axis", 1)),
                                 r.Op("Concat", std::move(biases), One("axis", 0))};
  inputs.push_back(in.size() > kMask ? in[kMask] : ValueId::kNone);
  inputs.push_back(ValueId::kNone);
  inputs.push_back(in.size() > kScoreBias ? in[kScoreBias] : ValueId::kNone);
  const ValueId y = r.Op("Attention", std::move(inputs), std::move(attributes), kMicrosoft);
  return r.Op("QuantizeWithOrder", {y, in[kYScale]}, Orders(kRowOrder, to), kMicrosoft);
}

// QOrderedLongformerAttention-1. The results of its products are not rounded to int8.
ValueId ExpandOrderedLongformerAttention(Replacement& r) {
  const Node& node = r.node("node");
  const std::vector<ValueId> in = node.inputs;
  const int64_t order = IntegerOf(node, "order_weight", 0);
  const int64_t global_order = IntegerOf(node, "order_global_weight", 0);
  const int64_t from = IntegerOf(node, "order_input", kRowOrder);
  const int64_t to = IntegerOf(node, "order_output", kRowOrder);
  std::vector<Attribute> attributes = Kept(r, {"num_heads", "window"});
  std::vector<ValueId> inputs = {DequantizedRows(r, in[0], in[1], from),
                                 DequantizedMatrix(r, in[2], in[3], order),
                                 in[4],
                                 CastTo(r, in[7], DataType::kFloat),
                                 DequantizedMatrix(r, in[8], in[9], global_order),
                                 in[10],
                                 in[12]};
  const ValueId y =
      r.Op("LongformerAttention", std::move(inputs), std::move(attributes), kMicrosoft);
  return r.Op("QuantizeWithOrder", {y, in[13]}, Orders(kRowOrder, to), kMicrosoft);
}

Rule CompositeOfNode(const char* op_type, std::function<ValueId(Replacement&)> replace) {
  return {.name = op_type,
          .pattern = Op(op_type, {Any("x")}).In(kMicrosoft).WithMoreInputs().As("node"),
          .replace = std::move(replace)};
}

// GemmFastGelu-1.
ValueId ExpandGemmFastGelu(Replacement& r) {
  std::vector<ValueId> inputs = {r.Op("MatMul", {r["x"], r["w"]})};
  if (r["bias"] != ValueId::kNone) inputs.push_back(r["bias"]);
  return r.Op("FastGelu", std::move(inputs), {}, kMicrosoft);
}

// GemmFloat8-1: A, B and the product times their scales.
ValueId ExpandGemmFloat8(Replacement& r) {
  enum Input : size_t { kA, kB, kC, kAScale, kBScale, kYScale };
  const Node& node = r.node("node");
  const std::vector<ValueId> in = node.inputs;
  const Attribute* activation = node.FindAttribute("activation");
  const auto* text = activation ? activation->get<std::string>() : nullptr;
  const std::string name = text ? *text : "NONE";
  if (name != "NONE" && name != "RELU" && name != "GELU" && !name.empty()) return ValueId::kNone;
  const auto present = [&](size_t i) { return i < in.size() && in[i] != ValueId::kNone; };
  const auto scaled = [&](ValueId x, size_t scale) {
    return present(scale) ? r.Op("Mul", {x, in[scale]}) : x;
  };
  const auto type = static_cast<DataType>(IntegerOf(node, "dtype", 1));
  std::vector<Attribute> attributes = Kept(r, {"alpha", "transA", "transB"});
  // The schema's default of beta is 0.
  const Attribute* beta = node.FindAttribute("beta");
  attributes.emplace_back("beta", beta && beta->get<float>() ? *beta->get<float>() : 0.0f);
  std::vector<ValueId> inputs = {scaled(CastTo(r, in[kA], DataType::kFloat), kAScale),
                                 scaled(CastTo(r, in[kB], DataType::kFloat), kBScale)};
  if (present(kC)) inputs.push_back(CastTo(r, in[kC], DataType::kFloat));
  ValueId y = r.Op("Gemm", std::move(inputs), std::move(attributes));
  if (name == "RELU") y = r.Op("Relu", {y});
  if (name == "GELU") y = r.Op("Gelu", {y}, {}, kMicrosoft);
  return CastTo(r, scaled(y, kYScale), type);
}

// GatherND-1 is the standard's without batch dimensions.
ValueId ExpandGatherNd(Replacement& r) {
  return r.Op("GatherND", {r["data"], CastTo(r, r["indices"], DataType::kInt64)});
}

// TorchEmbedding-1: padding only matters in training.
ValueId ExpandTorchEmbedding(Replacement& r) { return r.Op("Gather", {r["weight"], r["indices"]}); }

// BiasSoftmax-1: over axis `axis` and all axes after it together.
ValueId ExpandBiasSoftmax(Replacement& r) {
  const ValueId sum = r.Op("Add", {r["x"], r["bias"]});
  const ValueId rows = r.Op("Flatten", {sum}, One("axis", IntegerOf(r.node("node"), "axis", 1)));
  return r.Op("Reshape", {r.Op("Softmax", {rows}, One("axis", 1)), r.Op("Shape", {r["x"]})});
}

// The number of elements of x for which this is true.
ValueId CountOf(Replacement& r, const char* op_type, ValueId x) {
  return r.Op("ReduceSum", {CastTo(r, r.Op(op_type, {x}), DataType::kInt64)}, One("keepdims", 0));
}

// IsAllFinite-1.
ValueId ExpandIsAllFinite(Replacement& r) {
  const Node& node = r.node("node");
  const bool counts_nan = IntegerOf(node, "isinf_only", 0) == 0;
  const bool counts_infinity = IntegerOf(node, "isnan_only", 0) == 0;
  if (!counts_nan && !counts_infinity) return ValueId::kNone;
  const std::vector<ValueId> in = node.inputs;
  std::vector<ValueId> counts;
  for (const ValueId x : in) {
    // IsInf does not support float16 before version 20; a double may not fit into a float.
    const ValueId wide = CastTo(r, x, DataType::kDouble);
    if (counts_nan) counts.push_back(CountOf(r, "IsNaN", wide));
    if (counts_infinity) counts.push_back(CountOf(r, "IsInf", wide));
  }
  ValueId sum = counts[0];
  for (size_t i = 1; i < counts.size(); ++i) sum = r.Op("Add", {sum, counts[i]});
  return r.Op("Not", {CastTo(r, sum, DataType::kBool)});
}

RuleSet MakeRules() {
  std::vector<Rule> rules;
  rules.push_back(Composite("MulInteger", {Any("a"), Maybe("a_zero"), Any("b"), Maybe("b_zero")},
                            ExpandMulInteger));
  rules.push_back(
      Composite("QOrderedGelu", {Any("x"), Any("x_scale"), Any("y_scale")}, ExpandOrderedGelu));
  rules.push_back(Composite("QOrderedLayerNormalization",
                            {Any("x"), Any("x_scale"), Any("gamma"), Maybe("beta"), Any("y_scale")},
                            ExpandOrderedLayerNormalization));
  rules.push_back(CompositeOfNode("GemmFloat8", ExpandGemmFloat8));
  rules.push_back(CompositeOfNode("QOrderedAttention", ExpandOrderedAttention));
  rules.push_back(CompositeOfNode("QOrderedLongformerAttention", ExpandOrderedLongformerAttention));
  rules.push_back(
      Composite("GemmFastGelu", {Any("x"), Any("w"), Maybe("bias")}, ExpandGemmFastGelu));
  rules.push_back(Composite("BiasSoftmax", {Any("x"), Any("bias")}, ExpandBiasSoftmax));
  rules.push_back(CompositeOfNode("IsAllFinite", ExpandIsAllFinite));
  rules.push_back(Composite("GatherND", {Any("data"), Any("indices")}, ExpandGatherNd));
  rules.push_back(
      Composite("TorchEmbedding",
                {Any("weight"), Any("indices"), Maybe("padding_idx"), Maybe("scale_grad_by_freq")},
                ExpandTorchEmbedding));
  return RuleSet(std::move(rules));
}

}  // namespace

const RuleSet& CompositeRules() {
  static const auto* const rules = new RuleSet(MakeRules());
  return *rules;
}

size_t ExpandComposites(Graph& graph) {
  size_t expanded = ApplyRules(graph, CompositeRules(), {.provider = kNoProvider});
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (!node) continue;
    if (node->provider == kNoProvider && node->domain == kMicrosoft &&
        ExpandNodeComposite(graph, node->id)) {
      ++expanded;
      continue;
    }
    for (Graph* subgraph : node->Subgraphs()) expanded += ExpandComposites(*subgraph);
  }
  return expanded;
}

}  // namespace tenon
