#include "device_call.h"

namespace cuda {

Status KernelCall::Load() {
  PLUGIN_ASSIGN_OR_RETURN(function_, device_.programs().Find(source_, name_));
  constexpr unsigned kWithoutAsking = 48 * 1024;
  if (shared_bytes <= kWithoutAsking) return Status();
  return CU_CHECK(cuFuncSetAttribute, function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                  static_cast<int>(shared_bytes));
}

Status KernelCall::Run(CUstream stream, std::span<void* const> arguments) {
  return LaunchKernel(function_, grid, block, shared_bytes, stream, arguments, numbers);
}

Status LaunchKernel(CUfunction function, std::array<unsigned, 3> grid,
                    std::array<unsigned, 3> block, unsigned shared_bytes, CUstream stream,
                    std::span<void* const> addresses, std::span<Number> numbers) {
  std::vector<void*> parameters;
  for (void* const& address : addresses) parameters.push_back(const_cast<void**>(&address));
  for (Number& number : numbers) {
    parameters.push_back(std::visit([](auto& value) -> void* { return &value; }, number));
  }
  return CU_CHECK(cuLaunchKernel, function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                  shared_bytes, stream, parameters.data(), nullptr);
}

}  // namespace cuda
