#include "ops/framework/op_row.h"

#include "runtime/kernel.h"
#include "runtime/kernel_info.h"

namespace tenon::internal {
namespace {

class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(const void* attrs, const AttributeFunctions& functions, const KernelTraits& traits)
      : attrs_(attrs, functions.destroy), functions_(functions), traits_(traits) {}
  KernelTraits traits() const override { return traits_; }
  Status InferShapes(ShapeContext& context) const override {
    return functions_.infer(attrs_.get(), context);
  }
  Status Run(KernelContext& context) const override {
    return functions_.run(attrs_.get(), context);
  }

 private:
  const std::unique_ptr<const void, void (*)(const void*)> attrs_;
  const AttributeFunctions& functions_;  // constant, of the operator's row
  const KernelTraits traits_;
};

}  // namespace

void MakeFunctionKernel(const void* attrs, const AttributeFunctions& functions,
                        const KernelTraits& traits, std::unique_ptr<Kernel>& kernel) {
  kernel = std::make_unique<FunctionKernel>(attrs, functions, traits);
}

const Node& NodeOf(const KernelInfo& info) { return info.node(); }

}  // namespace tenon::internal
