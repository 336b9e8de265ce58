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

// Whether a gradient may flow into values of this type. Integers, booleans and strings change in
// steps, so that what is computed of them is constant between the steps: its derivative is 0.
bool IsDifferentiable(const ValueType& type) {
  constexpr TypeSet kSteps = kInts | TypeSet{DataType::kBool, DataType::kString, DataType::kUint2,
                                             DataType::kInt2, DataType::kUint4,  DataType::kInt4};
  return !type.is_tensor() || !kSteps.Contains(type.element_type);
}

// What a Gradient differentiates.
struct Ends {
  std::vector<ValueId> arguments;  // the names of `xs`, then those of `zs`
  size_t differentiated = 0;       // the number of names in `xs`
  ValueId y = ValueId::kNone;
};

Result<Ends> EndsOf(const Graph& graph, const Node& node) {
  const auto named = [&](const std::string& name) -> Result<ValueId> {
    const ValueId id = graph.FindValue(name);
    if (id == ValueId::kNone) return InvalidGraph("{}: no value '{}'", node.Describe(), name);
    return id;
  };
  Ends ends;
  for (const char* list : {"xs", "zs"}) {
    for (const std::string& name : NamesIn(node, list)) {
      TENON_ASSIGN_OR_RETURN(const ValueId id, named(name));
      ends.arguments.push_back(id);
    }
    if (list == std::string_view("xs")) ends.differentiated = ends.arguments.size();
  }
  if (node.inputs.size() != ends.arguments.size() || node.outputs.size() > ends.differentiated) {
    return InvalidGraph("{}: expected {} inputs and at most {} outputs, got {} and {}",
                        node.Describe(), ends.arguments.size(), ends.differentiated,
                        node.inputs.size(), node.outputs.size());
  }
  TENON_ASSIGN_OR_RETURN(ends.y, named(std::string(node.GetString("y", ""))));
  return ends;
}

// The Gradients of a graph, and the nodes that each differentiates. A Gradient reads the values
// that it names, too.
class GradientPaths {
 public:
  static Result<GradientPaths> Of(const Graph& graph) {
    GradientPaths paths(graph);
    for (size_t i = 0; i < graph.node_capacity(); ++i) {
      const Node* const node = graph.FindNode(static_cast<NodeId>(i));
      if (node == nullptr || !IsGradient(*node)) continue;
      TENON_ASSIGN_OR_RETURN(const Ends ends, EndsOf(graph, *node));
      for (const ValueId argument : ends.arguments) paths.named_by_[argument].push_back(node->id);
      paths.named_by_[ends.y].push_back(node->id);
      paths.ends_.emplace(node->id, ends);
    }
    if (paths.ends_.empty()) return paths;
    const std::vector<size_t> missing = paths.NeverComputed();
    for (const auto& [id, ends] : paths.ends_) {
      std::vector<NodeId> between = {id};  // if it waits for itself
      if (missing[Index(id)] == 0) {
        TENON_ASSIGN_OR_RETURN(between, paths.Between(id, ends));
      }
      for (const NodeId inner : between) {
        if (!IsGradient(graph.node(inner))) continue;
        paths.differentiated_.insert(inner);
        paths.waiting_.insert(id);
      }
      paths.between_.emplace(id, std::move(between));
    }
    return paths;
  }

  const Ends& ends(NodeId id) const { return ends_.at(id); }
  // The nodes on the paths from the arguments to y, producers first.
  const std::vector<NodeId>& between(NodeId id) const { return between_.at(id); }
  // Whether there is another Gradient between its arguments and its y, or itself.
  bool Waits(NodeId id) const { return waiting_.count(id) > 0; }
  // Whether it is between the arguments and the y of another Gradient.
  bool IsDifferentiated(NodeId id) const { return differentiated_.count(id) > 0; }

 private:
  explicit GradientPaths(const Graph& graph) : graph_(graph) {}

  std::vector<ValueId> ReadsWithNames(const Node& node) const {
    std::vector<ValueId> reads = ReadsOf(node);
    if (const auto known = ends_.find(node.id); known != ends_.end()) {
      reads.insert(reads.end(), known->second.arguments.begin(), known->second.arguments.end());
      reads.push_back(known->second.y);
    }
    reads.erase(std::remove(reads.begin(), reads.end(), ValueId::kNone), reads.end());
    return reads;
  }

  template <class Visit>
  void ForEachReader(ValueId id, const Visit& visit) const {
    for (const NodeId reader : graph_.value(id).consumers) visit(reader);
    if (const auto named = named_by_.find(id); named != named_by_.end()) {
      for (const NodeId reader : named->second) visit(reader);
    }
  }

  // How many of its reads each node lacks when all others that can be are computed. There are none,
  // unless a Gradient names what depends on its outputs.
  std::vector<size_t> NeverComputed() const {
    std::vector<size_t> missing(graph_.node_capacity(), 0);
    std::vector<NodeId> ready;
    for (size_t i = 0; i < graph_.node_capacity(); ++i) {
      const Node* const node = graph_.FindNode(static_cast<NodeId>(i));
      if (node == nullptr) continue;
      for (const ValueId read : ReadsWithNames(*node)) {
        if (graph_.value(read).producer != NodeId::kNone) ++missing[i];
      }
      if (missing[i] == 0) ready.push_back(node->id);
    }
    while (!ready.empty()) {
      const NodeId id = ready.back();
      ready.pop_back();
      for (const ValueId output : graph_.node(id).outputs) {
        if (output == ValueId::kNone) continue;
        ForEachReader(output, [&](NodeId reader) {
          if (--missing[Index(reader)] == 0) ready.push_back(reader);
        });
      }
    }
    return missing;
  }

  // The nodes that depend on the arguments. The Gradients of compositions have few of them, so that
  // the work is not proportional to the size of the graph for each.
  std::unordered_set<NodeId> Dependent(NodeId gradient, std::vector<ValueId> open) const {
    std::unordered_set<NodeId> dependent;
    const auto visit = [&](NodeId reader) {
      if (reader == gradient || !dependent.insert(reader).second) return;
      for (const ValueId output : graph_.node(reader).outputs) {
        if (output != ValueId::kNone) open.push_back(output);
      }
    };
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      ForEachReader(id, visit);
    }
    return dependent;
  }

  Result<std::vector<NodeId>> Between(NodeId gradient, const Ends& ends) const {
    const std::unordered_set<NodeId> dependent = Dependent(gradient, ends.arguments);
    std::unordered_set<ValueId> seen(ends.arguments.begin(), ends.arguments.end());
    std::unordered_set<NodeId> found;
    std::vector<ValueId> open = {ends.y};
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      const NodeId producer = graph_.value(id).producer;
      if (!seen.insert(id).second || dependent.count(producer) == 0) continue;
      if (!found.insert(producer).second) continue;
      const std::vector<ValueId> reads = ReadsWithNames(graph_.node(producer));
      open.insert(open.end(), reads.begin(), reads.end());
    }
    return Sorted(found);
  }

  // Producers first.
  Result<std::vector<NodeId>> Sorted(const std::unordered_set<NodeId>& nodes) const {
    std::vector<NodeId> sorted(nodes.begin(), nodes.end());
    std::sort(sorted.begin(), sorted.end());
    const bool is_in_order = std::all_of(sorted.begin(), sorted.end(), [&](NodeId id) {
      const std::vector<ValueId> reads = ReadsOf(graph_.node(id));
      return std::all_of(reads.begin(), reads.end(), [&](ValueId read) {
        return read == ValueId::kNone || nodes.count(graph_.value(read).producer) == 0 ||
               graph_.value(read).producer < id;
      });
    });
    if (is_in_order) return sorted;
    TENON_ASSIGN_OR_RETURN(sorted, graph_.TopologicalOrder());
    std::erase_if(sorted, [&](NodeId id) { return nodes.count(id) == 0; });
    return sorted;
  }

  const Graph& graph_;
  std::unordered_map<NodeId, Ends> ends_;
  std::unordered_map<ValueId, std::vector<NodeId>> named_by_;
  std::unordered_map<NodeId, std::vector<NodeId>> between_;
  std::unordered_set<NodeId> waiting_;
  std::unordered_set<NodeId> differentiated_;
};

// Reverse-mode differentiation for one Gradient node.
class Differentiation {
 public:
  Differentiation(Graph& graph, NodeId id, const GradientPaths& paths)
      : graph_(graph),
        id_(id),
        arguments_(paths.ends(id).arguments),
        y_(paths.ends(id).y),
        forward_(paths.between(id)),
        is_last_(!paths.IsDifferentiated(id)) {}

  // Whether the types of all that is differentiated have been inferred; nodes from `first_new` on
  // came later.
  bool KnowsTypes(size_t first_new) const {
    return std::all_of(forward_.begin(), forward_.end(), [&](NodeId id) {
      std::vector<ValueId> values = ReadsOf(graph_.node(id));
      values.insert(values.end(), graph_.node(id).outputs.begin(), graph_.node(id).outputs.end());
      return std::all_of(values.begin(), values.end(), [&](ValueId value) {
        if (value == ValueId::kNone) return true;
        const ValueInfo& info = graph_.value(value);
        const bool is_new = info.producer != NodeId::kNone && Index(info.producer) >= first_new;
        return !is_new && info.type.shape;
      });
    });
  }

  // Expands the node. Returns false if operators before it had to be expanded first.
  Result<bool> Run() {
    FindDifferentiable();
    TENON_ASSIGN_OR_RETURN(const bool is_expanded, ExpandFunctions());
    if (is_expanded) return false;
    GradientBuilder builder(graph_, Prefix(), Opset(), is_last_);
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
      if (!added.Subgraphs().empty()) graph_.RefreshCaptures(added.id);
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
  std::vector<ValueId> arguments_;
  ValueId y_;
  std::vector<NodeId> forward_;
  bool is_last_;  // no other Gradient differentiates the nodes of this one
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

// Expands the Gradients of the graph and its subgraphs that need not wait for another or, once
// anything has changed, for types; returns whether it has. What they add comes in later rounds, as
// its types must be inferred before.
Result<bool> ExpandRound(Graph& graph, bool has_changed) {
  const size_t end = graph.node_capacity();
  TENON_ASSIGN_OR_RETURN(const GradientPaths paths, GradientPaths::Of(graph));
  for (size_t i = 0; i < end; ++i) {
    const auto id = static_cast<NodeId>(i);
    const Node* node = graph.FindNode(id);
    if (node == nullptr) continue;
    for (Graph* subgraph : node->Subgraphs()) {
      TENON_ASSIGN_OR_RETURN(has_changed, ExpandRound(*subgraph, has_changed));
    }
    if (!IsGradient(*node) || paths.Waits(id)) continue;
    Differentiation differentiation(graph, id, paths);
    if (has_changed && !differentiation.KnowsTypes(end)) continue;
    has_changed = true;
    TENON_ASSIGN_OR_RETURN(const bool is_done, differentiation.Run());
    if (!is_done) break;  // the nodes between are others
  }
  return has_changed;
}

}  // namespace

Status ExpandGradients(Graph& graph, const ShapeFunctionTable& functions) {
  while (const Node* gradient = FindGradient(graph)) {
    TENON_RETURN_IF_ERROR(InferTypes(graph, functions));
    TENON_ASSIGN_OR_RETURN(const bool has_changed, ExpandRound(graph, false));
    if (!has_changed) {
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
