#include "devices.h"

namespace tenon::python {

enum class AllocatorType { kInvalid = -1, kDevice = 0, kArena = 1 };
enum class ExecutionOrder { kDefault = 0, kPriority = 1, kMemory = 2 };
enum class ArenaStrategy { kNextPowerOfTwo = 0, kSameAsRequested = 1 };

namespace {

void BindMemoryEnumerations(nb::module_& module) {
  nb::enum_<AllocatorType>(module, "OrtAllocatorType", nb::is_arithmetic())
      .value("INVALID", AllocatorType::kInvalid)
      .value("ORT_DEVICE_ALLOCATOR", AllocatorType::kDevice)
      .value("ORT_ARENA_ALLOCATOR", AllocatorType::kArena);
  nb::enum_<OrtMemType>(module, "OrtMemType", nb::is_arithmetic())
      .value("CPU_INPUT", OrtMemTypeCPUInput)
      .value("CPU_OUTPUT", OrtMemTypeCPUOutput)
      .value("CPU", OrtMemTypeCPU)
      .value("DEFAULT", OrtMemTypeDefault);
  nb::enum_<OrtDeviceMemoryType>(module, "OrtDeviceMemoryType", nb::is_arithmetic())
      .value("DEFAULT", OrtDeviceMemoryType_DEFAULT)
      .value("HOST_ACCESSIBLE", OrtDeviceMemoryType_HOST_ACCESSIBLE);
  nb::enum_<OrtMemoryInfoDeviceType>(module, "OrtMemoryInfoDeviceType", nb::is_arithmetic())
      .value("CPU", OrtMemoryInfoDeviceType_CPU)
      .value("GPU", OrtMemoryInfoDeviceType_GPU)
      .value("FPGA", OrtMemoryInfoDeviceType_FPGA)
      .value("NPU", OrtMemoryInfoDeviceType_NPU);
  nb::enum_<ArenaStrategy>(module, "ArenaExtendStrategy", nb::is_arithmetic())
      .value("kNextPowerOfTwo", ArenaStrategy::kNextPowerOfTwo)
      .value("kSameAsRequested", ArenaStrategy::kSameAsRequested)
      .export_values();
  nb::enum_<OrtSparseFormat>(module, "OrtSparseFormat", nb::is_arithmetic())
      .value("ORT_SPARSE_UNDEFINED", ORT_SPARSE_UNDEFINED)
      .value("ORT_SPARSE_COO", ORT_SPARSE_COO)
      .value("ORT_SPARSE_CSRC", ORT_SPARSE_CSRC)
      .value("ORT_SPARSE_BLOCK_SPARSE", ORT_SPARSE_BLOCK_SPARSE);
}

void BindDeviceEnumerations(nb::module_& module) {
  nb::enum_<OrtHardwareDeviceType>(module, "OrtHardwareDeviceType", nb::is_arithmetic())
      .value("CPU", OrtHardwareDeviceType_CPU)
      .value("GPU", OrtHardwareDeviceType_GPU)
      .value("NPU", OrtHardwareDeviceType_NPU);
  nb::enum_<OrtExecutionProviderDevicePolicy>(module, "OrtExecutionProviderDevicePolicy",
                                              nb::is_arithmetic())
      .value("DEFAULT", OrtExecutionProviderDevicePolicy_DEFAULT)
      .value("PREFER_CPU", OrtExecutionProviderDevicePolicy_PREFER_CPU)
      .value("PREFER_NPU", OrtExecutionProviderDevicePolicy_PREFER_NPU)
      .value("PREFER_GPU", OrtExecutionProviderDevicePolicy_PREFER_GPU)
      .value("MAX_PERFORMANCE", OrtExecutionProviderDevicePolicy_MAX_PERFORMANCE)
      .value("MAX_EFFICIENCY", OrtExecutionProviderDevicePolicy_MAX_EFFICIENCY)
      .value("MIN_OVERALL_POWER", OrtExecutionProviderDevicePolicy_MIN_OVERALL_POWER);
  nb::enum_<OrtDeviceEpIncompatibilityReason>(module, "OrtDeviceEpIncompatibilityReason",
                                              nb::is_arithmetic())
      .value("NONE", OrtDeviceEpIncompatibility_NONE)
      .value("DRIVER_INCOMPATIBLE", OrtDeviceEpIncompatibility_DRIVER_INCOMPATIBLE)
      .value("DEVICE_INCOMPATIBLE", OrtDeviceEpIncompatibility_DEVICE_INCOMPATIBLE)
      .value("MISSING_DEPENDENCY", OrtDeviceEpIncompatibility_MISSING_DEPENDENCY)
      .value("UNKNOWN", OrtDeviceEpIncompatibility_UNKNOWN);
  nb::enum_<OrtCompiledModelCompatibility>(module, "OrtCompiledModelCompatibility",
                                           nb::is_arithmetic())
      .value("EP_NOT_APPLICABLE", OrtCompiledModelCompatibility_EP_NOT_APPLICABLE)
      .value("EP_SUPPORTED_OPTIMAL", OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL)
      .value("EP_SUPPORTED_PREFER_RECOMPILATION",
             OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION)
      .value("EP_UNSUPPORTED", OrtCompiledModelCompatibility_EP_UNSUPPORTED);
}

}  // namespace

void BindEnumerations(nb::module_& module) {
  BindMemoryEnumerations(module);
  BindDeviceEnumerations(module);
  nb::enum_<ExecutionOrder>(module, "ExecutionOrder", nb::is_arithmetic())
      .value("DEFAULT", ExecutionOrder::kDefault)
      .value("PRIORITY_BASED", ExecutionOrder::kPriority)
      .value("MEMORY_EFFICIENT", ExecutionOrder::kMemory);
  nb::enum_<OrtCompileApiFlags>(module, "OrtCompileApiFlags", nb::is_arithmetic(), nb::is_flag())
      .value("NONE", OrtCompileApiFlags_NONE)
      .value("ERROR_IF_NO_NODES_COMPILED", OrtCompileApiFlags_ERROR_IF_NO_NODES_COMPILED)
      .value("ERROR_IF_OUTPUT_FILE_EXISTS", OrtCompileApiFlags_ERROR_IF_OUTPUT_FILE_EXISTS);
}

}  // namespace tenon::python
