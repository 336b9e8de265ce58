#include "factory.h"

#include <charconv>
#include <cstring>

#include "allocator.h"
#include "provider.h"
#include "stream.h"
#include "transfer.h"

namespace cuda {
namespace {

// In the metadata of an EP device: the number of its CUDA device.
constexpr const char* kNumberKey = "cuda_device_id";

// The runtime's device for a CUDA device: NVIDIA's GPUs in the same order, as far as it sees them;
// else any GPU, else the CPU.
const OrtHardwareDevice* FindHardware(size_t number, const OrtHardwareDevice* const* hardware,
                                      size_t count) {
  const OrtHardwareDevice* fallback = nullptr;
  size_t seen = 0;
  for (size_t i = 0; i < count; ++i) {
    const OrtHardwareDeviceType kind = ort->HardwareDevice_Type(hardware[i]);
    const bool is_gpu = kind == OrtHardwareDeviceType_GPU;
    if (is_gpu && ort->HardwareDevice_VendorId(hardware[i]) == kVendorId && seen++ == number) {
      return hardware[i];
    }
    if (is_gpu || (!fallback && kind == OrtHardwareDeviceType_CPU)) fallback = hardware[i];
  }
  return fallback;
}

}  // namespace

Factory::Factory() : OrtEpFactory{} {
  ort_version_supported = kAbiVersion;
  GetName = [](const OrtEpFactory*) noexcept { return kProviderName; };
  GetVendor = [](const OrtEpFactory*) noexcept { return "Tenon"; };
  GetVendorId = [](const OrtEpFactory*) noexcept { return kVendorId; };
  GetVersion = [](const OrtEpFactory*) noexcept { return TENON_CUDA_VERSION; };
  GetSupportedDevices = [](OrtEpFactory* self, const OrtHardwareDevice* const* hardware,
                           size_t count, OrtEpDevice** found, size_t capacity,
                           size_t* found_count) noexcept -> OrtStatus* {
    return Guarded([&] {
      return static_cast<Factory*>(self)->PairDevices(hardware, count, found, capacity,
                                                      found_count);
    });
  };
  CreateEp = [](OrtEpFactory* self, const OrtHardwareDevice* const*,
                const OrtKeyValuePairs* const* metadata, size_t count,
                const OrtSessionOptions* options, const OrtLogger* logger,
                OrtEp** out) noexcept -> OrtStatus* {
    return Guarded([&]() -> OrtStatus* {
      if (count != 1) return ToOrt(Failure("expected one device for a session, got {}", count));
      return static_cast<Factory*>(self)->MakeProvider(metadata[0], options, logger, out);
    });
  };
  ReleaseEp = [](OrtEpFactory*, OrtEp* provider) { delete static_cast<Provider*>(provider); };
  CreateAllocator = [](OrtEpFactory* self, const OrtMemoryInfo* info, const OrtKeyValuePairs*,
                       OrtAllocator** out) noexcept -> OrtStatus* {
    return Guarded([&] { return static_cast<Factory*>(self)->MakeAllocator(info, out); });
  };
  ReleaseAllocator = [](OrtEpFactory*, OrtAllocator* allocator) {
    if (ort->MemoryInfoGetDeviceMemType(allocator->Info(allocator)) ==
        OrtDeviceMemoryType_HOST_ACCESSIBLE) {
      delete static_cast<PinnedAllocator*>(allocator);
    } else {
      delete static_cast<DeviceAllocator*>(allocator);
    }
  };
  CreateDataTransfer = [](OrtEpFactory* self, OrtDataTransferImpl** out) noexcept -> OrtStatus* {
    return Guarded([&]() -> OrtStatus* {
      *out = new DataTransfer(static_cast<Factory*>(self)->devices);
      return nullptr;
    });
  };
  IsStreamAware = [](const OrtEpFactory*) noexcept { return true; };
  CreateSyncStreamForDevice = [](OrtEpFactory* self, const OrtMemoryDevice* memory,
                                 const OrtKeyValuePairs*,
                                 OrtSyncStreamImpl** out) noexcept -> OrtStatus* {
    return Guarded([&]() -> OrtStatus* {
      auto device = static_cast<Factory*>(self)->Find(ep->MemoryDevice_GetDeviceId(memory));
      if (!device.ok()) return ToOrt(device.status());
      auto stream = Stream::Create(**device, nullptr);
      if (!stream.ok()) return ToOrt(stream.status());
      *out = *stream;
      return nullptr;
    });
  };
}

Result<std::unique_ptr<Factory>> Factory::Create(const OrtLogger* logger) {
  std::unique_ptr<Factory> factory(new Factory);
  std::string problems;
  factory->devices = FindDevices(problems);
  if (!problems.empty()) Log(logger, ORT_LOGGING_LEVEL_WARNING, "CUDA", problems);
  PLUGIN_RETURN_IF_ERROR(factory->CreateMemoryInfos());
  return factory;
}

Factory::~Factory() {
  for (const MemoryInfos& infos : memory_infos_) {
    if (infos.device) ort->ReleaseMemoryInfo(infos.device);
    if (infos.pinned) ort->ReleaseMemoryInfo(infos.pinned);
  }
}

Result<Device*> Factory::Find(size_t number) const {
  if (number < devices.size() && devices[number]) return devices[number].get();
  return Failure("there is no CUDA device {}", number);
}

// Named as onnxruntime names its own.
Status Factory::CreateMemoryInfos() {
  memory_infos_.resize(devices.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    const auto number = static_cast<int32_t>(i);
    PLUGIN_RETURN_IF_ERROR(FromOrt(ort->CreateMemoryInfo_V2(
        "Cuda", OrtMemoryInfoDeviceType_GPU, kVendorId, number, OrtDeviceMemoryType_DEFAULT, 0,
        OrtDeviceAllocator, &memory_infos_[i].device)));
    PLUGIN_RETURN_IF_ERROR(FromOrt(ort->CreateMemoryInfo_V2(
        "CudaPinned", OrtMemoryInfoDeviceType_GPU, kVendorId, number,
        OrtDeviceMemoryType_HOST_ACCESSIBLE, 0, OrtDeviceAllocator, &memory_infos_[i].pinned)));
  }
  return Status();
}

OrtStatus* Factory::PairDevices(const OrtHardwareDevice* const* hardware, size_t count,
                                OrtEpDevice** found, size_t capacity, size_t* found_count) {
  *found_count = 0;
  for (size_t i = 0; i < devices.size() && *found_count < capacity; ++i) {
    const OrtHardwareDevice* machine = devices[i] ? FindHardware(i, hardware, count) : nullptr;
    if (!machine) continue;
    const Device& device = *devices[i];
    OrtKeyValuePairs* metadata = nullptr;
    ort->CreateKeyValuePairs(&metadata);
    const auto add = [&](const char* key, const std::string& value) {
      ort->AddKeyValuePair(metadata, key, value.c_str());
    };
    add(kNumberKey, std::to_string(i));
    add("cuda_name", device.name());
    add("cuda_compute_capability",
        fmt::format("{}.{}", device.architecture() / 10, device.architecture() % 10));
    add("cuda_memory_bytes", std::to_string(device.memory_bytes()));
    OrtEpDevice** ep_device = &found[*found_count];
    OrtStatus* status = ep->CreateEpDevice(this, machine, metadata, nullptr, ep_device);
    ort->ReleaseKeyValuePairs(metadata);
    RETURN_IF_ORT_ERROR(status);
    ++*found_count;
    RETURN_IF_ORT_ERROR(ep->EpDevice_AddAllocatorInfo(*ep_device, memory_infos_[i].device));
    RETURN_IF_ORT_ERROR(ep->EpDevice_AddAllocatorInfo(*ep_device, memory_infos_[i].pinned));
  }
  return nullptr;
}

OrtStatus* Factory::MakeProvider(const OrtKeyValuePairs* metadata, const OrtSessionOptions* options,
                                 const OrtLogger* logger, OrtEp** out) {
  const char* text = ort->GetKeyValue(metadata, kNumberKey);
  size_t number = devices.size();
  if (text) std::from_chars(text, text + std::strlen(text), number);
  auto device = Find(number);
  if (!device.ok()) return ToOrt(device.status());
  auto read = Options::Read(options);
  if (!read.ok()) return ToOrt(read.status());
  (*device)->programs().SetFolder((*read).kernel_cache_folder);
  *out = new Provider(**device, std::move(*read), logger);
  return nullptr;
}

OrtStatus* Factory::MakeAllocator(const OrtMemoryInfo* info, OrtAllocator** out) {
  int id = -1;
  RETURN_IF_ORT_ERROR(ort->MemoryInfoGetId(info, &id));
  auto device = Find(static_cast<size_t>(id));
  if (!device.ok()) return ToOrt(device.status());
  const MemoryInfos& infos = memory_infos_[static_cast<size_t>(id)];
  if (ort->MemoryInfoGetDeviceMemType(info) == OrtDeviceMemoryType_HOST_ACCESSIBLE) {
    *out = new PinnedAllocator(infos.pinned, **device);
  } else {
    *out = new DeviceAllocator(infos.device, **device);
  }
  return nullptr;
}

}  // namespace cuda
