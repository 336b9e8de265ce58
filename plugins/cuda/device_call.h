// Steps of plans that are calls, as this provider runs them.
#pragma once

#include <array>
#include <string>
#include <variant>

#include "call.h"
#include "options.h"
#include "planner.h"

namespace cuda {

// The session that a plan is made for.
inline Context& ContextOf(const Planner& planner) {
  return *static_cast<Context*>(planner.target().context);
}

struct DeviceCall : Call {
  using Call::Call;
  // Source of a kernel to be compiled before Load; null if there is none.
  virtual const std::string* source() const { return nullptr; }
  // Gets everything ready. The device's context is current, here and in Run.
  virtual Status Load() { return Status(); }
  // Queues the work. `arguments` are addresses: of the operands, of what is also written, of the
  // result, of the workspace if there is one. May be called while the stream is captured.
  virtual Status Run(CUstream stream, std::span<void* const> arguments) = 0;
};

// Launches a kernel whose parameters are the addresses and then the numbers.
using Number = std::variant<int32_t, int64_t, float>;
Status LaunchKernel(CUfunction function, std::array<unsigned, 3> grid,
                    std::array<unsigned, 3> block, unsigned shared_bytes, CUstream stream,
                    std::span<void* const> addresses, std::span<Number> numbers);

// A kernel in CUDA C++ that is written by hand: extern "C" __global__ void name(...), whose
// parameters are the addresses and then the numbers.
class KernelCall : public DeviceCall {
 public:
  KernelCall(Device& device, const char* name, std::string source, std::vector<TensorRef> operands)
      : DeviceCall(std::move(operands)), device_(device), name_(name), source_(std::move(source)) {}

  const char* name() const override { return name_; }
  const std::string* source() const override { return &source_; }
  Status Load() override;
  Status Run(CUstream stream, std::span<void* const> arguments) override;

  std::vector<Number> numbers;
  std::array<unsigned, 3> grid = {1, 1, 1};
  std::array<unsigned, 3> block = {1, 1, 1};
  unsigned shared_bytes = 0;  // dynamic shared memory

 private:
  Device& device_;
  const char* name_;
  std::string source_;
  CUfunction function_ = nullptr;
};

}  // namespace cuda
