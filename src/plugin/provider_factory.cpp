#include "plugin/provider_factory.h"

#include "plugin/provider.h"

namespace tenon::plugin {

Result<std::unique_ptr<ExecutionProvider>> ProviderFactory::MakeProvider(
    std::span<const OrtEpDevice* const> devices, const OrtSessionOptions& options,
    const Model& model, const Logger& logger, capi::SharedAllocators* shared) {
  TENON_ASSIGN_OR_RETURN(MadeEp ep, CreateEp(devices, options, logger));
  return PluginProvider::Make(shared_from_this(), std::move(ep), devices, options, model, logger,
                              shared);
}

}  // namespace tenon::plugin
