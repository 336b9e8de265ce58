// Makes the plan of a graph for inputs of certain shapes. Operators' lowerings use it to read their
// inputs and to say how their outputs come about.
//
// Element-wise results are not computed at once: they stay expressions until a consumer needs them
// in memory, and are then computed by one kernel, if possible at the end of the one that computes
// their operand. Permutations and slices are views that cost nothing.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "plan.h"
#include "target.h"
#include "tensor.h"

namespace codegen {

// An input of the graph: what is known of it when the plan is made.
struct InputDescription {
  DataType type = DataType::kNone;
  Shape shape;
  std::optional<std::vector<int64_t>> known;
};

class Planner {
 public:
  // `inputs` and `outputs` are values of the graph, in the order of the kernel context.
  Planner(const Graph& graph, std::span<const int> inputs, std::span<const int> outputs,
          const Target& target);

  Result<Plan> Make(std::span<const InputDescription> inputs);

  // --- for lowerings ---

  bool HasInput(const Node& node, size_t index) const;
  // The input, which must be there.
  TensorRef Input(const Node& node, size_t index) const;
  // Its contents: sizes, axes and the like.
  Result<std::vector<int64_t>> KnownInput(const Node& node, size_t index) const;
  Status SetOutput(const Node& node, size_t index, TensorRef tensor);
  // The same for what is in memory from now on: in that of the graph's output, if it is one.
  Result<TensorRef> StoreOutput(const Node& node, size_t index, TensorRef tensor);
  // Memory for output `index`, which a call fills: that of the graph's output, if it is one.
  TensorRef AllocateOutput(const Node& node, size_t index, DataType type, Shape shape);

  TensorRef Expression(DataType type, Shape shape, std::string expression,
                       std::vector<TensorRef> operands);
  // The sum, broadcast; perhaps made by the step that makes one of them.
  Result<TensorRef> Add(const TensorRef& a, const TensorRef& b);
  TensorRef FromRoot(DataType type, Shape shape, Root root);
  TensorRef FromCall(DataType type, Shape shape, std::shared_ptr<Call> call);
  TensorRef KnownIntegers(DataType type, Shape shape, std::vector<int64_t> values);
  // A view of a tensor, which is put into memory first.
  Result<TensorRef> View(const TensorRef& tensor, Shape shape, Shape strides, int64_t offset);
  Result<TensorRef> Reshape(const TensorRef& tensor, Shape shape);
  // The tensor in memory, in whatever layout, or row-major.
  Status Store(const TensorRef& tensor);
  Result<TensorRef> Contiguous(const TensorRef& tensor);
  // The tensor in memory with these strides.
  Result<TensorRef> InLayout(const TensorRef& tensor, const Shape& strides);
  // Memory for an output that several kernels write: see StoreInto.
  TensorRef Allocate(DataType type, Shape shape);
  // Writes a tensor into the part of `target` that starts at `offset` and has these strides.
  Status StoreInto(const TensorRef& tensor, const Tensor& target, const Shape& strides,
                   int64_t offset);

  size_t group_size() const { return group_size_; }  // of kernels with one item per element
  size_t max_group_size() const { return target_.max_group_size; }
  const Target& target() const { return target_; }
  const Graph& graph() const { return graph_; }

 private:
  friend class ExpressionWriter;

  Status LowerNodes();
  Status LowerNode(const Node& node);
  Status FinishOutputs();
  // Computes a deferred tensor into memory that is described by `target`.
  Status Emit(const TensorRef& tensor, const Tensor& target);
  Status EmitCall(const TensorRef& tensor, const Tensor& target);
  // The layout that a deferred tensor gets in scratch memory.
  static Shape StridesOf(const Tensor& tensor);
  int AddStorage(Storage::Kind kind, int index, size_t bytes);
  bool IsSharedLater(int value) const;
  int OutputIndex(int value) const;  // -1 if it is none

  const Graph& graph_;
  std::vector<int> inputs_;
  std::vector<int> outputs_;
  Target target_;
  size_t group_size_;
  Plan plan_;
  std::vector<TensorRef> tensors_;       // by value
  std::vector<int> output_storage_;      // by output
  std::vector<bool> output_is_written_;  // by output
};

}  // namespace codegen
