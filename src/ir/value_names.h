// The names under which a graph's values are written to a file.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "ir/graph.h"

namespace tenon {

// ONNX lets a name mean one thing in a graph and all graphs inside it, wants captures to be called
// what the outer value is called, and outputs to be values of the graph. A Graph is freer, so some
// values get other names here. Inputs, initializers and outputs of the outermost graph, which
// callers know by name, keep theirs.
class ValueNames {
 public:
  struct Output {
    std::string name;
    // Whether an Identity node must make it from the output's value: that value has a name that it
    // must keep, or is not of this graph.
    bool needs_identity = false;
  };

  // `outer` has the names of the graph around this one, or is null. Both must outlive this object.
  ValueNames(const Graph& graph, const ValueNames* outer);

  // "" for ValueId::kNone.
  const std::string& operator[](ValueId id) const;
  // One entry per output of the graph.
  const std::vector<Output>& outputs() const { return outputs_; }

 private:
  bool IsTaken(const std::string& name) const;
  void Assign(ValueId id, std::string name);
  std::string Unused(std::string_view hint) const;
  void NameOutputs(const Graph& graph);
  void NameInnerOutputs(const Graph& graph);

  const ValueNames* outer_;
  std::vector<std::string> names_;
  std::vector<Output> outputs_;
  std::unordered_set<std::string> taken_;
};

}  // namespace tenon
