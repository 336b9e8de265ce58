#include "ir/graph.h"

#include <algorithm>
#include <queue>

#include "base/mapped_file.h"
#include "ir/schema.h"

namespace tenon {

// These are here, since an attribute may own graphs.
Attribute::Attribute() = default;
Attribute::Attribute(std::string name, Held held) : name(std::move(name)), held(std::move(held)) {}
Attribute::Attribute(Attribute&&) noexcept = default;
Attribute& Attribute::operator=(Attribute&&) noexcept = default;
Attribute::~Attribute() = default;

void Node::SetAttribute(std::string attribute_name, Attribute::Held held) {
  RemoveAttribute(attribute_name);
  attributes.emplace_back(std::move(attribute_name), std::move(held));
}

ValueId Graph::FindValue(std::string_view value_name) const {
  const auto found = by_name_.find(value_name);
  return found == by_name_.end() ? ValueId::kNone : found->second;
}

ValueId Graph::AddValue(std::string value_name, ValueType type) {
  const auto id = static_cast<ValueId>(values_.size());
  auto info = std::make_unique<ValueInfo>(std::move(value_name), std::move(type));
  by_name_.emplace(info->name, id);
  values_.push_back(std::move(info));
  return id;
}

ValueId Graph::TryAddValue(std::string value_name, ValueType type) {
  auto info = std::make_unique<ValueInfo>(std::move(value_name), std::move(type));
  const auto id = static_cast<ValueId>(values_.size());
  if (!by_name_.emplace(info->name, id).second) return ValueId::kNone;
  values_.push_back(std::move(info));
  return id;
}

void Graph::Reserve(size_t more_values, size_t more_nodes) {
  values_.reserve(values_.size() + more_values);
  by_name_.reserve(values_.size() + more_values);
  nodes_.reserve(nodes_.size() + more_nodes);
}

std::string Graph::UnusedName(std::string_view hint) const {
  std::string candidate(hint);
  for (size_t n = values_.size(); by_name_.count(candidate) != 0; ++n) {
    candidate = Format("{}_{}", hint, n);
  }
  return candidate;
}

void Graph::AddInput(ValueId id) {
  value(id).is_input = true;
  inputs.push_back(id);
}

ValueId Graph::AddInitializer(std::string value_name, Tensor tensor) {
  const ValueId id =
      AddValue(std::move(value_name), ValueType::Tensor(tensor.type(), tensor.shape()));
  value(id).initializer = Value(std::move(tensor));
  return id;
}

const Tensor* Graph::StoredConstantOf(ValueId id) const {
  if (id == ValueId::kNone) return nullptr;
  const ValueInfo& info = value(id);
  return !info.is_input && info.initializer.is_tensor() ? &info.initializer.tensor() : nullptr;
}

const Tensor* Graph::ConstantOf(ValueId id) const {
  const Tensor* stored = StoredConstantOf(id);
  return stored && AlignInitializer(id).ok() ? stored : nullptr;
}

Status Graph::AlignInitializer(ValueId id) const {
  // Where the elements lie is no part of what the graph says.
  Value& initializer = values_[Index(id)]->initializer;
  if (!initializer.is_tensor() || initializer.tensor().is_aligned()) return OkStatus();
  const Tensor stored = initializer.tensor();
  TENON_ASSIGN_OR_RETURN(initializer.tensor(), stored.Clone());
  MappedFile::ReleasePages(stored.owner(),
                           {static_cast<const std::byte*>(stored.raw()), stored.bytes()});
  return OkStatus();
}

void Graph::SetInitializer(ValueId id, Value tensor) { value(id).initializer = std::move(tensor); }
void Graph::RemoveInitializer(ValueId id) { value(id).initializer = Value(); }

void Graph::AddOutput(std::string output_name, ValueId id) {
  outputs_.push_back({std::move(output_name), id});
  if (id != ValueId::kNone) ++value(id).output_uses;
}

void Graph::SetOutput(size_t i, ValueId id) {
  if (outputs_[i].value != ValueId::kNone) --value(outputs_[i].value).output_uses;
  outputs_[i].value = id;
  if (id != ValueId::kNone) ++value(id).output_uses;
}

void Graph::ReplaceOutputs(std::vector<GraphOutput> outputs) {
  for (size_t i = 0; i < outputs_.size(); ++i) SetOutput(i, ValueId::kNone);
  outputs_.clear();
  for (GraphOutput& output : outputs) AddOutput(std::move(output.name), output.value);
}

void Graph::AddUses(const Node& node) {
  for (const ValueId input : node.inputs) {
    if (input != ValueId::kNone) value(input).consumers.push_back(node.id);
  }
  for (const Graph* subgraph : node.Subgraphs()) {
    for (const Capture& capture : subgraph->captures) {
      value(capture.outer).consumers.push_back(node.id);
    }
  }
}

void Graph::RemoveUses(const Node& node) {
  const auto remove = [&](ValueId used) {
    if (used == ValueId::kNone) return;
    std::erase(value(used).consumers, node.id);
  };
  for (const ValueId input : node.inputs) remove(input);
  for (const Graph* subgraph : node.Subgraphs()) {
    for (const Capture& capture : subgraph->captures) remove(capture.outer);
  }
}

Node& Graph::AddNode(NodeSpec spec) {
  auto node = std::make_unique<Node>();
  node->id = static_cast<NodeId>(nodes_.size());
  node->name = std::move(spec.name);
  node->op_type = std::move(spec.op_type);
  node->domain = std::move(spec.domain);
  node->inputs = std::move(spec.inputs);
  node->outputs = std::move(spec.outputs);
  node->attributes = std::move(spec.attributes);
  node->opset = spec.opset;
  for (size_t i = 0; i < node->outputs.size(); ++i) {
    if (node->outputs[i] == ValueId::kNone) continue;
    value(node->outputs[i]).producer = node->id;
    value(node->outputs[i]).output_index = static_cast<int32_t>(i);
  }
  AddUses(*node);
  nodes_.push_back(std::move(node));
  ++live_nodes_;
  return *nodes_.back();
}

void Graph::RemoveNode(NodeId id) {
  Node& removed = node(id);
  RemoveUses(removed);
  for (const ValueId output : removed.outputs) {
    if (output != ValueId::kNone && value(output).producer == id) {
      value(output).producer = NodeId::kNone;
    }
  }
  nodes_[Index(id)].reset();
  --live_nodes_;
}

void Graph::SetInput(NodeId id, size_t i, ValueId new_value) {
  Node& edited = node(id);
  RemoveUses(edited);
  if (i >= edited.inputs.size()) edited.inputs.resize(i + 1, ValueId::kNone);
  edited.inputs[i] = new_value;
  AddUses(edited);
}

void Graph::SetOutputValue(NodeId id, size_t i, ValueId new_value) {
  Node& edited = node(id);
  if (i >= edited.outputs.size()) edited.outputs.resize(i + 1, ValueId::kNone);
  if (edited.outputs[i] != ValueId::kNone) value(edited.outputs[i]).producer = NodeId::kNone;
  edited.outputs[i] = new_value;
  if (new_value != ValueId::kNone) {
    value(new_value).producer = id;
    value(new_value).output_index = static_cast<int32_t>(i);
  }
}

void Graph::ReplaceUses(ValueId from, ValueId to) {
  if (from == to) return;
  std::vector<NodeId> consumers = std::move(value(from).consumers);
  value(from).consumers.clear();
  value(to).consumers.insert(value(to).consumers.end(), consumers.begin(), consumers.end());
  for (const NodeId id : consumers) {
    std::replace(node(id).inputs.begin(), node(id).inputs.end(), from, to);
    for (Graph* subgraph : node(id).Subgraphs()) {
      for (Capture& capture : subgraph->captures) {
        if (capture.outer == from) capture.outer = to;
      }
    }
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].value == from) SetOutput(i, to);
  }
}

void Graph::RefreshCaptures(NodeId id) {
  for (const auto& info : values_) std::erase(info->consumers, id);
  AddUses(node(id));
}

std::vector<bool> Graph::KeptValues() const {
  std::vector<bool> kept(values_.size());
  for (size_t i = 0; i < values_.size(); ++i) {
    kept[i] = !IsUnused(static_cast<ValueId>(i)) || values_[i]->producer != NodeId::kNone;
  }
  for (const ValueId input : inputs) kept[Index(input)] = true;
  for (const Capture& capture : captures) kept[Index(capture.inner)] = true;
  return kept;
}

void Graph::DropUnusedValues() {
  const std::vector<bool> kept = KeptValues();
  std::vector<ValueId> renamed(values_.size(), ValueId::kNone);
  size_t count = 0;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (kept[i]) {
      renamed[i] = static_cast<ValueId>(count);
      by_name_.find(values_[i]->name)->second = renamed[i];
      values_[count++] = std::move(values_[i]);
    } else {
      by_name_.erase(values_[i]->name);
      values_[i].reset();
    }
  }
  values_.resize(count);
  const auto rename = [&](ValueId& id) {
    if (id != ValueId::kNone) id = renamed[Index(id)];
  };
  for (ValueId& input : inputs) rename(input);
  for (Capture& capture : captures) rename(capture.inner);
  for (GraphOutput& output : outputs_) rename(output.value);
  for (const auto& node : nodes_) {
    if (!node) continue;
    std::for_each(node->inputs.begin(), node->inputs.end(), rename);
    std::for_each(node->outputs.begin(), node->outputs.end(), rename);
    for (Graph* subgraph : node->Subgraphs()) {
      for (Capture& capture : subgraph->captures) rename(capture.outer);
      subgraph->DropUnusedValues();
    }
  }
}

Result<std::vector<NodeId>> Graph::TopologicalOrder() const {
  if (has_parts_) {
    TENON_ASSIGN_OR_RETURN(const std::vector<NodeId> order, SortedNodes({}));
    return SortedNodes(PartsOf(order));
  }
  const bool is_in_order = std::all_of(values_.begin(), values_.end(), [](const auto& info) {
    return std::all_of(info->consumers.begin(), info->consumers.end(),
                       [&](NodeId consumer) { return consumer > info->producer; });
  });
  if (is_in_order) {
    std::vector<NodeId> ids;
    ids.reserve(live_nodes_);
    for (const auto& node : nodes_) {
      if (node) ids.push_back(node->id);
    }
    return ids;
  }
  return SortedNodes({});
}

Status Graph::SettleParts() {
  const auto yields = [](const Node& node) { return node.schema && node.schema->yields; };
  const bool is_divided = std::any_of(nodes_.begin(), nodes_.end(),
                                      [&](const auto& node) { return node && yields(*node); });
  if (!is_divided) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const std::vector<NodeId> order, TopologicalOrder());
  int32_t part = 0;
  for (const NodeId id : order) {
    const bool divides = yields(node(id));
    node(id).part = divides ? part + 1 : part;
    if (divides) part += 2;
  }
  has_parts_ = true;
  return OkStatus();
}

// By Index(NodeId). No node has a part before those of what it reads.
std::vector<int32_t> Graph::PartsOf(std::span<const NodeId> order) const {
  std::vector<int32_t> parts(nodes_.size(), 0);
  const auto for_each_reader = [&](NodeId id, const auto& visit) {
    for (const ValueId output : node(id).outputs) {
      if (output == ValueId::kNone) continue;
      for (const NodeId reader : value(output).consumers) visit(parts[Index(reader)]);
    }
  };
  for (size_t i = order.size(); i-- > 0;) {
    int32_t& part = parts[Index(order[i])];
    part = node(order[i]).part;
    if (part != kNoPart) continue;
    for_each_reader(order[i], [&](int32_t reader) {
      if (reader == kNoPart) return;
      const int32_t latest = reader - reader % 2;  // what a YieldOp reads is in the part before it
      part = part == kNoPart ? latest : std::min(part, latest);
    });
  }
  for (const NodeId id : order) {
    const int32_t part = parts[Index(id)];
    for_each_reader(id, [&](int32_t& reader) { reader = std::max(reader, part); });
  }
  return parts;
}

// Kahn's algorithm; of the nodes that are ready, one of the first part goes first, and of these the
// one with the smallest id, which keeps the file's order where it can. Without `parts` all are in
// one.
Result<std::vector<NodeId>> Graph::SortedNodes(std::span<const int32_t> parts) const {
  std::vector<int32_t> missing(nodes_.size(), 0);
  for (const auto& info : values_) {
    if (info->producer == NodeId::kNone) continue;
    for (const NodeId consumer : info->consumers) ++missing[Index(consumer)];
  }
  using Place = std::pair<int32_t, NodeId>;
  std::priority_queue<Place, std::vector<Place>, std::greater<>> ready;
  const auto add = [&](NodeId id) { ready.emplace(parts.empty() ? 0 : parts[Index(id)], id); };
  for (const auto& node : nodes_) {
    if (node && missing[Index(node->id)] == 0) add(node->id);
  }
  std::vector<NodeId> order;
  order.reserve(live_nodes_);
  while (!ready.empty()) {
    const NodeId id = ready.top().second;
    ready.pop();
    order.push_back(id);
    for (const ValueId output : node(id).outputs) {
      if (output == ValueId::kNone) continue;
      for (const NodeId consumer : value(output).consumers) {
        if (--missing[Index(consumer)] == 0) add(consumer);
      }
    }
  }
  if (order.size() == live_nodes_) return order;
  std::vector<std::string> stuck;
  for (const auto& node : nodes_) {
    if (node && missing[Index(node->id)] > 0) stuck.push_back(node->Describe());
  }
  return InvalidGraph("expected nodes without a cycle, got one through or before: {}",
                      JoinNames(stuck, 5));
}

Attribute CloneAttribute(const Attribute& attribute) {
  Attribute copy;
  copy.name = attribute.name;
  copy.reference = attribute.reference;
  copy.referenced_type = attribute.referenced_type;
  copy.doc_string = attribute.doc_string;
  std::visit(
      [&copy](const auto& held) {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, std::unique_ptr<Graph>>) {
          copy.held = held->Clone();
        } else if constexpr (std::is_same_v<T, std::vector<std::unique_ptr<Graph>>>) {
          std::vector<std::unique_ptr<Graph>> graphs;
          for (const auto& graph : held) graphs.push_back(graph->Clone());
          copy.held = std::move(graphs);
        } else {
          copy.held = held;
        }
      },
      attribute.held);
  return copy;
}

std::unique_ptr<Graph> Graph::Clone() const {
  auto copy = std::make_unique<Graph>();
  copy->name = name;
  copy->doc_string = doc_string;
  copy->metadata = metadata;
  copy->inputs = inputs;
  copy->captures = captures;
  copy->quantization_annotations = quantization_annotations;
  copy->outputs_ = outputs_;
  copy->live_nodes_ = live_nodes_;
  copy->has_parts_ = has_parts_;
  for (const auto& info : values_) copy->values_.push_back(std::make_unique<ValueInfo>(*info));
  for (const auto& [value_name, id] : by_name_) copy->by_name_.emplace(copy->value(id).name, id);
  for (const auto& node : nodes_) {
    if (!node) {
      copy->nodes_.push_back(nullptr);
      continue;
    }
    auto twin = std::make_unique<Node>();
    twin->id = node->id;
    twin->name = node->name;
    twin->op_type = node->op_type;
    twin->domain = node->domain;
    twin->overload = node->overload;
    twin->doc_string = node->doc_string;
    twin->inputs = node->inputs;
    twin->outputs = node->outputs;
    for (const Attribute& attribute : node->attributes) {
      twin->attributes.push_back(CloneAttribute(attribute));
    }
    twin->metadata = node->metadata;
    twin->device_configurations = node->device_configurations;
    twin->opset = node->opset;
    twin->schema = node->schema;
    twin->provider = node->provider;
    twin->part = node->part;
    copy->nodes_.push_back(std::move(twin));
  }
  return copy;
}

}  // namespace tenon
