// What a provider runs for a node: a kernel, and what it sees when it is made and when it runs.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/block_pool.h"
#include "base/function_ref.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "ir/graph.h"
#include "ir/shape_context.h"
#include "tensor/value.h"

namespace tenon {

class SharedWeights;
class Stream;
class SubgraphRunner;

// Where a kernel wants an input or leaves an output.
enum class Residence : uint8_t {
  kProvider,  // the memory of the provider that owns the node
  kHost,      // the CPU's memory: shapes, axes, conditions
};

// How a kernel treats its outputs; the planner relies on it.
struct KernelTraits {
  // Output 0 has the elements of input 0 under another shape: the executor shares the memory and
  // never calls Run.
  bool is_view = false;
  // Run reads input `unaligned_input` by its bytes, so that a constant there need not be aligned;
  // -1: none.
  int8_t unaligned_input = -1;
  // Output 0 may be written over input `in_place_input` when both have the same size in bytes and
  // nothing else reads the input afterwards; -1: none of them. `in_place_also` is a second
  // candidate.
  int8_t in_place_input = -1;
  int8_t in_place_also = -1;
  // The kernel finds the output shapes itself and calls AllocateOutput or SetOutput for each.
  bool allocates_outputs = false;
  // The elements of the outputs depend on the shapes of the inputs alone (Shape, Size).
  bool reads_shapes_only = false;
  // All elements of the only output are the same, and Run fills as many as the tensor that it is
  // given has: a large constant is made by repeating a part.
  bool fills_evenly = false;
  // Equal inputs may give different outputs (random numbers) or have effects: never folded or
  // cached.
  bool is_stateful = false;
  // No executor runs it: whoever runs the plan in parts takes what it reads and supplies what it
  // makes, between two parts.
  bool yields = false;
};

// One run of one kernel. Valid during Kernel::Run.
class KernelContext {
 public:
  virtual ~KernelContext() = default;

  const Node& node() const { return *node_; }
  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return outputs_.size(); }
  bool HasInput(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  bool HasOutput(size_t i) const { return i < outputs_.size() && outputs_[i] != nullptr; }

  // Input `i`, which must be present; types have been checked against the schema.
  const Value& InputValue(size_t i) const { return *inputs_[i]; }
  const Tensor& Input(size_t i) const { return inputs_[i]->tensor(); }
  // Output `i`, which must be present: allocated with the shape that the shape function gave.
  Tensor& Output(size_t i) { return outputs_[i]->tensor(); }

  // For kernels with traits.allocates_outputs, in any order, once per present output.
  virtual Result<Tensor*> AllocateOutput(size_t i, DataType type, const Shape& shape) = 0;
  void SetOutput(size_t i, Value value) { *outputs_[i] = std::move(value); }

  // At least `bytes` bytes aligned to 64, valid until Run returns; one call per Run. Kept between
  // runs, so a steady run allocates nothing. Null if there is no memory.
  virtual void* Scratch(size_t bytes) = 0;

  // A tensor in the CPU's memory with uninitialised elements, from where the run's values come:
  // a steady run takes nothing from the heap for it. It may outlive the run. Error: out of memory.
  Result<Tensor> AllocateTensor(DataType type, const Shape& shape) const;

  ThreadPool& threads() const { return *threads_; }
  // The stream to hand the work to; null if the provider has none.
  Stream* stream() const { return stream_; }

  // Calls body(task, scratch) once for every task in [0, count), divided among the threads.
  // `scratch` has `scratch_bytes` bytes, aligned to 64, that no other task uses meanwhile. Uses up
  // the one call of Scratch if scratch_bytes > 0. Error: out of memory.
  Status ForEachTask(size_t count, size_t scratch_bytes,
                     FunctionRef<void(size_t task, std::byte* scratch)> body);
  // The same for kernels with several loops, which divide memory of one call of Scratch themselves:
  // `memory` is aligned to 64 and has TaskScratchBytes(count, scratch_bytes) bytes.
  size_t TaskScratchBytes(size_t count, size_t scratch_bytes) const;
  void ForEachTaskIn(std::byte* memory, size_t count, size_t scratch_bytes,
                     FunctionRef<void(size_t task, std::byte* scratch)> body);
  // True once the run should end early; long kernels look at it now and then.
  bool cancelled() const { return cancelled_ && cancelled_->load(std::memory_order_relaxed); }

  // The runner of the i-th subgraph of the node.
  virtual SubgraphRunner& Subgraph(size_t i) = 0;

  // Input `i` to move from, if neither this run nor anybody else reads it after this kernel; null
  // otherwise.
  virtual Value* InputToConsume(size_t) { return nullptr; }

 protected:
  const Node* node_ = nullptr;
  std::span<const Value* const> inputs_;
  std::span<Value* const> outputs_;
  ThreadPool* threads_ = nullptr;
  const std::atomic<bool>* cancelled_ = nullptr;
  Stream* stream_ = nullptr;
  const std::shared_ptr<Allocator>* host_memory_ = nullptr;  // null: plain memory
};

// Lists of values that last as long as a run.
using RunValues = PooledVector<Value>;

// Runs a subgraph of a control-flow node; captured values are supplied by the executor.
class SubgraphRunner {
 public:
  virtual ~SubgraphRunner() = default;
  // `inputs` in the order of the subgraph's inputs; they are moved from, so that the subgraph may
  // change in place what nobody else holds. `outputs` receives one value per output, in memory of
  // its own or shared with values that the caller can see; tensors that it held before and that
  // nobody else holds may be written again for them.
  virtual Status Run(std::span<Value> inputs, RunValues& outputs) = 0;
};

// What a kernel sees when it is made.
class KernelInfo {
 public:
  // `shared_weights` is null where nothing is shared.
  KernelInfo(const Graph& graph, const Node& node,
             std::shared_ptr<SharedWeights> shared_weights = nullptr)
      : graph_(graph), node_(node), shared_weights_(std::move(shared_weights)) {}

  const Node& node() const { return node_; }
  const Graph& graph() const { return graph_; }
  size_t input_count() const { return node_.inputs.size(); }
  size_t output_count() const { return node_.outputs.size(); }
  bool HasInput(size_t i) const { return node_.has_input(i); }
  bool HasOutput(size_t i) const { return node_.has_output(i); }
  // Inferred types; shapes may be unknown. A default ValueType if absent.
  const ValueType& InputType(size_t i) const;
  const ValueType& OutputType(size_t i) const;
  DataType ElementType(size_t i) const { return InputType(i).element_type; }
  DataType OutputElementType(size_t i) const { return OutputType(i).element_type; }
  // The tensor if input `i` is a constant, else null. Lives as long as the session unless every
  // kernel that reads it said ReleaseConstant.
  const Tensor* Constant(size_t i) const;
  // The same, but its elements may not be aligned (Tensor::is_aligned): for kernels that copy them
  // into a form of their own.
  const Tensor* StoredConstant(size_t i) const;
  // The kernel keeps its own packed copy of constant input `i` and will never read Input(i).
  void ReleaseConstant(size_t i) { released_constants.push_back(i); }

  // Where sessions that agreed on it share the packed forms of their constants; null without one.
  const std::shared_ptr<SharedWeights>& shared_weights() const { return shared_weights_; }

  std::vector<size_t> released_constants;

 private:
  const Graph& graph_;
  const Node& node_;
  const std::shared_ptr<SharedWeights> shared_weights_;
};

// Runs any number of times, from several threads at once, without changing.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual KernelTraits traits() const { return {}; }
  virtual Residence InputResidence(size_t i) const {
    (void)i;
    return Residence::kProvider;
  }
  virtual Residence OutputResidence(size_t i) const {
    (void)i;
    return Residence::kProvider;
  }
  // For kernels with traits().allocates_outputs: the input over which output `i` may be written, if
  // both have the same size in bytes and nothing else reads the input afterwards; -1: none.
  virtual int InputToOverwrite(size_t i) const {
    (void)i;
    return -1;
  }
  // Shapes of the outputs; not called if traits().allocates_outputs.
  virtual Status InferShapes(ShapeContext& context) const = 0;
  // Errors say what the kernel knows; the executor adds node, operator and value names.
  virtual Status Run(KernelContext& context) const = 0;
};

}  // namespace tenon
