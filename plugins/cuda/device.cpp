#include "device.h"

namespace cuda {
namespace {

// Matrix instructions of the kernels that are written by hand.
constexpr int kLeastArchitecture = 80;

}  // namespace

Result<std::unique_ptr<Device>> Device::Create(int number) {
  std::unique_ptr<Device> device(new Device);
  PLUGIN_RETURN_IF_ERROR(device->Prepare(number));
  return device;
}

Status Device::Prepare(int number) {
  number_ = number;
  PLUGIN_RETURN_IF_ERROR(CU_CHECK(cuDeviceGet, &device_, number));
  char name[256] = {};
  PLUGIN_RETURN_IF_ERROR(CU_CHECK(cuDeviceGetName, name, sizeof(name), device_));
  name_ = name;
  const auto attribute = [&](int which, int& value) {
    return CU_CHECK(cuDeviceGetAttribute, &value, which, device_);
  };
  int major = 0;
  int minor = 0;
  int has_pools = 0;
  PLUGIN_RETURN_IF_ERROR(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, major));
  PLUGIN_RETURN_IF_ERROR(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, minor));
  PLUGIN_RETURN_IF_ERROR(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, multiprocessors_));
  PLUGIN_RETURN_IF_ERROR(attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, has_pools));
  architecture_ = 10 * major + minor;
  if (architecture_ < kLeastArchitecture || !has_pools) {
    return Failure("{}: expected compute capability 8.0 or newer with memory pools, got {}.{}",
                   name_, major, minor);
  }
  PLUGIN_RETURN_IF_ERROR(CU_CHECK(cuDeviceTotalMem, &memory_bytes_, device_));
  PLUGIN_RETURN_IF_ERROR(CU_CHECK(cuDevicePrimaryCtxRetain, &context_, device_));
  PLUGIN_RETURN_IF_ERROR(MakeCurrent());
  // What is freed stays in the pool until Trim.
  PLUGIN_RETURN_IF_ERROR(CU_CHECK(cuDeviceGetDefaultMemPool, &pool_, device_));
  uint64_t threshold = UINT64_MAX;
  PLUGIN_RETURN_IF_ERROR(
      CU_CHECK(cuMemPoolSetAttribute, pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  PLUGIN_RETURN_IF_ERROR(CU_CHECK(cuStreamCreate, &memory_stream_, CU_STREAM_NON_BLOCKING));
  PLUGIN_RETURN_IF_ERROR(CU_CHECK(cuEventCreate, &free_event_, CU_EVENT_DISABLE_TIMING));
  PLUGIN_ASSIGN_OR_RETURN(transfer_stream_, CreateStream());
  programs_ = std::make_unique<ProgramCache>(architecture_);
  return Status();
}

Device::~Device() {
  if (!context_) return;
  if (MakeCurrent().ok()) {
    programs_.reset();
    if (blas_) (*LoadBlas()).cublasLtDestroy(blas_);
    if (dnn_) (*LoadDnn()).cudnnDestroy(dnn_);
    if (free_event_) Cu().cuEventDestroy(free_event_);
    if (memory_stream_) Cu().cuStreamDestroy(memory_stream_);
    if (transfer_stream_) Cu().cuStreamDestroy(transfer_stream_);
  }
  Cu().cuDevicePrimaryCtxRelease(device_);
}

Result<void*> Device::Allocate(size_t size_bytes) {
  PLUGIN_ASSIGN_OR_RETURN(void* const address, Allocate(size_bytes, memory_stream_));
  const Status status = CU_CHECK(cuStreamSynchronize, memory_stream_);
  if (status.ok()) return address;
  Cu().cuMemFreeAsync(reinterpret_cast<CUdeviceptr>(address), memory_stream_);
  return status;
}

Result<void*> Device::Allocate(size_t size_bytes, CUstream stream) {
  PLUGIN_RETURN_IF_ERROR(MakeCurrent());
  CUdeviceptr address = 0;
  PLUGIN_RETURN_IF_ERROR(
      CU_CHECK(cuMemAllocAsync, &address, std::max<size_t>(size_bytes, 1), stream));
  return reinterpret_cast<void*>(address);
}

// The pool hands the block out again in the order of its stream, which waits for all others first.
void Device::Free(void* address) {
  if (!address || !MakeCurrent().ok()) return;
  const std::lock_guard lock(mutex_);
  for (CUstream stream : streams_) {
    if (Cu().cuEventRecord(free_event_, stream) == CUDA_SUCCESS) {
      Cu().cuStreamWaitEvent(memory_stream_, free_event_, 0);
    }
  }
  Cu().cuMemFreeAsync(reinterpret_cast<CUdeviceptr>(address), memory_stream_);
}

void Device::Trim() {
  if (!MakeCurrent().ok()) return;
  Cu().cuCtxSynchronize();
  Cu().cuMemPoolTrimTo(pool_, 0);
}

Result<CUstream> Device::CreateStream() {
  PLUGIN_RETURN_IF_ERROR(MakeCurrent());
  CUstream stream = nullptr;
  PLUGIN_RETURN_IF_ERROR(CU_CHECK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING));
  const std::lock_guard lock(mutex_);
  streams_.insert(stream);
  return stream;
}

void Device::DestroyStream(CUstream stream) {
  if (!stream || !MakeCurrent().ok()) return;
  Cu().cuStreamSynchronize(stream);
  const std::lock_guard lock(mutex_);
  streams_.erase(stream);
  Cu().cuStreamDestroy(stream);
}

Result<cublasLtHandle_t> Device::blas() {
  const std::lock_guard lock(mutex_);
  if (!blas_) {
    if (!LoadBlas().ok()) return LoadBlas().status();
    PLUGIN_RETURN_IF_ERROR(MakeCurrent());
    PLUGIN_RETURN_IF_ERROR(CheckBlas((*LoadBlas()).cublasLtCreate(&blas_), "cublasLtCreate"));
  }
  return blas_;
}

Result<cudnnHandle_t> Device::dnn() {
  if (!dnn_) {
    if (!LoadDnn().ok()) return LoadDnn().status();
    PLUGIN_RETURN_IF_ERROR(MakeCurrent());
    PLUGIN_RETURN_IF_ERROR(CheckDnn((*LoadDnn()).cudnnCreate(&dnn_), "cudnnCreate"));
  }
  return dnn_;
}

std::vector<std::unique_ptr<Device>> FindDevices(std::string& problems) {
  std::vector<std::unique_ptr<Device>> devices;
  const auto fail = [&](const Status& status) { problems += status.text() + "\n"; };
  if (!LoadDriver().ok()) {
    fail(LoadDriver().status());
    return devices;
  }
  int count = 0;
  for (const Status& status : {CU_CHECK(cuInit, 0), CU_CHECK(cuDeviceGetCount, &count)}) {
    if (!status.ok()) {
      fail(status);
      return devices;
    }
  }
  for (int number = 0; number < count; ++number) {
    auto device = Device::Create(number);
    if (!device.ok()) fail(device.status());
    devices.push_back(device.ok() ? std::move(*device) : nullptr);
  }
  return devices;
}

}  // namespace cuda
