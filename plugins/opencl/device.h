// The OpenCL devices of the machine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "library.h"
#include "memory.h"
#include "program_cache.h"
#include "target.h"

namespace opencl {

inline constexpr const char* kProviderName = "OpenCLExecutionProvider";
// Of the provider's memory infos; no vendor of the PCI registry has it.
inline constexpr uint32_t kVendorId = 0x4F43;

// One device with what all sessions on it share. Never released before the process ends or the
// library is unloaded; thread-safe.
class Device {
 public:
  static Result<std::unique_ptr<Device>> Create(cl_platform_id platform, cl_device_id id);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  cl_device_id id() const { return id_; }
  cl_context context() const { return context_; }
  cl_device_type type() const { return type_; }
  uint32_t vendor_id() const { return vendor_id_; }
  const std::string& name() const { return name_; }
  const std::string& version() const { return version_; }
  uint64_t max_buffer_bytes() const { return max_buffer_bytes_; }
  const Target& target() const { return target_; }
  bool is_cpu() const { return (type_ & CL_DEVICE_TYPE_CPU) != 0; }
  AddressSpace& memory() { return *memory_; }
  ProgramCache& programs() { return *programs_; }

  // The queue of copies that have no stream.
  Result<cl_command_queue> transfer_queue();
  // A queue that runs its work in order and records when.
  Result<cl_command_queue> CreateQueue() const;

 private:
  Device() = default;

  cl_device_id id_ = nullptr;
  std::mutex mutex_;
  cl_command_queue transfer_queue_ = nullptr;  // made when it is needed
  cl_context context_ = nullptr;
  cl_device_type type_ = 0;
  uint32_t vendor_id_ = 0;
  uint64_t max_buffer_bytes_ = 0;
  Target target_;
  std::string name_;
  std::string version_;
  std::unique_ptr<AddressSpace> memory_;
  std::unique_ptr<ProgramCache> programs_;
};

// All devices of all platforms that have OpenCL 1.2 and a compiler; those that do not start are
// left out, with a line in `problems`.
std::vector<std::unique_ptr<Device>> FindDevices(std::string& problems);

}  // namespace opencl
