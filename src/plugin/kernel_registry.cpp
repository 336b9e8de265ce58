#include "plugin/kernel_registry.h"

#include <utility>

#include "capi/boundary/arguments.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "plugin/registered_kernel.h"

tenon::Status OrtKernelRegistry::Add(const OrtKernelDef& def, OrtKernelCreateFunc create,
                                     void* state) {
  for (const auto& entry : entries_) {
    const OrtKernelDef& known = entry->def;
    const bool is_same = known.op_type == def.op_type && known.domain == def.domain &&
                         known.provider == def.provider && known.types == def.types &&
                         known.first_version <= def.last_version &&
                         def.first_version <= known.last_version;
    if (is_same) {
      return tenon::Fail("{} has a kernel for {} of versions {} to {} and the same types already",
                         def.provider, def.op_type, known.first_version, known.last_version);
    }
  }
  entries_.push_back(std::make_unique<Entry>(Entry{def, create, state}));
  return tenon::OkStatus();
}

const OrtKernelRegistry::Entry* OrtKernelRegistry::FindEntry(const tenon::Graph& graph,
                                                             const tenon::Node& node,
                                                             const std::string& provider) const {
  for (const auto& entry : entries_) {
    if (entry->def.provider == provider && entry->def.IsFor(graph, node)) return entry.get();
  }
  return nullptr;
}

const OrtKernelDef* OrtKernelRegistry::Find(const tenon::Graph& graph, const tenon::Node& node,
                                            const std::string& provider) const {
  const Entry* const entry = FindEntry(graph, node, provider);
  return entry == nullptr ? nullptr : &entry->def;
}

tenon::Result<std::unique_ptr<tenon::Kernel>> OrtKernelRegistry::MakeKernel(
    tenon::KernelInfo& info, const std::string& provider,
    const tenon::plugin::KernelOwner& owner) const {
  const Entry* const entry = FindEntry(info.graph(), info.node(), provider);
  if (entry == nullptr) {
    return tenon::NotImplemented("{} claimed the node but has registered no kernel for it",
                                 provider);
  }
  return tenon::plugin::MakeRegisteredKernel(entry->def, entry->create, entry->state, info, owner);
}

namespace tenon::capi {

OrtStatus* CreateKernelRegistry(OrtKernelRegistry** kernel_registry) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(kernel_registry);
    *kernel_registry = new OrtKernelRegistry();
    return OkStatus();
  });
}

void ReleaseKernelRegistry(OrtKernelRegistry* input) noexcept { delete input; }

OrtStatus* KernelRegistry_AddKernel(OrtKernelRegistry* kernel_registry,
                                    const OrtKernelDef* kernel_def,
                                    OrtKernelCreateFunc kernel_create_func,
                                    void* kernel_create_func_state) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(kernel_registry);
    TENON_RETURN_IF_NULL(kernel_def);
    TENON_RETURN_IF_NULL(kernel_create_func);
    return kernel_registry->Add(*kernel_def, kernel_create_func, kernel_create_func_state);
  });
}

}  // namespace tenon::capi
