// What a session takes and gives: names and types, as its model declares them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/block_pool.h"
#include "base/status.h"
#include "ir/type.h"
#include "runtime/feed_check.h"
#include "runtime/name_index.h"
#include "tensor/value.h"

namespace tenon {

class Graph;

// A graph input, output or overridable initializer as the model declares it.
struct SessionValue {
  std::string name;
  ValueType type;
};

class SessionInterface {
 public:
  SessionInterface() = default;
  SessionInterface(const SessionInterface&) = delete;
  SessionInterface& operator=(const SessionInterface&) = delete;

  // Of the graph as it was read. `compares_names`: whether feeds are checked for equal sizes where
  // axes have equal names.
  void Describe(const Graph& graph, bool compares_names);
  // Adds what inference found out about the outputs, in the model's own names.
  void RefineOutputs(const Graph& graph);

  // Required inputs, in the model's order.
  const std::vector<SessionValue>& inputs() const { return inputs_; }
  const std::vector<SessionValue>& outputs() const { return outputs_; }
  const std::vector<SessionValue>& overridable_initializers() const { return overridables_; }
  // All inputs of the graph, in the order of Plan::inputs.
  const std::vector<SessionValue>& graph_inputs() const { return graph_inputs_; }

  // The place of a name among graph_inputs() or outputs(); `likely` is where it may well be. Error:
  // kInvalidArgument, with the names that there are.
  Result<size_t> FindInput(std::string_view name, size_t likely = 0) const;
  Result<size_t> FindOutput(std::string_view name, size_t likely = 0) const;

  // The feeds, one per name, in the places of graph_inputs(), where kNone is not fed: `feeds`
  // themselves if they lie so, else copies in `ordered`, which is empty. Scalars get their shape.
  // An optional that is not fed is an empty one. `check` is new. Errors: kInvalidArgument for an
  // unknown or repeated name and for a feed of another type or shape than declared; kFail for a
  // missing one.
  Result<std::span<const Value>> OrderFeeds(std::span<const std::string_view> names,
                                            std::span<const Value> feeds,
                                            PooledVector<Value>& ordered, FeedCheck& check) const;
  // The places of outputs, one per name. Error: as of FindOutput.
  Status FindOutputs(std::span<const std::string_view> names, std::span<size_t> places) const;

 private:
  Status CheckNothingMissing(std::span<const Value> ordered) const;

  // The interface lists are parts of it.
  std::vector<SessionValue> graph_inputs_;
  std::vector<bool> is_required_;
  std::vector<SessionValue> inputs_, outputs_, overridables_;
  NameIndex input_names_, output_names_;    // of graph_inputs_ and outputs_
  std::vector<AxisSymbols> input_symbols_;  // of graph_inputs_
};

}  // namespace tenon
