#include "plugin/registered_kernel.h"

#include <algorithm>
#include <utility>

#include "capi/allocator.h"
#include "capi/arguments.h"
#include "capi/handles.h"
#include "capi/kernel_context.h"
#include "capi/kernel_info.h"
#include "capi/slots.h"
#include "ir/schema.h"
#include "plugin/call.h"

namespace tenon::plugin {
namespace {

Residence ResidenceAt(const std::map<size_t, OrtMemType>& memory, size_t index) {
  const auto found = memory.find(index);
  const bool is_host = found != memory.end() && found->second != OrtMemTypeDefault;
  return is_host ? Residence::kHost : Residence::kProvider;
}

class RegisteredKernel final : public Kernel {
 public:
  RegisteredKernel(const OrtKernelDef& def, const KernelInfo& info, OrtEp* ep, const Logger& logger,
                   const StringMap& config)
      : def_(def), aliases_(info.output_count(), -1) {
    const int since = info.node().schema != nullptr ? info.node().schema->since : def.first_version;
    info_.node = std::make_shared<const capi::NodeDescription>(info, since, logger, config);
    info_.ep = ep;
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
    if (impl_ == nullptr || impl_->Release == nullptr) return;
    (void)CatchExceptions([&] {
      impl_->Release(impl_);
      return OkStatus();
    });
  }

  Status Create(OrtKernelCreateFunc create, void* state) {
    TENON_RETURN_IF_ERROR(Call([&] { return create(state, &info_, &impl_); }));
    if (impl_ == nullptr) return Fail("{} made no kernel", def_.provider);
    if (impl_->Compute == nullptr || impl_->Release == nullptr) {
      return Fail("{} made a kernel without Compute or Release", def_.provider);
    }
    return OkStatus();
  }

  Status PackConstants(KernelInfo& info) {
    if (impl_->PrePackWeight == nullptr) return OkStatus();
    for (size_t i = 0; i < info.input_count(); ++i) {
      const Tensor* const constant = info.Constant(i);
      if (constant == nullptr) continue;
      const Value value(*constant);
      bool is_packed = false;
      TENON_RETURN_IF_ERROR(Call([&] {
        return impl_->PrePackWeight(impl_, capi::Wrap<OrtValue>(&value), static_cast<int>(i),
                                    allocator_.get(), nullptr, &is_packed);
      }));
      if (is_packed) info.ReleaseConstant(i);
    }
    return OkStatus();
  }

  KernelTraits traits() const override { return {.allocates_outputs = true, .is_stateful = true}; }
  Residence InputResidence(size_t i) const override { return ResidenceAt(def_.input_memory, i); }
  Residence OutputResidence(size_t i) const override { return ResidenceAt(def_.output_memory, i); }
  Status InferShapes(ShapeContext&) const override { return OkStatus(); }

  Status Run(KernelContext& context) const override {
    OrtKernelContext call = {context, *info_.node, output_types_, aliases_, {}, {}};
    call.outputs.resize(context.output_count());
    return Call([&] { return impl_->Compute(impl_, &call); });
  }

 private:
  struct ReleaseClientAllocator {
    void operator()(OrtAllocator* allocator) const { capi::ReleaseAllocator(allocator); }
  };

  const OrtKernelDef& def_;
  // What packed weights come from; goes after the kernel that frees them.
  const std::unique_ptr<OrtAllocator, ReleaseClientAllocator> allocator_{
      capi::NewClientAllocator(SharedCpuAllocator())};
  OrtKernelInfo info_;
  std::vector<DataType> output_types_;
  std::vector<int> aliases_;
  OrtKernelImpl* impl_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<Kernel>> MakeRegisteredKernel(const OrtKernelDef& def,
                                                     OrtKernelCreateFunc create, void* state,
                                                     KernelInfo& info, OrtEp* ep,
                                                     const Logger& logger,
                                                     const StringMap& config) {
  auto kernel = std::make_unique<RegisteredKernel>(def, info, ep, logger, config);
  TENON_RETURN_IF_ERROR(kernel->Create(create, state));
  TENON_RETURN_IF_ERROR(kernel->PackConstants(info));
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
