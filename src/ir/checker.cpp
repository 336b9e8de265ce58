#include "ir/checker.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "ir/node_error.h"
#include "ir/onnx_fields.h"
#include "ir/schema.h"
#include "ir/unknown_operator.h"

namespace tenon {
namespace {

// Of the operators that rewrites make, whose kernels trust the types of their inputs.
constexpr std::string_view kOwnDomain = "com.tenon";

std::string_view DisplayName(std::string_view domain) {
  return domain.empty() ? std::string_view("ai.onnx") : domain;
}

// "2 to 3", "at least 1", "2"
std::string DescribeRange(int32_t least, int32_t most) {
  if (least == most) return Format("{}", least);
  if (most == INT32_MAX) return Format("at least {}", least);
  return Format("{} to {}", least, most);
}

// The number of entries up to the last one that is present.
size_t UsedEntries(const std::vector<ValueId>& values) {
  size_t used = values.size();
  while (used > 0 && values[used - 1] == ValueId::kNone) --used;
  return used;
}

// `word` is "input" or "output".
Status CheckValues(const std::vector<ValueId>& values, std::string_view word,
                   std::span<const OpFormal> formals, int32_t least, int32_t most) {
  const auto count = static_cast<int64_t>(values.size());
  if (count < least || static_cast<int64_t>(UsedEntries(values)) > most) {
    const std::string range = DescribeRange(least, most);
    return InvalidGraph("expected {} {}{}, got {}", range, word, range == "1" ? "" : "s", count);
  }
  for (size_t i = 0; i < std::min(values.size(), formals.size()); ++i) {
    if (values[i] == ValueId::kNone && formals[i].kind == FormalKind::kSingle) {
      return InvalidGraph("expected {} {} ({}), which must not be left out, got none", word, i,
                          formals[i].name);
    }
  }
  return OkStatus();
}

Status CheckAttribute(const Attribute& attribute, const OpSchema& schema) {
  const OpAttribute* known = schema.FindAttribute(attribute.name);
  // ONNX leaves such names to tools.
  if (known == nullptr && attribute.name.starts_with("__")) return OkStatus();
  if (known == nullptr) {
    std::vector<std::string> names;
    for (const OpAttribute& candidate : schema.attributes) names.emplace_back(candidate.name);
    return InvalidGraph("the operator has no attribute '{}'{}; its attributes are: {}",
                        attribute.name, DidYouMean(attribute.name, names),
                        names.empty() ? "none" : JoinNames(names));
  }
  const bool is_typed = attribute.type() != AttributeType::kUndefined;
  if (is_typed && attribute.type() != known->type) {
    return InvalidGraph("attribute '{}': expected type {}, got {}", attribute.name,
                        AttributeTypeName(known->type), AttributeTypeName(attribute.type()));
  }
  return OkStatus();
}

Status CheckAgainstSchema(const Node& node, const OpSchema& schema) {
  // ONNX Runtime runs GroupNormalization-18, the only one that has a body.
  if (schema.deprecated && !schema.has_context_dependent_function) {
    return InvalidGraph("is deprecated since opset {}; the model imports opset {}", schema.since,
                        node.opset);
  }
  TENON_RETURN_IF_ERROR(
      CheckValues(node.inputs, "input", schema.inputs, schema.min_inputs, schema.max_inputs));
  TENON_RETURN_IF_ERROR(
      CheckValues(node.outputs, "output", schema.outputs, schema.min_outputs, schema.max_outputs));
  for (const Attribute& attribute : node.attributes) {
    TENON_RETURN_IF_ERROR(CheckAttribute(attribute, schema));
  }
  for (const OpAttribute& attribute : schema.attributes) {
    if (attribute.required && node.FindAttribute(attribute.name) == nullptr) {
      return InvalidGraph("expected attribute '{}' of type {}, got none", attribute.name,
                          AttributeTypeName(attribute.type));
    }
  }
  return OkStatus();
}

Status CheckCall(const Node& node, const Function& function) {
  const auto inputs = static_cast<int32_t>(function.body->inputs.size());
  const auto outputs = static_cast<int32_t>(function.body->outputs().size());
  TENON_RETURN_IF_ERROR(CheckValues(node.inputs, "input", {}, 0, inputs));
  TENON_RETURN_IF_ERROR(CheckValues(node.outputs, "output", {}, 0, outputs));
  for (const std::string& name : function.required_attributes) {
    if (node.FindAttribute(name) == nullptr) {
      return InvalidGraph("expected attribute '{}', which the function requires, got none", name);
    }
  }
  return OkStatus();
}

// Domain, name and overload.
using FunctionKey = std::tuple<std::string_view, std::string_view, std::string_view>;

class Checker {
 public:
  explicit Checker(const CheckOptions& options) : options_(options) {}

  // Registers the functions and checks them. They must outlive the checker.
  Status CheckFunctions(const std::vector<Function>& functions);

  Status CheckImports(const OpsetImports& opsets) const;
  Status CheckGraph(const Graph& graph) const;

 private:
  Status CheckNode(const Node& node) const;
  Status CheckFunction(const Function& function) const;

  const CheckOptions& options_;
  std::map<FunctionKey, const Function*> functions_;
};

Status Checker::CheckImports(const OpsetImports& opsets) const {
  for (const auto& [domain, version] : opsets) {
    const int32_t newest = NewestOpset(domain);
    if (newest == 0 || version <= newest || options_.allow_newer_opsets) continue;
    return Fail("opset {} of domain '{}' is not known; the newest known one is {}", version,
                DisplayName(domain), newest);
  }
  return OkStatus();
}

Status Checker::CheckNode(const Node& node) const {
  const auto function = functions_.find({node.domain, node.op_type, node.overload});
  if (function != functions_.end()) return CheckCall(node, *function->second);
  if (node.schema != nullptr) return CheckAgainstSchema(node, *node.schema);
  const bool may_be_unknown = NewestOpset(node.domain) == 0 || options_.allow_unknown_operators;
  if (may_be_unknown && node.domain != kOwnDomain) return OkStatus();
  return Status(CodeOfUnknown(node), WhyUnknown(node));
}

Status Checker::CheckGraph(const Graph& graph) const {
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (node == nullptr) continue;
    const Status status = CheckNode(*node);
    if (!status.ok()) {
      return Status(status.code(), DescribeFailure(graph, *node, status.message()));
    }
    for (const Graph* subgraph : node->Subgraphs()) {
      Status inner = CheckGraph(*subgraph);
      if (!inner.ok()) return std::move(inner).WithContext(DescribeOperator(*node));
    }
  }
  return OkStatus();
}

Status Checker::CheckFunction(const Function& function) const {
  TENON_RETURN_IF_ERROR(CheckImports(function.opsets));
  return CheckGraph(*function.body);
}

Status Checker::CheckFunctions(const std::vector<Function>& functions) {
  for (const Function& function : functions) {
    const FunctionKey key = {function.domain, function.name, function.overload};
    if (functions_.emplace(key, &function).second) continue;
    return InvalidGraph("function '{}' of domain '{}' is defined more than once", function.name,
                        DisplayName(function.domain));
  }
  for (const Function& function : functions) {
    Status status = CheckFunction(function);
    if (!status.ok()) {
      return std::move(status).WithContext(Format("function '{}'", function.name));
    }
  }
  return OkStatus();
}

Status CheckInputTypes(const Graph& graph) {
  for (const ValueId id : graph.inputs) {
    const ValueInfo& input = graph.value(id);
    const bool has_elements =
        input.type.kind == Value::Kind::kTensor || input.type.kind == Value::Kind::kSparseTensor;
    const bool is_typed = input.type.kind != Value::Kind::kNone &&
                          !(has_elements && input.type.element_type == DataType::kUndefined);
    if (!is_typed) return InvalidGraph("input '{}' of the model has no type", input.name);
  }
  return OkStatus();
}

}  // namespace

Status CheckModel(const Model& model, const CheckOptions& options) {
  if (model.ir_version > kNewestIrVersion) {
    return Fail("IR version {} is not supported; the newest supported one is {}", model.ir_version,
                kNewestIrVersion);
  }
  Checker checker(options);
  TENON_RETURN_IF_ERROR(checker.CheckImports(model.opsets));
  TENON_RETURN_IF_ERROR(checker.CheckFunctions(model.functions));
  TENON_RETURN_IF_ERROR(CheckInputTypes(*model.graph));
  TENON_RETURN_IF_ERROR(checker.CheckGraph(*model.graph));
  for (const TrainingInfo& info : model.training_info) {
    for (const Graph* graph : {info.initialization.get(), info.algorithm.get()}) {
      if (graph != nullptr) TENON_RETURN_IF_ERROR(checker.CheckGraph(*graph));
    }
  }
  return OkStatus();
}

}  // namespace tenon
