// Writes nodes of a graph into a builder program.
#pragma once

#include <memory>
#include <unordered_map>

#include "base/thread_pool.h"
#include "ir/graph.h"
#include "runtime/kernel_evaluator.h"
#include "runtime/provider.h"
#include "webnn/program.h"
#include "webnn/row.h"

namespace tenon::webnn {

// Infers the types of a graph and computes the values that follow from its constants and shapes.
// Not thread-safe.
class Folder {
 public:
  Folder();

  // Turns Constant nodes, and nodes whose outputs follow from constants and from known shapes, into
  // initializers. Errors: those of inference.
  Status Fold(Graph& graph);

 private:
  ThreadPool threads_;
  const std::unique_ptr<ExecutionProvider> cpu_;
  KernelEvaluator evaluator_;
};

// Writes the nodes of one graph, whose types are known, one after the other. Errors of all
// functions: kNotImplemented for nodes that cannot be written, with the reason.
class Emission {
 public:
  // All of these outlive the emission.
  Emission(const Graph& graph, ProgramBuilder& builder, Folder& folder)
      : graph_(graph), builder_(builder), folder_(folder) {}

  const Graph& graph() const { return graph_; }
  ProgramBuilder& builder() { return builder_; }

  // The operand for a value.
  void Set(ValueId id, Operand operand) { operands_.insert_or_assign(id, operand); }
  // The operand of a value that is already set, or a constant.
  Result<Operand> OperandOf(ValueId id);

  // By its row; otherwise by the body of its operator, which may have several levels.
  Status Emit(const Node& node);
  // Nodes in topological order.
  Status EmitAll();

 private:
  Status EmitBody(const Node& node);

  const Graph& graph_;
  ProgramBuilder& builder_;
  Folder& folder_;
  std::unordered_map<ValueId, Operand> operands_;
};

// A row's view of a node.
class NodeContext {
 public:
  NodeContext(Emission& emission, const Node& node, const Row& row)
      : emission_(emission), node_(node), row_(row) {}

  const Node& node() const { return node_; }
  std::string_view method() const { return row_.method; }
  ProgramBuilder& builder() { return emission_.builder(); }
  // Whether images have their channels as the last axis.
  bool has_channels_last() const;

  size_t input_count() const { return node_.inputs.size(); }
  bool HasInput(size_t i) const { return node_.has_input(i); }
  bool HasOutput(size_t i) const { return node_.has_output(i); }
  Result<Operand> Input(size_t i) { return emission_.OperandOf(node_.inputs[i]); }
  // Types of the model.
  DataType InputType(size_t i) const { return TypeOf(node_.inputs[i]).element_type; }
  DataType OutputType(size_t i) const { return TypeOf(node_.outputs[i]).element_type; }
  // The type of output `i` in the program.
  DataType OperandType(size_t i) { return builder().limits().TypeFor(OutputType(i)); }
  Result<Shape> InputShape(size_t i) const { return ShapeOf(node_.inputs[i]); }
  Result<Shape> OutputShape(size_t i) const { return ShapeOf(node_.outputs[i]); }

  // The elements of input `i`. Errors if it is not constant.
  Result<const Tensor*> Constant(size_t i) const;
  Result<Numbers> Integers(size_t i) const;
  // The integers of a constant input `i`, or of an attribute in older versions; nothing if both are
  // absent.
  Result<Numbers> IntegersOr(size_t i, std::string_view attribute) const;
  // The only element of a constant input.
  Result<double> Number(size_t i) const;
  // `axis` counted from the front.
  Result<int64_t> Axis(int64_t axis, size_t rank) const;

  // Sets output `i` to the operand, after a cast if its type is another one in programs.
  Status SetOutput(size_t i, Operand operand);
  // Refuses the node if it has output `i`.
  Status RefuseOutput(size_t i) const;
  // The first opset with the operator's version.
  int32_t since() const;

 private:
  const ValueType& TypeOf(ValueId id) const { return emission_.graph().value(id).type; }
  Result<Shape> ShapeOf(ValueId id) const;

  Emission& emission_;
  const Node& node_;
  const Row& row_;
};

}  // namespace tenon::webnn
