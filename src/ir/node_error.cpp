#include "ir/node_error.h"

#include <algorithm>
#include <charconv>

#include "ir/schema.h"

namespace tenon {
namespace {

// Adds the value's name after each "<word> <index>" in `text` that has none yet.
std::string NameValues(const Graph& graph, const std::vector<ValueId>& values,
                       std::string_view word, std::string_view text) {
  std::string named;
  size_t done = 0;
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, done)) {
    const char* const digits = text.data() + at + word.size();
    size_t index = 0;
    const auto [end, error] = std::from_chars(digits, text.data() + text.size(), index);
    const auto next = static_cast<size_t>(end - text.data());
    named += text.substr(done, next - done);
    done = next;
    const bool names_a_value =
        error == std::errc() && index < values.size() && values[index] != ValueId::kNone;
    if (names_a_value && !text.substr(next).starts_with(" '")) {
      named += Format(" '{}'", graph.value(values[index]).name);
    }
  }
  return named.append(text.substr(done));
}

// "'x' tensor(float) [2, 3]", or "none" for an absent input.
std::string DescribeInput(const Graph& graph, ValueId input, const ValueType& type) {
  if (input == ValueId::kNone) return "none";
  return Format("'{}' {}", graph.value(input).name, type.ToString());
}

// The end of a message: the position of the node, and its inputs.
std::string Details(const Graph& graph, const Node& node, std::string_view path,
                    const std::vector<std::string>& inputs) {
  const std::string place = path.empty() ? Format("graph '{}'", graph.name) : std::string(path);
  const std::string_view domain = node.domain.empty() ? "ai.onnx" : std::string_view(node.domain);
  std::string text = Format("(node {} of {}, {}", Index(node.id), place, domain);
  if (node.opset > 0) text += Format(" opset {}", node.opset);
  if (!inputs.empty()) text += Format("; inputs: {}", JoinNames(inputs));
  return text + ")";
}

std::string WithNames(const Graph& graph, const Node& node, std::string_view message) {
  return NameValues(graph, node.outputs, "output ",
                    NameValues(graph, node.inputs, "input ", message));
}

}  // namespace

std::string NameOrNumber(const Node& node) {
  return node.name.empty() ? Format("#{}", Index(node.id)) : node.name;
}

std::string DescribeOperator(const Node& node) {
  const int32_t version = node.schema ? node.schema->since : node.opset;
  const std::string domain = node.domain.empty() ? "" : node.domain + ".";
  const std::string name = node.name.empty() ? NameOrNumber(node) : Format("'{}'", node.name);
  return Format("{}{}-{} node {}", domain, node.op_type, version, name);
}

std::string_view SubgraphName(const Node& node, size_t i) {
  for (const Attribute& attribute : node.attributes) {
    size_t graphs = attribute.type() == AttributeType::kGraph ? 1 : 0;
    if (const auto* many = attribute.get<std::vector<std::unique_ptr<Graph>>>()) {
      graphs = many->size();
    }
    if (i < graphs) return attribute.name;
    i -= graphs;
  }
  return {};
}

std::string DescribeFailure(const Graph& graph, const Node& node, std::string_view message) {
  std::vector<std::string> inputs;
  for (const ValueId id : node.inputs) {
    inputs.push_back(
        DescribeInput(graph, id, id == ValueId::kNone ? ValueType() : graph.value(id).type));
  }
  return Format("{}: {} {}", DescribeOperator(node), WithNames(graph, node, message),
                Details(graph, node, {}, inputs));
}

std::string DescribeRunFailure(const Graph& graph, const Node& node,
                               std::span<const Value* const> inputs, std::string_view path,
                               std::string_view message) {
  std::vector<std::string> described;
  for (size_t i = 0; i < std::min(inputs.size(), node.inputs.size()); ++i) {
    const ValueType type = inputs[i] == nullptr ? ValueType() : ValueType::Of(*inputs[i]);
    described.push_back(DescribeInput(graph, node.inputs[i], type));
  }
  return Format("{} {}", WithNames(graph, node, message), Details(graph, node, path, described));
}

}  // namespace tenon
