#include "runtime/session_interface.h"

#include <algorithm>
#include <set>
#include <utility>

#include "ir/graph.h"

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

// Whether the value is declared as a scalar and has axes.
bool IsOtherScalar(const ValueType& declared, const Value& feed) {
  return declared.kind == Value::Kind::kTensor && declared.shape && declared.shape->rank() == 0 &&
         feed.is_tensor() && feed.tensor().rank() > 0;
}

}  // namespace

void SessionInterface::Describe(const Graph& graph, bool compares_names) {
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
  SymbolNumbers symbols(compares_names);
  for (const SessionValue& input : graph_inputs_) {
    input_names_.Add(input.name);
    input_symbols_.push_back(symbols.Of(input.type));
  }
  for (const SessionValue& output : outputs_) output_names_.Add(output.name);
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

Result<size_t> SessionInterface::FindInput(std::string_view name, size_t likely) const {
  if (const std::optional<size_t> place = input_names_.Find(name, likely)) return *place;
  return InvalidArgument("Invalid input name: '{}'{}; the model's inputs are: {}", name,
                         DidYouMean(name, NamesOf(graph_inputs_)), JoinNames(NamesOf(inputs_)));
}

Result<size_t> SessionInterface::FindOutput(std::string_view name, size_t likely) const {
  if (const std::optional<size_t> place = output_names_.Find(name, likely)) return *place;
  return InvalidArgument("Invalid output name: '{}'{}; the model's outputs are: {}", name,
                         DidYouMean(name, NamesOf(outputs_)), JoinNames(NamesOf(outputs_)));
}

Result<std::span<const Value>> SessionInterface::OrderFeeds(std::span<const std::string_view> names,
                                                            std::span<const Value> feeds,
                                                            PooledVector<Value>& ordered,
                                                            FeedCheck& check) const {
  size_t in_place = 0;  // so many of the first feeds lie where they belong
  size_t next = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    TENON_ASSIGN_OR_RETURN(const size_t place, FindInput(names[i], next));
    next = place + 1;
    if (place < in_place || (!ordered.empty() && ordered[place].has_value())) {
      return InvalidArgument("input '{}' is given twice", names[i]);
    }
    const SessionValue& declared = graph_inputs_[place];
    TENON_RETURN_IF_ERROR(
        check.Check(declared.name, declared.type, input_symbols_[place], feeds[i]));
    const bool is_reshaped = IsOtherScalar(declared.type, feeds[i]);
    if (in_place == i && place == i && !is_reshaped) {
      ++in_place;
      continue;
    }
    ordered.resize(graph_inputs_.size());
    ordered[place] = is_reshaped ? Value(feeds[i].tensor().Reshaped({})) : feeds[i];
  }
  if (in_place < graph_inputs_.size()) {
    ordered.resize(graph_inputs_.size());
    std::copy_n(feeds.begin(), in_place, ordered.begin());
    feeds = ordered;
  }
  TENON_RETURN_IF_ERROR(CheckNothingMissing(feeds));
  for (size_t i = 0; i < ordered.size(); ++i) {
    const bool is_optional = graph_inputs_[i].type.kind == Value::Kind::kOptional;
    if (!ordered[i].has_value() && is_optional) ordered[i] = std::make_shared<Optional>();
  }
  return feeds;
}

Status SessionInterface::FindOutputs(std::span<const std::string_view> names,
                                     std::span<size_t> places) const {
  for (size_t i = 0; i < names.size(); ++i) {
    TENON_ASSIGN_OR_RETURN(places[i], FindOutput(names[i], i == 0 ? 0 : places[i - 1] + 1));
  }
  return OkStatus();
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
