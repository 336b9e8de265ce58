#include <algorithm>

#include "base/stop_signal.h"
#include "ir/passes.h"
#include "ir/rewrite_limit.h"
#include "ir/schema.h"

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

// A dequantized weight is larger than the quantized one, and providers need the quantized one.
bool KeepsItsConstants(const Node& node) { return node.op_type == "DequantizeLinear"; }

bool IsDeterministic(const Node& node) { return node.schema && !node.schema->non_deterministic; }

class ConstantFolding {
 public:
  using Filter = FunctionRef<bool(const Graph&, const Node&)>;

  ConstantFolding(Graph& graph, NodeEvaluator& evaluator, FoldingBudget& budget, Filter is_wanted,
                  bool is_subgraph = false)
      : graph_(graph),
        evaluator_(evaluator),
        budget_(budget),
        is_wanted_(is_wanted),
        is_subgraph_(is_subgraph) {}

  size_t Run() {
    const auto order = graph_.TopologicalOrder();
    if (!order) return 0;
    size_t changes = 0;
    for (const NodeId id : *order) {
      if (budget_.time <= Clock::duration::zero()) break;
      const Node& node = graph_.node(id);
      for (Graph* subgraph : node.Subgraphs()) {
        changes += ConstantFolding(*subgraph, evaluator_, budget_, is_wanted_, true).Run();
      }
      if (IsFoldable(node) && is_wanted_(graph_, node) &&
          RewriteLimit::Allows("ConstantFolding", node) && Fold(node)) {
        ++changes;
      }
    }
    return changes;
  }

 private:
  bool IsFoldable(const Node& node) const {
    if (!IsDeterministic(node) || KeepsItsConstants(node) || node.inputs.empty()) return false;
    const bool has_constants = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
      return id == ValueId::kNone || graph_.StoredConstantOf(id);
    });
    const bool is_graph_output = std::any_of(
        node.outputs.begin(), node.outputs.end(),
        [&](ValueId id) { return id != ValueId::kNone && graph_.value(id).output_uses > 0; });
    return has_constants && !is_graph_output && node.Subgraphs().empty() &&
           evaluator_.CanEvaluate(graph_, node);
  }

  size_t InputBytes(const Node& node) const {
    size_t bytes = 0;
    for (const ValueId id : node.inputs) {
      if (const Tensor* constant = graph_.StoredConstantOf(id)) bytes += constant->bytes();
    }
    return bytes;
  }

  // Of the inputs with memory of their own that nothing needs once the node is folded. Constants of
  // subgraphs may be those of the graph around them.
  size_t FreedBytes(const Node& node) const {
    size_t bytes = 0;
    for (const ValueId id : node.inputs) {
      const Tensor* const constant = is_subgraph_ ? nullptr : graph_.StoredConstantOf(id);
      if (constant == nullptr || !graph_.HasOneUse(id)) continue;
      if (!budget_.uniform.contains(constant->raw())) bytes += constant->bytes();
    }
    return bytes;
  }

  // The sizes that inference knows, to avoid useless work; nothing if it does not know them.
  std::optional<size_t> OutputBytes(const Node& node) const {
    size_t bytes = 0;
    for (const ValueId id : node.outputs) {
      if (id == ValueId::kNone) continue;
      const ValueType& type = graph_.value(id).type;
      const std::optional<Shape> shape = type.shape ? type.shape->ToShape() : std::nullopt;
      if (!type.is_tensor() || !shape) return std::nullopt;
      const Result<int64_t> count = shape->CheckedNumElements();
      const Result<size_t> size =
          count ? DataTypeBytes(type.element_type, *count) : Result<size_t>(Failure(count.error()));
      if (!size || __builtin_add_overflow(bytes, *size, &bytes)) return std::nullopt;
    }
    return bytes;
  }

  // The output of NonZero is bounded by its input, though its size is not known before.
  std::optional<size_t> MostOutputBytes(const Node& node) const {
    const std::optional<size_t> known = OutputBytes(node);
    if (known || node.op_type != "NonZero") return known;
    const Tensor& input = *graph_.StoredConstantOf(node.inputs[0]);
    return static_cast<size_t>(input.size()) * input.rank() * sizeof(int64_t);
  }

  bool Fold(const Node& node) {
    const std::optional<size_t> output_bytes = MostOutputBytes(node);
    if (!output_bytes) return false;
    const size_t made = *output_bytes;
    const bool is_free = budget_.free_factor > 1 && made / budget_.free_factor <= InputBytes(node);
    const size_t growth = is_free ? 0 : made - std::min(made, FreedBytes(node));
    const bool is_uniform = node.domain.empty() && node.op_type == "ConstantOfShape";
    size_t& left = is_uniform ? budget_.uniform_bytes : budget_.bytes;
    if (growth > left) return false;
    const Clock::time_point start = Clock::now();
    std::optional<StopSignal> stop;
    if (budget_.time != std::chrono::nanoseconds::max()) stop.emplace(nullptr, budget_.time);
    const StopScope stopping(stop ? &*stop : nullptr);
    std::vector<Value> inputs;
    for (const ValueId id : node.inputs) {
      const Tensor* constant = graph_.ConstantOf(id);
      inputs.push_back(constant ? Value(*constant) : Value());
    }
    Result<std::vector<Value>> outputs = evaluator_.Evaluate(graph_, node, inputs);
    budget_.time -= Clock::now() - start;
    if (stop && stop->has_cut()) return false;
    if (!outputs || !AllTensors(node, *outputs)) return false;
    left -= growth;
    if (is_uniform) budget_.uniform.insert((*outputs)[0].tensor().raw());
    Replace(node, std::move(*outputs));
    return true;
  }

  static bool AllTensors(const Node& node, const std::vector<Value>& values) {
    if (values.size() != node.outputs.size()) return false;
    for (size_t i = 0; i < values.size(); ++i) {
      if (node.has_output(i) && !values[i].is_tensor()) return false;
    }
    return true;
  }

  void Replace(const Node& node, std::vector<Value> values) {
    const std::vector<ValueId> outputs = node.outputs, inputs = node.inputs;
    graph_.RemoveNode(node.id);
    for (const ValueId id : inputs) {
      if (graph_.StoredConstantOf(id) != nullptr && graph_.IsUnused(id)) {
        graph_.RemoveInitializer(id);
      }
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] == ValueId::kNone) continue;
      const Tensor& tensor = values[i].tensor();
      graph_.value(outputs[i]).type = ValueType::Tensor(tensor.type(), tensor.shape());
      graph_.SetInitializer(outputs[i], std::move(values[i]));
    }
  }

  Graph& graph_;
  NodeEvaluator& evaluator_;
  FoldingBudget& budget_;
  const Filter is_wanted_;
  const bool is_subgraph_;
};

}  // namespace

size_t FoldConstants(Graph& graph, NodeEvaluator& evaluator, FoldingBudget& budget,
                     FunctionRef<bool(const Graph&, const Node&)> is_wanted) {
  return ConstantFolding(graph, evaluator, budget, is_wanted).Run();
}

}  // namespace tenon
