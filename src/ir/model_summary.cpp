#include "ir/model_summary.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "base/arithmetic.h"
#include "base/text.h"
#include "ir/checker.h"
#include "ir/inference.h"

namespace tenon {
namespace {

std::vector<const Node*> NodesOf(const Graph& graph) {
  std::vector<const Node*> nodes;
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    if (const Node* node = graph.FindNode(NodeId(i))) nodes.push_back(node);
  }
  return nodes;
}

void CountParameters(const Graph& graph, ModelSummary::Parameters& parameters) {
  const auto add = [&](const Tensor& tensor) {
    parameters.elements += tensor.size();
    parameters.bytes += tensor.bytes();
  };
  for (size_t i = 0; i < graph.value_count(); ++i) {
    const Value& initializer = graph.value(ValueId(i)).initializer;
    if (!initializer.has_value()) continue;
    ++parameters.tensors;
    if (initializer.is_tensor()) {
      add(initializer.tensor());
    } else if (initializer.kind() == Value::Kind::kSparseTensor) {
      add(initializer.sparse().values);
      add(initializer.sparse().indices);
    }
  }
}

void CountNodes(const Graph& graph, ModelSummary& summary) {
  CountParameters(graph, summary.parameters);
  for (const Node* node : NodesOf(graph)) {
    ++summary.nodes;
    ++summary.operators[{node->domain, node->op_type}];
    for (const Graph* subgraph : node->Subgraphs()) CountNodes(*subgraph, summary);
  }
}

// Counts the bytes of values; records which dimensions were given, assumed or unknown.
class SizeCounter {
 public:
  explicit SizeCounter(const DimSizes& sizes) : sizes_(sizes) {}

  // 0, and counted as unknown, if the type is no tensor of known shape.
  size_t Bytes(const ValueType& type) {
    std::optional<size_t> bytes;
    if (type.is_tensor() && type.shape) {
      if (const std::optional<int64_t> elements = Elements(*type.shape)) {
        if (const Result<size_t> found = DataTypeBytes(type.element_type, *elements)) {
          bytes = *found;
        }
      }
    }
    if (!bytes) ++unknown_;
    return bytes.value_or(0);
  }

  size_t unknown() const { return unknown_; }
  const std::set<std::string>& assumed() const { return assumed_; }

  // The first of the given sizes that no dimension uses, or null.
  const std::string* Unused() const {
    for (const auto& [name, size] : sizes_) {
      if (used_.count(name) == 0) return &name;
    }
    return nullptr;
  }

 private:
  std::optional<int64_t> Elements(const SymbolicShape& shape) {
    std::vector<int64_t> dims;
    for (const Dim& dim : shape) {
      const Dim size = dim.Substitute([&](std::string_view name) { return SizeOf(name); });
      if (!size.is_number() || size.value() < 0) return std::nullopt;
      dims.push_back(size.value());
    }
    return CheckedProduct<int64_t>(dims);
  }

  std::optional<int64_t> SizeOf(std::string_view name) {
    const auto given = sizes_.find(name);
    (given == sizes_.end() ? assumed_ : used_).emplace(name);
    return given == sizes_.end() ? 1 : given->second;
  }

  const DimSizes& sizes_;
  std::set<std::string> assumed_;
  std::set<std::string> used_;
  size_t unknown_ = 0;
};

// The most bytes that are alive at once while the graph runs in topological order. A node with
// subgraphs needs, while it runs, the maximum of what they need.
Result<size_t> PeakBytes(const Graph& graph, SizeCounter& counter) {
  TENON_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.TopologicalOrder());
  std::vector<size_t> uses(graph.value_count());
  std::vector<size_t> bytes(graph.value_count());
  size_t alive = 0;
  const auto start = [&](ValueId id) {
    const ValueInfo& value = graph.value(id);
    uses[Index(id)] = value.consumers.size() + static_cast<size_t>(value.output_uses);
    bytes[Index(id)] = counter.Bytes(value.type);
    alive += bytes[Index(id)];
  };
  for (const ValueId input : graph.inputs) {
    if (!graph.value(input).initializer.has_value()) start(input);
  }
  size_t peak = alive;
  for (const NodeId id : order) {
    const Node& node = graph.node(id);
    size_t inside = 0;
    for (const Graph* subgraph : node.Subgraphs()) {
      TENON_ASSIGN_OR_RETURN(const size_t needed, PeakBytes(*subgraph, counter));
      inside = std::max(inside, needed);
    }
    for (const ValueId output : node.outputs) {
      if (output != ValueId::kNone) start(output);
    }
    peak = std::max(peak, alive + inside);
    const auto release = [&](ValueId value) {
      alive -= bytes[Index(value)];
      bytes[Index(value)] = 0;
    };
    for (const ValueId input : node.inputs) {
      if (input != ValueId::kNone && uses[Index(input)] > 0 && --uses[Index(input)] == 0) {
        release(input);
      }
    }
    for (const ValueId output : node.outputs) {
      if (output != ValueId::kNone && uses[Index(output)] == 0) release(output);
    }
  }
  return peak;
}

void PutSizes(const DimSizes& sizes, ValueType& type) {
  if (!type.shape) return;
  for (size_t axis = 0; axis < type.shape->rank(); ++axis) {
    Dim& dim = (*type.shape)[axis];
    Dim size = dim.Substitute([&](std::string_view name) -> std::optional<int64_t> {
      const auto given = sizes.find(name);
      return given == sizes.end() ? std::nullopt : std::optional<int64_t>(given->second);
    });
    if (size.is_number()) dim = std::move(size);
  }
}

}  // namespace

Result<ModelSummary> Summarize(Model& model, const ShapeFunctionTable& functions,
                               const DimSizes& sizes) {
  for (const auto& [name, size] : sizes) {
    if (size < 0) return InvalidArgument("dimension '{}': expected a size, got {}", name, size);
  }
  ModelSummary summary;
  Graph& graph = *model.graph;
  CountNodes(graph, summary);
  summary.problem = CheckModel(model);
  const Status inferred = InferTypes(graph, functions);
  if (summary.problem.ok()) summary.problem = inferred;

  SizeCounter counter(sizes);
  TENON_ASSIGN_OR_RETURN(summary.activations.peak_bytes, PeakBytes(graph, counter));
  if (const std::string* unused = counter.Unused()) {
    const std::vector<std::string> names(counter.assumed().begin(), counter.assumed().end());
    return InvalidArgument("the model has no dimension '{}'{}", *unused,
                           DidYouMean(*unused, names));
  }
  summary.activations.unknown_values = counter.unknown();
  summary.activations.assumed_dims.assign(counter.assumed().begin(), counter.assumed().end());
  for (const ValueId id : graph.inputs) PutSizes(sizes, graph.value(id).type);
  for (const GraphOutput& output : graph.outputs()) PutSizes(sizes, graph.value(output.value).type);
  return summary;
}

}  // namespace tenon
