#include "plugin/factory.h"

#include <utility>

#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/env/ep_device.h"
#include "capi/options/session_options.h"
#include "capi/value/allocator.h"
#include "plugin/call.h"
#include "plugin/data_transfer.h"
#include "plugin/stream.h"

namespace tenon::plugin {
namespace {

constexpr size_t kMostDevices = 8;
constexpr size_t kMostDomains = 1024;

class PluginAllocator final : public capi::ClientAllocator {
 public:
  PluginAllocator(OrtAllocator* client, const MemoryInfo& memory,
                  std::shared_ptr<const EpFactory> factory,
                  const std::shared_ptr<capi::LibraryUses>& uses)
      : ClientAllocator(client, &memory),
        factory_(std::move(factory)),
        uses_(uses),
        use_(uses, capi::LibraryObject::kAllocator) {}
  ~PluginAllocator() override {
    (void)CatchExceptions([&] {
      factory_->table().ReleaseAllocator(factory_->client(), client());
      return OkStatus();
    });
  }

  void* Allocate(size_t bytes) override { return Counted(ClientAllocator::Allocate(bytes)); }
  void* AllocateOn(size_t bytes, StreamOrder& stream) override {
    return Counted(ClientAllocator::AllocateOn(bytes, stream));
  }
  void* Reserve(size_t bytes) override { return Counted(ClientAllocator::Reserve(bytes)); }
  void Free(void* block) override {
    if (block == nullptr) return;
    ClientAllocator::Free(block);
    uses_->Add(capi::LibraryObject::kBlock, -1);
  }

 private:
  void* Counted(void* block) {
    if (block != nullptr) uses_->Add(capi::LibraryObject::kBlock, 1);
    return block;
  }

  const std::shared_ptr<const EpFactory> factory_;
  const std::shared_ptr<capi::LibraryUses> uses_;
  const capi::LibraryUse use_;
};

std::vector<const OrtHardwareDevice*> HardwareOf(std::span<const OrtEpDevice* const> devices) {
  std::vector<const OrtHardwareDevice*> hardware;
  for (const OrtEpDevice* const device : devices) hardware.push_back(device->device);
  return hardware;
}

}  // namespace

EpFactory::EpFactory(std::shared_ptr<EpLibrary> library, OrtEpFactory* factory,
                     const TenonEpExtension* extension)
    : library_(std::move(library)),
      client_(factory),
      table_(Supported(*factory)),
      extension_(extension),
      name_(table_.GetName(client_)) {}

void ReleaseEp::operator()(OrtEp* ep) const {
  (void)CatchExceptions([&] {
    factory->table().ReleaseEp(factory->client(), ep);
    return OkStatus();
  });
}

std::shared_ptr<void> EpFactory::Hold(capi::LibraryObject kind) {
  struct Held {
    std::shared_ptr<EpFactory> factory;
    capi::LibraryUse use;
  };
  return std::shared_ptr<Held>(new Held{shared_from_this(), {library_->uses(), kind}});
}

bool EpFactory::IsStreamAware() const {
  return table_.IsStreamAware != nullptr && table_.IsStreamAware(client_);
}

Result<std::vector<std::unique_ptr<OrtEpDevice>>> EpFactory::FindDevices(
    std::span<const OrtHardwareDevice* const> hardware) {
  std::vector<std::unique_ptr<OrtEpDevice>> devices;
  devices.reserve(kMostDevices);  // what is made can be kept
  OrtEpDevice* made[kMostDevices] = {};
  size_t count = 0;
  const Status status = Call([&] {
    return table_.GetSupportedDevices(client_, hardware.data(), hardware.size(), made, kMostDevices,
                                      &count);
  });
  for (OrtEpDevice* const device : made) {
    if (device != nullptr) devices.emplace_back(device);
  }
  if (!status.ok()) return Failure(status);
  if (count > kMostDevices) {
    return Fail("{} pairs itself with {} devices, at most {} are possible", name_, count,
                kMostDevices);
  }
  for (const auto& device : devices) {
    device->source = shared_from_this();
    device->ep_metadata.Set("library_path", library_->path());
  }
  return devices;
}

Result<MadeEp> EpFactory::CreateEp(std::span<const OrtEpDevice* const> devices,
                                   const OrtSessionOptions& options, const Logger& logger) {
  const std::vector<const OrtHardwareDevice*> hardware = HardwareOf(devices);
  std::vector<const OrtKeyValuePairs*> metadata;
  for (const OrtEpDevice* const device : devices) metadata.push_back(&device->ep_metadata);
  OrtEp* created = nullptr;
  const Status status = Call([&] {
    return table_.CreateEp(client_, hardware.data(), metadata.data(), devices.size(), &options,
                           capi::Wrap<OrtLogger>(&logger), &created);
  });
  MadeEp made(status.ok() ? created : nullptr, ReleaseEp{shared_from_this()});
  if (!status.ok()) {
    return Failure(Status(status.code(), Format("{} could not be made for the session: {}", name_,
                                                status.message())));
  }
  if (made == nullptr) return Fail("{} made no execution provider for the session", name_);
  return made;
}

bool EpFactory::IsOfVendor(const OrtHardwareDevice& hardware) const {
  if (table_.GetVendorId != nullptr && table_.GetVendorId(client_) == hardware.vendor_id) {
    return true;
  }
  const char* const vendor = table_.GetVendor(client_);
  return vendor != nullptr && vendor == hardware.vendor;
}

Result<std::shared_ptr<Allocator>> EpFactory::AdoptAllocator(OrtAllocator* made,
                                                             const MemoryInfo& memory) {
  if (made == nullptr) return SharedCpuAllocator();
  TENON_RETURN_IF_ERROR(CheckSlots(name_, "factory", {TENON_SLOT(&table_, ReleaseAllocator)}));
  const auto release = [this](OrtAllocator* unused) { table_.ReleaseAllocator(client_, unused); };
  std::unique_ptr<OrtAllocator, decltype(release)> owned(made, release);
  auto allocator =
      std::make_shared<PluginAllocator>(made, memory, shared_from_this(), library_->uses());
  owned.release();
  TENON_RETURN_IF_ERROR(
      CheckSlots(name_, "allocator",
                 {TENON_SLOT(made, Alloc), TENON_SLOT(made, Free), TENON_SLOT(made, Info)}));
  const OrtMemoryInfo* const info = made->Info(made);
  if (info == nullptr || !capi::Unwrap(info)->SameDevice(memory)) {
    return InvalidArgument("{} made an allocator of '{}' for the memory '{}'", name_,
                           info == nullptr ? "nothing" : capi::Unwrap(info)->name, memory.name);
  }
  if (capi::Unwrap(info)->allocator_type == OrtArenaAllocator) {
    return InvalidArgument(
        "{} made an allocator of type arena for the memory '{}'; an arena of "
        "its own must call itself a device allocator",
        name_, memory.name);
  }
  return allocator;
}

Result<std::shared_ptr<Allocator>> EpFactory::MakeAllocator(const MemoryInfo& memory,
                                                            const OrtKeyValuePairs* options) {
  if (table_.CreateAllocator == nullptr) {
    return NotImplemented("{} has no allocator of the memory '{}'", name_, memory.name);
  }
  OrtAllocator* made = nullptr;
  TENON_RETURN_IF_ERROR(Call([&] {
    return table_.CreateAllocator(client_, capi::Wrap<OrtMemoryInfo>(&memory), options, &made);
  }));
  return AdoptAllocator(made, memory);
}

Result<std::shared_ptr<DataTransfer>> EpFactory::MakeDataTransfer() {
  if (table_.CreateDataTransfer == nullptr) return nullptr;
  TENON_ASSIGN_OR_RETURN(auto made, MakeOwned<OrtDataTransferImpl>([&](auto** transfer) {
                           return table_.CreateDataTransfer(client_, transfer);
                         }));
  if (made == nullptr) return nullptr;
  return AdoptDataTransfer(std::move(made), Hold(capi::LibraryObject::kDataTransfer), name_);
}

Result<std::unique_ptr<OrtSyncStream>> EpFactory::MakeStream(const OrtEpDevice& device,
                                                             const OrtKeyValuePairs* options) {
  if (!IsStreamAware() || table_.CreateSyncStreamForDevice == nullptr) {
    return NotImplemented("{} has no streams", name_);
  }
  if (device.memory == nullptr || device.memory->device_type == DeviceType::kCpu) {
    return InvalidArgument("{}: the device has no memory of its own, so it has no streams", name_);
  }
  TENON_ASSIGN_OR_RETURN(auto made, MakeOwned<OrtSyncStreamImpl>([&](auto** stream) {
                           return table_.CreateSyncStreamForDevice(
                               client_, capi::Wrap<OrtMemoryDevice>(device.memory), options,
                               stream);
                         }));
  return AdoptStream(std::move(made), *device.memory, Hold(capi::LibraryObject::kStream), name_);
}

Status EpFactory::Explain(const OrtHardwareDevice& hardware,
                          OrtDeviceEpIncompatibilityDetails& details) {
  if (table_.GetHardwareDeviceIncompatibilityDetails == nullptr) return OkStatus();
  return Call(
      [&] { return table_.GetHardwareDeviceIncompatibilityDetails(client_, &hardware, &details); });
}

Result<OrtCompiledModelCompatibility> EpFactory::CheckCompatibility(
    std::span<const OrtEpDevice* const> devices, const char* info) {
  OrtCompiledModelCompatibility result = OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
  if (table_.ValidateCompiledModelCompatibilityInfo == nullptr) return result;
  const std::vector<const OrtHardwareDevice*> hardware = HardwareOf(devices);
  TENON_RETURN_IF_ERROR(Call([&] {
    return table_.ValidateCompiledModelCompatibilityInfo(client_, hardware.data(), hardware.size(),
                                                         info, &result);
  }));
  return result;
}

Result<std::vector<const OrtCustomOpDomain*>> EpFactory::CustomOpDomains() {
  if (table_.GetNumCustomOpDomains == nullptr || table_.GetCustomOpDomains == nullptr) {
    return std::vector<const OrtCustomOpDomain*>();
  }
  size_t count = 0;
  TENON_RETURN_IF_ERROR(Call([&] { return table_.GetNumCustomOpDomains(client_, &count); }));
  if (count > kMostDomains) {
    return Fail("{} says that it has {} domains of operators, at most {} are possible", name_,
                count, kMostDomains);
  }
  std::vector<OrtCustomOpDomain*> domains(count);
  TENON_RETURN_IF_ERROR(
      Call([&] { return table_.GetCustomOpDomains(client_, domains.data(), count); }));
  return std::vector<const OrtCustomOpDomain*>(domains.begin(), domains.end());
}

Result<OrtExternalResourceImporterImpl*> EpFactory::MakeImporter(const OrtEpDevice& device) {
  if (table_.CreateExternalResourceImporterForDevice == nullptr) return nullptr;
  OrtExternalResourceImporterImpl* made = nullptr;
  Status status =
      Call([&] { return table_.CreateExternalResourceImporterForDevice(client_, &device, &made); });
  if (status.code() == StatusCode::kNotImplemented) return nullptr;
  TENON_RETURN_IF_ERROR(std::move(status));
  if (made != nullptr) {
    TENON_RETURN_IF_ERROR(CheckSlots(name_, "resource importer", {TENON_SLOT(made, Release)}));
  }
  return made;
}

Status EpFactory::SetGraphicsInterop(const OrtEpDevice& device,
                                     const OrtGraphicsInteropConfig* config) {
  const bool has_slot = config != nullptr ? table_.InitGraphicsInterop != nullptr
                                          : table_.DeinitGraphicsInterop != nullptr;
  if (!has_slot) return NotImplemented("{} works with no graphics API", name_);
  return Call([&] {
    return config != nullptr ? table_.InitGraphicsInterop(client_, &device, config)
                             : table_.DeinitGraphicsInterop(client_, &device);
  });
}

}  // namespace tenon::plugin
