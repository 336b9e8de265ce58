#include "plugin/registered_kernel.h"

#include <algorithm>
#include <utility>

#include "capi/boundary/arguments.h"
#include "capi/boundary/slots.h"
#include "capi/kernel/host_kernel.h"
#include "capi/kernel/kernel_context.h"
#include "capi/kernel/kernel_info.h"
#include "ir/schema.h"
#include "plugin/call.h"
#include "plugin/weight_packing.h"

namespace tenon::plugin {
namespace {

Residence ResidenceAt(const std::map<size_t, OrtMemType>& memory, size_t index) {
  const auto found = memory.find(index);
  const bool is_host = found != memory.end() && found->second != OrtMemTypeDefault;
  return is_host ? Residence::kHost : Residence::kProvider;
}

class RegisteredKernel final : public Kernel {
 public:
  RegisteredKernel(const OrtKernelDef& def, const KernelInfo& info, const KernelOwner& owner)
      : def_(def),
        packing_(Format("{} {} {}", def.provider, info.node().domain, info.node().op_type),
                 owner.packed_weights),
        aliases_(info.output_count(), -1) {
    const int since = info.node().schema != nullptr ? info.node().schema->since : def.first_version;
    info_.node =
        std::make_shared<const capi::NodeDescription>(info, since, owner.logger, owner.config);
    info_.ep = owner.ep;
    for (size_t i = 0; i < info.output_count(); ++i) {
      output_types_.push_back(info.OutputElementType(i));
    }
    for (const OrtKernelDef::Alias& alias : def.aliases) {
      if (static_cast<size_t>(alias.output) < aliases_.size()) {
        aliases_[static_cast<size_t>(alias.output)] = alias.input;
      }
    }
  }
  ~RegisteredKernel() override {
    if (impl_ == nullptr || impl_->Release == nullptr) return;  // Create failed
    (void)CatchExceptions([&] {
      impl_->Release(impl_);
      return OkStatus();
    });
  }

  Status Create(OrtKernelCreateFunc create, void* state, KernelInfo& info) {
    info_.making = &info;
    const Status status = Call([&] { return create(state, &info_, &impl_); });
    info_.making = nullptr;
    // After a failure the host does not own the kernel.
    if (!status.ok()) impl_ = nullptr;
    TENON_RETURN_IF_ERROR(status);
    if (impl_ == nullptr) return Fail("{} made no kernel", def_.provider);
    TENON_RETURN_IF_ERROR(CheckSlots(def_.provider, "kernel",
                                     {TENON_SLOT(impl_, Compute), TENON_SLOT(impl_, Release)}));
    is_hosts_ = capi::IsHostKernel(*impl_);
    return packing_.PackConstants(*impl_, info);
  }

  KernelTraits traits() const override { return {.allocates_outputs = true, .is_stateful = true}; }
  Residence InputResidence(size_t i) const override {
    return is_hosts_ ? Residence::kHost : ResidenceAt(def_.input_memory, i);
  }
  Residence OutputResidence(size_t i) const override {
    return is_hosts_ ? Residence::kHost : ResidenceAt(def_.output_memory, i);
  }
  Status InferShapes(ShapeContext&) const override { return OkStatus(); }

  Status Run(KernelContext& context) const override {
    OrtKernelContext call = {context, *info_.node, output_types_, aliases_, {}, {}};
    call.outputs.resize(context.output_count());
    return Call([&] { return impl_->Compute(impl_, &call); });
  }

 private:
  const OrtKernelDef& def_;
  WeightPacking packing_;  // destroyed after the kernel, which frees its own objects
  OrtKernelInfo info_;
  std::vector<DataType> output_types_;
  std::vector<int> aliases_;
  OrtKernelImpl* impl_ = nullptr;
  bool is_hosts_ = false;
};

}  // namespace

Result<std::unique_ptr<Kernel>> MakeRegisteredKernel(const OrtKernelDef& def,
                                                     OrtKernelCreateFunc create, void* state,
                                                     KernelInfo& info, const KernelOwner& owner) {
  auto kernel = std::make_unique<RegisteredKernel>(def, info, owner);
  TENON_RETURN_IF_ERROR(kernel->Create(create, state, info));
  return kernel;
}

}  // namespace tenon::plugin

namespace tenon::capi {

OrtStatus* KernelInfo_GetEp(const OrtKernelInfo* info, const OrtEp** ep) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(info);
    TENON_RETURN_IF_NULL(ep);
    if (info->ep == nullptr) return Fail("the kernel belongs to no plugin's execution provider");
    *ep = info->ep;
    return OkStatus();
  });
}

}  // namespace tenon::capi
