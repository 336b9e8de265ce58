// What a kernel can use while it runs.
#pragma once

#include <memory>
#include <span>

#include "base/block_pool.h"
#include "base/function_ref.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "ir/node.h"
#include "tensor/value.h"

namespace tenon {

class Logger;
class Stream;
class SubgraphRunner;

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
  // The caller's tensor that AllocateOutput returns if type and shape fit; null if there is none.
  virtual const Tensor* GivenOutput(size_t) const { return nullptr; }

  // At least `bytes` bytes aligned to 64, valid until Run returns; one call per Run. The memory is
  // kept for later runs, so a steady run allocates nothing. Null if there is no memory.
  virtual void* Scratch(size_t bytes) = 0;

  // A tensor in the CPU's memory with uninitialised elements. It comes from the allocator of the
  // run's values, so a steady run takes nothing from the heap. It may outlive the run. Error: out
  // of memory.
  Result<Tensor> AllocateTensor(DataType type, const Shape& shape) const;

  // Its loops leave out parts once the run is to end early. The outputs may then hold anything, and
  // nothing that outlasts the run may depend on what the loops computed.
  ThreadPool& threads() const { return *threads_; }
  // The stream for the kernel's work; null if the provider has none.
  Stream* stream() const { return stream_; }

  // The log of the run; null if it is the session's, or no run.
  const Logger* logger() const { return logger_; }

  // Calls body(task, scratch) once for every task in [0, count), divided among the threads.
  // `scratch` has `scratch_bytes` bytes, aligned to 64, that no other task uses meanwhile. Uses up
  // the one call of Scratch if scratch_bytes > 0. Error: out of memory.
  Status ForEachTask(size_t count, size_t scratch_bytes,
                     FunctionRef<void(size_t task, std::byte* scratch)> body);
  // Like above, for kernels with several loops, which divide the memory of one call of Scratch
  // themselves: `memory` is aligned to 64 and has TaskScratchBytes(count, scratch_bytes) bytes.
  size_t TaskScratchBytes(size_t count, size_t scratch_bytes) const;
  void ForEachTaskIn(std::byte* memory, size_t count, size_t scratch_bytes,
                     FunctionRef<void(size_t task, std::byte* scratch)> body);

  // The runner of the i-th subgraph of the node.
  virtual SubgraphRunner& Subgraph(size_t i) = 0;

  // Input `i` to move from, if nothing reads it after this kernel; null otherwise.
  virtual Value* InputToConsume(size_t) { return nullptr; }

 protected:
  const Node* node_ = nullptr;
  std::span<const Value* const> inputs_;
  std::span<Value* const> outputs_;
  ThreadPool* threads_ = nullptr;
  Stream* stream_ = nullptr;
  const Logger* logger_ = nullptr;
  const std::shared_ptr<Allocator>* host_memory_ = nullptr;  // null: the heap
};

// A list of values for the time of a run.
using RunValues = PooledVector<Value>;

// Runs a subgraph of a control-flow node. The executor supplies the captured values.
class SubgraphRunner {
 public:
  virtual ~SubgraphRunner() = default;
  // `inputs` are in the order of the subgraph's inputs. They are moved from, so that the subgraph
  // may change in place a value that has no other owner. `outputs` receives one value per output,
  // which may share memory with values that the caller can see. Tensors that `outputs` held before
  // may be written again if they have no other owner.
  virtual Status Run(std::span<Value> inputs, RunValues& outputs) = 0;
};

}  // namespace tenon
