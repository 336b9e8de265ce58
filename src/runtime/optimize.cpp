#include "runtime/optimize.h"

#include "ir/inference.h"
#include "runtime/partition.h"

namespace tenon {
namespace {

// Replaces symbolic dimensions of the graph's inputs by the sizes that the caller knows.
void FixFreeDimensions(Graph& graph, const SessionOptions& options) {
  if (options.free_dimensions.empty()) return;
  const auto size_of = [&](std::string_view name) -> std::optional<int64_t> {
    const auto found = options.free_dimensions.find(std::string(name));
    if (found == options.free_dimensions.end()) return std::nullopt;
    return found->second;
  };
  for (size_t i = 0; i < graph.value_count(); ++i) {
    std::optional<SymbolicShape>& shape = graph.value(static_cast<ValueId>(i)).type.shape;
    if (!shape) continue;
    for (size_t axis = 0; axis < shape->rank(); ++axis) {
      (*shape)[axis] = (*shape)[axis].Substitute(size_of);
    }
  }
}

Status RewriteByProviders(Graph& graph, const SessionParts& parts) {
  for (size_t i = 0; i < parts.providers.size(); ++i) {
    TENON_RETURN_IF_ERROR(parts.providers[i]->Rewrite(graph, static_cast<int32_t>(i)));
  }
  return OkStatus();
}

}  // namespace

Status OptimizeModel(Model& model, const SessionOptions& options, const SessionParts& parts,
                     const OptimizeContext& context) {
  Graph& graph = *model.graph;
  const auto strict = options.config.find("session.strict_shape_type_inference");
  const InferenceOptions inference = {.strict =
                                          strict != options.config.end() && strict->second == "1"};
  FixFreeDimensions(graph, options);
  TENON_RETURN_IF_ERROR(InferTypes(graph, *parts.shape_functions, inference));
  TENON_RETURN_IF_ERROR(AssignNodes(graph, parts.providers, context.logger));
  if (options.optimization_level > OptimizationLevel::kBasic) {
    TENON_RETURN_IF_ERROR(RewriteByProviders(graph, parts));
    TENON_RETURN_IF_ERROR(InferTypes(graph, *parts.shape_functions));
  }
  return CheckAllAssigned(graph);
}

}  // namespace tenon
