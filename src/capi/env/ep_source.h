// EpSource makes providers for devices that are not built in. It is the rest of the library's view
// of a plugin's factory.
#pragma once

#include <onnxruntime_ep_c_api.h>

#include <memory>
#include <span>

#include "base/logging.h"
#include "capi/boundary/key_value_pairs.h"
#include "capi/env/library_uses.h"
#include "capi/value/sync_stream.h"
#include "ir/model.h"
#include "runtime/data_transfer.h"
#include "runtime/provider.h"

namespace tenon::capi {

class SharedAllocators;

// Thread-safe. Every object that it makes keeps the plugin loaded.
class EpSource {
 public:
  virtual ~EpSource() = default;

  // Held by an object of that kind while it lives: it keeps the plugin loaded and counts the
  // object.
  virtual std::shared_ptr<void> Hold(LibraryObject kind) = 0;

  // A provider of one session for devices of this source. `model` is that of the session; `logger`
  // outlives the provider. Values are in memory of `shared` if that has an allocator; null: in
  // memory of the provider's own allocators. Error: the plugin's own code, and its name in the
  // text.
  virtual Result<std::unique_ptr<ExecutionProvider>> MakeProvider(
      std::span<const OrtEpDevice* const> devices, const OrtSessionOptions& options,
      const Model& model, const Logger& logger, SharedAllocators* shared) = 0;

  // Whether its kernels, copies and allocators support streams.
  virtual bool IsStreamAware() const = 0;
  // Whether the provider and the hardware have the same vendor.
  virtual bool IsOfVendor(const OrtHardwareDevice& hardware) const = 0;

  // An allocator for a memory of one of this source's devices. `options` may be null.
  virtual Result<std::shared_ptr<Allocator>> MakeAllocator(const MemoryInfo& memory,
                                                           const OrtKeyValuePairs* options) = 0;
  // Null if it has no transfer.
  virtual Result<std::shared_ptr<DataTransfer>> MakeDataTransfer() = 0;
  // Error: kNotImplemented if there are no streams.
  virtual Result<std::unique_ptr<OrtSyncStream>> MakeStream(const OrtEpDevice& device,
                                                            const OrtKeyValuePairs* options) = 0;

  // Writes to `details` why the source cannot use the hardware; does not change it if it can.
  virtual Status Explain(const OrtHardwareDevice& hardware,
                         OrtDeviceEpIncompatibilityDetails& details) = 0;
  // Whether a compiled model with the compatibility text `info` suits the devices.
  virtual Result<OrtCompiledModelCompatibility> CheckCompatibility(
      std::span<const OrtEpDevice* const> devices, const char* info) = 0;

  // Domains of operators for sessions that use the source, which owns them.
  virtual Result<std::vector<const OrtCustomOpDomain*>> CustomOpDomains() = 0;

  // The importer of other APIs' memory for a device; null if there is none. Released through its
  // own table.
  virtual Result<OrtExternalResourceImporterImpl*> MakeImporter(const OrtEpDevice& device) = 0;
  // A null `config` undoes it. Error: kNotImplemented if it is not supported.
  virtual Status SetGraphicsInterop(const OrtEpDevice& device,
                                    const OrtGraphicsInteropConfig* config) = 0;
};

// A provider that such a source made.
class DeviceProvider : public ExecutionProvider {
 public:
  // The device of its values. It may have been destroyed when its library was unregistered
  // (EpRegistry::HasDevice).
  virtual const OrtEpDevice* device() const = 0;
  virtual const EpSource& source() const = 0;
};

}  // namespace tenon::capi
