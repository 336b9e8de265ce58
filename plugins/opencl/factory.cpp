#include "factory.h"

#include <charconv>
#include <cstring>

#include "allocator.h"
#include "provider.h"
#include "stream.h"
#include "transfer.h"

namespace opencl {
namespace {

// In the metadata of an EP device: the number of its OpenCL device.
constexpr const char* kNumberKey = "opencl_device";
// Option of the provider: the folder of compiled kernels.
constexpr const char* kCacheFolderKey = "ep.openclexecutionprovider.kernel_cache_folder";

OrtHardwareDeviceType KindOf(const Device& device) {
  return device.is_cpu() ? OrtHardwareDeviceType_CPU : OrtHardwareDeviceType_GPU;
}

// The runtime's device for one of OpenCL: of the same kind, and of the same vendor if there is
// such; else the CPU, since the runtime may not see every GPU.
const OrtHardwareDevice* FindHardware(const Device& device,
                                      const OrtHardwareDevice* const* hardware, size_t count) {
  const OrtHardwareDevice* same_kind = nullptr;
  const OrtHardwareDevice* cpu = nullptr;
  for (size_t i = 0; i < count; ++i) {
    const OrtHardwareDeviceType kind = ort->HardwareDevice_Type(hardware[i]);
    if (kind == OrtHardwareDeviceType_CPU) cpu = hardware[i];
    if (kind != KindOf(device)) continue;
    if (ort->HardwareDevice_VendorId(hardware[i]) == device.vendor_id()) return hardware[i];
    if (!same_kind) same_kind = hardware[i];
  }
  return same_kind ? same_kind : cpu;
}

// The value of a session option, empty if it is not set.
std::string ConfigEntry(const OrtSessionOptions* options, const char* key) {
  OrtKeyValuePairs* entries = nullptr;
  if (!FromOrt(ort->GetSessionOptionsConfigEntries(options, &entries)).ok()) return {};
  const char* value = ort->GetKeyValue(entries, key);
  std::string text = value ? value : "";
  ort->ReleaseKeyValuePairs(entries);
  return text;
}

}  // namespace

Factory::Factory() : OrtEpFactory{} {
  ort_version_supported = kAbiVersion;
  GetName = [](const OrtEpFactory*) noexcept { return kProviderName; };
  GetVendor = [](const OrtEpFactory*) noexcept { return "Tenon"; };
  GetVendorId = [](const OrtEpFactory*) noexcept { return kVendorId; };
  GetVersion = [](const OrtEpFactory*) noexcept { return TENON_OPENCL_VERSION; };
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
      auto* me = static_cast<Factory*>(self);
      const uint32_t id = ep->MemoryDevice_GetDeviceId(memory);
      if (id >= me->devices.size()) return ToOrt(Failure("there is no OpenCL device {}", id));
      auto stream = Stream::Create(*me->devices[id], nullptr);
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
  if (!problems.empty()) Log(logger, ORT_LOGGING_LEVEL_WARNING, "OpenCL", problems);
  PLUGIN_RETURN_IF_ERROR(factory->CreateMemoryInfos());
  return factory;
}

Factory::~Factory() {
  for (const MemoryInfos& infos : memory_infos_) {
    if (infos.device) ort->ReleaseMemoryInfo(infos.device);
    if (infos.pinned) ort->ReleaseMemoryInfo(infos.pinned);
  }
}

Status Factory::CreateMemoryInfos() {
  memory_infos_.resize(devices.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    const auto number = static_cast<int32_t>(i);
    PLUGIN_RETURN_IF_ERROR(FromOrt(ort->CreateMemoryInfo_V2(
        "OpenCL", OrtMemoryInfoDeviceType_GPU, kVendorId, number, OrtDeviceMemoryType_DEFAULT, 0,
        OrtDeviceAllocator, &memory_infos_[i].device)));
    PLUGIN_RETURN_IF_ERROR(FromOrt(ort->CreateMemoryInfo_V2(
        "OpenCLPinned", OrtMemoryInfoDeviceType_GPU, kVendorId, number,
        OrtDeviceMemoryType_HOST_ACCESSIBLE, 0, OrtDeviceAllocator, &memory_infos_[i].pinned)));
  }
  return Status();
}

OrtStatus* Factory::PairDevices(const OrtHardwareDevice* const* hardware, size_t count,
                                OrtEpDevice** found, size_t capacity, size_t* found_count) {
  *found_count = 0;
  for (size_t i = 0; i < devices.size() && *found_count < capacity; ++i) {
    const OrtHardwareDevice* machine = FindHardware(*devices[i], hardware, count);
    if (!machine) continue;
    OrtKeyValuePairs* metadata = nullptr;
    ort->CreateKeyValuePairs(&metadata);
    ort->AddKeyValuePair(metadata, kNumberKey, std::to_string(i).c_str());
    ort->AddKeyValuePair(metadata, "opencl_name", devices[i]->name().c_str());
    ort->AddKeyValuePair(metadata, "opencl_version", devices[i]->version().c_str());
    OrtEpDevice** device = &found[*found_count];
    OrtStatus* status = ep->CreateEpDevice(this, machine, metadata, nullptr, device);
    ort->ReleaseKeyValuePairs(metadata);
    RETURN_IF_ORT_ERROR(status);
    ++*found_count;
    RETURN_IF_ORT_ERROR(ep->EpDevice_AddAllocatorInfo(*device, memory_infos_[i].device));
    RETURN_IF_ORT_ERROR(ep->EpDevice_AddAllocatorInfo(*device, memory_infos_[i].pinned));
  }
  return nullptr;
}

OrtStatus* Factory::MakeProvider(const OrtKeyValuePairs* metadata, const OrtSessionOptions* options,
                                 const OrtLogger* logger, OrtEp** out) {
  const char* text = ort->GetKeyValue(metadata, kNumberKey);
  size_t number = devices.size();
  if (text) std::from_chars(text, text + std::strlen(text), number);
  if (number >= devices.size()) return ToOrt(Failure("expected a device of this provider"));
  const std::string folder = ConfigEntry(options, kCacheFolderKey);
  if (!folder.empty()) devices[number]->programs().SetFolder(folder);
  *out = new Provider(*devices[number], logger);
  return nullptr;
}

OrtStatus* Factory::MakeAllocator(const OrtMemoryInfo* info, OrtAllocator** out) {
  int id = -1;
  RETURN_IF_ORT_ERROR(ort->MemoryInfoGetId(info, &id));
  if (id < 0 || static_cast<size_t>(id) >= devices.size()) {
    return ToOrt(Failure("there is no OpenCL device {}", id));
  }
  const auto number = static_cast<size_t>(id);
  if (ort->MemoryInfoGetDeviceMemType(info) == OrtDeviceMemoryType_HOST_ACCESSIBLE) {
    auto pinned = PinnedAllocator::Create(memory_infos_[number].pinned, *devices[number]);
    if (!pinned.ok()) return ToOrt(pinned.status());
    *out = *pinned;
  } else {
    *out = new DeviceAllocator(memory_infos_[number].device, *devices[number]);
  }
  return nullptr;
}

}  // namespace opencl
