#include "runtime/session_interface.h"

#include <set>
#include <utility>

#include "ir/graph.h"
#include "runtime/feed_check.h"

namespace tenon {
namespace {

template <class List>
std::vector<std::string> NamesOf(const List& values) {
  std::vector<std::string> names;
  for (const auto& value : values) names.push_back(value.name);
  return names;
}

// Names of dimensions that a model declares.
using DimNames = std::set<std::string, std::less<>>;

void CollectNames(const std::vector<SessionValue>& values, DimNames& names) {
  for (const SessionValue& value : values) {
    if (!value.type.shape) continue;
    for (const Dim& dim : *value.type.shape) names.emplace(dim.symbol_name());
  }
}

// Sizes that inference gave a name of its own are unknown to who wrote the model.
void ForgetOtherNames(ValueType& type, const DimNames& names) {
  if (!type.shape) return;
  for (size_t axis = 0; axis < type.shape->rank(); ++axis) {
    Dim& dim = (*type.shape)[axis];
    if (!dim.is_number() && !names.contains(dim.symbol_name())) dim = Dim::Unknown();
  }
}

}  // namespace

void SessionInterface::Describe(const Graph& graph) {
  for (const ValueId id : graph.inputs) {
    const ValueInfo& info = graph.value(id);
    graph_inputs_.push_back({info.name, info.type});
    is_required_.push_back(!info.initializer.has_value() &&
                           info.type.kind != Value::Kind::kOptional);
    (info.initializer.has_value() ? overridables_ : inputs_).push_back({info.name, info.type});
  }
  for (const GraphOutput& output : graph.outputs()) {
    outputs_.push_back({output.name, graph.value(output.value).type});
  }
}

void SessionInterface::RefineOutputs(const Graph& graph) {
  DimNames declared;
  CollectNames(graph_inputs_, declared);
  CollectNames(outputs_, declared);
  for (size_t i = 0; i < outputs_.size(); ++i) {
    ValueType& type = outputs_[i].type;
    const ValueType& inferred = graph.value(graph.outputs()[i].value).type;
    if (Result<ValueType> merged = MergeTypes(type, inferred)) type = std::move(*merged);
    ForgetOtherNames(type, declared);
  }
}

Result<size_t> SessionInterface::FindInput(std::string_view name) const {
  for (size_t i = 0; i < graph_inputs_.size(); ++i) {
    if (graph_inputs_[i].name == name) return i;
  }
  return InvalidArgument("Invalid input name: '{}'{}; the model's inputs are: {}", name,
                         DidYouMean(name, NamesOf(graph_inputs_)), JoinNames(NamesOf(inputs_)));
}

Result<size_t> SessionInterface::FindOutput(std::string_view name) const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].name == name) return i;
  }
  return InvalidArgument("Invalid output name: '{}'{}; the model's outputs are: {}", name,
                         DidYouMean(name, NamesOf(outputs_)), JoinNames(NamesOf(outputs_)));
}

Status SessionInterface::OrderFeeds(std::span<const std::string_view> names,
                                    std::span<const Value> feeds, std::span<Value> ordered) const {
  FeedCheck check;
  for (size_t i = 0; i < names.size(); ++i) {
    TENON_ASSIGN_OR_RETURN(const size_t place, FindInput(names[i]));
    if (ordered[place].has_value()) {
      return InvalidArgument("input '{}' is given twice", names[i]);
    }
    const SessionValue& declared = graph_inputs_[place];
    TENON_RETURN_IF_ERROR(check.Check(declared.name, declared.type, feeds[i]));
    ordered[place] = feeds[i];
  }
  return CheckNothingMissing(ordered);
}

Status SessionInterface::CheckNothingMissing(std::span<const Value> ordered) const {
  std::vector<std::string> missing, given;
  const auto quoted = [&](size_t input) { return Format("'{}'", graph_inputs_[input].name); };
  for (size_t i = 0; i < graph_inputs_.size(); ++i) {
    if (!ordered[i].has_value() && is_required_[i]) missing.push_back(quoted(i));
  }
  if (missing.empty()) return OkStatus();
  for (size_t i = 0; i < graph_inputs_.size(); ++i) {
    if (ordered[i].has_value()) given.push_back(quoted(i));
  }
  return Fail("Required inputs ([{}]) are missing from input feed ([{}]).", JoinNames(missing),
              JoinNames(given));
}

}  // namespace tenon
