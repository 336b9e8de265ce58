// The CUDA devices of the machine.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "libraries.h"
#include "program_cache.h"

namespace cuda {

inline constexpr const char* kProviderName = "CUDAExecutionProvider";
// NVIDIA's in the PCI registry; of the provider's memory infos too, as onnxruntime has it.
inline constexpr uint32_t kVendorId = 0x10DE;

// One device with what all sessions on it share: its primary context, as other libraries of the
// process use it. Never released before the process ends or the library is unloaded; thread-safe.
class Device {
 public:
  static Result<std::unique_ptr<Device>> Create(int number);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int number() const { return number_; }
  const std::string& name() const { return name_; }
  // 90 for compute capability 9.0.
  int architecture() const { return architecture_; }
  int multiprocessors() const { return multiprocessors_; }
  size_t memory_bytes() const { return memory_bytes_; }
  CUcontext context() const { return context_; }
  ProgramCache& programs() { return *programs_; }

  // Every use of the driver needs the device's context on the calling thread.
  Status MakeCurrent() const { return CU_CHECK(cuCtxSetCurrent, context_); }

  // Memory of the device's stream-ordered pool, aligned to 256 bytes, for use on any stream. Work
  // that is queued on streams of the provider may still use a block that is freed.
  Result<void*> Allocate(size_t size_bytes);
  // The same for use on one stream, without waiting.
  Result<void*> Allocate(size_t size_bytes, CUstream stream);
  void Free(void* address);
  // Gives memory that is not in use back to the driver.
  void Trim();

  Result<CUstream> CreateStream();
  void DestroyStream(CUstream stream);
  // The stream of copies that have none.
  CUstream transfer_stream() const { return transfer_stream_; }

  Result<cublasLtHandle_t> blas();
  // cuDNN's handle has a stream: use it with dnn_mutex() held.
  Result<cudnnHandle_t> dnn();
  std::mutex& dnn_mutex() { return dnn_mutex_; }

 private:
  Device() = default;
  Status Prepare(int number);

  int number_ = 0;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  std::string name_;
  int architecture_ = 0;
  int multiprocessors_ = 0;
  size_t memory_bytes_ = 0;
  CUmemoryPool pool_ = nullptr;
  CUstream memory_stream_ = nullptr;
  CUstream transfer_stream_ = nullptr;
  std::unique_ptr<ProgramCache> programs_;
  std::mutex mutex_;              // guards what follows
  std::set<CUstream> streams_;    // on which memory may be in use
  CUevent free_event_ = nullptr;  // of Free
  cublasLtHandle_t blas_ = nullptr;
  std::mutex dnn_mutex_;
  cudnnHandle_t dnn_ = nullptr;
};

// All devices that start, in the driver's order; null in the place of one that does not, with a
// line in `problems`.
std::vector<std::unique_ptr<Device>> FindDevices(std::string& problems);

}  // namespace cuda
