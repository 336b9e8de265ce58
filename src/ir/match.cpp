#include "ir/match.h"

#include <algorithm>

#include "ir/pattern_spec.h"
#include "ir/scalar.h"

namespace tenon {

ValueId Match::operator[](std::string_view name) const {
  for (const auto& [bound, value] : values_) {
    if (bound == name) return value;
  }
  return ValueId::kNone;
}

const Node* Match::FindNode(std::string_view name) const {
  for (const auto& [bound, node] : named_nodes_) {
    if (bound == name) return &graph_->node(node);
  }
  return nullptr;
}

const SymbolicShape* Match::shape(std::string_view name) const {
  const ValueId id = (*this)[name];
  if (id == ValueId::kNone) return nullptr;
  const ValueType& type = graph_->value(id).type;
  return type.shape ? &*type.shape : nullptr;
}

const Tensor* Match::constant(std::string_view name) const {
  return graph_->ConstantOf((*this)[name]);
}

double Match::scalar(std::string_view name) const {
  const Tensor* tensor = constant(name);
  return tensor ? ScalarOf(*tensor).value_or(0) : 0;
}

// Backtracking search: a list of goals, each a pattern for a value, solved from the front. A choice
// that fails later is undone by cutting the bindings back to where they were.
class Matcher {
 public:
  Matcher(const Graph& graph, std::optional<int32_t> provider) : provider_(provider) {
    match_.graph_ = &graph;
  }

  std::optional<Match> Run(const Pattern& pattern, const Node& root) {
    const bool found = FitsNode(*pattern.spec_, root) && SolveNode(*pattern.spec_, root, nullptr);
    if (!found) return std::nullopt;
    return std::move(match_);
  }

 private:
  struct Goal {
    const Pattern::Spec* pattern;
    ValueId value;
    const Node* consumer;
    const Goal* next;
  };
  struct Mark {
    size_t values, named_nodes, nodes;
  };

  const Graph& graph() const { return *match_.graph_; }
  Mark Here() const {
    return {match_.values_.size(), match_.named_nodes_.size(), match_.nodes_.size()};
  }
  bool BackTo(const Mark& mark) {
    match_.values_.resize(mark.values);
    match_.named_nodes_.resize(mark.named_nodes);
    match_.nodes_.resize(mark.nodes);
    match_.may_remain_.resize(mark.nodes);
    return false;
  }

  bool Solve(const Goal* goal);
  bool SolveValue(const Goal& goal);
  bool SolveNode(const Pattern::Spec& pattern, const Node& node, const Goal* rest);
  bool SolveInputs(const Pattern::Spec& pattern, const Node& node, bool swapped, const Goal* rest);
  bool FitsNode(const Pattern::Spec& pattern, const Node& node) const;
  bool FitsScalar(const Pattern::Spec& pattern, const Goal& goal) const;
  bool IsClosed() const;

  std::optional<int32_t> provider_;
  Match match_;
};

bool Matcher::Solve(const Goal* goal) {
  if (goal == nullptr) return IsClosed();
  const Pattern::Spec& pattern = *goal->pattern;
  if (pattern.kind == Pattern::Kind::kOneOf) {
    for (const Pattern& alternative : pattern.alternatives) {
      const Goal chosen = {alternative.spec_.get(), goal->value, goal->consumer, goal->next};
      if (Solve(&chosen)) return true;
    }
    return false;
  }
  if (pattern.kind != Pattern::Kind::kNode) return SolveValue(*goal);
  if (goal->value == ValueId::kNone) return false;
  const ValueInfo& info = graph().value(goal->value);
  if (info.producer == NodeId::kNone) return false;
  const Node& node = graph().node(info.producer);
  return static_cast<size_t>(info.output_index) == pattern.output && FitsNode(pattern, node) &&
         SolveNode(pattern, node, goal->next);
}

bool Matcher::SolveValue(const Goal& goal) {
  const Pattern::Spec& pattern = *goal.pattern;
  if (goal.value == ValueId::kNone) {
    return pattern.kind == Pattern::Kind::kMaybe && Solve(goal.next);
  }
  if (pattern.kind == Pattern::Kind::kConstant) {
    if (!graph().StoredConstantOf(goal.value)) return false;
    if (pattern.tensor_condition) {
      const Tensor* tensor = graph().ConstantOf(goal.value);
      if (!tensor || !pattern.tensor_condition(*tensor)) return false;
    }
  }
  if (pattern.kind == Pattern::Kind::kScalar && !FitsScalar(pattern, goal)) return false;
  if (pattern.name.empty()) return Solve(goal.next);
  const ValueId bound = match_[pattern.name];
  if (bound != ValueId::kNone) return bound == goal.value && Solve(goal.next);
  const Mark mark = Here();
  match_.values_.emplace_back(pattern.name, goal.value);
  return Solve(goal.next) || BackTo(mark);
}

bool Matcher::FitsScalar(const Pattern::Spec& pattern, const Goal& goal) const {
  const Tensor* tensor = graph().ConstantOf(goal.value);
  if (!tensor || !ScalarOf(*tensor)) return false;
  if (pattern.scalar && pattern.is_exact && ScalarOf(*tensor) != pattern.scalar) return false;
  if (pattern.scalar && !IsScalarNear(*tensor, *pattern.scalar)) return false;
  if (tensor->rank() == 0) return true;
  return std::any_of(goal.consumer->inputs.begin(), goal.consumer->inputs.end(), [&](ValueId id) {
    if (id == ValueId::kNone || id == goal.value) return false;
    const ValueType& type = graph().value(id).type;
    return type.shape && type.shape->rank() >= tensor->rank();
  });
}

bool Matcher::FitsNode(const Pattern::Spec& pattern, const Node& node) const {
  const bool is_op = std::find(pattern.op_types.begin(), pattern.op_types.end(), node.op_type) !=
                     pattern.op_types.end();
  if (!is_op || node.domain != pattern.domain) return false;
  if (provider_ && node.provider != *provider_) return false;
  if (!pattern.takes_more_inputs) {
    for (size_t i = pattern.inputs.size(); i < node.inputs.size(); ++i) {
      if (node.has_input(i)) return false;
    }
  }
  return std::all_of(pattern.node_conditions.begin(), pattern.node_conditions.end(),
                     [&](const auto& condition) { return condition(node); });
}

bool Matcher::SolveNode(const Pattern::Spec& pattern, const Node& node, const Goal* rest) {
  const Mark mark = Here();
  // A node that two branches of the pattern reach is one node.
  if (std::find(match_.nodes_.begin(), match_.nodes_.end(), node.id) == match_.nodes_.end()) {
    match_.nodes_.push_back(node.id);
    match_.may_remain_.push_back(pattern.is_shared);
  }
  if (!pattern.name.empty()) match_.named_nodes_.emplace_back(pattern.name, node.id);
  if (SolveInputs(pattern, node, false, rest)) return true;
  const auto op = std::find(pattern.op_types.begin(), pattern.op_types.end(), node.op_type);
  const bool commutes =
      static_cast<size_t>(op - pattern.op_types.begin()) >= pattern.commutative_from;
  if (commutes && node.inputs.size() == 2 && SolveInputs(pattern, node, true, rest)) return true;
  return BackTo(mark);
}

bool Matcher::SolveInputs(const Pattern::Spec& pattern, const Node& node, bool swapped,
                          const Goal* rest) {
  constexpr size_t kMostInputs = 16;
  const size_t count = pattern.inputs.size();
  if (count > kMostInputs) return false;
  Goal goals[kMostInputs];
  for (size_t i = 0; i < count; ++i) {
    const size_t from = swapped ? count - 1 - i : i;
    goals[i] = {pattern.inputs[i].spec_.get(),
                node.has_input(from) ? node.inputs[from] : ValueId::kNone, &node,
                i + 1 < count ? &goals[i + 1] : rest};
  }
  return Solve(count > 0 ? goals : rest);
}

namespace {

// A part of a run keeps its nodes.
bool MayBeInOnePart(const Node& a, const Node& b) {
  return a.part == b.part || a.part == kNoPart || b.part == kNoPart;
}

}  // namespace

bool Matcher::IsClosed() const {
  const auto is_inside = [&](NodeId id) {
    return std::find(match_.nodes_.begin(), match_.nodes_.end(), id) != match_.nodes_.end();
  };
  for (size_t i = 1; i < match_.nodes_.size(); ++i) {
    if (match_.may_remain_[i]) continue;
    if (!MayBeInOnePart(graph().node(match_.nodes_[i]), match_.root())) return false;
    for (const ValueId output : graph().node(match_.nodes_[i]).outputs) {
      if (output == ValueId::kNone) continue;
      const ValueInfo& info = graph().value(output);
      if (info.output_uses > 0) return false;
      if (!std::all_of(info.consumers.begin(), info.consumers.end(), is_inside)) return false;
    }
  }
  return true;
}

std::optional<Match> FindMatch(const Graph& graph, const Pattern& pattern, const Node& root,
                               std::optional<int32_t> provider) {
  return Matcher(graph, provider).Run(pattern, root);
}

}  // namespace tenon
