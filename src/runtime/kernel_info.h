// What a provider can use when it makes a kernel.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "ir/node.h"
#include "ir/type.h"
#include "runtime/weight_policy.h"

namespace tenon {

class Graph;

// A node of `graph` for which a kernel is made. Refers to both.
class KernelInfo {
 public:
  KernelInfo(const Graph& graph, const Node& node, WeightPolicy weights = {})
      : graph_(graph), node_(node), weights_(std::move(weights)) {}

  const Node& node() const { return node_; }
  const Graph& graph() const { return graph_; }
  size_t input_count() const { return node_.inputs.size(); }
  size_t output_count() const { return node_.outputs.size(); }
  bool HasInput(size_t i) const { return node_.has_input(i); }
  bool HasOutput(size_t i) const { return node_.has_output(i); }
  // The inferred type; its shape may be unknown. A default ValueType if the input is absent.
  const ValueType& InputType(size_t i) const;
  const ValueType& OutputType(size_t i) const;
  DataType ElementType(size_t i) const { return InputType(i).element_type; }
  DataType OutputElementType(size_t i) const { return OutputType(i).element_type; }
  // The tensor if input `i` is a constant, else null. It lives as long as the session, unless every
  // kernel that reads it has called ReleaseConstant.
  const Tensor* Constant(size_t i) const;
  // Like Constant, but the elements may not be aligned (Tensor::is_aligned): for kernels that copy
  // them into a form of their own.
  const Tensor* StoredConstant(size_t i) const;
  // States that the kernel keeps its own packed copy of constant input `i` and never reads
  // Input(i).
  void ReleaseConstant(size_t i) { released_constants.push_back(i); }

  // States that the kernel keeps its own form of all that it needs of the node's attributes, which
  // may be as large as weights. They last until the kernel is made.
  void ReleaseAttributes() { are_attributes_released = true; }

  const WeightPolicy& weights() const { return weights_; }

  std::vector<size_t> released_constants;
  bool are_attributes_released = false;

 private:
  const Graph& graph_;
  const Node& node_;
  const WeightPolicy weights_;
};

}  // namespace tenon
