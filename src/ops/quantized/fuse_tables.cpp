#include "ops/quantized/fuse_tables.h"

#include <cstring>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "ir/rewrite_limit.h"
#include "kernels/elementwise/quantized_binary.h"
#include "ops/framework/fused_activation.h"
#include "ops/quantized/int8_tables.h"

namespace tenon {
namespace {

constexpr std::string_view kMicrosoft = "com.microsoft";
constexpr std::string_view kTenon = "com.tenon";

// The function that a node with one quantized operand computes; nothing for other nodes.
std::optional<kernels::ActivationSpec> FunctionOf(const Node& node) {
  if (node.domain == kTenon && node.op_type == "QLinearActivation") {
    const auto attrs = BindAttributes<QLinearActivationAttrs>(node);
    if (!attrs) return std::nullopt;
    const auto spec = FusedActivation(attrs->activation, attrs->parameters);
    return spec ? std::optional(*spec) : std::nullopt;
  }
  if (node.domain != kMicrosoft) return std::nullopt;
  if (node.op_type == "QLinearSigmoid") return kernels::ActivationSpec{UnaryOp::kSigmoid};
  if (node.op_type != "QLinearLeakyRelu") return std::nullopt;
  const float slope = InfoOf(UnaryOp::kLeakyRelu).parameters[0].fallback;
  return kernels::ActivationSpec{UnaryOp::kLeakyRelu, node.GetFloat("alpha", slope)};
}

std::optional<kernels::QuantizedBinaryOp> BinaryOpOf(const Node& node) {
  if (node.domain != kMicrosoft) return std::nullopt;
  if (node.op_type == "QLinearAdd") return kernels::QuantizedBinaryOp::kAdd;
  if (node.op_type == "QLinearMul") return kernels::QuantizedBinaryOp::kMul;
  return std::nullopt;
}

class TableFusion {
 public:
  TableFusion(Graph& graph, int32_t provider) : graph_(graph), provider_(provider) {}

  void Apply() {
    Result<std::vector<NodeId>> order = graph_.TopologicalOrder();
    if (!order) return;  // the planner reports the error
    std::vector<NodeId> made;
    for (const NodeId id : *order) {
      const Node& node = graph_.node(id);
      if (node.provider != provider_) continue;
      std::optional<Function> function = FunctionAt(node);
      if (!function || !RewriteLimit::Allows("quantized table", node)) continue;
      const ValueId y = node.outputs[0];
      made.push_back(Replace(node, *function));
      functions_.emplace(y, std::move(*function));
    }
    // Those that were only operands of others.
    for (auto id = made.rbegin(); id != made.rend(); ++id) {
      if (graph_.IsUnused(graph_.node(*id).outputs[0])) graph_.RemoveNode(*id);
    }
  }

 private:
  // A value as a function of the bytes of another.
  struct Function {
    ValueId source;
    Int8Table table;
    DataType type;
  };

  // Of constants in inputs `scale` and `zero` of the node.
  std::optional<Int8Quantization> QuantizationAt(const Node& node, size_t scale,
                                                 size_t zero) const {
    const auto constant = [&](size_t i) -> const Tensor* {
      const Tensor* found = node.has_input(i) ? graph_.ConstantOf(node.inputs[i]) : nullptr;
      return found && found->size() == 1 ? found : nullptr;
    };
    const Tensor *scales = constant(scale), *zeros = constant(zero);
    if (!scales || scales->type() != DataType::kFloat || !zeros ||
        (zeros->type() != DataType::kInt8 && zeros->type() != DataType::kUint8)) {
      return std::nullopt;
    }
    return Int8Quantization{zeros->type() == DataType::kInt8, *scales->data<float>(),
                            ByteAt(*zeros)};
  }

  // The value as a function of another, or of itself.
  Function FunctionOfValue(ValueId id) const {
    const auto found = functions_.find(id);
    if (found != functions_.end()) return found->second;
    Function itself = {id, {}, graph_.value(id).type.element_type};
    std::iota(itself.table.begin(), itself.table.end(), uint8_t{0});
    return itself;
  }

  std::optional<Function> FunctionAt(const Node& node) const {
    if (!node.has_output(0) || !node.has_input(0)) return std::nullopt;
    if (const auto spec = FunctionOf(node)) return UnaryAt(node, *spec);
    const auto op = BinaryOpOf(node);
    return op ? BinaryAt(node, *op) : std::nullopt;
  }

  std::optional<Function> UnaryAt(const Node& node, const kernels::ActivationSpec& spec) const {
    const auto of_x = QuantizationAt(node, 1, 2), of_y = QuantizationAt(node, 3, 4);
    if (!of_x || !of_y) return std::nullopt;
    const Int8Table own =
        TableOf(*of_x, *of_y, [&](float x) { return static_cast<float>(Activated(spec, x)); });
    Function function = FunctionOfValue(node.inputs[0]);
    for (uint8_t& byte : function.table) byte = own[byte];
    function.type = of_y->is_signed ? DataType::kInt8 : DataType::kUint8;
    return function;
  }

  std::optional<Function> BinaryAt(const Node& node, kernels::QuantizedBinaryOp op) const {
    enum Input : size_t { kA, kAScale, kAZero, kB, kBScale, kBZero, kYScale, kYZero };
    const auto of_a = QuantizationAt(node, kAScale, kAZero);
    const auto of_b = QuantizationAt(node, kBScale, kBZero);
    const auto of_y = QuantizationAt(node, kYScale, kYZero);
    if (!of_a || !of_b || !of_y || !node.has_input(kB)) return std::nullopt;
    const Function a = FunctionOfValue(node.inputs[kA]), b = FunctionOfValue(node.inputs[kB]);
    if (a.source != b.source) return std::nullopt;
    const auto type = of_y->is_signed ? DataType::kInt8 : DataType::kUint8;
    if (a.type != type || b.type != type) return std::nullopt;
    Function function = {a.source, {}, type};
    kernels::CombineQuantized(
        op, {a.table.data(), false, of_a->scale, of_a->zero_point},
        {b.table.data(), false, of_b->scale, of_b->zero_point}, function.table.size(), of_y->scale,
        of_y->zero_point,
        of_y->is_signed ? kernels::QuantizedType::kInt8 : kernels::QuantizedType::kUint8,
        function.table.data());
    return function;
  }

  static Tensor TensorOf(const Function& function) {
    if (function.type == DataType::kUint8) {
      return Tensor::Of<uint8_t>(Shape({256}), std::span<const uint8_t>(function.table));
    }
    std::array<int8_t, 256> table;
    std::memcpy(table.data(), function.table.data(), table.size());
    return Tensor::Of<int8_t>(Shape({256}), std::span<const int8_t>(table));
  }

  NodeId Replace(const Node& node, const Function& function) {
    const std::string& output = graph_.value(node.outputs[0]).name;
    NodeSpec spec;
    spec.op_type = "QLinearTable";
    spec.domain = kTenon;
    spec.name = node.name;
    spec.opset = 1;
    spec.outputs = {node.outputs[0]};
    spec.inputs = {function.source,
                   graph_.AddInitializer(graph_.UnusedName(output + "/table"), TensorOf(function))};
    graph_.RemoveNode(node.id);
    Node& made = graph_.AddNode(std::move(spec));
    made.provider = provider_;
    return made.id;
  }

  Graph& graph_;
  const int32_t provider_;
  std::unordered_map<ValueId, Function> functions_;
};

}  // namespace

void FuseTables(Graph& graph, int32_t provider) {
  TableFusion(graph, provider).Apply();
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (!node) continue;
    for (Graph* subgraph : node->Subgraphs()) FuseTables(*subgraph, provider);
  }
}

}  // namespace tenon
