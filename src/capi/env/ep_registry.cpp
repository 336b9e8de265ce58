#include "capi/env/ep_registry.h"

#include <algorithm>

namespace tenon::capi {

EpRegistry::EpRegistry() { ListDevices(); }

void EpRegistry::ListDevices(const RegisteredLibrary* added, const RegisteredLibrary* removed) {
  DeviceList now = {&CpuEpDevice()};
  const auto list = [&](const RegisteredLibrary& library) {
    for (const auto& device : library.devices) now.push_back(device.get());
  };
  for (const RegisteredLibrary& library : libraries_) {
    if (&library != removed) list(library);
  }
  if (added != nullptr) list(*added);
  const auto known = std::find(lists_.begin(), lists_.end(), now);
  devices_ = known != lists_.end() ? &*known : &lists_.emplace_back(std::move(now));
  // Lists with removed devices are not valid any more.
  std::erase_if(lists_, [&](const DeviceList& list) {
    return std::any_of(list.begin(), list.end(), [&](const OrtEpDevice* device) {
      return std::find(devices_->begin(), devices_->end(), device) == devices_->end();
    });
  });
}

Status EpRegistry::CheckFree(std::string_view name) const {
  const MutexLock lock(mutex_);
  const bool is_used = std::any_of(libraries_.begin(), libraries_.end(),
                                   [&](const auto& library) { return library.name == name; });
  if (!is_used) return OkStatus();
  return Fail("a library of execution providers is registered as '{}' already", name);
}

Status EpRegistry::Add(RegisteredLibrary library) {
  TENON_RETURN_IF_ERROR(CheckFree(library.name));
  const MutexLock lock(mutex_);
  libraries_.reserve(libraries_.size() + 1);
  ListDevices(&library);
  libraries_.push_back(std::move(library));
  return OkStatus();
}

std::vector<RegisteredLibrary>::const_iterator EpRegistry::FindLibrary(
    std::string_view name) const {
  return std::find_if(libraries_.begin(), libraries_.end(),
                      [&](const auto& library) { return library.name == name; });
}

Status EpRegistry::NoLibrary(std::string_view name) {
  return Fail("no library of execution providers is registered as '{}'", name);
}

Result<RegisteredLibrary> EpRegistry::Take(std::string_view name) {
  const MutexLock lock(mutex_);
  const auto found = FindLibrary(name);
  if (found == libraries_.end()) return Failure(NoLibrary(name));
  ListDevices(nullptr, &*found);
  RegisteredLibrary taken = std::move(libraries_[static_cast<size_t>(found - libraries_.begin())]);
  libraries_.erase(found);
  return taken;
}

Result<EpRegistry::Holdings> EpRegistry::HoldingsOf(std::string_view name) const {
  const MutexLock lock(mutex_);
  const auto found = FindLibrary(name);
  if (found == libraries_.end()) return Failure(NoLibrary(name));
  Holdings holdings = {found->uses, {}, found->transfers.size()};
  for (const auto& device : found->devices) {
    auto& sources = holdings.sources;
    if (std::find(sources.begin(), sources.end(), device->source) == sources.end()) {
      sources.push_back(device->source);
    }
  }
  return holdings;
}

void EpRegistry::Abandon() {
  // Kept, not leaked: it is freed when the process ends.
  static auto* const kept = new std::vector<RegisteredLibrary>();
  const MutexLock lock(mutex_);
  for (RegisteredLibrary& library : libraries_) kept->push_back(std::move(library));
  libraries_.clear();
}

bool EpRegistry::Has(std::string_view name, const void* library) const {
  const MutexLock lock(mutex_);
  return std::any_of(libraries_.begin(), libraries_.end(), [&](const auto& registered) {
    return registered.name == name && registered.library.get() == library;
  });
}

std::optional<RegisteredLibrary> EpRegistry::TakeLast() {
  const MutexLock lock(mutex_);
  if (libraries_.empty()) return std::nullopt;
  std::optional<RegisteredLibrary> taken = std::move(libraries_.back());
  libraries_.pop_back();
  // The first list has the built-in devices alone.
  lists_.resize(1);
  devices_ = &lists_.front();
  return taken;
}

std::pair<const OrtEpDevice* const*, size_t> EpRegistry::Devices() const {
  const MutexLock lock(mutex_);
  return {devices_->data(), devices_->size()};
}

Status EpRegistry::CheckDevice(const OrtEpDevice* device) const {
  const MutexLock lock(mutex_);
  if (std::find(devices_->begin(), devices_->end(), device) != devices_->end()) return OkStatus();
  return InvalidArgument("the device is none of the environment's");
}

bool EpRegistry::HasDevice(const OrtEpDevice* device, const EpSource* source) const {
  const MutexLock lock(mutex_);
  return std::find(devices_->begin(), devices_->end(), device) != devices_->end() &&
         device->source.get() == source;
}

Result<std::shared_ptr<EpSource>> EpRegistry::FindSource(std::string_view ep_name) const {
  const MutexLock lock(mutex_);
  std::vector<std::string> names;
  for (const OrtEpDevice* const device : *devices_) {
    if (device->source != nullptr && device->ep_name == ep_name) return device->source;
    if (names.empty() || names.back() != device->ep_name) names.push_back(device->ep_name);
  }
  return InvalidArgument("there is no execution provider '{}'; available: {}", ep_name,
                         JoinNames(names));
}

}  // namespace tenon::capi
