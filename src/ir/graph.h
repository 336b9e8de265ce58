// The graph of a model: nodes and the values between them, in a form for editing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "ir/node.h"
#include "ir/type.h"
#include "tensor/value.h"

namespace tenon {

// quantization_annotation of a graph: the tensor's name and its scale and zero-point tensor names.
struct QuantizationAnnotation {
  std::string tensor_name;
  Metadata quant_parameter_tensor_names;
};

// A named edge: what one node (or the caller, or the model file) produces and others consume.
struct ValueInfo {
  ValueInfo(std::string value_name, ValueType value_type)
      : name(std::move(value_name)), type(std::move(value_type)) {}

  // Unique in its graph, which finds the value by it; a capture usually has the name of the outer
  // value.
  const std::string name;
  ValueType type;
  std::string doc_string;
  Metadata metadata;
  NodeId producer = NodeId::kNone;  // none: a graph input, initializer or capture
  int32_t output_index = 0;         // of the producer
  // One entry per use, so a node that reads the value twice occurs twice. A use inside a subgraph
  // counts as a use by the node that owns the subgraph.
  std::vector<NodeId> consumers;
  // A tensor or sparse tensor if the value is an initializer.
  Value initializer;
  Metadata initializer_metadata;
  bool is_input = false;
  int32_t output_uses = 0;  // how many graph outputs it is
};

struct GraphOutput {
  std::string name;
  ValueId value = ValueId::kNone;
};

// A value of an outer graph that a subgraph reads as a value of its own.
struct Capture {
  ValueId outer = ValueId::kNone;  // in the graph that holds the node that owns the subgraph
  ValueId inner = ValueId::kNone;  // in the subgraph
};

// The arguments of AddNode; all but these have a default.
struct NodeSpec {
  std::string op_type;
  std::string domain;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<Attribute> attributes = {};
  std::string name = "";
  int32_t opset = 0;
};

// Not thread-safe. Every edit keeps these invariants: producers and consumers mirror the nodes'
// inputs and outputs; a value has at most one producer.
class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  std::string name;
  std::string doc_string;
  Metadata metadata;
  std::vector<ValueId> inputs;  // in declared order; initializers with a default value included
  std::vector<Capture> captures;
  std::vector<QuantizationAnnotation> quantization_annotations;

  // --- values ---
  size_t value_count() const { return values_.size(); }
  ValueInfo& value(ValueId id) { return *values_[Index(id)]; }
  const ValueInfo& value(ValueId id) const { return *values_[Index(id)]; }
  // kNone if there is no value of that name in this graph itself.
  ValueId FindValue(std::string_view value_name) const;
  // A new value. The name must be unused; Unused() makes one.
  ValueId AddValue(std::string value_name, ValueType type = {});
  // The same, but kNone and no new value if there is one of that name.
  ValueId TryAddValue(std::string value_name, ValueType type = {});
  // Makes room for so many more values and nodes.
  void Reserve(size_t more_values, size_t more_nodes);
  // `hint`, with a number appended if some value has that name already.
  std::string UnusedName(std::string_view hint) const;
  void AddInput(ValueId id);
  ValueId AddInitializer(std::string value_name, Tensor tensor);
  // The tensor if the value is a dense initializer that no caller can override (not also an input).
  // If its elements are not aligned, an aligned copy replaces it first; without memory for the
  // copy, the value does not count as a constant.
  const Tensor* ConstantOf(ValueId id) const;
  // The same tensor as it is stored, perhaps not aligned: use only its type, shape and bytes.
  const Tensor* StoredConstantOf(ValueId id) const;
  // Makes the elements of an initializer aligned. Error: out of memory.
  Status AlignInitializer(ValueId id) const;
  void SetInitializer(ValueId id, Value tensor);
  void RemoveInitializer(ValueId id);

  // --- outputs ---
  const std::vector<GraphOutput>& outputs() const { return outputs_; }
  void AddOutput(std::string output_name, ValueId id);
  void SetOutput(size_t i, ValueId id);
  void ReplaceOutputs(std::vector<GraphOutput> outputs);

  // --- nodes ---
  // Upper bound of node ids; some may be removed.
  size_t node_capacity() const { return nodes_.size(); }
  size_t node_count() const { return live_nodes_; }
  // Null if the node was removed.
  Node* FindNode(NodeId id) { return nodes_[Index(id)].get(); }
  const Node* FindNode(NodeId id) const { return nodes_[Index(id)].get(); }
  Node& node(NodeId id) { return *nodes_[Index(id)]; }
  const Node& node(NodeId id) const { return *nodes_[Index(id)]; }
  Node& AddNode(NodeSpec spec);
  // The node's outputs must be unused or replaced before; they keep their ids, without a producer.
  void RemoveNode(NodeId id);
  void SetInput(NodeId id, size_t i, ValueId value);
  // Removes the trailing or optional input `i` by setting it to kNone.
  void SetOutputValue(NodeId id, size_t i, ValueId value);
  // Every use of `from`, by nodes, subgraphs and graph outputs, becomes a use of `to`.
  void ReplaceUses(ValueId from, ValueId to);
  // Recomputes the uses inside the node's subgraphs; call it after editing their captures.
  void RefreshCaptures(NodeId id);

  // Node ids such that producers come before consumers; ties keep the order of ids. If parts are
  // settled, nodes of earlier parts come first; a node without one is in that of its first reader.
  // Error: kInvalidGraph naming the nodes of a cycle.
  Result<std::vector<NodeId>> TopologicalOrder() const;

  // Notes the part of each node in the order of now, if there is a YieldOp: what a part of a run
  // computes then stays the same, whatever else is edited. Error: as TopologicalOrder().
  Status SettleParts();

  // Whether nothing reads the value: no node, subgraph or graph output.
  bool IsUnused(ValueId id) const {
    return value(id).consumers.empty() && value(id).output_uses == 0;
  }
  // Whether exactly one node reads the value, once, and it is no graph output.
  bool HasOneUse(ValueId id) const {
    return value(id).consumers.size() == 1 && value(id).output_uses == 0;
  }

  // Forgets values, also of subgraphs, that are neither inputs, outputs nor captures, and that no
  // node makes or reads. The others get new ids; nodes keep theirs.
  void DropUnusedValues();

  // A deep copy; tensors share their memory.
  std::unique_ptr<Graph> Clone() const;

 private:
  void AddUses(const Node& node);
  void RemoveUses(const Node& node);
  Result<std::vector<NodeId>> SortedNodes(std::span<const int32_t> parts) const;
  std::vector<int32_t> PartsOf(std::span<const NodeId> order) const;
  // Whether DropUnusedValues keeps it.
  std::vector<bool> KeptValues() const;

  std::vector<std::unique_ptr<ValueInfo>> values_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<GraphOutput> outputs_;
  std::unordered_map<std::string_view, ValueId> by_name_;  // keys: ValueInfo::name
  size_t live_nodes_ = 0;
  bool has_parts_ = false;
};

Attribute CloneAttribute(const Attribute& attribute);

}  // namespace tenon
