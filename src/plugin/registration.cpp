// Libraries of execution providers: registering them with an environment, and unregistering them.
#include <onnxruntime_env_config_keys.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capi/boundary/arguments.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/env/env.h"
#include "capi/env/ep_device.h"
#include "capi/env/ep_extension.h"
#include "capi/env/hardware.h"
#include "plugin/library.h"
#include "plugin/provider_factory.h"
#include "runtime/config.h"

namespace tenon::plugin {
namespace {

// A plugin may invent devices only with permission.
void DropVirtual(std::vector<std::unique_ptr<OrtEpDevice>>& devices, bool are_allowed,
                 const Logger& logger) {
  if (are_allowed) return;
  std::erase_if(devices, [&](const std::unique_ptr<OrtEpDevice>& device) {
    const StringMap& metadata = device->device->metadata.entries();
    const auto entry = metadata.find("is_virtual");
    if (entry == metadata.end() || entry->second != "1") return false;
    TENON_LOG(logger, kWarning,
              "a virtual device of {} is not used: allow_virtual_devices is not 1",
              device->ep_name);
    return true;
  });
}

// Checks the slots that every factory must have.
Status CheckFactory(const OrtEpFactory& factory, const EpLibrary& library) {
  const char* missing = nullptr;
  if (factory.ReleaseEp == nullptr) missing = "ReleaseEp";
  if (factory.CreateEp == nullptr) missing = "CreateEp";
  if (factory.GetSupportedDevices == nullptr) missing = "GetSupportedDevices";
  if (factory.GetVendor == nullptr) missing = "GetVendor";
  if (factory.GetName == nullptr) missing = "GetName";
  if (missing != nullptr) return Fail("a factory of '{}' lacks {}", library.path(), missing);
  if (factory.GetName(&factory) != nullptr) return OkStatus();
  return Fail("a factory of '{}' has no name", library.path());
}

// Puts what a factory offers into `registered`.
Status TakeFrom(const std::shared_ptr<EpFactory>& factory, const capi::SharedEnvironment& shared,
                const Logger& logger, capi::RegisteredLibrary& registered) {
  TENON_ASSIGN_OR_RETURN(auto devices, factory->FindDevices(capi::Hardware()));
  DropVirtual(devices, ConfigFlag(shared.Config(), kOrtEnvAllowVirtualDevices, false), logger);
  TENON_ASSIGN_OR_RETURN(auto transfer, factory->MakeDataTransfer());
  if (transfer != nullptr) registered.transfers.push_back(std::move(transfer));
  for (auto& device : devices) registered.devices.push_back(std::move(device));
  return OkStatus();
}

struct DefaultAllocator {
  std::shared_ptr<Allocator> allocator;
  std::shared_ptr<capi::EpSource> source;
};

// The allocators of those device memories for which the environment has none.
Result<std::vector<DefaultAllocator>> MakeDefaultAllocators(
    const capi::RegisteredLibrary& registered, capi::SharedAllocators& known) {
  std::vector<DefaultAllocator> made;
  for (const auto& device : registered.devices) {
    for (const MemoryInfo* const memory : {device->memory, device->host_accessible_memory}) {
      if (memory == nullptr || known.Find(*memory) != nullptr) continue;
      const bool is_made =
          std::any_of(made.begin(), made.end(), [&](const DefaultAllocator& known) {
            return known.allocator->info().SameDevice(*memory);
          });
      if (is_made) continue;
      Result<std::shared_ptr<Allocator>> allocator =
          device->source->MakeAllocator(*memory, nullptr);
      // The provider's own allocators, one for each session, may be the only ones.
      if (!allocator && allocator.error().code() == StatusCode::kNotImplemented) continue;
      if (!allocator) return Failure(std::move(allocator.error()));
      if (&(*allocator)->info() == &CpuMemory()) continue;
      made.push_back({std::move(*allocator), device->source});
    }
  }
  return made;
}

// What an environment has of a library so far: taken from it again unless all of it could be added.
class PartialRegistration {
 public:
  PartialRegistration(capi::SharedEnvironment& shared,
                      std::vector<std::shared_ptr<DataTransfer>> transfers,
                      std::vector<DefaultAllocator> allocators)
      : shared_(shared), transfers_(std::move(transfers)), allocators_(std::move(allocators)) {}
  ~PartialRegistration() {
    if (is_complete_) return;
    for (const DefaultAllocator& made : allocators_) shared_.allocators.RemoveOf(*made.source);
    for (const auto& transfer : transfers_) {
      shared_.environment.transfers().Remove(transfer.get());
    }
  }
  PartialRegistration(const PartialRegistration&) = delete;
  PartialRegistration& operator=(const PartialRegistration&) = delete;

  Status Complete(capi::RegisteredLibrary registered) {
    for (const DefaultAllocator& made : allocators_) {
      shared_.allocators.AddDefault(made.allocator, made.source);
    }
    for (const auto& transfer : transfers_) shared_.environment.transfers().Add(transfer);
    TENON_RETURN_IF_ERROR(shared_.eps.Add(std::move(registered)));
    is_complete_ = true;
    return OkStatus();
  }

 private:
  capi::SharedEnvironment& shared_;
  const std::vector<std::shared_ptr<DataTransfer>> transfers_;
  const std::vector<DefaultAllocator> allocators_;
  bool is_complete_ = false;
};

Status AddLibrary(capi::SharedEnvironment& shared, const std::string& name,
                  const std::string& path) {
  const Logger& logger = shared.environment.logger();
  TENON_ASSIGN_OR_RETURN(auto library, EpLibrary::Open(name, path, logger));
  capi::RegisteredLibrary registered;
  registered.name = name;
  registered.library = library;
  registered.uses = library->uses();
  for (OrtEpFactory* const client : library->factories()) {
    TENON_RETURN_IF_ERROR(CheckFactory(*client, *library));
    const capi::Extensions::Registration extensions(client);
    const TenonEpExtension* extension = library->FindExtension(client, logger);
    auto factory = std::make_shared<ProviderFactory>(library, client, extension);
    TENON_RETURN_IF_ERROR(TakeFrom(factory, shared, logger, registered));
    if (const TenonEpExtension* const given = extensions.given()) {
      if (extension != nullptr) {
        TENON_LOG(logger, kInfo, "{} gave its extension in two ways; the function's counts",
                  factory->name());
      }
      factory->set_extension(given);
    }
  }
  TENON_ASSIGN_OR_RETURN(auto allocators, MakeDefaultAllocators(registered, shared.allocators));
  PartialRegistration registration(shared, registered.transfers, std::move(allocators));
  return registration.Complete(std::move(registered));
}

// Has no effect if it fails.
Status Register(capi::SharedEnvironment& shared, const std::string& name, const std::string& path) {
  TENON_RETURN_IF_ERROR(shared.eps.CheckFree(name));
  const bool allows_virtual = capi::SharedEnvironment::AllowsVirtual(name);
  if (allows_virtual) shared.CountVirtual(1);
  Status status = AddLibrary(shared, name, path);
  if (allows_virtual && !status.ok()) shared.CountVirtual(-1);
  return status;
}

}  // namespace
}  // namespace tenon::plugin

namespace tenon::capi {

OrtStatus* RegisterExecutionProviderLibrary(OrtEnv* env, const char* registration_name,
                                            const ORTCHAR_T* path) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(registration_name);
    TENON_RETURN_IF_NULL(path);
    return plugin::Register(*env->shared, registration_name, path);
  });
}

OrtStatus* UnregisterExecutionProviderLibrary(OrtEnv* env, const char* registration_name) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(registration_name);
    const plugin::EpLibrary* const notified = plugin::EpLibrary::Notification::Current();
    if (notified != nullptr && env->shared->eps.Has(registration_name, notified)) {
      TENON_LOG(env->shared->environment.logger(), kError,
                "library '{}' cannot be unregistered by its provider at the end of a session",
                registration_name);
      return Fail("library '{}' is in use: its provider is told that a session ends",
                  registration_name);
    }
    return env->shared->UnregisterLibrary(registration_name);
  });
}

OrtStatus* GetEnvConfigEntries(OrtKeyValuePairs** config_entries) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(config_entries);
    *config_entries = new OrtKeyValuePairs(EnvironmentConfig());
    return OkStatus();
  });
}

}  // namespace tenon::capi
