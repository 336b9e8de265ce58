// What a session takes and gives: names and types, as its model declares them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/type.h"
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
  // Of the graph as it was read.
  void Describe(const Graph& graph);
  // Adds what inference found out about the outputs, in the model's own names.
  void RefineOutputs(const Graph& graph);

  // Required inputs, in the model's order.
  const std::vector<SessionValue>& inputs() const { return inputs_; }
  const std::vector<SessionValue>& outputs() const { return outputs_; }
  const std::vector<SessionValue>& overridable_initializers() const { return overridables_; }
  // All inputs of the graph, in the order of Plan::inputs.
  const std::vector<SessionValue>& graph_inputs() const { return graph_inputs_; }

  // The place of a name among graph_inputs() or outputs(). Error: kInvalidArgument, with the names
  // that there are.
  Result<size_t> FindInput(std::string_view name) const;
  Result<size_t> FindOutput(std::string_view name) const;

  // Puts feeds, one per name, in their places in `ordered`, which is empty and has one for each of
  // graph_inputs(). Errors: kInvalidArgument for an unknown or repeated name and for a feed of
  // another type or shape than declared; kFail for a missing one.
  Status OrderFeeds(std::span<const std::string_view> names, std::span<const Value> feeds,
                    std::span<Value> ordered) const;

 private:
  Status CheckNothingMissing(std::span<const Value> ordered) const;

  // The interface lists are parts of it.
  std::vector<SessionValue> graph_inputs_;
  std::vector<bool> is_required_;
  std::vector<SessionValue> inputs_, outputs_, overridables_;
};

}  // namespace tenon
