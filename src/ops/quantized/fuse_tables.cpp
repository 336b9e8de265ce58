#include "ops/quantized/fuse_tables.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/thread_pool.h"
#include "ir/rewrite_limit.h"
#include "ops/framework/registry.h"
#include "ops/framework/unary_node.h"
#include "runtime/evaluate.h"
#include "runtime/kernel_info.h"

namespace tenon {
namespace {

constexpr std::string_view kMicrosoft = "com.microsoft";
constexpr std::string_view kTenon = "com.tenon";

constexpr int64_t kBytes = 256;

bool IsByte(DataType type) { return type == DataType::kInt8 || type == DataType::kUint8; }

// Whether each element of the node's one output depends on the elements of its inputs at the same
// place alone. Functions of integers as integers, such as Clip, stay: they are as fast.
bool IsElementWise(const Graph& graph, const Node& node) {
  // Since then binary operators broadcast as NumPy does.
  constexpr int32_t kFirstBroadcasting = 7;
  constexpr std::array<std::string_view, 6> kBinary = {"Add", "Sub", "Mul", "Div", "Pow", "PRelu"};
  constexpr std::array<std::string_view, 4> kQuantized = {"QLinearAdd", "QLinearMul",
                                                          "QLinearSigmoid", "QLinearLeakyRelu"};
  if (node.outputs.size() != 1 || !node.has_output(0) || !node.has_input(0)) return false;
  const auto is_one_of = [&](const auto& names) {
    return std::find(names.begin(), names.end(), node.op_type) != names.end();
  };
  if (UnaryOpOf(node)) return !IsByte(graph.value(node.outputs[0]).type.element_type);
  if (node.domain == kTenon) return node.op_type == "QLinearActivation";
  if (node.domain == kMicrosoft) return is_one_of(kQuantized);
  if (!node.domain.empty()) return false;
  if (node.op_type == "QuantizeLinear" || node.op_type == "DequantizeLinear") {
    return node.GetInt("block_size", 0) == 0;
  }
  return node.opset >= kFirstBroadcasting && is_one_of(kBinary);
}

class TableFusion {
 public:
  TableFusion(Graph& graph, int32_t provider) : graph_(graph), provider_(provider) {}

  size_t Apply() {
    const Result<std::vector<NodeId>> order = graph_.TopologicalOrder();
    if (!order) return 0;  // the planner reports the error
    std::vector<NodeId> parts;
    for (const NodeId id : *order) {
      const std::optional<ValueId> source = SourceFor(graph_.node(id));
      if (!source) continue;
      sources_.emplace(graph_.node(id).outputs[0], *source);
      parts.push_back(id);
    }
    KeepWhatBytesNeed(parts);
    size_t made = 0;
    for (NodeId& id : parts) {
      const Node& node = graph_.node(id);
      const ValueId y = node.outputs[0];
      if (!Evaluate(node) || !IsByte(TypeOf(y))) continue;
      if (!RewriteLimit::Allows("quantized table", node)) continue;
      id = Replace(node);
      ++made;
    }
    // Those that were only operands of others.
    for (auto id = parts.rbegin(); id != parts.rend(); ++id) {
      if (graph_.IsUnused(graph_.node(*id).outputs[0])) graph_.RemoveNode(*id);
    }
    return made;
  }

 private:
  DataType TypeOf(ValueId id) const { return graph_.value(id).type.element_type; }

  // The one tensor of bytes whose elements those of the node's output are a function of. Its other
  // operands are constants of one element that do not add axes.
  std::optional<ValueId> SourceFor(const Node& node) const {
    if (node.provider != provider_ || !IsElementWise(graph_, node)) return std::nullopt;
    std::optional<ValueId> source;
    size_t greatest_rank = 0;  // of a constant
    for (const ValueId input : node.inputs) {
      if (input == ValueId::kNone) continue;
      if (const Tensor* constant = graph_.ConstantOf(input)) {
        if (constant->size() != 1) return std::nullopt;
        greatest_rank = std::max(greatest_rank, constant->rank());
        continue;
      }
      const auto found = sources_.find(input);
      if (found == sources_.end() && !IsByte(TypeOf(input))) return std::nullopt;
      const ValueId of_input = found == sources_.end() ? input : found->second;
      if (source && *source != of_input) return std::nullopt;
      source = of_input;
    }
    if (!source || greatest_rank == 0) return source;
    const std::optional<SymbolicShape>& shape = graph_.value(*source).type.shape;
    return shape && shape->rank() >= greatest_rank ? source : std::nullopt;
  }

  // Leaves the nodes that make bytes and those whose results they need.
  void KeepWhatBytesNeed(std::vector<NodeId>& parts) const {
    std::unordered_set<ValueId> needed;
    std::vector<NodeId> kept;
    for (auto id = parts.rbegin(); id != parts.rend(); ++id) {
      const Node& node = graph_.node(*id);
      if (!IsByte(TypeOf(node.outputs[0])) && needed.count(node.outputs[0]) == 0) continue;
      needed.insert(node.inputs.begin(), node.inputs.end());
      kept.push_back(*id);
    }
    parts.assign(kept.rbegin(), kept.rend());
  }

  // The input of a node for each byte of the source.
  std::optional<Value> ResultsOf(ValueId id) const {
    if (id == ValueId::kNone) return Value();
    if (const Tensor* constant = graph_.ConstantOf(id)) return Value(*constant);
    const auto found = results_.find(id);
    if (found != results_.end()) return found->second;
    if (sources_.count(id) > 0) return std::nullopt;  // could not be evaluated
    Result<Tensor> bytes = Tensor::Allocate(TypeOf(id), Shape({kBytes}));
    if (!bytes) return std::nullopt;
    auto* const first = static_cast<uint8_t*>(bytes->raw());
    std::iota(first, first + kBytes, uint8_t{0});
    return Value(*std::move(bytes));
  }

  // Runs the node's own kernel, so that the results are those of the graph in bits.
  bool Evaluate(const Node& node) {
    const OpRow* const row = FindOpRow(graph_, node);
    if (row == nullptr) return false;
    std::vector<Value> inputs;
    for (const ValueId input : node.inputs) {
      std::optional<Value> results = ResultsOf(input);
      if (!results) return false;
      inputs.push_back(*std::move(results));
    }
    KernelInfo info(graph_, node);
    std::unique_ptr<Kernel> kernel;
    if (!row->make(info, row->options.traits, kernel).ok()) return false;
    Result<std::vector<Value>> made = EvaluateNode(graph_, node, *kernel, inputs, threads_);
    if (!made || !(*made)[0].is_tensor() || (*made)[0].tensor().size() != kBytes) return false;
    // Constants may have added axes of one element.
    results_.emplace(node.outputs[0], Value((*made)[0].tensor().Reshaped(Shape({kBytes}))));
    return true;
  }

  NodeId Replace(const Node& node) {
    const ValueId y = node.outputs[0];
    NodeSpec spec;
    spec.op_type = "QLinearTable";
    spec.domain = kTenon;
    spec.name = node.name;
    spec.opset = 1;
    spec.outputs = {y};
    spec.inputs = {sources_.at(y),
                   graph_.AddInitializer(graph_.UnusedName(graph_.value(y).name + "/table"),
                                         results_.at(y).tensor())};
    graph_.RemoveNode(node.id);
    Node& made = graph_.AddNode(std::move(spec));
    made.provider = provider_;
    return made.id;
  }

  Graph& graph_;
  const int32_t provider_;
  std::unordered_map<ValueId, ValueId> sources_;
  std::unordered_map<ValueId, Value> results_;  // for each byte of the source
  ThreadPool threads_{{.threads = 1}};
};

}  // namespace

size_t FuseTables(Graph& graph, int32_t provider) {
  static const bool has_row = HasOpRow(kTenon, "QLinearTable");
  if (!has_row) return 0;
  size_t made = TableFusion(graph, provider).Apply();
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (!node) continue;
    for (Graph* subgraph : node->Subgraphs()) made += FuseTables(*subgraph, provider);
  }
  return made;
}

}  // namespace tenon
