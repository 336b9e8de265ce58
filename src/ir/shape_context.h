// What a shape function sees of one node. One function serves static inference, where dimensions
// may be symbols and data may be unknown, and run time, where everything is known.
#pragma once

#include <optional>
#include <vector>

#include "base/status.h"
#include "ir/node.h"
#include "ir/type.h"

namespace tenon {

// A failure that means "not known yet" and not "wrong": static inference leaves the node's outputs
// as they are. At run time it is a real error.
Status UnknownShape();
bool IsUnknownShape(const Status& status);

class ShapeContext {
 public:
  virtual ~ShapeContext() = default;

  virtual const Node& node() const = 0;
  size_t input_count() const { return node().inputs.size(); }
  size_t output_count() const { return node().outputs.size(); }
  bool HasInput(size_t i) const { return node().has_input(i); }
  bool HasOutput(size_t i) const { return node().has_output(i); }

  // What is known of input `i`, which must be present.
  virtual ValueType InputType(size_t i) const = 0;
  DataType ElementType(size_t i) const { return InputType(i).element_type; }

  // The shape of tensor input `i`. Errors: UnknownShape() if the rank is unknown; kInvalidArgument
  // if the input is absent or no tensor.
  virtual Result<SymbolicShape> Input(size_t i) const = 0;
  // The same, and its rank must be `rank`.
  Result<SymbolicShape> InputOfRank(size_t i, size_t rank) const;

  // The elements of input `i` if they are known (a constant, or at run time), else null. At run
  // time this makes the output shapes depend on data, so call it only when the shape needs it.
  virtual const Tensor* InputData(size_t i) const = 0;
  // The elements of input `i`, a tensor of int32 or int64 with rank <= 1, as dimensions; they may
  // be symbols computed by other nodes from shapes. Errors: UnknownShape().
  virtual Result<Dims> InputAsDims(size_t i) const = 0;
  // The elements of such an input as numbers. Errors: UnknownShape() if one is not a number.
  Result<Shape> InputAsInts(size_t i) const;

  // Sets the shape of tensor output `i`; its element type is what the schema's type constraints
  // say. An output that the node leaves out is ignored.
  virtual Status SetOutput(size_t i, SymbolicShape shape) = 0;
  // The same with an element type of its own.
  virtual Status SetOutput(size_t i, SymbolicShape shape, DataType type) = 0;
  // Any type, for outputs that are no tensors.
  virtual Status SetOutputType(size_t i, ValueType type) = 0;
  // For following shape computations in static inference alone: the elements of integer input `i`,
  // as far as they are known. Always nothing at run time.
  virtual std::optional<Dims> KnownDims(size_t i) const = 0;
  // Tells the elements of integer output `i`, in order. Ignored at run time.
  virtual void SetOutputDims(size_t i, Dims dims) = 0;

  // Types of the outputs of the subgraph in attribute `attribute` when its inputs have these types.
  virtual Result<std::vector<ValueType>> InferSubgraph(std::string_view attribute,
                                                       std::vector<ValueType> inputs) = 0;
};

// Sets the shape of outputs from the shapes of inputs; see ops/.
using ShapeFunction = Status (*)(const Node& node, ShapeContext& context);

// Which shape function a node has. The operators' room provides it.
class ShapeFunctionTable {
 public:
  virtual ~ShapeFunctionTable() = default;
  virtual ShapeFunction Find(const Node& node) const = 0;  // null: none
};

// NumPy's multidirectional broadcasting. Error: kInvalidArgument naming both shapes.
Result<SymbolicShape> BroadcastShapes(const SymbolicShape& a, const SymbolicShape& b);

}  // namespace tenon
