// A plan made ready on a device: kernels with their arguments set, and the memory between them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "device.h"
#include "device_trace.h"
#include "plan.h"

namespace opencl {

// Used by one thread at a time.
class Executable {
 public:
  // `weights` has a buffer for each value of the graph that is constant; it outlives this.
  static Result<std::unique_ptr<Executable>> Create(Device& device, Plan plan,
                                                    std::span<const cl_mem> weights);
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  const std::vector<PlannedOutput>& outputs() const { return plan_.outputs; }
  // Queues all kernels. The scratch memory is shared by all runs: one on another queue waits for
  // the last.
  Status Run(cl_command_queue queue, std::span<const Location> inputs,
             std::span<const Location> outputs, DeviceTrace& trace);

 private:
  explicit Executable(Plan plan) : plan_(std::move(plan)) {}
  Status Prepare(Device& device, std::span<const cl_mem> weights);
  Status SetArguments(size_t launch, std::span<const cl_mem> weights);
  Status SetBuffer(cl_kernel kernel, cl_uint index, const Argument& argument, cl_mem buffer,
                   size_t offset_bytes);

  // An argument that differs from run to run.
  struct RunArgument {
    cl_uint index;
    Argument argument;
  };

  Plan plan_;
  std::vector<cl_kernel> kernels_;                       // by launch
  std::vector<std::vector<RunArgument>> run_arguments_;  // by launch
  std::vector<cl_mem> constants_;
  cl_mem slab_ = nullptr;
  cl_command_queue last_queue_ = nullptr;
  cl_event last_event_ = nullptr;
};

}  // namespace opencl
