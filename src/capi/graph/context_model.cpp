#include "capi/graph/context_model.h"

#include <sys/stat.h>

#include <algorithm>
#include <string_view>

#include "capi/boundary/slots.h"
#include "capi/options/session_options.h"
#include "ir/onnx_writer.h"
#include "ir/passes.h"
#include "ir/schema.h"
#include "ops/framework/registry.h"
#include "runtime/config.h"

namespace tenon::capi {
namespace {

constexpr std::string_view kDomain = "com.microsoft";
constexpr std::string_view kOperator = "EPContext";
constexpr int32_t kVersion = 1;
constexpr const char* kEnable = "ep.context_enable";
constexpr const char* kPath = "ep.context_file_path";
constexpr const char* kWeights = "ep.context_model_external_initializers_file_name";

Model CopyOf(const Model& model) {
  Model copy = model.CopyWithoutGraphs();
  copy.graph = model.graph->Clone();
  for (const TrainingInfo& from : model.training_info) {
    TrainingInfo& into = copy.training_info.emplace_back();
    if (from.initialization) into.initialization = from.initialization->Clone();
    if (from.algorithm) into.algorithm = from.algorithm->Clone();
    into.initialization_binding = from.initialization_binding;
    into.update_binding = from.update_binding;
  }
  return copy;
}

std::string Entry(const StringMap& config, const char* key) {
  const auto found = config.find(std::string_view(key));
  return found == config.end() ? "" : found->second;
}

// The ids of the values that a context node names; `what` is "reads" or "makes".
Result<std::vector<ValueId>> IdsOf(const Graph& graph, const std::vector<std::string>& names,
                                   const OrtNode& node, const char* what) {
  std::vector<ValueId> ids;
  for (const std::string& name : names) {
    ids.push_back(name.empty() ? ValueId::kNone : graph.FindValue(name));
    if (name.empty() || ids.back() != ValueId::kNone) continue;
    return Fail("EPContext node '{}' {} '{}', which is no value of graph '{}'", node.made->name,
                what, name, graph.name);
  }
  return ids;
}

}  // namespace

std::string CompatibilityKey(std::string_view provider) {
  return Format("ep_compatibility_info.{}", provider);
}

bool IsContextNode(const Node& node) { return node.op_type == kOperator && node.domain == kDomain; }

void ContextModel::ReleaseNode::operator()(OrtNode* node) const { capi::ReleaseNode(node); }

void ContextModel::AddProvider(std::string name, Describe describe) {
  providers_.emplace_back(std::move(name), std::move(describe));
}

Status ContextModel::AddNode(const std::string& provider, const std::string& fused, OrtNode* node) {
  std::unique_ptr<OrtNode, ReleaseNode> owned;
  if (node == nullptr) return Fail("{} made no EPContext node for {}", provider, fused);
  if (node->made == nullptr) {
    return Fail("{} gave a node of a graph for {}; expected one made with OrtModelEditorApi",
                provider, fused);
  }
  owned.reset(node);
  if (!IsContextNode(*node->made)) {
    return Fail("{} made a node of operator {} of domain '{}' for {}; expected EPContext of {}",
                provider, node->made->op_type, node->made->domain, fused, kDomain);
  }
  nodes_.insert_or_assign(fused, std::move(owned));
  return OkStatus();
}

Status ContextModel::Begin(const Model& optimized) {
  plain_ = CopyOf(optimized);
  for (const auto& [name, describe] : providers_) {
    TENON_ASSIGN_OR_RETURN(std::string info, describe(*optimized.graph));
    if (!info.empty()) compatibility_.emplace(CompatibilityKey(name), std::move(info));
  }
  return OkStatus();
}

Result<Model> ContextModel::Finish(const Model& partitioned) const {
  Model model = CopyOf(nodes_.empty() ? plain_ : partitioned);
  if (nodes_.empty()) return model;
  model.opsets.try_emplace(std::string(kDomain), kVersion);
  for (const auto& [key, info] : compatibility_) model.metadata.insert_or_assign(key, info);
  TENON_RETURN_IF_ERROR(PutNodesInto(*model.graph));
  // Weights that are now in the compiled parts.
  RemoveDeadCode(*model.graph);
  return model;
}

Status ContextModel::PutNodesInto(Graph& graph) const {
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* const node = graph.FindNode(static_cast<NodeId>(i));
    if (node == nullptr) continue;
    for (Graph* const subgraph : node->Subgraphs()) {
      TENON_RETURN_IF_ERROR(PutNodesInto(*subgraph));
    }
    const auto context = nodes_.find(node->name);
    if (context == nodes_.end() || node->op_type != node->name) continue;
    TENON_RETURN_IF_ERROR(Replace(graph, node->id, *context->second));
  }
  return OkStatus();
}

Status ContextModel::Replace(Graph& graph, NodeId fused, const OrtNode& by) const {
  NodeSpec spec;
  spec.op_type = by.made->op_type;
  spec.domain = by.made->domain;
  spec.name = by.made->name;
  spec.opset = kVersion;
  TENON_ASSIGN_OR_RETURN(spec.inputs, IdsOf(graph, by.input_names, by, "reads"));
  TENON_ASSIGN_OR_RETURN(spec.outputs, IdsOf(graph, by.output_names, by, "makes"));
  const std::vector<ValueId>& made = graph.node(fused).outputs;
  if (!std::is_permutation(made.begin(), made.end(), spec.outputs.begin(), spec.outputs.end())) {
    return Fail("EPContext node '{}' must make the outputs of the fused node {}, got {} of {}",
                spec.name, graph.node(fused).name, JoinNames(by.output_names), made.size());
  }
  for (const Attribute& attribute : by.made->attributes) {
    spec.attributes.push_back(CloneAttribute(attribute));
  }
  graph.RemoveNode(fused);
  Node& added = graph.AddNode(std::move(spec));
  added.schema = FindSchema(added.domain, added.op_type, added.opset);
  return OkStatus();
}

std::string DefaultContextPath(const std::string& model_path) {
  constexpr std::string_view kExtension = ".onnx";
  const bool has_extension = model_path.ends_with(kExtension);
  return model_path.substr(0, model_path.size() - (has_extension ? kExtension.size() : 0)) +
         "_ctx.onnx";
}

Status PrepareContextModel(const std::string& model_path, OrtSessionOptions& options) {
  StringMap& config = options.session.config;
  if (options.write_context_model != nullptr || !ConfigFlag(config, kEnable, false)) {
    return OkStatus();
  }
  std::string path = Entry(config, kPath);
  if (path.empty() && model_path.empty()) {
    return Fail("the compiled model has no place: the model is not from a file, and {} is not set",
                kPath);
  }
  if (path.empty()) path = DefaultContextPath(model_path);
  struct stat existing;
  if (stat(path.c_str(), &existing) == 0) {
    return Fail(
        "the compiled model cannot be written: '{}' exists already. Please remove the EP context "
        "model if you want to re-generate it.",
        path);
  }
  config.insert_or_assign(kPath, path);
  WriteOptions write;
  write.shape_functions = &OpShapeFunctions();
  write.external_data_file = Entry(config, kWeights);
  write.external_data_threshold = 0;
  options.write_context_model = [path, write](const Model& model, bool is_compiled) -> Status {
    return is_compiled ? WriteModelFile(model, path, write) : OkStatus();
  };
  return OkStatus();
}

std::shared_ptr<OrtSessionOptions> WithContextModel(const OrtSessionOptions& options) {
  if (options.write_context_model == nullptr) return nullptr;
  auto copy = std::make_shared<OrtSessionOptions>(options);
  copy->context_model = std::make_shared<ContextModel>();
  const std::shared_ptr<ContextModel>& context = copy->context_model;
  copy->session.on_optimized_model = [context](const Model& model) {
    return context->Begin(model);
  };
  copy->session.on_partitioned_model =
      [context, sink = options.write_context_model](const Model& partitioned) -> Status {
    TENON_ASSIGN_OR_RETURN(const Model model, context->Finish(partitioned));
    return sink(model, context->has_nodes());
  };
  return copy;
}

}  // namespace tenon::capi
