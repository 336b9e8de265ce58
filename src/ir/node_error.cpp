#include "ir/node_error.h"

#include <charconv>

#include "ir/schema.h"

namespace tenon {
namespace {

// Puts the value's name behind each "<word> <index>" in `text` that has none yet.
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

}  // namespace

std::string DescribeOperator(const Node& node) {
  const int32_t version = node.schema ? node.schema->since : node.opset;
  const std::string text = node.Describe();
  return Format("{}-{}{}", node.op_type, version, text.substr(node.op_type.size()));
}

std::string DescribeFailure(const Graph& graph, const Node& node, std::string_view message) {
  const std::string named =
      NameValues(graph, node.outputs, "output ", NameValues(graph, node.inputs, "input ", message));
  return Format("{}: {}", DescribeOperator(node), named);
}

}  // namespace tenon
