#include "ops/composites.h"

#include <algorithm>
#include <utility>

#include "ir/rewrite.h"

namespace tenon {
namespace {

constexpr const char* kMicrosoft = "com.microsoft";

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

// QOrderedGelu-1. The order of elements makes no difference.
ValueId ExpandOrderedGelu(Replacement& r) {
  const ValueId y = r.Op("Gelu", {Dequantized(r, "x", "x_scale")}, {}, kMicrosoft);
  return QuantizedToInt8(r, y, "y_scale");
}

std::vector<Attribute> Orders(int64_t from, int64_t to) {
  std::vector<Attribute> attributes = One("order_input", from);
  attributes.emplace_back("order_output", to);
  return attributes;
}

// QOrderedLayerNormalization-1, in rows.
ValueId ExpandOrderedLayerNormalization(Replacement& r) {
  constexpr int64_t kRows = 1;
  const auto order = [&](const char* name) {
    const Attribute* attribute = r.node("node").FindAttribute(name);
    const auto* value = attribute ? attribute->get<int64_t>() : nullptr;
    return value ? *value : kRows;
  };
  std::vector<Attribute> to_rows = Orders(order("order_X"), kRows);
  to_rows.emplace_back("to", static_cast<int64_t>(DataType::kFloat));
  const ValueId x =
      r.Op("DequantizeWithOrder", {r["x"], r["x_scale"]}, std::move(to_rows), kMicrosoft);
  std::vector<ValueId> inputs = {x, CastTo(r, r["gamma"], DataType::kFloat)};
  if (r["beta"] != ValueId::kNone) inputs.push_back(CastTo(r, r["beta"], DataType::kFloat));
  const ValueId y = r.Op("LayerNormalization", std::move(inputs), Kept(r, {"axis", "epsilon"}));
  return r.Op("QuantizeWithOrder", {y, r["y_scale"]}, Orders(kRows, order("order_Y")), kMicrosoft);
}

// GemmFastGelu-1.
ValueId ExpandGemmFastGelu(Replacement& r) {
  std::vector<ValueId> inputs = {r.Op("MatMul", {r["x"], r["w"]})};
  if (r["bias"] != ValueId::kNone) inputs.push_back(r["bias"]);
  return r.Op("FastGelu", std::move(inputs), {}, kMicrosoft);
}

// GatherND-1 is the standard's without batch dimensions.
ValueId ExpandGatherNd(Replacement& r) {
  return r.Op("GatherND", {r["data"], CastTo(r, r["indices"], DataType::kInt64)});
}

// TorchEmbedding-1: what is padding matters in training alone.
ValueId ExpandTorchEmbedding(Replacement& r) { return r.Op("Gather", {r["weight"], r["indices"]}); }

RuleSet MakeRules() {
  std::vector<Rule> rules;
  rules.push_back(Composite("MulInteger", {Any("a"), Maybe("a_zero"), Any("b"), Maybe("b_zero")},
                            ExpandMulInteger));
  rules.push_back(
      Composite("QOrderedGelu", {Any("x"), Any("x_scale"), Any("y_scale")}, ExpandOrderedGelu));
  rules.push_back(Composite("QOrderedLayerNormalization",
                            {Any("x"), Any("x_scale"), Any("gamma"), Maybe("beta"), Any("y_scale")},
                            ExpandOrderedLayerNormalization));
  rules.push_back(
      Composite("GemmFastGelu", {Any("x"), Any("w"), Maybe("bias")}, ExpandGemmFastGelu));
  rules.push_back(Composite("GatherND", {Any("data"), Any("indices")}, ExpandGatherNd));
  rules.push_back(
      Composite("TorchEmbedding",
                {Any("weight"), Any("indices"), Maybe("padding_idx"), Maybe("scale_grad_by_freq")},
                ExpandTorchEmbedding));
  return RuleSet(std::move(rules));
}

}  // namespace

size_t ExpandComposites(Graph& graph) {
  static const auto* const rules = new RuleSet(MakeRules());
  constexpr int32_t kNobody = -1;
  size_t expanded = ApplyRules(graph, *rules, {.provider = kNobody});
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (!node) continue;
    for (Graph* subgraph : node->Subgraphs()) expanded += ExpandComposites(*subgraph);
  }
  return expanded;
}

}  // namespace tenon
