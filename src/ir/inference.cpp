#include "ir/inference.h"

#include <algorithm>
#include <memory>

#include "ir/constant_node.h"
#include "ir/node_error.h"
#include "ir/other_shapes.h"
#include "ir/output_types.h"
#include "ir/type_check.h"

namespace tenon {
namespace {

// Shape computations are short; longer integer tensors are data.
constexpr int64_t kMostKnownElements = 256;
// Each level of nested loops may repeat the inner levels, so that the work doubles with the depth.
constexpr int kMostRunsOfSubgraph = 128;

bool IsTensorOf(const ValueType& type, DataType element_type) {
  return type.is_tensor() && type.element_type == element_type && type.shape &&
         type.denotation.empty() && type.dim_denotations.empty();
}

bool IsTypeOf(const ValueType& type, const Tensor& tensor) {
  return IsTensorOf(type, tensor.type()) &&
         std::equal(
             type.shape->begin(), type.shape->end(), tensor.shape().begin(), tensor.shape().end(),
             [](const Dim& dim, int64_t size) { return dim.is_number() && dim.value() == size; });
}

// Whether both are the same type of tensor, whose dimensions are numbers.
bool IsSameFixedType(const ValueType& a, const ValueType& b) {
  return IsTensorOf(a, b.element_type) && IsTensorOf(b, a.element_type) &&
         std::equal(a.shape->begin(), a.shape->end(), b.shape->begin(), b.shape->end(),
                    [](const Dim& x, const Dim& y) {
                      return x.is_number() && y.is_number() && x.value() == y.value();
                    });
}

std::optional<Dims> SmallIntegersOf(const Tensor& tensor) {
  if (tensor.size() > kMostKnownElements) return std::nullopt;
  const Result<Shape> integers = IntegersOf(tensor);
  if (!integers) return std::nullopt;
  return Dims(integers->begin(), integers->end());
}

// Inference over one graph. Those of its subgraphs are kept, since a shape function may ask for the
// same subgraph again with other inputs.
class GraphInference {
 public:
  GraphInference(Graph& graph, const ShapeFunctionTable& functions, const InferenceOptions& options,
                 KnownElements& known, const GraphInference* outer)
      : graph_(graph),
        functions_(functions),
        options_(options),
        known_(known),
        elements_(known[&graph]),
        outer_(outer) {}

  void NameUnknownInputDims();
  Status Run();
  // Runs over a subgraph of this graph whose first inputs have the types `inputs`.
  Status RunSubgraph(Graph& subgraph, std::vector<ValueType> inputs);

  Graph& graph() const { return graph_; }
  // The value's elements if they are constant, also through a capture.
  const Tensor* ConstantOf(ValueId id) const;
  std::optional<Dims> KnownDims(ValueId id) const;

 private:
  friend class StaticShapeContext;

  void NameUnknownDims(ValueId id);
  void ReadConstants();
  void BeginAsSubgraph(std::vector<ValueType> inputs);
  Status InferNode(Node& node);
  Status InferOutputs(Node& node, std::vector<ValueType>& declared);
  Status InferRemainingSubgraphs(Node& node);
  Status MergeDeclared(const Node& node, std::vector<ValueType> declared);

  Graph& graph_;
  const ShapeFunctionTable& functions_;
  const OtherShapes* const others_ = dynamic_cast<const OtherShapes*>(&functions_);
  const InferenceOptions& options_;
  KnownElements& known_;
  std::unordered_map<ValueId, Dims>& elements_;
  const GraphInference* outer_;
  std::unordered_map<ValueId, Tensor> constant_nodes_;
  std::unordered_map<ValueId, ValueId> outer_of_;  // captures by inner value
  std::unordered_map<const Graph*, std::unique_ptr<GraphInference>> subgraphs_;
  // Of a subgraph: the types before the first run, from which every run starts.
  std::vector<ValueType> declared_types_;
  int runs_ = 0;
  // Whether the current node failed because a node of its subgraphs did.
  bool subgraph_failed_ = false;
};

class StaticShapeContext final : public ShapeContext {
 public:
  StaticShapeContext(GraphInference& inference, const Node& node,
                     const std::vector<ValueType>& declared)
      : inference_(inference), node_(node), declared_(declared) {}

  const Node& node() const override { return node_; }

  ValueType InputType(size_t i) const override {
    return HasInput(i) ? inference_.graph_.value(node_.inputs[i]).type : ValueType();
  }

  Result<SymbolicShape> Input(size_t i) const override {
    if (!HasInput(i)) return InvalidArgument("input {} is required and missing", i);
    const ValueType& type = inference_.graph_.value(node_.inputs[i]).type;
    if (type.kind == Value::Kind::kNone) return Error(UnknownShape());
    if (!type.is_tensor()) {
      return InvalidArgument("input {}: expected a tensor, got a {}", i, ValueKindName(type.kind));
    }
    if (!type.shape) return Error(UnknownShape());
    return *type.shape;
  }

  const Tensor* InputData(size_t i) const override {
    return HasInput(i) ? inference_.ConstantOf(node_.inputs[i]) : nullptr;
  }

  Result<Dims> InputAsDims(size_t i) const override {
    if (!HasInput(i)) return InvalidArgument("input {} is required and missing", i);
    if (const Tensor* tensor = InputData(i)) {
      TENON_ASSIGN_OR_RETURN(const Shape integers, IntegersOf(*tensor));
      return Dims(integers.begin(), integers.end());
    }
    if (auto dims = KnownDims(i)) return std::move(*dims);
    // If the elements of a shape are unknown, its length still tells the rank of the result.
    const ValueType type = InputType(i);
    if (type.is_tensor() && type.shape && type.shape->rank() == 1 && (*type.shape)[0].is_number() &&
        (*type.shape)[0].value() <= kMostKnownElements) {
      return Dims(static_cast<size_t>((*type.shape)[0].value()), Dim::Unknown());
    }
    return Error(UnknownShape());
  }

  Status SetOutput(size_t i, SymbolicShape shape) override {
    if (!HasOutput(i)) return OkStatus();
    const ValueType& derived = inference_.graph_.value(node_.outputs[i]).type;
    const DataType type = derived.is_tensor() ? derived.element_type : declared_[i].element_type;
    return SetOutput(i, std::move(shape), type);
  }
  Status SetOutput(size_t i, SymbolicShape shape, DataType type) override {
    return SetOutputType(i, ValueType::Tensor(type, std::move(shape)));
  }
  Status SetOutputType(size_t i, ValueType type) override {
    if (HasOutput(i)) inference_.graph_.value(node_.outputs[i]).type = std::move(type);
    return OkStatus();
  }

  std::optional<Dims> KnownDims(size_t i) const override {
    return HasInput(i) ? inference_.KnownDims(node_.inputs[i]) : std::nullopt;
  }
  void SetOutputDims(size_t i, Dims dims) override {
    if (!HasOutput(i) || dims.size() > kMostKnownElements) return;
    inference_.elements_[node_.outputs[i]] = std::move(dims);
  }

  Result<std::vector<ValueType>> InferSubgraph(std::string_view attribute,
                                               std::vector<ValueType> inputs) override {
    const Attribute* found = node_.FindAttribute(attribute);
    const auto* held = found ? found->get<std::unique_ptr<Graph>>() : nullptr;
    if (held == nullptr) return InvalidArgument("attribute '{}' holds no graph", attribute);
    Graph& subgraph = **held;
    if (inputs.size() > subgraph.inputs.size()) {
      return InvalidArgument("attribute '{}': expected a graph with {} inputs, got {}", attribute,
                             inputs.size(), subgraph.inputs.size());
    }
    TENON_RETURN_IF_ERROR(inference_.RunSubgraph(subgraph, std::move(inputs)));
    std::vector<ValueType> outputs;
    for (const GraphOutput& output : subgraph.outputs()) {
      outputs.push_back(output.value == ValueId::kNone ? ValueType()
                                                       : subgraph.value(output.value).type);
    }
    return outputs;
  }

 private:
  GraphInference& inference_;
  const Node& node_;
  const std::vector<ValueType>& declared_;
};

void GraphInference::NameUnknownInputDims() {
  for (const ValueId id : graph_.inputs) NameUnknownDims(id);
}

void GraphInference::NameUnknownDims(ValueId id) {
  ValueInfo& info = graph_.value(id);
  if (!info.type.shape) return;
  for (size_t axis = 0; axis < info.type.shape->rank(); ++axis) {
    Dim& dim = (*info.type.shape)[axis];
    if (dim.is_unknown()) dim = Dim::Symbol(Format("{}.{}", info.name, axis));
  }
}

void GraphInference::ReadConstants() {
  for (size_t i = 0; i < graph_.value_count(); ++i) {
    const auto id = static_cast<ValueId>(i);
    const Tensor* const tensor = graph_.StoredConstantOf(id);
    ValueType& type = graph_.value(id).type;
    if (tensor && !IsTypeOf(type, *tensor)) {
      type = ValueType::Tensor(tensor->type(), tensor->shape());
    }
  }
}

void GraphInference::BeginAsSubgraph(std::vector<ValueType> inputs) {
  elements_.clear();
  if (declared_types_.empty()) {
    for (size_t i = 0; i < graph_.value_count(); ++i) {
      declared_types_.push_back(graph_.value(static_cast<ValueId>(i)).type);
    }
  }
  for (size_t i = 0; i < declared_types_.size(); ++i) {
    graph_.value(static_cast<ValueId>(i)).type = declared_types_[i];
  }
  for (const Capture& capture : graph_.captures) {
    outer_of_[capture.inner] = capture.outer;
    const ValueType& type = outer_->graph_.value(capture.outer).type;
    if (type.kind != Value::Kind::kNone) graph_.value(capture.inner).type = type;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    ValueType& type = graph_.value(graph_.inputs[i]).type;
    Result<ValueType> merged = MergeTypes(inputs[i], type);
    type = merged ? std::move(*merged) : std::move(inputs[i]);
  }
}

Status GraphInference::RunSubgraph(Graph& subgraph, std::vector<ValueType> inputs) {
  auto& inference = subgraphs_[&subgraph];
  if (!inference) {
    inference = std::make_unique<GraphInference>(subgraph, functions_, options_, known_, this);
  }
  if (++inference->runs_ > kMostRunsOfSubgraph) {
    return InvalidArgument("graph '{}' is nested too deeply to infer its types", subgraph.name);
  }
  inference->BeginAsSubgraph(std::move(inputs));
  Status status = inference->Run();
  subgraph_failed_ = !status.ok();
  return status;
}

const Tensor* GraphInference::ConstantOf(ValueId id) const {
  if (const Tensor* tensor = graph_.ConstantOf(id)) return tensor;
  const auto constant = constant_nodes_.find(id);
  if (constant != constant_nodes_.end()) return &constant->second;
  const auto captured = outer_of_.find(id);
  return captured != outer_of_.end() ? outer_->ConstantOf(captured->second) : nullptr;
}

std::optional<Dims> GraphInference::KnownDims(ValueId id) const {
  if (const auto found = elements_.find(id); found != elements_.end()) return found->second;
  if (const Tensor* stored = graph_.StoredConstantOf(id)) {
    // Aligning copies the data, which is avoided for tensors that are too large to be read.
    const bool is_small = stored->size() <= kMostKnownElements;
    return is_small && graph_.AlignInitializer(id).ok() ? SmallIntegersOf(*stored) : std::nullopt;
  }
  const auto constant = constant_nodes_.find(id);
  if (constant != constant_nodes_.end()) return SmallIntegersOf(constant->second);
  const auto captured = outer_of_.find(id);
  return captured != outer_of_.end() ? outer_->KnownDims(captured->second) : std::nullopt;
}

Status GraphInference::Run() {
  ReadConstants();
  TENON_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph_.TopologicalOrder());
  for (const NodeId id : order) TENON_RETURN_IF_ERROR(InferNode(graph_.node(id)));
  return OkStatus();
}

Status GraphInference::InferNode(Node& node) {
  // Outputs start without a type, so that the inferred type can be compared with the declared one.
  std::vector<ValueType> declared(node.outputs.size());
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.has_output(i)) std::swap(declared[i], graph_.value(node.outputs[i]).type);
  }
  subgraph_failed_ = false;
  Status status = CheckTypes(graph_, node);
  if (status.ok()) status = InferOutputs(node, declared);
  if (status.ok()) status = InferRemainingSubgraphs(node);
  if (status.ok()) status = MergeDeclared(node, std::move(declared));
  if (status.ok()) return status;
  // A failure inside a subgraph already names its node; here the position of the subgraph is added.
  if (subgraph_failed_) return std::move(status).WithContext(DescribeOperator(node));
  return {StatusCode::kInvalidGraph, DescribeFailure(graph_, node, status.message())};
}

Status GraphInference::InferOutputs(Node& node, std::vector<ValueType>& declared) {
  if (IsConstantNode(node) && node.has_output(0)) {
    TENON_ASSIGN_OR_RETURN(const Value value, ValueOfConstantNode(node));
    if (!value.is_tensor()) return OkStatus();
    const Tensor& tensor = value.tensor();
    graph_.value(node.outputs[0]).type = ValueType::Tensor(tensor.type(), tensor.shape());
    constant_nodes_[node.outputs[0]] = tensor;
    return OkStatus();
  }
  if (node.schema == nullptr) {
    // Without a schema the types are a guess, which must not override the declared ones.
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.has_output(i)) graph_.value(node.outputs[i]).type = declared[i];
    }
  }
  SetOutputTypes(graph_, node);
  const ShapeFunction function = functions_.Find(node);
  if (function == nullptr && others_ == nullptr) return OkStatus();
  StaticShapeContext context(*this, node, declared);
  Status status =
      function != nullptr ? function(node, context) : others_->InferOther(node, context);
  // The nodes of a subgraph may never run, so shapes that do not fit are an error of the run.
  const bool may_never_run = outer_ != nullptr && node.Subgraphs().empty();
  return IsUnknownShape(status) || may_never_run ? OkStatus() : std::move(status);
}

// Subgraphs that no shape function requested still get their types, from the declared ones.
Status GraphInference::InferRemainingSubgraphs(Node& node) {
  for (Graph* subgraph : node.Subgraphs()) {
    if (subgraphs_.count(subgraph) == 0) TENON_RETURN_IF_ERROR(RunSubgraph(*subgraph, {}));
  }
  return OkStatus();
}

Status GraphInference::MergeDeclared(const Node& node, std::vector<ValueType> declared) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.has_output(i)) continue;
    ValueType& type = graph_.value(node.outputs[i]).type;
    if (IsSameFixedType(declared[i], type)) continue;
    Result<ValueType> merged = MergeTypes(type, declared[i]);
    if (merged) {
      type = std::move(*merged);
    } else if (options_.strict || type.TypeName() != declared[i].TypeName()) {
      return InvalidArgument("output {}: expected {} as the model declares, got {}", i,
                             declared[i].ToString(), type.ToString());
    }
    // In a body that runs several times, a value has another size each time.
    if (outer_ == nullptr) NameUnknownDims(node.outputs[i]);
  }
  return OkStatus();
}

}  // namespace

Status InferTypes(Graph& graph, const ShapeFunctionTable& functions,
                  const InferenceOptions& options, KnownElements* known) {
  KnownElements scratch;
  KnownElements& elements = known ? *known : scratch;
  elements.clear();
  GraphInference inference(graph, functions, options, elements, nullptr);
  inference.NameUnknownInputDims();
  return inference.Run();
}

}  // namespace tenon
