// Gradient-1 of ai.onnx.preview.training: replaces it by nodes that compute derivatives.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "ir/model.h"
#include "ir/shape_context.h"

namespace tenon {

// The domain of Gradient.
inline constexpr const char* kTraining = "ai.onnx.preview.training";

// Replaces each Gradient node of `graph` and its subgraphs by the nodes of reverse-mode
// differentiation. If its inputs are the values that `xs` and `zs` name, the existing values in
// between are used; otherwise the nodes in between are copied for its inputs. Functions must have
// been inlined; types are inferred if there is any Gradient. Integers, booleans and strings pass no
// gradient on, as in PyTorch: what depends on `xs` only through them has the gradient 0.
// Errors: kInvalidGraph for names that are not values of the graph; kNotImplemented, with the name,
// for an operator on the path from `xs` to `y` that has no gradient here.
Status ExpandGradients(Graph& graph, const ShapeFunctionTable& functions);

// Adds nodes to the backward part of a graph. Their names begin with `prefix`. They have the opset
// that the model imports, or the first one with the required meaning if that is later.
class GradientBuilder {
 public:
  // `is_last`: whether nothing differentiates what is added.
  GradientBuilder(Graph& graph, std::string prefix, int32_t opset, bool is_last)
      : graph_(graph), prefix_(std::move(prefix)), opset_(opset), is_last_(is_last) {}

  Graph& graph() { return graph_; }
  const std::string& prefix() const { return prefix_; }
  int32_t opset() const { return opset_; }

  // Whether operators of com.microsoft may compute the gradient of a value. They exist for float32,
  // and have no gradient themselves.
  bool MayUseKernels(ValueId id) const;

  // A new node, and its only output.
  ValueId Op(const char* op_type, std::span<const ValueId> inputs,
             std::vector<Attribute> attributes, const char* domain = "");
  ValueId Op(const char* op_type, std::initializer_list<ValueId> inputs);
  ValueId Op(const char* op_type, std::initializer_list<ValueId> inputs,
             std::vector<Attribute> attributes, const char* domain = "");
  // A new node, and its outputs.
  std::vector<ValueId> Ops(const char* op_type, std::span<const ValueId> inputs, size_t outputs,
                           std::vector<Attribute> attributes = {}, const char* domain = "");
  // An output of a node of the forward part, which is added if the node does not have it.
  ValueId OutputOf(const Node& node, size_t index);

  // A scalar of the type of `like`.
  ValueId Scalar(double value, ValueId like);
  // A scalar, or a one-dimensional constant, of int64.
  ValueId IntegerScalar(int64_t value);
  ValueId Integers(std::span<const int64_t> values);
  // The value in the type of `like`.
  ValueId CastTo(ValueId value, ValueId like);
  // `value` in each element of the shape of `like`, in its type or that of `type`.
  ValueId Filled(double value, ValueId like, ValueId type = ValueId::kNone);
  // 0, 1, 2 ... in the shape of `like`, as int64.
  ValueId Positions(ValueId like);
  // Zeros in the shape of `like`, with `updates` added at such positions.
  ValueId ScatteredByPosition(ValueId like, ValueId positions, ValueId updates);
  // The gradient of an operand that was broadcast: `gradient`, of shape `whole` if that is known,
  // summed over the axes along which `operand` was repeated.
  ValueId SumTo(ValueId gradient, ValueId operand, const SymbolicShape* whole);
  // The value in a shape of such sizes, some of which may be 0.
  ValueId Shaped(ValueId value, ValueId sizes);
  // The shape of a value if it is known.
  const SymbolicShape* ShapeOf(ValueId id) const;

 private:
  Graph& graph_;
  std::string prefix_;
  int32_t opset_;
  bool is_last_;
};

// A node of the forward part and the information about it.
struct GradientInputs {
  const Node& node;
  std::span<const ValueId> output_gradients;  // kNone if nothing depends on the output
  const std::unordered_set<ValueId>& differentiable;
  // Whether a value has a gradient.
  bool Needs(ValueId id) const { return differentiable.count(id) > 0; }
  ValueId x(size_t i) const { return node.has_input(i) ? node.inputs[i] : ValueId::kNone; }
  ValueId y() const { return node.outputs[0]; }
  ValueId dy() const { return output_gradients[0]; }
};

// Returns the gradients of the inputs, and of the captures of subgraphs, in order; kNone where they
// are 0. Inputs past the end have no gradient yet: it is an error to need one. There may be more
// than the node has optional inputs. Unused gradients are removed later.
using GradientRule = Result<std::vector<ValueId>> (*)(GradientBuilder& b, const GradientInputs& in);

// Null if the operator has none.
GradientRule FindGradientRule(const Node& node);

}  // namespace tenon
