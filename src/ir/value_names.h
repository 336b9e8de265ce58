// The names of a graph's values in a file.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "ir/graph.h"

namespace tenon {

// In ONNX, a name has one meaning in a graph and all graphs inside it, captures have the name of
// the outer value, and outputs are values of the graph. A Graph is less strict, so some values get
// other names here. Inputs, initializers and outputs of the outermost graph, which callers know by
// name, keep theirs.
class ValueNames {
 public:
  struct Output {
    std::string name;
    // Whether an Identity node must make it from the output's value, because that value must keep
    // another name or is not of this graph.
    bool needs_identity = false;
  };

  // `outer` has the names of the outer graph, or is null. Both must outlive this object.
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
