#include "support.h"

#include <algorithm>
#include <map>

#include "host_values.h"
#include "operators.h"

namespace codegen {
namespace {

bool NeedsShapeOnly(const Node& node) { return node.type == "Shape" || node.type == "Size"; }

// Values that will be known when plans are made: constants, shapes, and what follows from them.
std::vector<bool> KnowableValues(const Graph& graph) {
  std::vector<bool> knowable(graph.values.size());
  for (size_t i = 0; i < graph.values.size(); ++i) {
    knowable[i] = graph.values[i].is_constant && !IsFloat(graph.values[i].type);
  }
  for (const Node& node : graph.nodes) {
    if (!IsEvaluatedOnHost(node) || node.outputs.size() != 1) continue;
    const DataType type = graph.value(node.outputs[0]).type;
    if (IsFloat(type) || type == DataType::kNone) continue;
    const bool follows =
        NeedsShapeOnly(node) || std::all_of(node.inputs.begin(), node.inputs.end(), [&](int input) {
          return input < 0 || knowable[static_cast<size_t>(input)];
        });
    if (follows) knowable[static_cast<size_t>(node.outputs[0])] = true;
  }
  return knowable;
}

bool HasTypes(const Graph& graph, const Node& node, const Operator& op) {
  const auto fits = [&](int value) {
    return value < 0 || (BitOf(graph.value(value).type) & op.types) != 0;
  };
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if ((op.known_inputs >> i & 1) == 0 && !fits(node.inputs[i])) return false;
  }
  return std::all_of(node.outputs.begin(), node.outputs.end(), fits);
}

bool IsSupported(const Graph& graph, const Node& node, const std::vector<bool>& knowable,
                 const Target& target) {
  if (node.has_subgraphs || node.has_unread_attributes) return false;
  // The device needs nothing but the shape, whatever the type.
  if (node.domain.empty() && NeedsShapeOnly(node)) return true;
  const bool is_known = node.outputs.size() == 1 && node.outputs[0] >= 0 &&
                        knowable[static_cast<size_t>(node.outputs[0])];
  if (is_known) return true;
  const Operator* op = target.find(node);
  if (!op || node.since < op->since || !HasTypes(graph, node, *op)) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const int input = node.inputs[i];
    if ((op->known_inputs >> i & 1) != 0 && input >= 0 && !knowable[static_cast<size_t>(input)]) {
      return false;
    }
  }
  return !op->accepts || op->accepts(graph, node);
}

// Computing shapes alone is not worth a way to the device.
bool IsWorthIt(const Graph& graph, const std::vector<size_t>& group,
               const std::vector<bool>& knowable) {
  return std::any_of(group.begin(), group.end(), [&](size_t number) {
    const auto& outputs = graph.nodes[number].outputs;
    return std::any_of(outputs.begin(), outputs.end(), [&](int value) {
      return value >= 0 && !knowable[static_cast<size_t>(value)];
    });
  });
}

}  // namespace

const Operator* FindGenerated(const Node& node) {
  static const std::vector<Operator> kAll = [] {
    std::vector<Operator> all;
    for (const auto rows : {ElementwiseOperators(), MatrixOperators(), ConvolutionOperators(),
                            PoolingOperators(), ReductionOperators(), NormalizationOperators(),
                            MovementOperators(), GatherOperators(), PadOperators()}) {
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  }();
  for (const Operator& op : kAll) {
    if (op.type == node.type && op.domain == node.domain) return &op;
  }
  return nullptr;
}

// The level of a node is the greatest number of changes between nodes of ours and others on a path
// to it. No path between two nodes of a level passes one of another, so each level can be fused.
std::vector<std::vector<size_t>> GroupsToFuse(const Graph& graph, const Target& target) {
  const std::vector<bool> knowable = KnowableValues(graph);
  struct Producer {
    int level = 0;
    bool is_ours = false;
    bool exists = false;
  };
  std::vector<Producer> producers(graph.values.size());
  std::map<int, std::vector<size_t>> levels;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    Producer me{.is_ours = IsSupported(graph, node, knowable, target), .exists = true};
    for (const int input : node.inputs) {
      if (input < 0) continue;
      const Producer& producer = producers[static_cast<size_t>(input)];
      if (!producer.exists) continue;
      me.level = std::max(me.level, producer.level + (producer.is_ours != me.is_ours ? 1 : 0));
    }
    for (const int output : node.outputs) {
      if (output >= 0) producers[static_cast<size_t>(output)] = me;
    }
    if (me.is_ours) levels[me.level].push_back(i);
  }
  std::vector<std::vector<size_t>> groups;
  for (auto& [level, group] : levels) {
    if (IsWorthIt(graph, group, knowable)) groups.push_back(std::move(group));
  }
  return groups;
}

std::vector<bool> ValuesToRead(const Graph& graph, const Target& target) {
  std::vector<bool> wanted(graph.values.size());
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const Operator* op = target.find(*node);
    const bool is_wanted = std::any_of(node->outputs.begin(), node->outputs.end(), [&](int output) {
      return output >= 0 && wanted[static_cast<size_t>(output)];
    });
    const bool passes_on = is_wanted && IsEvaluatedOnHost(*node) && !NeedsShapeOnly(*node);
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const int input = node->inputs[i];
      if (input >= 0 && (passes_on || (op && (op->known_inputs >> i & 1) != 0))) {
        wanted[static_cast<size_t>(input)] = true;
      }
    }
  }
  return wanted;
}

}  // namespace codegen
