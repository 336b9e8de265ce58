// What makes providers for devices that are not built in: the factory of a plugin, as the rest of
// the library sees it.
#pragma once

#include <onnxruntime_ep_c_api.h>

#include <memory>
#include <span>

#include "base/logging.h"
#include "capi/key_value_pairs.h"
#include "capi/library_uses.h"
#include "capi/sync_stream.h"
#include "ir/model.h"
#include "runtime/data_transfer.h"
#include "runtime/provider.h"

namespace tenon::capi {

class SharedAllocators;

// Thread-safe. Everything that it makes keeps the plugin loaded.
class EpSource {
 public:
  virtual ~EpSource() = default;

  // What an object of that kind holds while it lives: it keeps the plugin loaded and is counted.
  virtual std::shared_ptr<void> Hold(LibraryObject kind) = 0;

  // A provider of one session for devices of this source. `model` is what the session was given;
  // `logger` outlives the provider. Values lie in memory of `shared` where that has an allocator;
  // null: in memory of the provider's own. Error: the plugin's own code, and its name in the text.
  virtual Result<std::unique_ptr<ExecutionProvider>> MakeProvider(
      std::span<const OrtEpDevice* const> devices, const OrtSessionOptions& options,
      const Model& model, const Logger& logger, SharedAllocators* shared) = 0;

  // Whether its kernels, copies and allocators know of streams.
  virtual bool IsStreamAware() const = 0;
  // Whether the provider and the hardware have one vendor.
  virtual bool IsOfVendor(const OrtHardwareDevice& hardware) const = 0;

  // An allocator of a memory that a device of this source has. `options` may be null.
  virtual Result<std::shared_ptr<Allocator>> MakeAllocator(const MemoryInfo& memory,
                                                           const OrtKeyValuePairs* options) = 0;
  // Null if it copies nothing.
  virtual Result<std::shared_ptr<DataTransfer>> MakeDataTransfer() = 0;
  // Error: kNotImplemented if there are no streams.
  virtual Result<std::unique_ptr<OrtSyncStream>> MakeStream(const OrtEpDevice& device,
                                                            const OrtKeyValuePairs* options) = 0;

  // Says in `details` why the source cannot use the hardware; leaves it as it is if it can.
  virtual Status Explain(const OrtHardwareDevice& hardware,
                         OrtDeviceEpIncompatibilityDetails& details) = 0;
  // Whether a compiled model that says `info` suits the devices.
  virtual Result<OrtCompiledModelCompatibility> CheckCompatibility(
      std::span<const OrtEpDevice* const> devices, const char* info) = 0;

  // Domains of operators for sessions that use the source, which the source owns.
  virtual Result<std::vector<const OrtCustomOpDomain*>> CustomOpDomains() = 0;

  // What imports other APIs' memory for a device; null if nothing does. Released through its own
  // table.
  virtual Result<OrtExternalResourceImporterImpl*> MakeImporter(const OrtEpDevice& device) = 0;
  // `config` is null to take it back. Error: kNotImplemented if there is no such thing.
  virtual Status SetGraphicsInterop(const OrtEpDevice& device,
                                    const OrtGraphicsInteropConfig* config) = 0;
};

// A provider that such a source made.
class DeviceProvider : public ExecutionProvider {
 public:
  // The device that its values lie on, which may have been destroyed with its library's
  // registration (EpRegistry::HasDevice).
  virtual const OrtEpDevice* device() const = 0;
  virtual const EpSource& source() const = 0;
};

}  // namespace tenon::capi
