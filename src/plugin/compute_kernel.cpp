#include "plugin/compute_kernel.h"

#include <vector>

#include "capi/boundary/slots.h"
#include "capi/kernel/kernel_context.h"
#include "plugin/call.h"

// Passed to CreateState; valid during the call.
struct OrtNodeComputeContext {
  const char* node_name;
};

namespace tenon::plugin {
namespace {

class ComputeKernel final : public Kernel {
 public:
  ComputeKernel(OrtNodeComputeInfo* compute, const KernelInfo& info, const Logger& logger,
                const StringMap& config)
      : compute_(compute), node_(info, 1, logger, config) {
    for (size_t i = 0; i < info.output_count(); ++i) {
      output_types_.push_back(info.OutputElementType(i));
    }
  }
  ~ComputeKernel() override {
    if (!has_state_) return;
    (void)CatchExceptions([&] {
      compute_->ReleaseState(compute_, state_);
      return OkStatus();
    });
  }

  Status CreateState() {
    OrtNodeComputeContext context = {node_.name.c_str()};
    TENON_RETURN_IF_ERROR(Call([&] { return compute_->CreateState(compute_, &context, &state_); }));
    has_state_ = true;
    return OkStatus();
  }

  KernelTraits traits() const override {
    return {.allocates_outputs = true, .may_write_feeds = true, .is_stateful = true};
  }
  Status InferShapes(ShapeContext&) const override { return OkStatus(); }

  Status Run(KernelContext& context) const override {
    OrtKernelContext call = {context, node_, output_types_, no_aliases_, {}, {}};
    call.outputs.resize(context.output_count());
    return Call([&] { return compute_->Compute(compute_, state_, &call); });
  }

 private:
  OrtNodeComputeInfo* const compute_;
  const capi::NodeDescription node_;
  std::vector<DataType> output_types_;
  const std::vector<int> no_aliases_;
  void* state_ = nullptr;
  bool has_state_ = false;
};

}  // namespace

Result<std::unique_ptr<Kernel>> MakeComputeKernel(OrtNodeComputeInfo* compute,
                                                  const KernelInfo& info, const Logger& logger,
                                                  const StringMap& config) {
  // The node is in the provider's own domain.
  TENON_RETURN_IF_ERROR(CheckSlots(info.node().domain, "compiled node",
                                   {TENON_SLOT(compute, CreateState), TENON_SLOT(compute, Compute),
                                    TENON_SLOT(compute, ReleaseState)}));
  auto kernel = std::make_unique<ComputeKernel>(compute, info, logger, config);
  TENON_RETURN_IF_ERROR(kernel->CreateState());
  return kernel;
}

}  // namespace tenon::plugin

namespace tenon::capi {

const char* NodeComputeContext_NodeName(const OrtNodeComputeContext* context) noexcept {
  return context == nullptr ? "" : context->node_name;
}

}  // namespace tenon::capi
