#include "transfer.h"

#include <cstring>

#include "stream.h"

namespace opencl {
namespace {

bool IsOurs(const OrtMemoryDevice* device) {
  return ep->MemoryDevice_GetDeviceType(device) != OrtMemoryInfoDeviceType_CPU &&
         ep->MemoryDevice_GetVendorId(device) == kVendorId;
}

bool IsOnDevice(const OrtMemoryDevice* device) {
  return IsOurs(device) && ep->MemoryDevice_GetMemoryType(device) == OrtDeviceMemoryType_DEFAULT;
}

bool IsPinned(const OrtMemoryDevice* device) { return IsOurs(device) && !IsOnDevice(device); }

bool IsReachable(const OrtMemoryDevice* device) {
  return IsOurs(device) || ep->MemoryDevice_GetDeviceType(device) == OrtMemoryInfoDeviceType_CPU;
}

// One tensor's way from memory to memory.
struct Copy {
  const OrtMemoryDevice* from;
  const OrtMemoryDevice* to;
  const void* source = nullptr;
  void* target = nullptr;
  size_t size = 0;
};

OrtStatus* Describe(const OrtValue* from, OrtValue* to, Copy& copy) {
  copy.from = ep->Value_GetMemoryDevice(from);
  copy.to = ep->Value_GetMemoryDevice(to);
  RETURN_IF_ORT_ERROR(ort->GetTensorSizeInBytes(from, &copy.size));
  RETURN_IF_ORT_ERROR(ort->GetTensorData(from, &copy.source));
  return ort->GetTensorMutableData(to, &copy.target);
}

// Queues the copy; waits for it where the host's memory might be gone or read too early.
Status Enqueue(Device& device, cl_command_queue queue, const Copy& copy, cl_event* event) {
  if (!IsOnDevice(copy.from)) {
    PLUGIN_ASSIGN_OR_RETURN(const Location to, device.memory().Find(copy.target));
    return Check(Cl().clEnqueueWriteBuffer(queue, to.buffer, !IsPinned(copy.from), to.offset_bytes,
                                           copy.size, copy.source, 0, nullptr, event),
                 "clEnqueueWriteBuffer");
  }
  PLUGIN_ASSIGN_OR_RETURN(const Location from, device.memory().Find(copy.source));
  if (!IsOnDevice(copy.to)) {
    return Check(Cl().clEnqueueReadBuffer(queue, from.buffer, !IsPinned(copy.to), from.offset_bytes,
                                          copy.size, copy.target, 0, nullptr, event),
                 "clEnqueueReadBuffer");
  }
  PLUGIN_ASSIGN_OR_RETURN(const Location to, device.memory().Find(copy.target));
  return Check(Cl().clEnqueueCopyBuffer(queue, from.buffer, to.buffer, from.offset_bytes,
                                        to.offset_bytes, copy.size, 0, nullptr, event),
               "clEnqueueCopyBuffer");
}

// Between two devices: contexts share no memory, so the host stands in between.
Status CopyThroughHost(Device& from, Device& to, const Copy& copy) {
  std::vector<std::byte> bytes(copy.size);
  PLUGIN_ASSIGN_OR_RETURN(const Location source, from.memory().Find(copy.source));
  PLUGIN_ASSIGN_OR_RETURN(const Location target, to.memory().Find(copy.target));
  PLUGIN_ASSIGN_OR_RETURN(const cl_command_queue reading, from.CreateQueue());
  cl_int error = Cl().clEnqueueReadBuffer(reading, source.buffer, CL_TRUE, source.offset_bytes,
                                          copy.size, bytes.data(), 0, nullptr, nullptr);
  Cl().clReleaseCommandQueue(reading);
  PLUGIN_RETURN_IF_ERROR(Check(error, "clEnqueueReadBuffer"));
  PLUGIN_ASSIGN_OR_RETURN(const cl_command_queue writing, to.CreateQueue());
  error = Cl().clEnqueueWriteBuffer(writing, target.buffer, CL_TRUE, target.offset_bytes, copy.size,
                                    bytes.data(), 0, nullptr, nullptr);
  Cl().clReleaseCommandQueue(writing);
  return Check(error, "clEnqueueWriteBuffer");
}

Status Run(const std::vector<std::unique_ptr<Device>>& devices, const Copy& copy,
           const OrtSyncStream* stream) {
  if (copy.size == 0) return Status();
  if (!IsOnDevice(copy.from) && !IsOnDevice(copy.to)) {
    std::memcpy(copy.target, copy.source, copy.size);
    return Status();
  }
  const uint32_t id = ep->MemoryDevice_GetDeviceId(IsOnDevice(copy.from) ? copy.from : copy.to);
  if (id >= devices.size()) return Failure("expected device < {}, got {}", devices.size(), id);
  Device& device = *devices[id];
  if (IsOnDevice(copy.from) && IsOnDevice(copy.to)) {
    const uint32_t target = ep->MemoryDevice_GetDeviceId(copy.to);
    if (target >= devices.size()) {
      return Failure("expected device < {}, got {}", devices.size(), target);
    }
    if (target != id) return CopyThroughHost(device, *devices[target], copy);
  }
  if (Stream* own = Stream::Of(stream)) {
    const bool traced = own->trace && own->trace->is_active();
    cl_event event = nullptr;
    PLUGIN_RETURN_IF_ERROR(Enqueue(device, own->queue, copy, traced ? &event : nullptr));
    if (traced) own->trace->Add("copy", event);
    return Status();
  }
  PLUGIN_ASSIGN_OR_RETURN(const cl_command_queue queue, device.transfer_queue());
  PLUGIN_RETURN_IF_ERROR(Enqueue(device, queue, copy, nullptr));
  return Check(Cl().clFinish(queue), "clFinish");
}

}  // namespace

DataTransfer::DataTransfer(const std::vector<std::unique_ptr<Device>>& all)
    : OrtDataTransferImpl{}, devices(all) {
  ort_version_supported = kAbiVersion;
  Release = [](OrtDataTransferImpl* self) noexcept { delete static_cast<DataTransfer*>(self); };
  CanCopy = [](const OrtDataTransferImpl*, const OrtMemoryDevice* from,
               const OrtMemoryDevice* to) noexcept {
    return IsReachable(from) && IsReachable(to) && (IsOurs(from) || IsOurs(to));
  };
  CopyTensors = [](OrtDataTransferImpl* self, const OrtValue** from, OrtValue** to,
                   OrtSyncStream** streams, size_t count) noexcept -> OrtStatus* {
    return Guarded([&]() -> OrtStatus* {
      auto* me = static_cast<DataTransfer*>(self);
      for (size_t i = 0; i < count; ++i) {
        Copy copy{};
        RETURN_IF_ORT_ERROR(Describe(from[i], to[i], copy));
        RETURN_IF_ORT_ERROR(ToOrt(Run(me->devices, copy, streams ? streams[i] : nullptr)));
      }
      return nullptr;
    });
  };
}

}  // namespace opencl
