#include "ops/elementwise/fuse_elements.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/text.h"
#include "ir/rewrite_limit.h"
#include "ir/schema.h"
#include "ops/elementwise/fused_elements.h"
#include "ops/framework/registry.h"
#include "ops/framework/unary_node.h"

namespace tenon {
namespace {

// Since then binary operators broadcast as NumPy does.
constexpr int32_t kFirstBroadcasting = 7;
// Shorter runs of an operand that repeats cost more than a pass of their own.
constexpr int64_t kShortestRun = 32;

const SymbolicShape* FloatShape(const Graph& graph, ValueId id) {
  const ValueType& type = graph.value(id).type;
  const bool is_float = type.is_tensor() && type.element_type == DataType::kFloat && type.shape;
  return is_float ? &*type.shape : nullptr;
}

// Whether `x` can be an input of FusedElements with the output shape `y`, and be read in long runs.
bool RepeatsInLongRuns(const SymbolicShape& x, const SymbolicShape& y) {
  if (x == y) return true;
  if (x.rank() > y.rank()) return false;
  size_t begin = 0, end = x.rank();
  while (end > begin && x[end - 1] == Dim(1)) --end;
  while (begin < end && x[begin] == Dim(1)) ++begin;
  if (begin == end) return true;  // one element
  const size_t missing = y.rank() - x.rank();
  for (size_t i = begin; i < end; ++i) {
    if (!(x[i] == y[missing + i])) return false;
  }
  const Dim run = end == x.rank() ? x.Product(begin, end) : y.Product(missing + end, y.rank());
  return !run.is_number() || run.value() >= kShortestRun;
}

class ElementFusion {
 public:
  ElementFusion(Graph& graph, int32_t provider) : graph_(graph), provider_(provider) {}

  size_t Apply() {
    FindSteps();
    const bool has_pairs = std::any_of(steps_.begin(), steps_.end(), [&](const auto& step) {
      const Node& node = graph_.node(step.first);
      return steps_.count(graph_.value(node.inputs[0]).producer) > 0 ||
             (step.second.operands > 1 && steps_.count(graph_.value(node.inputs[1]).producer) > 0);
    });
    if (!has_pairs) return 0;
    const Result<std::vector<NodeId>> order = graph_.TopologicalOrder();
    if (!order) return 0;  // the planner reports the error
    PutInOrder(*order);
    size_t made = 0;
    for (auto id = order->rbegin(); id != order->rend(); ++id) {
      if (steps_.count(*id) == 0) continue;  // or a part of a group by now
      std::vector<NodeId> group = GroupOf(*id);
      if (group.size() < 2 || !RewriteLimit::Allows("fuse elements", graph_.node(*id))) continue;
      const auto is_before = [&](NodeId a, NodeId b) {
        return steps_.at(a).place < steps_.at(b).place;
      };
      std::sort(group.begin(), group.end(), is_before);
      Replace(group);
      ++made;
    }
    return made;
  }

 private:
  // A node that can be a step.
  struct StepNode {
    std::string function;
    kernels::ActivationSpec spec;
    size_t operands = 0;
    size_t place = 0;  // in the order of the graph
    size_t part = 0;   // the last YieldOp before the node, from 1 on; 0 if there is none
  };

  void FindSteps() {
    for (size_t i = 0; i < graph_.node_capacity(); ++i) {
      const Node* const node = graph_.FindNode(static_cast<NodeId>(i));
      if (node == nullptr || node->provider != provider_) continue;
      if (std::optional<StepNode> step = StepOf(*node)) steps_.emplace(node->id, *std::move(step));
    }
  }

  std::optional<StepNode> StepOf(const Node& node) const {
    if (node.outputs.size() != 1 || !node.has_input(0)) return std::nullopt;
    const SymbolicShape* const y = FloatShape(graph_, node.outputs[0]);
    if (y == nullptr) return std::nullopt;
    StepNode step;
    if (UnaryOpOf(node)) {
      const std::optional<kernels::ActivationSpec> spec = KnownUnarySpec(graph_, node);
      if (!spec) return std::nullopt;
      step.function = std::string(InfoOf(spec->op).name);
      step.spec = *spec;
      step.operands = 1;
    } else {
      if (!node.domain.empty() || node.opset < kFirstBroadcasting || node.inputs.size() != 2 ||
          !FindFusedBinary(node.op_type)) {
        return std::nullopt;
      }
      step.function = node.op_type;
      step.operands = 2;
    }
    for (size_t i = 0; i < step.operands; ++i) {
      const SymbolicShape* const x = FloatShape(graph_, node.inputs[i]);
      if (x == nullptr || !RepeatsInLongRuns(*x, *y)) return std::nullopt;
    }
    return step;
  }

  // A part of a run that ends at a YieldOp must keep its nodes.
  void PutInOrder(const std::vector<NodeId>& order) {
    std::unordered_map<NodeId, size_t> part;  // of a node, where it is not the first
    size_t yields = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      const Node& node = graph_.node(order[i]);
      size_t own = node.schema != nullptr && node.schema->yields ? ++yields : 0;
      for (const ValueId input : node.inputs) {
        if (own == yields || input == ValueId::kNone) continue;
        const auto before = part.find(graph_.value(input).producer);
        if (before != part.end()) own = std::max(own, before->second);
      }
      if (own > 0) part.emplace(node.id, own);
      const auto step = steps_.find(node.id);
      if (step == steps_.end()) continue;
      step->second.place = i;
      step->second.part = own;
    }
  }

  // The node, and those whose results only the group reads.
  std::vector<NodeId> GroupOf(NodeId root) const {
    const SymbolicShape& shape = *FloatShape(graph_, graph_.node(root).outputs[0]);
    std::vector<NodeId> group = {root};
    std::unordered_set<NodeId> members = {root};
    for (size_t i = 0; i < group.size(); ++i) {
      const Node& node = graph_.node(group[i]);
      for (size_t k = 0; k < steps_.at(node.id).operands; ++k) {
        const ValueInfo& value = graph_.value(node.inputs[k]);
        const auto producer = steps_.find(value.producer);
        if (producer == steps_.end() || members.count(value.producer) > 0) continue;
        const bool fits = value.output_uses == 0 && *value.type.shape == shape &&
                          producer->second.part == steps_.at(root).part &&
                          graph_.node(value.producer).part == graph_.node(root).part &&
                          std::all_of(value.consumers.begin(), value.consumers.end(),
                                      [&](NodeId consumer) { return members.count(consumer) > 0; });
        if (!fits) continue;  // perhaps it does once its other readers are members
        members.insert(value.producer);
        group.push_back(value.producer);
      }
    }
    return group;
  }

  // The inputs of a group; first those of the output's shape, in whose memory it may lie.
  std::vector<ValueId> InputsOf(const std::vector<NodeId>& group) const {
    const ValueId output = graph_.node(group.back()).outputs[0];
    const SymbolicShape& shape = *FloatShape(graph_, output);
    std::unordered_set<ValueId> known;
    for (const NodeId id : group) known.insert(graph_.node(id).outputs[0]);
    std::vector<ValueId> inputs;
    for (const NodeId id : group) {
      for (size_t k = 0; k < steps_.at(id).operands; ++k) {
        const ValueId input = graph_.node(id).inputs[k];
        if (known.insert(input).second) inputs.push_back(input);
      }
    }
    std::stable_partition(inputs.begin(), inputs.end(),
                          [&](ValueId input) { return *FloatShape(graph_, input) == shape; });
    return inputs;
  }

  void Replace(const std::vector<NodeId>& group) {
    const Node& root = graph_.node(group.back());
    NodeSpec spec;
    spec.op_type = "FusedElements";
    spec.domain = "com.tenon";
    if (!root.name.empty()) spec.name = Format("{}/{}", root.name, spec.op_type);
    spec.opset = 1;
    spec.inputs = InputsOf(group);
    spec.outputs = {root.outputs[0]};
    const int32_t part = root.part;
    std::unordered_map<ValueId, int64_t> number;
    for (const ValueId input : spec.inputs) {
      number.emplace(input, static_cast<int64_t>(number.size()));
    }
    FusedElementsAttrs attrs;
    for (const NodeId id : group) {
      const Node& node = graph_.node(id);
      const StepNode& step = steps_.at(id);
      attrs.functions.push_back(step.function);
      attrs.operands.push_back(number.at(node.inputs[0]));
      attrs.operands.push_back(step.operands == 2 ? number.at(node.inputs[1]) : -1);
      attrs.parameters.push_back(step.spec.alpha);
      attrs.parameters.push_back(step.spec.beta);
      number.emplace(node.outputs[0], static_cast<int64_t>(number.size()));
    }
    spec.attributes.emplace_back("functions", std::move(attrs.functions));
    spec.attributes.emplace_back("operands", std::move(attrs.operands));
    spec.attributes.emplace_back("parameters", std::move(attrs.parameters));
    for (auto id = group.rbegin(); id != group.rend(); ++id) {
      graph_.RemoveNode(*id);
      steps_.erase(*id);
    }
    Node& made = graph_.AddNode(std::move(spec));
    made.provider = provider_;
    made.part = part;
  }

  Graph& graph_;
  const int32_t provider_;
  std::unordered_map<NodeId, StepNode> steps_;
};

}  // namespace

size_t FuseElements(Graph& graph, int32_t provider) {
  static const bool has_row = HasOpRow("com.tenon", "FusedElements");
  if (!has_row) return 0;
  size_t made = ElementFusion(graph, provider).Apply();
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* const node = graph.FindNode(static_cast<NodeId>(i));
    if (node == nullptr) continue;
    for (Graph* const subgraph : node->Subgraphs()) made += FuseElements(*subgraph, provider);
  }
  return made;
}

}  // namespace tenon
