// Operators on quantized operands that work on each element, on windows or on positions.
//
// Those that only move elements are exchanged with the DequantizeLinear before them, so that it
// comes next to a QuantizeLinear, with which it becomes nothing or a table of 256 integers.
#include <algorithm>
#include <limits>
#include <optional>

#include "ir/graph.h"
#include "ir/scalar.h"
#include "ops/framework/registry.h"
#include "ops/fusion/fuse_epilogue.h"
#include "ops/fusion/quantized_operands.h"

namespace tenon {
namespace {

constexpr const char* kMicrosoft = "com.microsoft";
constexpr const char* kTenon = "com.tenon";

// --- Element by element, pools, joins ---

// The inputs that operators of com.microsoft with one quantized operand have.
std::vector<ValueId> UnaryInputs(Replacement& r) {
  return {r[kA.integers], r[kA.scale], ZeroOf(r, kA), r[kY.scale], OutputZero(r)};
}

ValueId MakeBinary(Replacement& r, const char* op_type) {
  const ValueId y = r.Op(op_type,
                         {r[kA.integers], r[kA.scale], ZeroOf(r, kA), r[kB.integers], r[kB.scale],
                          ZeroOf(r, kB), r[kY.scale], OutputZero(r)},
                         {}, kMicrosoft);
  return Bounded(r, y);
}

ValueId MakeActivation(Replacement& r) {
  std::vector<Attribute> attributes;
  if (r.FindNode("activation")) AddActivation(r, attributes);
  return r.Op("QLinearActivation", UnaryInputs(r), std::move(attributes), kTenon);
}

// Dequantized integers that are quantized again are other integers, or the same.
ValueId Requantize(Replacement& r) {
  const bool is_same = TypeOf(r, kA) == OutputType(r) && r.scalar(kA.scale) == r.scalar(kY.scale) &&
                       ScalarOrZero(r, kA.zero) == ScalarOrZero(r, kY.zero);
  if (!is_same) return MakeActivation(r);
  // An output of the graph needs a node of its own.
  const ValueInfo& integers = r.graph().value(r[kA.integers]);
  const bool is_free = integers.producer != NodeId::kNone && integers.output_uses == 0;
  const bool is_output = r.graph().value(r.root().outputs[0]).output_uses > 0;
  return is_output && !is_free ? r.Op("Identity", {r[kA.integers]}) : r[kA.integers];
}

bool HasNoDilations(const Match& match) {
  const std::vector<int64_t> dilations = match.node("node").GetInts("dilations");
  return std::all_of(dilations.begin(), dilations.end(), [](int64_t d) { return d == 1; });
}

// QLinearAveragePool lacks dilations, which are 1.
ValueId MakeAveragePool(Replacement& r) {
  std::vector<Attribute> attributes = r.AttributesOf("node");
  std::erase_if(attributes,
                [](const Attribute& attribute) { return attribute.name == "dilations"; });
  return r.Op("QLinearAveragePool", UnaryInputs(r), std::move(attributes), kMicrosoft);
}

// Not com.microsoft QLinearSoftmax, which changes the scale of the results.
ValueId MakeSoftmax(Replacement& r) {
  constexpr int32_t kOneAxis = 13;
  const Node& softmax = r.node("node");
  std::vector<Attribute> attributes;
  attributes.emplace_back("axis", softmax.GetInt("axis", softmax.opset < kOneAxis ? 1 : -1));
  attributes.emplace_back("opset", int64_t{softmax.opset});
  return r.Op("QLinearSoftmax", UnaryInputs(r), std::move(attributes), kTenon);
}

struct JoinedOperand {
  ValueId integers, scale, zero;
};

// The inputs of the Concat before they are dequantized; nothing if one is not, or not from the
// output's type with one scale.
std::optional<std::vector<JoinedOperand>> OperandsOf(const Match& match) {
  const Graph& graph = match.graph();
  std::vector<JoinedOperand> operands;
  for (const ValueId input : match.node("concat").inputs) {
    const NodeId producer = graph.value(input).producer;
    if (producer == NodeId::kNone) return std::nullopt;
    const Node& node = graph.node(producer);
    if (node.op_type != "DequantizeLinear" || !node.domain.empty() || !node.has_input(2)) {
      return std::nullopt;
    }
    const Tensor* zero = graph.ConstantOf(node.inputs[2]);
    if (!IsOneFloat(graph.ConstantOf(node.inputs[1])) || !zero || zero->size() != 1 ||
        zero->type() != OutputType(match)) {
      return std::nullopt;
    }
    operands.push_back({node.inputs[0], node.inputs[1], node.inputs[2]});
  }
  return operands;
}

ValueId MakeConcat(Replacement& r) {
  const std::vector<JoinedOperand> operands = *OperandsOf(r);
  const auto is_as_output = [&](const JoinedOperand& operand) {
    return ScalarOf(*r.graph().ConstantOf(operand.scale)) == r.scalar(kY.scale) &&
           ScalarOf(*r.graph().ConstantOf(operand.zero)) == ScalarOrZero(r, kY.zero);
  };
  std::vector<ValueId> inputs;
  if (std::all_of(operands.begin(), operands.end(), is_as_output)) {
    for (const JoinedOperand& operand : operands) inputs.push_back(operand.integers);
    return r.Op("Concat", std::move(inputs), r.AttributesOf("concat"));
  }
  inputs = {r[kY.scale], OutputZero(r)};
  for (const JoinedOperand& operand : operands) {
    inputs.insert(inputs.end(), {operand.integers, operand.scale, operand.zero});
  }
  return r.Op("QLinearConcat", std::move(inputs), r.AttributesOf("concat"), kMicrosoft);
}

// --- Movement ---

bool MovesInt8(const Match& match) {
  const Node& node = match.node("move");
  if (!HasOneScale(match, kA) ||
      !FindOpRow("", node.op_type, std::numeric_limits<int32_t>::max(), TypeOf(match, kA))) {
    return false;
  }
  if (node.op_type == "Resize" && node.GetString("mode", "nearest") != "nearest") return false;
  // Rows of a quantized table are dequantized alone. Other constants stay as they are stored.
  return node.op_type == "Gather" || !match.graph().StoredConstantOf(match[kA.integers]);
}

ValueId DequantizeMoved(Replacement& r, ValueId moved) {
  r.TakeShape(moved, r.root().outputs[0]);
  return r.Op("DequantizeLinear", {moved, r[kA.scale], ZeroOf(r, kA)});
}

ValueId MoveInt8(Replacement& r) {
  std::vector<ValueId> inputs = r.node("move").inputs;
  inputs[0] = r[kA.integers];
  return DequantizeMoved(r,
                         r.Op(r.node("move").op_type, std::move(inputs), r.AttributesOf("move")));
}

// A Pad with zeros, which are the zero point.
bool PadsWithZero(const Match& match) {
  const Node& pad = match.node("pad");
  constexpr int32_t kPadsAreInputs = 11;
  if (!HasOneScale(match, kA) || pad.opset < kPadsAreInputs) return false;
  if (pad.GetString("mode", "constant") != "constant" || !pad.has_input(2)) return true;
  const Tensor* value = match.graph().ConstantOf(pad.inputs[2]);
  return value && ScalarOf(*value) == 0.0;
}

ValueId PadInt8(Replacement& r) {
  std::vector<ValueId> inputs = r.node("pad").inputs;
  inputs.resize(std::max<size_t>(inputs.size(), 3), ValueId::kNone);
  inputs[0] = r[kA.integers];
  const auto zero = static_cast<int>(ScalarOrZero(r, kA.zero));
  inputs[2] = r.Constant("constant_value", Int8Scalar(TypeOf(r, kA), zero));
  return DequantizeMoved(r, r.Op("Pad", std::move(inputs), r.AttributesOf("pad")));
}

// A weight matrix that is stored transposed, with scales for its rows or columns.
bool TransposesWeights(const Match& match) {
  const Tensor* b = match.graph().StoredConstantOf(match[kB.integers]);
  const std::vector<int64_t> order = match.node("transpose").GetInts("perm");
  return b && b->rank() == 2 && (order.empty() || order == std::vector<int64_t>{1, 0}) &&
         (HasLineScales(match, kB, 0) || HasLineScales(match, kB, 1));
}

ValueId TransposeWeights(Replacement& r) {
  const Tensor& b = *r.graph().StoredConstantOf(r[kB.integers]);
  const int64_t rows = b.shape()[0], columns = b.shape()[1];
  Result<Tensor> turned = Tensor::Allocate(b.type(), Shape({columns, rows}));
  if (!turned) return ValueId::kNone;
  const auto* from = static_cast<const uint8_t*>(b.raw());
  auto* into = static_cast<uint8_t*>(turned->raw());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) into[j * rows + i] = from[i * columns + j];
  }
  std::vector<Attribute> attributes;
  attributes.emplace_back("axis", int64_t{HasLineScales(r, kB, 0) ? 1 : 0});
  return r.Op("DequantizeLinear",
              {r.Constant("transposed", std::move(*turned)), r[kB.scale], r[kB.zero]},
              std::move(attributes));
}

// Whether the operand has one scale, and integers of the output's type.
bool HasOutputsType(const Match& match, const OperandNames& names) {
  return HasOneScale(match, names) && TypeOf(match, names) == OutputType(match);
}

// Of an operator of com.microsoft with one operand, bound to "node".
Rule UnaryRule(std::string_view name, const char* from, const char* to) {
  return {.name = name,
          .pattern = Quantized(Op(from, {Dequantized(kA)}).As("node")),
          .when = [](const Match& m) { return QuantizesToInt8(m) && HasOutputsType(m, kA); },
          .replace =
              [to](Replacement& r) {
                return r.Op(to, UnaryInputs(r), r.AttributesOf("node"), kMicrosoft);
              }};
}

}  // namespace

std::vector<Fusion> QuantizedElementFusions() {
  const Pattern a = Dequantized(kA), b = Dequantized(kB);
  std::vector<Fusion> fusions;
  const auto add = [&](std::string_view domain, std::string_view op_type, Rule rule,
                       bool is_typed_by_output = true) {
    fusions.push_back({domain, op_type, std::move(rule), is_typed_by_output});
  };
  for (const auto& [op_type, replacement] :
       {std::pair("Add", "QLinearAdd"), std::pair("Mul", "QLinearMul")}) {
    for (const Pattern& pattern : QuantizedOrActivated(Op(op_type, {a, b}))) {
      add(kMicrosoft, replacement,
          {.name = "quantized sum or product",
           .pattern = pattern,
           .when =
               [](const Match& m) {
                 return QuantizesOrBounds(m) && HasOutputsType(m, kA) && HasOutputsType(m, kB);
               },
           .replace = [name = replacement](Replacement& r) { return MakeBinary(r, name); }});
    }
  }
  const auto is_activation = [](const Match& m) {
    return QuantizesToInt8(m) && HasOneScale(m, kA) && HasKnownParameters(m);
  };
  for (const Pattern& activation : ActivationsOf(a)) {
    add(kTenon, "QLinearActivation",
        {.name = "quantized activation",
         .pattern = Quantized(activation),
         .when = is_activation,
         .replace = MakeActivation});
  }
  add(kTenon, "QLinearActivation",
      {.name = "requantize",
       .pattern = Quantized(a),
       .when = [](const Match& m) { return QuantizesToInt8(m) && HasOneScale(m, kA); },
       .replace = Requantize});
  add(kMicrosoft, "QLinearGlobalAveragePool",
      UnaryRule("quantized global pool", "GlobalAveragePool", "QLinearGlobalAveragePool"));
  Rule pool = UnaryRule("quantized pool", "AveragePool", "QLinearAveragePool");
  pool.when = [when = std::move(pool.when)](const Match& m) {
    return when(m) && HasNoDilations(m);
  };
  pool.replace = MakeAveragePool;
  add(kMicrosoft, "QLinearAveragePool", std::move(pool));
  Rule softmax = UnaryRule("quantized softmax", "Softmax", "QLinearSoftmax");
  softmax.replace = MakeSoftmax;
  add(kTenon, "QLinearSoftmax", std::move(softmax));
  add(kMicrosoft, "QLinearConcat",
      {.name = "quantized concat",
       .pattern = Quantized(Op("Concat", {Any("first")}).WithMoreInputs().As("concat")),
       .when = [](const Match& m) { return QuantizesToInt8(m) && OperandsOf(m).has_value(); },
       .replace = MakeConcat});
  add("", "DequantizeLinear",
      {.name = "moved integers",
       .pattern =
           OpOf({"Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Slice", "Gather",
                 "MaxPool", "DepthToSpace", "SpaceToDepth", "Expand", "Tile", "Identity", "Resize"},
                {a})
               .WithMoreInputs()
               .As("move"),
       .when = MovesInt8,
       .replace = MoveInt8},
      false);
  add("", "DequantizeLinear",
      {.name = "padded integers",
       .pattern = Op("Pad", {a}).WithMoreInputs().As("pad"),
       .when = PadsWithZero,
       .replace = PadInt8},
      false);
  add("", "DequantizeLinear",
      {.name = "transposed integers",
       .pattern = Op("Transpose", {b}).As("transpose"),
       .when = TransposesWeights,
       .replace = TransposeWeights},
      false);
  return fusions;
}

}  // namespace tenon
