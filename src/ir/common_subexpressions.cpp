#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>

#include "ir/passes.h"
#include "ir/schema.h"

namespace tenon {
namespace {

// Larger initializers are weights, and larger attributes are whole models; they seldom repeat.
constexpr size_t kMostBytesToCompare = 1024;

// Collects the identity of a node or constant as a string of bytes, which is the same for equal
// ones.
class Key {
 public:
  template <class T>
  void AddNumber(T number) {
    static_assert(std::is_trivially_copyable_v<T>);
    AddBytes(&number, sizeof(number));
  }
  void AddText(std::string_view text) {
    AddNumber(text.size());
    bytes_.append(text);
  }
  // False if the tensor is too large to compare.
  bool AddTensor(const Tensor& tensor) {
    const bool is_comparable = tensor.bytes() <= kMostBytesToCompare &&
                               tensor.type() != DataType::kString &&
                               tensor.memory().IsHostAccessible();
    if (!is_comparable) return false;
    AddNumber(tensor.type());
    AddList(tensor.shape().dims());
    AddBytes(tensor.raw(), tensor.bytes());
    return true;
  }
  template <class T>
  void AddList(std::span<const T> list) {
    AddNumber(list.size());
    AddBytes(list.data(), list.size() * sizeof(T));
  }
  // False if the list is too long to compare.
  template <class T>
  bool AddShortList(std::span<const T> list) {
    if (list.size_bytes() > kMostBytesToCompare) return false;
    AddList(list);
    return true;
  }
  // False if the attribute cannot be compared.
  bool AddAttribute(const Attribute& attribute);

  std::string Take() { return std::move(bytes_); }

 private:
  void AddBytes(const void* data, size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
  }
  std::string bytes_;
};

bool Key::AddAttribute(const Attribute& attribute) {
  if (!attribute.reference.empty()) return false;
  AddText(attribute.name);
  AddNumber(attribute.type());
  if (const auto* number = attribute.get<float>()) return AddNumber(*number), true;
  if (const auto* number = attribute.get<int64_t>()) return AddNumber(*number), true;
  if (const auto* text = attribute.get<std::string>()) return AddText(*text), true;
  if (const auto* tensor = attribute.get<Tensor>()) return AddTensor(*tensor);
  if (const auto* list = attribute.get<std::vector<float>>()) {
    return AddShortList(std::span<const float>(*list));
  }
  if (const auto* list = attribute.get<std::vector<int64_t>>()) {
    return AddShortList(std::span<const int64_t>(*list));
  }
  if (const auto* list = attribute.get<std::vector<std::string>>()) {
    if (list->size() > kMostBytesToCompare / sizeof(std::string)) return false;
    AddNumber(list->size());
    for (const std::string& text : *list) AddText(text);
    return true;
  }
  return false;
}

// Adds what the node computes from its inputs; false if no other node can replace it.
bool AddOperation(const Node& node, Key& key) {
  if (node.schema == nullptr || node.schema->non_deterministic || node.outputs.empty()) {
    return false;
  }
  // The schema's address identifies domain, operator and version.
  key.AddNumber(node.schema);
  std::vector<const Attribute*> attributes;
  for (const Attribute& attribute : node.attributes) attributes.push_back(&attribute);
  std::sort(attributes.begin(), attributes.end(),
            [](const Attribute* a, const Attribute* b) { return a->name < b->name; });
  return std::all_of(attributes.begin(), attributes.end(),
                     [&](const Attribute* attribute) { return key.AddAttribute(*attribute); });
}

// Nothing if no other node can replace this one.
std::optional<std::string> KeyOf(const Node& node) {
  Key key;
  key.AddNumber(node.provider);
  key.AddNumber(node.part);  // what a part of a run computes again is not kept for it
  key.AddList(std::span<const ValueId>(node.inputs));
  if (!AddOperation(node, key)) return std::nullopt;
  return key.Take();
}

size_t ShareOwnConstants(Graph& graph) {
  size_t changes = 0;
  std::unordered_map<std::string, ValueId> first;
  for (size_t i = 0; i < graph.value_count(); ++i) {
    const auto id = static_cast<ValueId>(i);
    const Tensor* constant = graph.StoredConstantOf(id);
    if (!constant || graph.value(id).output_uses > 0) continue;
    Key key;
    if (!key.AddTensor(*constant)) continue;
    const auto [kept, is_first] = first.emplace(key.Take(), id);
    if (is_first || graph.IsUnused(id)) continue;
    graph.ReplaceUses(id, kept->second);
    ++changes;
  }
  return changes;
}

// Whether `kept` has every output that `node` has, and none of the latter is a graph output.
bool CanStandFor(const Graph& graph, const Node& kept, const Node& node) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.has_output(i)) continue;
    if (!kept.has_output(i) || graph.value(node.outputs[i]).output_uses > 0) return false;
  }
  return true;
}

size_t JoinNodes(Graph& graph) {
  const auto order = graph.TopologicalOrder();
  if (!order) return 0;
  size_t changes = 0;
  std::unordered_map<std::string, NodeId> first;
  for (const NodeId id : *order) {
    const Node& node = graph.node(id);
    std::optional<std::string> key = KeyOf(node);
    if (!key) continue;
    const auto [found, is_first] = first.emplace(std::move(*key), id);
    if (is_first || !CanStandFor(graph, graph.node(found->second), node)) continue;
    const Node& kept = graph.node(found->second);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.has_output(i)) graph.ReplaceUses(node.outputs[i], kept.outputs[i]);
    }
    graph.RemoveNode(id);
    ++changes;
  }
  return changes;
}

// The sum over the graph and its subgraphs.
size_t InAllGraphs(Graph& graph, size_t (*pass)(Graph&)) {
  size_t changes = pass(graph);
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (!node) continue;
    for (Graph* subgraph : node->Subgraphs()) changes += InAllGraphs(*subgraph, pass);
  }
  return changes;
}

}  // namespace

std::optional<std::string> OperationKey(const Node& node) {
  Key key;
  if (!AddOperation(node, key)) return std::nullopt;
  return key.Take();
}

size_t ShareConstants(Graph& graph) { return InAllGraphs(graph, ShareOwnConstants); }

size_t JoinCommonSubexpressions(Graph& graph) { return InAllGraphs(graph, JoinNodes); }

}  // namespace tenon
