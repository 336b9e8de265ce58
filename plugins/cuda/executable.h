// A plan made ready on a device: kernels with their arguments, and the memory between them.
#pragma once

#include <list>
#include <memory>
#include <span>
#include <vector>

#include "device.h"
#include "device_trace.h"
#include "plan.h"

namespace cuda {

// Used by one thread at a time.
class Executable {
 public:
  // `weights` has the address of each value of the graph that is constant; they outlive this.
  static Result<std::unique_ptr<Executable>> Create(Device& device, Plan plan,
                                                    std::span<void* const> weights);
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  const std::vector<PlannedOutput>& outputs() const { return plan_.outputs; }
  // Queues all work. The scratch memory is shared by all runs: one on another stream waits for the
  // last. Runs that find their inputs and outputs where an earlier one had them are replayed as one
  // CUDA graph.
  Status Run(CUstream stream, std::span<void* const> inputs, std::span<void* const> outputs,
             DeviceTrace& trace);

 private:
  // One launch, ready but for the addresses of inputs and outputs.
  struct Step {
    CUfunction function = nullptr;      // of a generated kernel
    std::vector<uint64_t> values;       // its arguments, eight bytes each
    std::vector<void*> addresses;       // a call's arguments
    std::vector<size_t> run_arguments;  // numbers of arguments of the launch that differ by run
  };
  struct Recorded {
    std::vector<void*> addresses;  // inputs and outputs
    CUgraphExec graph = nullptr;   // null: seen once
  };

  Executable(Device& device, Plan plan) : device_(device), plan_(std::move(plan)) {}
  Status Prepare(std::span<void* const> weights);
  Status CompileAll();
  void* AddressOf(const Argument& argument, std::span<void* const> inputs,
                  std::span<void* const> outputs) const;
  Status RunSteps(CUstream stream, std::span<void* const> inputs, std::span<void* const> outputs,
                  DeviceTrace& trace);
  Result<CUgraphExec> Record(std::span<void* const> inputs, std::span<void* const> outputs,
                             DeviceTrace& trace);
  // The graph for these addresses; null if they are new, or cannot be recorded.
  Result<CUgraphExec> FindGraph(std::span<void* const> inputs, std::span<void* const> outputs,
                                DeviceTrace& trace);

  Device& device_;
  Plan plan_;
  std::span<void* const> weights_;
  std::vector<Step> steps_;  // by launch
  std::vector<size_t> constant_offsets_;
  std::byte* constants_ = nullptr;
  std::byte* slab_ = nullptr;
  std::list<Recorded> recorded_;  // the last used first
  CUstream capture_stream_ = nullptr;
  CUstream last_stream_ = nullptr;
  CUevent last_event_ = nullptr;
  bool has_run_ = false;
  bool can_record_ = true;
};

}  // namespace cuda
