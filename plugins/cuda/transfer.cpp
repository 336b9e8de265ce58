#include "transfer.h"

#include <cstring>

#include "stream.h"

namespace cuda {
namespace {

bool IsOurs(const OrtMemoryDevice* device) {
  return ep->MemoryDevice_GetDeviceType(device) == OrtMemoryInfoDeviceType_GPU &&
         ep->MemoryDevice_GetVendorId(device) == kVendorId;
}

bool IsOnDevice(const OrtMemoryDevice* device) {
  return IsOurs(device) && ep->MemoryDevice_GetMemoryType(device) == OrtDeviceMemoryType_DEFAULT;
}

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

// The driver is done with pageable memory when a copy returns, not with pinned memory.
Status Enqueue(const Copy& copy, const Device& source, const Device& target, CUstream stream) {
  const auto from = reinterpret_cast<CUdeviceptr>(copy.source);
  const auto to = reinterpret_cast<CUdeviceptr>(copy.target);
  if (!IsOnDevice(copy.from)) {
    return CU_CHECK(cuMemcpyHtoDAsync, to, copy.source, copy.size, stream);
  }
  if (!IsOnDevice(copy.to)) {
    return CU_CHECK(cuMemcpyDtoHAsync, copy.target, from, copy.size, stream);
  }
  if (source.number() == target.number()) {
    return CU_CHECK(cuMemcpyDtoDAsync, to, from, copy.size, stream);
  }
  return CU_CHECK(cuMemcpyPeerAsync, to, target.context(), from, source.context(), copy.size,
                  stream);
}

Status Run(const std::vector<std::unique_ptr<Device>>& devices, const Copy& copy,
           const OrtSyncStream* sync_stream) {
  if (copy.size == 0) return Status();
  if (!IsOnDevice(copy.from) && !IsOnDevice(copy.to)) {
    std::memcpy(copy.target, copy.source, copy.size);
    return Status();
  }
  const auto find = [&](const OrtMemoryDevice* memory) -> Result<Device*> {
    const uint32_t id = ep->MemoryDevice_GetDeviceId(memory);
    if (id < devices.size() && devices[id]) return devices[id].get();
    return Failure("there is no CUDA device {}", id);
  };
  const bool is_from_device = IsOnDevice(copy.from);
  PLUGIN_ASSIGN_OR_RETURN(Device* const source, find(is_from_device ? copy.from : copy.to));
  PLUGIN_ASSIGN_OR_RETURN(Device* const target, find(IsOnDevice(copy.to) ? copy.to : copy.from));
  PLUGIN_RETURN_IF_ERROR(source->MakeCurrent());
  if (Stream* own = Stream::Of(sync_stream)) {
    PLUGIN_RETURN_IF_ERROR(own->device.MakeCurrent());
    const CUevent begin = own->trace ? own->trace->Begin(own->stream) : nullptr;
    PLUGIN_RETURN_IF_ERROR(Enqueue(copy, *source, *target, own->stream));
    if (own->trace) own->trace->End("copy", begin, own->stream);
    return Status();
  }
  PLUGIN_RETURN_IF_ERROR(Enqueue(copy, *source, *target, source->transfer_stream()));
  return CU_CHECK(cuStreamSynchronize, source->transfer_stream());
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

}  // namespace cuda
