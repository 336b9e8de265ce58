#include "ir/splice.h"

#include <algorithm>

#include "ir/schema.h"

namespace tenon {
namespace {

// The target's value for each value of the source, once known. An absent optional input is known to
// be kNone.
using ValueMap = std::vector<std::optional<ValueId>>;

class Splicer {
 public:
  // Copies become nodes of that part.
  Splicer(const SpliceOptions& options, int32_t part) : options_(options), part_(part) {}

  // Adds copies of the nodes and initializers of `from` that `map` does not have yet.
  Status Copy(const Graph& from, Graph& to, ValueMap& map, bool is_nested) {
    TENON_ASSIGN_OR_RETURN(const std::vector<NodeId> order, from.TopologicalOrder());
    return Copy(from, order, to, map, is_nested);
  }
  Status Copy(const Graph& from, std::span<const NodeId> nodes, Graph& to, ValueMap& map,
              bool is_nested) {
    for (const NodeId id : nodes) {
      TENON_RETURN_IF_ERROR(CopyNode(from.node(id), from, to, map, is_nested));
    }
    return OkStatus();
  }

  ValueId Mapped(const Graph& from, ValueId id, Graph& to, ValueMap& map) const {
    if (id == ValueId::kNone) return id;
    std::optional<ValueId>& mapped = map[Index(id)];
    if (!mapped) {
      const ValueInfo& info = from.value(id);
      mapped = to.AddValue(to.UnusedName(options_.prefix + info.name), info.type);
      if (info.initializer.has_value()) to.SetInitializer(*mapped, info.initializer);
    }
    return *mapped;
  }

 private:
  Status CopyNode(const Node& node, const Graph& from, Graph& to, ValueMap& map, bool is_nested) {
    NodeSpec spec;
    spec.op_type = node.op_type;
    spec.domain = node.domain;
    spec.opset = node.opset;
    if (!node.name.empty()) spec.name = options_.prefix + node.name;
    for (const ValueId id : node.inputs) spec.inputs.push_back(Mapped(from, id, to, map));
    for (const ValueId id : node.outputs) spec.outputs.push_back(Mapped(from, id, to, map));
    for (const Attribute& attribute : node.attributes) {
      TENON_RETURN_IF_ERROR(CopyAttribute(attribute, from, to, map, is_nested, spec.attributes));
    }
    Node& copy = to.AddNode(std::move(spec));
    copy.overload = node.overload;
    copy.doc_string = node.doc_string;
    copy.metadata = node.metadata;
    copy.schema = node.schema;
    copy.provider = options_.provider;
    copy.part = part_;
    return OkStatus();
  }

  Status CopyAttribute(const Attribute& attribute, const Graph& from, Graph& to, ValueMap& map,
                       bool is_nested, std::vector<Attribute>& into) {
    if (!attribute.reference.empty() && options_.resolve) {
      const Attribute* actual = options_.resolve(attribute.reference);
      if (actual == nullptr) return OkStatus();
      if (is_nested && HoldsGraphs(*actual)) {
        return InvalidGraph("attribute '{}', a graph, is used in a subgraph of the function",
                            attribute.reference);
      }
      into.push_back(CloneAttribute(*actual));
      into.back().name = attribute.name;
      return OkStatus();
    }
    if (!HoldsGraphs(attribute)) {
      into.push_back(CloneAttribute(attribute));
      return OkStatus();
    }
    Attribute copy(attribute.name, {});
    if (const auto* graph = attribute.get<std::unique_ptr<Graph>>()) {
      TENON_ASSIGN_OR_RETURN(copy.held, CopySubgraph(**graph, from, to, map));
    } else {
      std::vector<std::unique_ptr<Graph>> copies;
      for (const auto& held : *attribute.get<std::vector<std::unique_ptr<Graph>>>()) {
        TENON_ASSIGN_OR_RETURN(auto one, CopySubgraph(*held, from, to, map));
        copies.push_back(std::move(one));
      }
      copy.held = std::move(copies);
    }
    into.push_back(std::move(copy));
    return OkStatus();
  }

  static bool HoldsGraphs(const Attribute& attribute) {
    return attribute.type() == AttributeType::kGraph || attribute.type() == AttributeType::kGraphs;
  }

  Result<std::unique_ptr<Graph>> CopySubgraph(const Graph& subgraph, const Graph& outer_from,
                                              Graph& outer_to, ValueMap& outer_map) {
    auto copy = std::make_unique<Graph>();
    copy->name = subgraph.name;
    copy->doc_string = subgraph.doc_string;
    copy->metadata = subgraph.metadata;
    ValueMap map(subgraph.value_count());
    // Operators identify inputs and outputs of their subgraphs by name.
    for (const ValueId input : subgraph.inputs) {
      const ValueInfo& info = subgraph.value(input);
      const ValueId copied = copy->AddValue(copy->UnusedName(info.name), info.type);
      if (info.initializer.has_value()) copy->SetInitializer(copied, info.initializer);
      map[Index(input)] = copied;
      copy->AddInput(copied);
    }
    for (const Capture& capture : subgraph.captures) {
      const ValueId outer = Mapped(outer_from, capture.outer, outer_to, outer_map);
      if (outer == ValueId::kNone) {
        map[Index(capture.inner)] = ValueId::kNone;
        continue;
      }
      const ValueId inner = copy->AddValue(copy->UnusedName(outer_to.value(outer).name),
                                           subgraph.value(capture.inner).type);
      map[Index(capture.inner)] = inner;
      copy->captures.push_back({outer, inner});
    }
    TENON_RETURN_IF_ERROR(Copy(subgraph, *copy, map, true));
    for (const GraphOutput& output : subgraph.outputs()) {
      copy->AddOutput(output.name, Mapped(subgraph, output.value, *copy, map));
    }
    return copy;
  }

  const SpliceOptions& options_;
  const int32_t part_;
};

// Whether a node of the body makes the body's output, so that it can be the call's output.
bool IsMadeInside(const Graph& body, ValueId id, const ValueMap& map) {
  return id != ValueId::kNone && body.value(id).producer != NodeId::kNone && !map[Index(id)];
}

}  // namespace

Status ReplaceByBody(Graph& graph, NodeId call, const Graph& body, std::vector<ValueId> inputs,
                     const SpliceOptions& options) {
  const std::vector<ValueId> outputs = graph.node(call).outputs;
  if (inputs.size() > body.inputs.size() || outputs.size() > body.outputs().size()) {
    return InvalidGraph("{}: expected at most {} inputs and {} outputs, got {} and {}",
                        graph.node(call).Describe(), body.inputs.size(), body.outputs().size(),
                        inputs.size(), outputs.size());
  }
  ValueMap map(body.value_count());
  for (size_t i = 0; i < body.inputs.size(); ++i) {
    map[Index(body.inputs[i])] = i < inputs.size() ? inputs[i] : ValueId::kNone;
  }
  for (const Capture& capture : body.captures) map[Index(capture.inner)] = capture.outer;

  // Outputs that only pass a value on, or repeat one, need a node that makes them.
  std::vector<std::pair<ValueId, ValueId>> passed;  // the body's, the call's
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == ValueId::kNone) continue;
    const ValueId made = body.outputs()[i].value;
    if (IsMadeInside(body, made, map)) {
      map[Index(made)] = outputs[i];
    } else {
      passed.emplace_back(made, outputs[i]);
    }
  }
  const int32_t part = graph.node(call).part;
  Splicer splicer(options, part);
  TENON_RETURN_IF_ERROR(splicer.Copy(body, graph, map, false));
  for (const auto& [from, to] : passed) {
    const ValueId source = splicer.Mapped(body, from, graph, map);
    if (source == ValueId::kNone) {
      return InvalidGraph("{}: output '{}' stands for an input that is left out",
                          graph.node(call).Describe(), graph.value(to).name);
    }
    Node& identity = graph.AddNode({.op_type = "Identity",
                                    .inputs = {source},
                                    .outputs = {to},
                                    .name = options.prefix + "Identity",
                                    .opset = NewestOpset("")});
    identity.schema = FindSchema("", "Identity", identity.opset);
    identity.provider = options.provider;
    identity.part = part;
  }
  graph.RemoveNode(call);
  return OkStatus();
}

Result<std::vector<ValueId>> CopyNodes(const Graph& from, std::span<const NodeId> nodes,
                                       Graph& to) {
  const SpliceOptions as_they_are;
  ValueMap map(from.value_count());
  TENON_RETURN_IF_ERROR(Splicer(as_they_are, kNoPart).Copy(from, nodes, to, map, false));
  std::vector<ValueId> copies;
  copies.reserve(map.size());
  for (const std::optional<ValueId>& copy : map) copies.push_back(copy.value_or(ValueId::kNone));
  return copies;
}

}  // namespace tenon
