#include "ir/gradient.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "ir/inference.h"
#include "ir/output_types.h"
#include "ir/passes.h"
#include "ir/schema.h"

namespace tenon {
namespace {

bool IsGradient(const Node& node) { return node.domain == kTraining && node.op_type == "Gradient"; }

// The first version of an operator with axes as an input, or of any; used if the model imports an
// older one.
int32_t FirstOpset(std::string_view op_type) {
  struct First {
    std::string_view op_type;
    int32_t opset;
  };
  constexpr First kFirst[] = {{"ArgMax", 12},     {"CastLike", 15},
                              {"Col2Im", 18},     {"Cosh", 9},
                              {"CumProd", 26},    {"CumSum", 11},
                              {"DFT", 17},        {"Einsum", 12},
                              {"Equal", 11},      {"Erf", 9},
                              {"EyeLike", 9},     {"Expand", 8},
                              {"Gather", 11},     {"GatherElements", 11},
                              {"GatherND", 12},   {"Greater", 9},
                              {"Less", 9},        {"LogSoftmax", 13},
                              {"Max", 8},         {"MatMul", 9},
                              {"MaxPoolGrad", 9}, {"NonZero", 9},
                              {"OneHot", 9},      {"Pad", 13},
                              {"Range", 11},      {"ReduceSum", 13},
                              {"Reshape", 5},     {"ReverseSequence", 10},
                              {"RoiAlign", 16},   {"Round", 11},
                              {"Mod", 10},        {"Scan", 9},
                              {"ScatterND", 16},  {"Sign", 9},
                              {"Sinh", 9},        {"ScatterElements", 16},
                              {"Slice", 10},      {"Split", 13},
                              {"Squeeze", 13},    {"TensorScatter", 24},
                              {"Trilu", 14},      {"Unsqueeze", 13},
                              {"Where", 9},       {"AveragePoolGrad", 9}};
  for (const First& first : kFirst) {
    if (first.op_type == op_type) return first.opset;
  }
  return 7;  // which introduced the present broadcasting
}

std::vector<std::string> NamesIn(const Node& node, const char* attribute) {
  const Attribute* found = node.FindAttribute(attribute);
  const auto* names = found ? found->get<std::vector<std::string>>() : nullptr;
  return names ? *names : std::vector<std::string>();
}

// The values that a node reads, including those of its subgraphs.
std::vector<ValueId> ReadsOf(const Node& node) {
  std::vector<ValueId> reads = node.inputs;
  for (const Graph* subgraph : node.Subgraphs()) {
    for (const Capture& capture : subgraph->captures) reads.push_back(capture.outer);
  }
  return reads;
}

bool ContainsAny(const std::unordered_set<ValueId>& values, const std::vector<ValueId>& wanted) {
  return std::any_of(wanted.begin(), wanted.end(),
                     [&](ValueId id) { return values.count(id) > 0; });
}

bool ReadsAny(const Node& node, const std::unordered_set<ValueId>& values) {
  return ContainsAny(values, ReadsOf(node));
}

// Whether a gradient may flow into values of this type. Integers, booleans and strings change in
// steps, so that what is computed of them is constant between the steps: its derivative is 0.
bool IsDifferentiable(const ValueType& type) {
  constexpr TypeSet kSteps = kInts | TypeSet{DataType::kBool, DataType::kString, DataType::kUint2,
                                             DataType::kInt2, DataType::kUint4,  DataType::kInt4};
  return !type.is_tensor() || !kSteps.Contains(type.element_type);
}

// Reverse-mode differentiation for one Gradient node.
class Differentiation {
 public:
  Differentiation(Graph& graph, NodeId id) : graph_(graph), id_(id) {}

  // Expands the node, or operators before it that must be expanded first. Returns false, without
  // any change, if another Gradient must be expanded before this one.
  Result<bool> Run() {
    TENON_RETURN_IF_ERROR(FindArguments());
    TENON_RETURN_IF_ERROR(FindForwardNodes());
    if (std::any_of(forward_.begin(), forward_.end(),
                    [&](NodeId id) { return IsGradient(graph_.node(id)); })) {
      return false;
    }
    TENON_ASSIGN_OR_RETURN(const bool is_expanded, ExpandFunctions());
    if (is_expanded) return true;
    TENON_ASSIGN_OR_RETURN(const bool is_last, IsLast());
    GradientBuilder builder(graph_, Prefix(), Opset(), is_last);
    TENON_RETURN_IF_ERROR(CopyForward(builder));
    TENON_RETURN_IF_ERROR(GoBackward(builder));
    ReplaceOutputs(builder);
    return true;
  }

 private:
  const Node& node() const { return graph_.node(id_); }

  std::string Prefix() const {
    return Format("{}/", node().name.empty() ? Format("Gradient_{}", Index(id_)) : node().name);
  }

  // The opset of ai.onnx, which this node does not have.
  int32_t Opset() const {
    int32_t opset = 1;
    for (const NodeId forward : forward_) {
      if (graph_.node(forward).domain.empty()) {
        opset = std::max(opset, graph_.node(forward).opset);
      }
    }
    return opset;
  }

  Result<ValueId> Named(const std::string& name) const {
    const ValueId id = graph_.FindValue(name);
    if (id == ValueId::kNone) return InvalidGraph("{}: no value '{}'", node().Describe(), name);
    return id;
  }

  Status FindArguments() {
    for (const char* list : {"xs", "zs"}) {
      for (const std::string& name : NamesIn(node(), list)) {
        TENON_ASSIGN_OR_RETURN(const ValueId id, Named(name));
        arguments_.push_back(id);
      }
      if (list == std::string_view("xs")) differentiated_ = arguments_.size();
    }
    if (node().inputs.size() != arguments_.size() || node().outputs.size() > differentiated_) {
      return InvalidGraph("{}: expected {} inputs and at most {} outputs, got {} and {}",
                          node().Describe(), arguments_.size(), differentiated_,
                          node().inputs.size(), node().outputs.size());
    }
    TENON_ASSIGN_OR_RETURN(y_, Named(std::string(node().GetString("y", ""))));
    return OkStatus();
  }

  // The nodes on the paths from the arguments to y, producers first.
  Status FindForwardNodes() {
    std::unordered_set<ValueId> above = {y_};
    std::unordered_set<ValueId> ends(arguments_.begin(), arguments_.end());
    TENON_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph_.TopologicalOrder());
    for (size_t i = order.size(); i-- > 0;) {
      const Node& candidate = graph_.node(order[i]);
      const bool is_above =
          std::any_of(candidate.outputs.begin(), candidate.outputs.end(),
                      [&](ValueId id) { return above.count(id) > 0 && ends.count(id) == 0; });
      if (!is_above) continue;
      const std::vector<ValueId> reads = ReadsOf(candidate);
      above.insert(reads.begin(), reads.end());
      forward_.push_back(candidate.id);
    }
    std::reverse(forward_.begin(), forward_.end());
    std::unordered_set<ValueId> dependent(arguments_.begin(), arguments_.end());
    const auto is_independent = [&](NodeId id) {
      const Node& candidate = graph_.node(id);
      if (!ReadsAny(candidate, dependent)) return true;
      dependent.insert(candidate.outputs.begin(), candidate.outputs.end());
      return false;
    };
    forward_.erase(std::remove_if(forward_.begin(), forward_.end(), is_independent),
                   forward_.end());
    FindDifferentiable();
    return OkStatus();
  }

  // Whether a gradient may flow from the node into a value that it reads: also into integers, where
  // rounding passes it straight through.
  bool MayFlow(const Node& forward, ValueId read) const {
    const bool is_straight = forward.op_type == "DequantizeLinear" && rounded_.count(read) > 0;
    return is_straight || differentiable_.count(read) > 0;
  }

  bool ReadsDifferentiable(const Node& forward) const {
    const std::vector<ValueId> reads = ReadsOf(forward);
    return std::any_of(reads.begin(), reads.end(),
                       [&](ValueId read) { return MayFlow(forward, read); });
  }

  void FindDifferentiable() {
    const auto add = [&](ValueId id) {
      if (id != ValueId::kNone && IsDifferentiable(graph_.value(id).type)) {
        differentiable_.insert(id);
      }
    };
    std::for_each(arguments_.begin(), arguments_.end(), add);
    for (const NodeId id : forward_) {
      const Node& forward = graph_.node(id);
      // Its second input gives the type alone.
      const bool is_like = forward.op_type == "CastLike" && forward.domain.empty();
      if (is_like ? differentiable_.count(forward.inputs[0]) == 0 : !ReadsDifferentiable(forward)) {
        continue;
      }
      std::for_each(forward.outputs.begin(), forward.outputs.end(), add);
      if (forward.op_type == "QuantizeLinear") rounded_.insert(forward.outputs[0]);
    }
  }

  bool IsDifferentiated(const Node& forward) const {
    return ReadsDifferentiable(forward) &&
           std::any_of(forward.outputs.begin(), forward.outputs.end(), [&](ValueId id) {
             return differentiable_.count(id) > 0 || rounded_.count(id) > 0;
           });
  }

  // Replaces operators without a gradient by their function bodies; returns whether there are any.
  Result<bool> ExpandFunctions() {
    std::unordered_set<NodeId> expanded;
    for (const NodeId id : forward_) {
      const Node& forward = graph_.node(id);
      const bool has_body = forward.schema && !forward.schema->function_body.empty();
      if (has_body && IsDifferentiated(forward) && FindGradientRule(forward) == nullptr) {
        expanded.insert(id);
      }
    }
    if (expanded.empty()) return false;
    TENON_RETURN_IF_ERROR(ExpandOperators(graph_, [&](const Graph& owner, const Node& node) {
      return &owner != &graph_ || expanded.count(node.id) == 0;
    }));
    return true;
  }

  // What a node reads, and the values that a Gradient names.
  std::vector<ValueId> AllReadsOf(const Node& other) const {
    std::vector<ValueId> reads = ReadsOf(other);
    if (IsGradient(other)) {
      for (const char* list : {"xs", "zs"}) {
        for (const std::string& name : NamesIn(other, list)) {
          reads.push_back(graph_.FindValue(name));
        }
      }
      reads.push_back(graph_.FindValue(std::string(other.GetString("y", ""))));
    }
    reads.erase(std::remove(reads.begin(), reads.end(), ValueId::kNone), reads.end());
    return reads;
  }

  // The values that the nodes of this Gradient will depend on.
  std::unordered_set<ValueId> Above() const {
    std::unordered_set<ValueId> above;
    std::vector<ValueId> open = AllReadsOf(node());
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      const NodeId producer = graph_.value(id).producer;
      if (!above.insert(id).second || producer == NodeId::kNone) continue;
      const std::vector<ValueId> reads = AllReadsOf(graph_.node(producer));
      open.insert(open.end(), reads.begin(), reads.end());
    }
    return above;
  }

  // The values that depend on the results.
  Result<std::unordered_set<ValueId>> Below() const {
    std::unordered_set<ValueId> below(node().outputs.begin(), node().outputs.end());
    TENON_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph_.TopologicalOrder());
    // A Gradient may come before what it names.
    for (size_t known = 0; known < below.size();) {
      known = below.size();
      for (const NodeId id : order) {
        const Node& other = graph_.node(id);
        if (ContainsAny(below, AllReadsOf(other))) {
          below.insert(other.outputs.begin(), other.outputs.end());
        }
      }
    }
    return below;
  }

  // Whether no other Gradient differentiates the nodes of this one: none has them between its
  // arguments and its y.
  Result<bool> IsLast() const {
    const std::unordered_set<ValueId> above = Above();
    TENON_ASSIGN_OR_RETURN(const std::unordered_set<ValueId> below, Below());
    for (size_t i = 0; i < graph_.node_capacity(); ++i) {
      const Node* other = graph_.FindNode(static_cast<NodeId>(i));
      if (other == nullptr || !IsGradient(*other) || other->id == id_) continue;
      const ValueId y = graph_.FindValue(std::string(other->GetString("y", "")));
      std::vector<ValueId> arguments = AllReadsOf(*other);
      arguments.erase(std::remove(arguments.begin(), arguments.end(), y), arguments.end());
      if (below.count(y) > 0 && ContainsAny(above, arguments)) return false;
    }
    return true;
  }

  // Copies of the nodes for other values of the arguments, if the node has such inputs.
  Status CopyForward(GradientBuilder& builder) {
    if (node().inputs == arguments_) return OkStatus();
    std::unordered_map<ValueId, ValueId> copy_of;
    for (size_t i = 0; i < arguments_.size(); ++i) copy_of[arguments_[i]] = node().inputs[i];
    const auto copy = [&](ValueId id) { return copy_of.count(id) > 0 ? copy_of[id] : id; };
    for (NodeId& forward : forward_) {
      NodeSpec spec;
      const Node& original = graph_.node(forward);
      spec.op_type = original.op_type;
      spec.domain = original.domain;
      spec.opset = original.opset;
      spec.name = builder.prefix() + original.name;
      for (const Attribute& attribute : original.attributes) {
        spec.attributes.push_back(CloneAttribute(attribute));
      }
      for (const ValueId input : original.inputs) spec.inputs.push_back(copy(input));
      for (const ValueId output : original.outputs) {
        if (output != ValueId::kNone) {
          const std::string name = builder.prefix() + graph_.value(output).name;
          const ValueId copied =
              graph_.AddValue(graph_.UnusedName(name), graph_.value(output).type);
          copy_of[output] = copied;
        }
        spec.outputs.push_back(copy(output));
      }
      const OpSchema* schema = original.schema;
      Node& added = graph_.AddNode(std::move(spec));
      added.schema = schema;
      for (Graph* subgraph : added.Subgraphs()) {
        for (Capture& capture : subgraph->captures) capture.outer = copy(capture.outer);
      }
      graph_.RefreshCaptures(added.id);
      forward = added.id;
    }
    for (ValueId& argument : arguments_) argument = copy(argument);
    y_ = copy(y_);
    for (std::unordered_set<ValueId>* values : {&differentiable_, &rounded_}) {
      std::unordered_set<ValueId> copies;
      for (const ValueId id : *values) copies.insert(copy(id));
      *values = std::move(copies);
    }
    return OkStatus();
  }

  Status GoBackward(GradientBuilder& builder) {
    if (differentiable_.count(y_) > 0) gradient_[y_] = builder.Filled(1, y_);
    for (size_t i = forward_.size(); i-- > 0;) {
      const NodeId id = forward_[i];
      std::vector<ValueId> gradients;
      bool has_any = false;
      for (const ValueId output : graph_.node(id).outputs) {
        const auto known = gradient_.find(output);
        gradients.push_back(known == gradient_.end() ? ValueId::kNone : known->second);
        has_any = has_any || gradients.back() != ValueId::kNone;
      }
      if (!has_any) continue;
      const Node& forward = graph_.node(id);
      if (!ReadsDifferentiable(forward)) continue;
      if (gradients[0] == ValueId::kNone && forward.has_output(0)) {
        gradients[0] = builder.Filled(0, forward.outputs[0]);
      }
      const GradientRule rule = FindGradientRule(forward);
      if (rule == nullptr) {
        return NotImplemented("{}: {}-{} ({}) has no gradient yet{}", node().Describe(),
                              forward.op_type, forward.opset, forward.Describe(),
                              OthersWithoutGradient(i));
      }
      const std::vector<ValueId> reads = ReadsOf(forward);
      auto inputs = rule(builder, {forward, gradients, differentiable_});
      if (!inputs) return Error(std::move(inputs.error()).WithContext(node().Describe()));
      for (size_t k = 0; k < reads.size(); ++k) {
        if (!MayFlow(forward, reads[k])) continue;
        if (k < inputs->size()) {
          AddGradient(builder, reads[k], (*inputs)[k]);
        } else {
          return NotImplemented("{}: {}-{} ({}) has no gradient yet for its input {}",
                                node().Describe(), forward.op_type, forward.opset,
                                forward.Describe(), k);
        }
      }
    }
    return OkStatus();
  }

  // The other operators without a gradient before forward_[end], each once, so that the user learns
  // of all of them.
  std::string OthersWithoutGradient(size_t end) const {
    std::set<std::string> names;
    for (size_t i = 0; i < end; ++i) {
      const Node& forward = graph_.node(forward_[i]);
      if (IsDifferentiated(forward) && FindGradientRule(forward) == nullptr) {
        names.insert(Format("{}-{}", forward.op_type, forward.opset));
      }
    }
    const Node& first = graph_.node(forward_[end]);
    names.erase(Format("{}-{}", first.op_type, first.opset));
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "; nor have " : ", ") + name;
    return text;
  }

  void AddGradient(GradientBuilder& builder, ValueId value, ValueId gradient) {
    if (gradient == ValueId::kNone) return;
    const auto [entry, is_first] = gradient_.emplace(value, gradient);
    if (!is_first) entry->second = builder.Op("Add", {entry->second, gradient});
  }

  void ReplaceOutputs(GradientBuilder& builder) {
    const std::vector<ValueId> outputs = node().outputs;
    graph_.RemoveNode(id_);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] == ValueId::kNone) continue;
      const auto found = gradient_.find(arguments_[i]);
      const ValueId result =
          found == gradient_.end() ? builder.Filled(0, arguments_[i]) : found->second;
      NodeSpec spec;
      spec.op_type = "Identity";
      spec.opset = builder.opset();
      spec.name = Format("{}output_{}", builder.prefix(), i);
      spec.inputs = {result};
      spec.outputs = {outputs[i]};
      graph_.AddNode(std::move(spec)).schema = FindSchema("", "Identity", builder.opset());
    }
  }

  Graph& graph_;
  NodeId id_;
  std::vector<ValueId> arguments_;  // the names of `xs`, then those of `zs`
  size_t differentiated_ = 0;       // the number of names in `xs`
  ValueId y_ = ValueId::kNone;
  std::vector<NodeId> forward_;
  // Values that depend on the arguments by a way without steps: only these get gradients.
  std::unordered_set<ValueId> differentiable_;
  std::unordered_set<ValueId> rounded_;  // by QuantizeLinear: integers that have gradients, too
  std::unordered_map<ValueId, ValueId> gradient_;
};

// The first Gradient of the graph and its subgraphs.
const Node* FindGradient(const Graph& graph) {
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (node == nullptr) continue;
    if (IsGradient(*node)) return node;
    for (const Graph* subgraph : node->Subgraphs()) {
      if (const Node* found = FindGradient(*subgraph)) return found;
    }
  }
  return nullptr;
}

// Expands a Gradient node of the graph or its subgraphs; false if none can be expanded. The
// gradient of a gradient is expanded after it.
Result<bool> ExpandOne(Graph& graph) {
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const auto id = static_cast<NodeId>(i);
    const Node* node = graph.FindNode(id);
    if (node == nullptr) continue;
    bool is_changed = false;
    if (IsGradient(*node)) {
      TENON_ASSIGN_OR_RETURN(is_changed, Differentiation(graph, id).Run());
      if (is_changed) return true;
      continue;
    }
    for (Graph* subgraph : node->Subgraphs()) {
      TENON_ASSIGN_OR_RETURN(is_changed, ExpandOne(*subgraph));
      if (is_changed) return true;
    }
  }
  return false;
}

}  // namespace

Status ExpandGradients(Graph& graph, const ShapeFunctionTable& functions) {
  while (const Node* gradient = FindGradient(graph)) {
    TENON_RETURN_IF_ERROR(InferTypes(graph, functions));
    TENON_ASSIGN_OR_RETURN(const bool is_changed, ExpandOne(graph));
    if (!is_changed) {
      return InvalidGraph("{} differentiates its own outputs", gradient->Describe());
    }
  }
  return OkStatus();
}

bool GradientBuilder::MayUseKernels(ValueId id) const {
  return is_last_ && graph_.value(id).type.element_type == DataType::kFloat;
}

ValueId GradientBuilder::Op(const char* op_type, std::span<const ValueId> inputs,
                            std::vector<Attribute> attributes, const char* domain) {
  return Ops(op_type, inputs, 1, std::move(attributes), domain)[0];
}

ValueId GradientBuilder::Op(const char* op_type, std::initializer_list<ValueId> inputs) {
  return Op(op_type, {inputs.begin(), inputs.size()}, {}, "");
}

ValueId GradientBuilder::Op(const char* op_type, std::initializer_list<ValueId> inputs,
                            std::vector<Attribute> attributes, const char* domain) {
  return Op(op_type, {inputs.begin(), inputs.size()}, std::move(attributes), domain);
}

std::vector<ValueId> GradientBuilder::Ops(const char* op_type, std::span<const ValueId> inputs,
                                          size_t outputs, std::vector<Attribute> attributes,
                                          const char* domain) {
  NodeSpec spec;
  spec.op_type = op_type;
  spec.domain = domain;
  spec.opset = spec.domain.empty() ? std::max(opset_, FirstOpset(op_type)) : 1;
  spec.name = graph_.UnusedName(Format("{}{}", prefix_, op_type));
  for (size_t i = 0; i < outputs; ++i) {
    spec.outputs.push_back(graph_.AddValue(i == 0 ? spec.name : graph_.UnusedName(spec.name)));
  }
  spec.inputs.assign(inputs.begin(), inputs.end());
  spec.attributes = std::move(attributes);
  Node& node = graph_.AddNode(std::move(spec));
  node.schema = FindSchema(node.domain, node.op_type, node.opset);
  SetOutputTypes(graph_, node);
  return node.outputs;
}

ValueId GradientBuilder::OutputOf(const Node& node, size_t index) {
  if (!node.has_output(index)) {
    const std::string name = graph_.UnusedName(Format("{}{}_{}", prefix_, node.op_type, index));
    graph_.SetOutputValue(node.id, index, graph_.AddValue(name));
    SetOutputTypes(graph_, node);
  }
  return node.outputs[index];
}

ValueId GradientBuilder::Scalar(double value, ValueId like) {
  const bool is_float = graph_.value(like).type.element_type == DataType::kFloat;
  const ValueId constant = graph_.AddInitializer(
      graph_.UnusedName(prefix_ + "constant"),
      is_float ? Tensor::Of<float>({}, {static_cast<float>(value)}) : Tensor::Of({}, {value}));
  graph_.value(constant).type.element_type = is_float ? DataType::kFloat : DataType::kDouble;
  return CastTo(constant, like);
}

ValueId GradientBuilder::IntegerScalar(int64_t value) {
  return graph_.AddInitializer(graph_.UnusedName(prefix_ + "integer"),
                               Tensor::Of<int64_t>({}, {value}));
}

ValueId GradientBuilder::Integers(std::span<const int64_t> values) {
  const auto count = static_cast<int64_t>(values.size());
  return graph_.AddInitializer(graph_.UnusedName(prefix_ + "integers"),
                               Tensor::Of<int64_t>({count}, values));
}

ValueId GradientBuilder::CastTo(ValueId value, ValueId like) {
  const DataType type = graph_.value(like).type.element_type;
  if (type == DataType::kUndefined) return Op("CastLike", {value, like});
  if (graph_.value(value).type.element_type == type) return value;
  std::vector<Attribute> to;
  to.emplace_back("to", static_cast<int64_t>(type));
  return Op("Cast", {value}, std::move(to));
}

ValueId GradientBuilder::Filled(double value, ValueId like, ValueId type) {
  const ValueId element = Scalar(value, type == ValueId::kNone ? like : type);
  return Op("Expand", {element, Op("Shape", {like})});
}

ValueId GradientBuilder::Positions(ValueId like) {
  const ValueId all = Op("Range", {IntegerScalar(0), Op("Size", {like}), IntegerScalar(1)});
  return Op("Reshape", {all, Op("Shape", {like})});
}

ValueId GradientBuilder::ScatteredByPosition(ValueId like, ValueId positions, ValueId updates) {
  const ValueId flat = Integers(std::array<int64_t, 1>{-1});
  const ValueId zeros = Op("Reshape", {Filled(0, like), flat});
  std::vector<Attribute> attributes;
  attributes.emplace_back("axis", int64_t{0});
  attributes.emplace_back("reduction", std::string("add"));
  const ValueId sums = Op("ScatterElements",
                          {zeros, Op("Reshape", {positions, flat}), Op("Reshape", {updates, flat})},
                          std::move(attributes));
  return Op("Reshape", {sums, Op("Shape", {like})});
}

ValueId GradientBuilder::Shaped(ValueId value, ValueId sizes) {
  constexpr int32_t kFirstWithZeros = 14;
  std::vector<Attribute> attributes;
  if (opset_ >= kFirstWithZeros) attributes.emplace_back("allowzero", int64_t{1});
  return Op("Reshape", {value, sizes}, std::move(attributes));
}

const SymbolicShape* GradientBuilder::ShapeOf(ValueId id) const {
  const std::optional<SymbolicShape>& shape = graph_.value(id).type.shape;
  return shape ? &*shape : nullptr;
}

// If shapes are unknown, the axes are found when the graph runs: those along which the operand's
// shape, with leading ones, differs from the gradient's.
ValueId GradientBuilder::SumTo(ValueId gradient, ValueId operand, const SymbolicShape* whole) {
  const SymbolicShape* part = ShapeOf(operand);
  if (whole && part && *whole == *part) return gradient;
  const ValueId shape = Op("Shape", {operand});
  const ValueId from = Op("Shape", {gradient});
  const ValueId missing = Op("Sub", {Op("Shape", {from}), Op("Shape", {shape})});
  const ValueId ones = Op("Expand", {Integers(std::array<int64_t, 1>{1}), missing});
  std::vector<Attribute> axis;
  axis.emplace_back("axis", int64_t{0});
  const ValueId aligned = Op("Concat", {ones, shape}, std::move(axis));
  const ValueId differs = Op("Not", {Op("Equal", {aligned, from})});
  const ValueId axes =
      Op("Squeeze", {Op("NonZero", {differs}), Integers(std::array<int64_t, 1>{0})});
  std::vector<Attribute> noop;
  noop.emplace_back("noop_with_empty_axes", int64_t{1});
  return Shaped(Op("ReduceSum", {gradient, axes}, std::move(noop)), shape);
}

}  // namespace tenon
