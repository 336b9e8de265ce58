#include "runtime/optimize.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/checker.h"
#include "ir/constant_node.h"
#include "ir/dense_values.h"
#include "ir/gradient.h"
#include "ir/inference.h"
#include "ir/onnx_writer.h"
#include "ir/passes.h"
#include "ir/rewrite_limit.h"
#include "runtime/config.h"
#include "runtime/kernel_evaluator.h"
#include "runtime/partition.h"
#include "runtime/session_options.h"
#include "runtime/session_parts.h"
#include "runtime/traced_passes.h"

namespace tenon {
namespace {

size_t ConstantBytes(const Value& value) { return value.is_tensor() ? value.tensor().bytes() : 0; }

// Of the initializers and Constant nodes of the graph and its subgraphs.
size_t ConstantBytes(const Graph& graph) {
  size_t bytes = 0;
  for (size_t i = 0; i < graph.value_count(); ++i) {
    bytes += ConstantBytes(graph.value(static_cast<ValueId>(i)).initializer);
  }
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* const node = graph.FindNode(static_cast<NodeId>(i));
    if (node == nullptr) continue;
    if (IsConstantNode(*node)) {
      const Result<Value> value = ValueOfConstantNode(*node);
      if (value) bytes += ConstantBytes(*value);
    }
    for (const Graph* const subgraph : node->Subgraphs()) bytes += ConstantBytes(*subgraph);
  }
  return bytes;
}

// What constant folding may do by default: to any model a little, and to one with many weights
// enough to widen all of them from 4 bits to float.
FoldingBudget FoldingBudgetFor(const Graph& graph) {
  constexpr size_t kWidestPerNarrowest = 8, kLeastBytes = size_t{32} << 20;
  constexpr std::chrono::milliseconds kLeastTime(250);
  constexpr std::chrono::nanoseconds kTimePerByte(20);
  const size_t bytes = ConstantBytes(graph);
  FoldingBudget budget;
  budget.bytes = std::max(kLeastBytes, bytes * kWidestPerNarrowest);
  budget.time = kLeastTime + kTimePerByte * bytes;
  return budget;
}

// Replaces operators that no provider claimed or can adapt by their function bodies, one level at a
// time, and offers the new nodes to the providers.
Status ExpandUnclaimed(Graph& graph, const SessionParts& parts, Partitioner& partitioner) {
  constexpr int kDeepestBodies = 16;
  for (int level = 0; level < kDeepestBodies; ++level) {
    std::unordered_map<const Graph*, size_t> nodes_before;
    bool is_changed = false;
    const auto stays = [&](const Graph& owner, const Node& node) {
      const size_t before = nodes_before.try_emplace(&owner, owner.node_capacity()).first->second;
      const bool is_kept =
          node.provider >= 0 || Index(node.id) >= before ||
          std::any_of(parts.providers.begin(), parts.providers.end(),
                      [&](const auto& provider) { return provider->CanAdapt(owner, node); });
      is_changed |= !is_kept;
      return is_kept;
    };
    TENON_RETURN_IF_ERROR(ExpandOperators(graph, stays));
    if (!is_changed) return OkStatus();
    TENON_RETURN_IF_ERROR(InferTypes(graph, *parts.shape_functions));
    TENON_RETURN_IF_ERROR(partitioner.Assign(graph));
  }
  return OkStatus();
}

// The nodes of a graph and its subgraphs that had no provider, and those that were added.
class AdaptedNodes {
 public:
  explicit AdaptedNodes(Graph& graph) { Note(graph); }
  bool HasNew(const Graph& graph, const Node& node) const {
    const auto before = capacity_.find(&graph);
    return before == capacity_.end() || Index(node.id) >= before->second;
  }
  bool Contain(const Graph& graph, const Node& node) const {
    return HasNew(graph, node) || unclaimed_.count(&node) > 0;
  }

 private:
  void Note(Graph& graph) {
    capacity_[&graph] = graph.node_capacity();
    for (size_t i = 0; i < graph.node_capacity(); ++i) {
      Node* const node = graph.FindNode(static_cast<NodeId>(i));
      if (node == nullptr) continue;
      if (node->provider < 0) unclaimed_.insert(node);
      for (Graph* const subgraph : node->Subgraphs()) Note(*subgraph);
    }
  }

  std::unordered_map<const Graph*, size_t> capacity_;
  std::unordered_set<const Node*> unclaimed_;
};

// Folds nodes that providers put between weights and their readers, such as casts to wider
// elements. Otherwise the first run would do their work, again for every memory plan. Results that
// grow no more than widened weights do not count towards the budget: they must be stored anyway.
// Then what had no kernel before is folded, as RunGeneralPasses folds other nodes.
size_t FoldAdapted(Graph& graph, const PassOptions& passes, const AdaptedNodes& adapted) {
  constexpr size_t kWidestPerNarrowest = 8;
  FoldingBudget for_casts{
      .bytes = 0, .time = std::chrono::nanoseconds::max(), .free_factor = kWidestPerNarrowest};
  const size_t casts = FoldConstants(
      graph, *passes.evaluator, for_casts,
      [&](const Graph& owner, const Node& node) { return adapted.HasNew(owner, node); });
  FoldingBudget budget = passes.budget;
  return casts +
         FoldConstants(graph, *passes.evaluator, budget, [&](const Graph& owner, const Node& node) {
           return adapted.Contain(owner, node);
         });
}

Status AdaptUnclaimed(Graph& graph, const SessionParts& parts, Partitioner& partitioner) {
  // The nodes that a provider makes may themselves need to be adapted.
  constexpr int kMostRounds = 4;
  bool is_changed = true;
  for (int round = 0; round < kMostRounds && is_changed; ++round) {
    if (CheckAllAssigned(graph, *parts.shape_functions).ok()) return OkStatus();
    is_changed = false;
    for (size_t i = 0; i < parts.providers.size(); ++i) {
      TENON_ASSIGN_OR_RETURN(const bool has_adapted,
                             parts.providers[i]->AdaptUnclaimed(graph, static_cast<int32_t>(i)));
      if (!has_adapted) continue;
      is_changed = true;
      TENON_RETURN_IF_ERROR(InferTypes(graph, *parts.shape_functions));
      TENON_RETURN_IF_ERROR(partitioner.Assign(graph));
    }
  }
  return OkStatus();
}

CheckOptions CheckOptionsOf(const SessionOptions& options) {
  CheckOptions check;
  check.allow_newer_opsets =
      !ConfigFlag(options.config, "session.allow_released_opsets_only", true);
  // ONNX Runtime's operators in the default domain (SimplifiedLayerNormalization) are no errors. An
  // operator that no provider can run is reported when the nodes are assigned.
  check.allow_unknown_operators = true;
  return check;
}

// The limit that a config entry sets, if there is one. What it allowed is logged at the end.
class LoggedLimit {
 public:
  static Result<std::unique_ptr<LoggedLimit>> Of(const SessionOptions& options,
                                                 const Logger& logger) {
    constexpr std::string_view kKey = "tenon.rewrite_limit";
    TENON_ASSIGN_OR_RETURN(const size_t most, ConfigCount(options.config, kKey, 0));
    if (!options.config.contains(kKey)) return std::unique_ptr<LoggedLimit>();
    return std::make_unique<LoggedLimit>(most, options.rewrites, logger);
  }
  LoggedLimit(size_t most, std::vector<std::string>* rewrites, const Logger& logger)
      : limit_(most), rewrites_(rewrites), logger_(logger) {}
  ~LoggedLimit() {
    size_t count = 0;
    for (const std::string& rewrite : limit_.allowed()) {
      TENON_LOG(logger_, kInfo, "rewrite {}: {}", ++count, rewrite);
    }
    if (rewrites_ != nullptr) *rewrites_ = limit_.allowed();
  }

 private:
  RewriteLimit limit_;
  std::vector<std::string>* const rewrites_;
  const Logger& logger_;
};

// The format of the optimized model, and where its initializers go. As in ONNX Runtime, a file in
// the ORT format has them all itself.
Result<WriteOptions> WriteOptionsOf(const SessionOptions& options) {
  constexpr std::string_view kFile = "session.optimized_model_external_initializers_file_name";
  WriteOptions write;
  TENON_ASSIGN_OR_RETURN(write.format,
                         ConfigModelFormat(options.config, "session.save_model_format"));
  const bool has_ort_name = HasOrtName(options.optimized_model_path);
  if (write.format == ModelFormat::kUnspecified && has_ort_name) write.format = ModelFormat::kOrt;
  if (write.format == ModelFormat::kOrt) return write;
  const auto file = options.config.find(kFile);
  if (file != options.config.end()) write.external_data_file = file->second;
  TENON_ASSIGN_OR_RETURN(
      write.external_data_threshold,
      ConfigBytes(options.config, "session.optimized_model_external_initializers_min_size_in_bytes",
                  write.external_data_threshold));
  return write;
}

// Providers have not yet added operators of their own, so this is plain ONNX of the versions that
// the model imports; any runtime can read it. Providers know quantized operators by what is around
// them, so that only the file has operators for them.
Status WriteOptimized(const Model& model, const SessionOptions& options,
                      const SessionParts& parts) {
  TENON_ASSIGN_OR_RETURN(WriteOptions write, WriteOptionsOf(options));
  write.shape_functions = parts.shape_functions;
  if (options.optimization_level < OptimizationLevel::kExtended) {
    return WriteModelFile(model, options.optimized_model_path, write);
  }
  Model written = model.CopyWithoutGraphs();
  written.graph = model.graph->Clone();
  if (Simplify(*written.graph, QuantizedOperatorRules()) > 0) RemoveDeadCode(*written.graph);
  return WriteModelFile(written, options.optimized_model_path, write);
}

// The nodes of `graph`, in the order of their providers, without the casts that `adapted` has.
Assignment AssignmentOf(const Graph& graph, size_t providers, const FusedNodes& fused,
                        const AdaptedNodes& adapted) {
  Assignment assignment;
  for (size_t provider = 0; provider < providers; ++provider) {
    for (size_t i = 0; i < graph.node_capacity(); ++i) {
      const Node* const node = graph.FindNode(static_cast<NodeId>(i));
      if (node == nullptr || node->provider != static_cast<int32_t>(provider)) continue;
      if (node->op_type == "Cast" && adapted.HasNew(graph, *node)) continue;
      const auto parts = fused.find(node->name);
      assignment.push_back(
          {node->provider, parts == fused.end()
                               ? std::vector{NodeLabel{node->name, node->domain, node->op_type}}
                               : parts->second});
    }
  }
  return assignment;
}

Status RewriteByProviders(Graph& graph, const SessionParts& parts, const SessionOptions& options) {
  for (size_t i = 0; i < parts.providers.size(); ++i) {
    ExecutionProvider& provider = *parts.providers[i];
    TracedPasses passes(parts.profiler.get(), options, provider.name());
    TENON_RETURN_IF_ERROR(passes.RunRequired("provider_rewrites", graph, [&] {
      return provider.Rewrite(graph, static_cast<int32_t>(i), passes);
    }));
  }
  return OkStatus();
}

// Error: kFail naming the first node of that provider.
Status CheckNoneAssignedTo(size_t provider, const std::string& name, const Graph& graph) {
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* const node = graph.FindNode(static_cast<NodeId>(i));
    if (node == nullptr) continue;
    if (static_cast<size_t>(node->provider) == provider) {
      return Fail("{} falls to {}, which session.disable_cpu_ep_fallback rules out",
                  node->Describe(), name);
    }
    for (const Graph* subgraph : node->Subgraphs()) {
      TENON_RETURN_IF_ERROR(CheckNoneAssignedTo(provider, name, *subgraph));
    }
  }
  return OkStatus();
}

// Gives its size to each input axis whose denotation has one; `by_name` gets the axis's name with
// it.
void FixDenotedDimensions(Graph& graph, const std::map<std::string, int64_t>& by_denotation,
                          std::map<std::string, int64_t>& by_name) {
  if (by_denotation.empty()) return;
  for (const ValueId id : graph.inputs) {
    ValueType& type = graph.value(id).type;
    if (!type.shape) continue;
    for (size_t axis = 0; axis < type.dim_denotations.size(); ++axis) {
      const auto size = by_denotation.find(type.dim_denotations[axis]);
      Dim& dim = (*type.shape)[axis];
      if (size == by_denotation.end() || dim.is_number()) continue;
      if (!dim.symbol_name().empty()) by_name.emplace(dim.symbol_name(), size->second);
      dim = size->second;
    }
  }
}

}  // namespace

void FixFreeDimensions(Graph& graph, const SessionOptions& options) {
  std::map<std::string, int64_t> sizes = options.free_dimensions;
  FixDenotedDimensions(graph, options.free_dimensions_by_denotation, sizes);
  if (sizes.empty()) return;
  for (size_t i = 0; i < graph.value_count(); ++i) {
    std::optional<SymbolicShape>& shape = graph.value(static_cast<ValueId>(i)).type.shape;
    if (!shape) continue;
    for (size_t axis = 0; axis < shape->rank(); ++axis) {
      const auto size = sizes.find(std::string((*shape)[axis].symbol_name()));
      if (size != sizes.end()) (*shape)[axis] = size->second;
    }
  }
}

Status OptimizeModel(Model& model, const SessionOptions& options, const SessionParts& parts,
                     const OptimizeContext& context) {
  Graph& graph = *model.graph;
  TENON_ASSIGN_OR_RETURN(const std::unique_ptr<LoggedLimit> limit,
                         LoggedLimit::Of(options, context.logger));
  TracedPasses runner(parts.profiler.get(), options);
  TENON_RETURN_IF_ERROR(runner.RunRequired(
      "model_check", graph, [&] { return CheckModel(model, CheckOptionsOf(options)); }));
  TENON_RETURN_IF_ERROR(graph.SettleParts());
  TENON_RETURN_IF_ERROR(
      runner.RunRequired("function_inlining", graph, [&] { return InlineFunctions(model); }));
  TENON_RETURN_IF_ERROR(MakeConstantsDense(graph));
  // Must come before the passes, which may drop or rename what a Gradient node names.
  TENON_RETURN_IF_ERROR(ExpandGradients(graph, *parts.shape_functions));
  KernelEvaluator evaluator(*parts.providers.back(), context.threads, context.shared_weights);
  PassOptions passes;
  passes.shape_functions = parts.shape_functions;
  passes.evaluator = &evaluator;
  passes.runner = &runner;
  // Like ONNX Runtime, whose tools look for exporters' patterns in what BASIC leaves.
  passes.keeps_exported_patterns = options.optimization_level < OptimizationLevel::kExtended;
  passes.inference.strict =
      ConfigFlag(options.config, "session.strict_shape_type_inference", false);
  passes.budget = FoldingBudgetFor(graph);
  for (size_t* const bytes : {&passes.budget.bytes, &passes.budget.uniform_bytes}) {
    TENON_ASSIGN_OR_RETURN(*bytes,
                           ConfigBytes(options.config, "tenon.constant_folding_bytes", *bytes));
  }
  const auto infer = [&](const InferenceOptions& how) {
    return runner.RunRequired("type_inference", graph,
                              [&] { return InferTypes(graph, *parts.shape_functions, how); });
  };
  if (options.optimization_level >= OptimizationLevel::kBasic) {
    TENON_RETURN_IF_ERROR(runner.RunRequired("general_passes", graph,
                                             [&] { return RunGeneralPasses(graph, passes); }));
  } else {
    TENON_RETURN_IF_ERROR(infer(passes.inference));
  }
  if (!options.optimized_model_path.empty()) {
    TENON_RETURN_IF_ERROR(runner.RunRequired(
        "optimized_model_writing", graph, [&] { return WriteOptimized(model, options, parts); }));
  }
  if (options.on_optimized_model) TENON_RETURN_IF_ERROR(options.on_optimized_model(model));
  FusedNodes fused;
  Partitioner partitioner(graph, parts.providers, context.logger, parts.failed, &fused);
  TENON_RETURN_IF_ERROR(runner.RunRequired("partitioning", graph, [&]() -> Status {
    TENON_RETURN_IF_ERROR(partitioner.Assign(graph));
    return ExpandUnclaimed(graph, parts, partitioner);
  }));
  if (options.on_partitioned_model) TENON_RETURN_IF_ERROR(options.on_partitioned_model(model));
  const AdaptedNodes adapted(graph);
  TENON_RETURN_IF_ERROR(runner.RunRequired(
      "node_adaptation", graph, [&] { return AdaptUnclaimed(graph, parts, partitioner); }));
  if (options.optimization_level >= OptimizationLevel::kBasic) {
    TENON_RETURN_IF_ERROR(
        runner.Run("ConstantFolding", graph, [&] { return FoldAdapted(graph, passes, adapted); }));
  }
  if (ConfigFlag(options.config, "session.record_ep_graph_assignment_info", false)) {
    context.assignment = AssignmentOf(graph, parts.providers.size(), fused, adapted);
  }
  if (options.optimization_level >= OptimizationLevel::kExtended) {
    TENON_RETURN_IF_ERROR(RewriteByProviders(graph, parts, options));
    TENON_RETURN_IF_ERROR(infer({}));
    TENON_RETURN_IF_ERROR(
        runner.RunRequired("partitioning", graph, [&] { return partitioner.Assign(graph); }));
  }
  RemoveDeadCode(graph);
  TENON_RETURN_IF_ERROR(CheckAllAssigned(graph, *parts.shape_functions));
  if (!ConfigFlag(options.config, "session.disable_cpu_ep_fallback", false)) return OkStatus();
  return CheckNoneAssignedTo(parts.providers.size() - 1, parts.providers.back()->name(), graph);
}

}  // namespace tenon
