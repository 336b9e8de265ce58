// A plugin's factory of execution providers, for the rest of the library.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "capi/env/ep_source.h"
#include "plugin/library.h"

namespace tenon::plugin {

class EpFactory;

// Releases a provider by the factory that made it.
struct ReleaseEp {
  std::shared_ptr<const EpFactory> factory;
  void operator()(OrtEp* ep) const;
};
using MadeEp = std::unique_ptr<OrtEp, ReleaseEp>;

// All but what providers are here. Thread-safe as far as the plugin's factory is.
class EpFactory : public capi::EpSource, public std::enable_shared_from_this<EpFactory> {
 public:
  EpFactory(std::shared_ptr<EpLibrary> library, OrtEpFactory* factory,
            const TenonEpExtension* extension);

  // Copied once.
  const std::string& name() const { return name_; }
  OrtEpFactory* client() const { return client_; }
  const OrtEpFactory& table() const { return table_; }
  const EpLibrary& library() const { return *library_; }
  const TenonEpExtension* extension() const { return extension_; }
  // Before the factory is used.
  void set_extension(const TenonEpExtension* extension) { extension_ = extension; }

  // The devices in `hardware` that the provider can use. Error: the plugin's, or kFail if it made
  // more than there was room for.
  Result<std::vector<std::unique_ptr<OrtEpDevice>>> FindDevices(
      std::span<const OrtHardwareDevice* const> hardware);

  // The plugin's provider for a session. Error: the plugin's.
  Result<MadeEp> CreateEp(std::span<const OrtEpDevice* const> devices,
                          const OrtSessionOptions& options, const Logger& logger);

  std::shared_ptr<void> Hold(capi::LibraryObject kind) override;
  bool IsStreamAware() const override;
  bool IsOfVendor(const OrtHardwareDevice& hardware) const override;
  Result<std::shared_ptr<Allocator>> MakeAllocator(const MemoryInfo& memory,
                                                   const OrtKeyValuePairs* options) override;
  // The allocator for `memory`, which the plugin made and the factory releases in the end. The
  // CPU's allocator if that is null.
  Result<std::shared_ptr<Allocator>> AdoptAllocator(OrtAllocator* made, const MemoryInfo& memory);
  Result<std::shared_ptr<DataTransfer>> MakeDataTransfer() override;
  Result<std::unique_ptr<OrtSyncStream>> MakeStream(const OrtEpDevice& device,
                                                    const OrtKeyValuePairs* options) override;
  Status Explain(const OrtHardwareDevice& hardware,
                 OrtDeviceEpIncompatibilityDetails& details) override;
  Result<OrtCompiledModelCompatibility> CheckCompatibility(
      std::span<const OrtEpDevice* const> devices, const char* info) override;
  Result<std::vector<const OrtCustomOpDomain*>> CustomOpDomains() override;
  Result<OrtExternalResourceImporterImpl*> MakeImporter(const OrtEpDevice& device) override;
  Status SetGraphicsInterop(const OrtEpDevice& device,
                            const OrtGraphicsInteropConfig* config) override;

 private:
  const std::shared_ptr<EpLibrary> library_;
  OrtEpFactory* const client_;
  const OrtEpFactory table_;  // the slots that it has
  const TenonEpExtension* extension_;
  const std::string name_;
};

}  // namespace tenon::plugin
