// A plugin's factory, which makes the providers of sessions.
#pragma once

#include "plugin/factory.h"

namespace tenon::plugin {

class ProviderFactory final : public EpFactory {
 public:
  using EpFactory::EpFactory;

  Result<std::unique_ptr<ExecutionProvider>> MakeProvider(
      std::span<const OrtEpDevice* const> devices, const OrtSessionOptions& options,
      const Model& model, const Logger& logger, capi::SharedAllocators* shared) override;
};

}  // namespace tenon::plugin
