#include "capi/kernel/host_kernel.h"

#include <memory>
#include <string_view>
#include <utility>

#include "capi/boundary/arguments.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/kernel/kernel_context.h"
#include "capi/kernel/kernel_info.h"
#include "ops/cpu_provider.h"
#include "runtime/kernel.h"
#include "runtime/stream.h"

namespace tenon::capi {
namespace {

// Subgraphs take values from the CPU's memory and leave them there, so the kernel is the CPU's. The
// plugin's helpers, which join and permute on a device, are not called.
class HostKernel final : public OrtKernelImpl {
 public:
  using ReleaseHelper = std::unique_ptr<void, void (*)(void*)>;

  HostKernel(std::unique_ptr<Kernel> kernel, ReleaseHelper helper)
      : OrtKernelImpl{}, kernel_(std::move(kernel)), helper_(std::move(helper)) {
    ort_version_supported = ORT_API_VERSION;
    Compute = ComputeSlot;
    Release = [](OrtKernelImpl* self) noexcept { delete static_cast<HostKernel*>(self); };
  }

  static OrtStatus* ORT_API_CALL ComputeSlot(OrtKernelImpl* self,
                                             OrtKernelContext* context) noexcept {
    return AtBoundary([&]() -> Status {
      KernelContext& call = context->context;
      for (size_t i = 0; i < call.input_count(); ++i) {
        const bool is_readable = !call.HasInput(i) || !call.InputValue(i).is_tensor() ||
                                 call.Input(i).memory().IsHostAccessible();
        if (!is_readable) return Fail("input {}: the host cannot read it", i);
      }
      // The inputs, and the values that the subgraphs capture, may not be complete yet.
      if (call.stream() != nullptr) TENON_RETURN_IF_ERROR(WaitFor(*call.stream(), nullptr));
      return static_cast<HostKernel*>(self)->kernel_->Run(call);
    });
  }

 private:
  const std::unique_ptr<Kernel> kernel_;
  const ReleaseHelper helper_;
};

template <class Helper>
HostKernel::ReleaseHelper Owned(Helper* helper) {
  return {helper, [](void* owned) {
            auto* const given = static_cast<Helper*>(owned);
            given->Release(given);
          }};
}

// A kernel for the node of `info`. Takes ownership of the helper, unless it fails.
Status MakeHostKernel(const OrtKernelInfo* info, std::string_view op_type, int first_version,
                      HostKernel::ReleaseHelper helper, OrtKernelImpl** out) {
  Status status;
  std::unique_ptr<Kernel> kernel;
  if (info->making == nullptr) {
    status = Fail("such a kernel is made while the host asks for it");
  } else if (info->node->op_type != op_type || !info->node->domain.empty()) {
    status = InvalidArgument("expected a node of {}, got {}", op_type, info->node->op_type);
  } else if (info->node->since_version < first_version) {
    status = Fail("{} is supported from version {} on, got {}", op_type, first_version,
                  info->node->since_version);
  } else {
    Result<std::unique_ptr<Kernel>> made = MakeCpuProvider()->CreateKernel(*info->making);
    if (made) {
      kernel = std::move(*made);
    } else {
      status = std::move(made.error());
    }
  }
  if (!status.ok()) {
    helper.release();  // the plugin still owns it
    return status;
  }
  *out = new HostKernel(std::move(kernel), std::move(helper));
  return OkStatus();
}

}  // namespace

bool IsHostKernel(const OrtKernelImpl& kernel) {
  return kernel.Compute == &HostKernel::ComputeSlot;
}

OrtStatus* CreateIfKernel(const OrtKernelInfo* kernel_info, OrtKernelImpl** kernel_out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(kernel_info);
    TENON_RETURN_IF_NULL(kernel_out);
    return MakeHostKernel(kernel_info, "If", 1, {nullptr, [](void*) {}}, kernel_out);
  });
}

OrtStatus* CreateLoopKernel(const OrtKernelInfo* kernel_info, OrtLoopKernelHelper* helper,
                            OrtKernelImpl** kernel_out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(kernel_info);
    TENON_RETURN_IF_NULL(helper);
    TENON_RETURN_IF_NULL(kernel_out);
    if (helper->ConcatOutput == nullptr) return InvalidArgument("the helper lacks ConcatOutput");
    if (helper->Release == nullptr) return InvalidArgument("the helper lacks Release");
    return MakeHostKernel(kernel_info, "Loop", 1, Owned(helper), kernel_out);
  });
}

OrtStatus* CreateScanKernel(const OrtKernelInfo* kernel_info, OrtScanKernelHelper* helper,
                            OrtKernelImpl** kernel_out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(kernel_info);
    TENON_RETURN_IF_NULL(helper);
    TENON_RETURN_IF_NULL(kernel_out);
    if (helper->Transpose == nullptr) return InvalidArgument("the helper lacks Transpose");
    if (helper->Release == nullptr) return InvalidArgument("the helper lacks Release");
    return MakeHostKernel(kernel_info, "Scan", 9, Owned(helper), kernel_out);
  });
}

void ReleaseKernelImpl(OrtKernelImpl* input) noexcept {
  if (input != nullptr && input->Release != nullptr) input->Release(input);
}

}  // namespace tenon::capi
