// The libraries with execution providers of an environment, and all devices.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "capi/env/ep_device.h"
#include "capi/env/library_uses.h"
#include "runtime/data_transfer.h"

namespace tenon::capi {

// A registered library, with the environment's objects from it.
struct RegisteredLibrary {
  std::string name;
  std::shared_ptr<void> library;  // destroyed last
  std::shared_ptr<const LibraryUses> uses;
  std::vector<std::unique_ptr<OrtEpDevice>> devices;
  std::vector<std::shared_ptr<DataTransfer>> transfers;
};

// Thread-safe. Devices live until their library is removed.
class EpRegistry {
 public:
  EpRegistry();
  EpRegistry(const EpRegistry&) = delete;
  EpRegistry& operator=(const EpRegistry&) = delete;

  // Errors: kFail if the name is in use, which CheckFree can check beforehand.
  Status CheckFree(std::string_view name) const;
  Status Add(RegisteredLibrary library);
  // Error: kFail if there is none of that name.
  Result<RegisteredLibrary> Take(std::string_view name);
  // The environment's objects from a library. Error: kFail if there is no library of that name.
  struct Holdings {
    std::shared_ptr<const LibraryUses> uses;
    std::vector<std::shared_ptr<EpSource>> sources;  // no two are equal
    size_t transfers = 0;
  };
  Result<Holdings> HoldingsOf(std::string_view name) const;
  // The process ends: nothing of the libraries is used or released any more.
  void Abandon();
  // Whether `library` is registered under the name.
  bool Has(std::string_view name, const void* library) const;
  // The library that was registered last, and afterwards no device but the built-in ones; nothing
  // if there is none. Needs no memory.
  std::optional<RegisteredLibrary> TakeLast();

  // All devices: the built-in ones first, then in the order of registration. The array is valid
  // until the registry is destroyed, or a library with one of them is removed.
  std::pair<const OrtEpDevice* const*, size_t> Devices() const;
  // Error: kInvalidArgument if the device is none of these.
  Status CheckDevice(const OrtEpDevice* device) const;
  // Whether the device is one of these, and `source` makes its providers.
  bool HasDevice(const OrtEpDevice* device, const EpSource* source) const;
  // The source of the providers of a name. Error: kInvalidArgument with the existing names.
  Result<std::shared_ptr<EpSource>> FindSource(std::string_view ep_name) const;

 private:
  // Lists the devices of all libraries with `added` and without `removed`, which may be null. No
  // effect if there is no memory for that.
  void ListDevices(const RegisteredLibrary* added = nullptr,
                   const RegisteredLibrary* removed = nullptr);
  std::vector<RegisteredLibrary>::const_iterator FindLibrary(std::string_view name) const;
  static Status NoLibrary(std::string_view name);

  mutable Mutex mutex_;
  std::vector<RegisteredLibrary> libraries_;
  using DeviceList = std::vector<const OrtEpDevice*>;
  std::list<DeviceList> lists_;          // lists that clients may have
  const DeviceList* devices_ = nullptr;  // the current list
};

}  // namespace tenon::capi
