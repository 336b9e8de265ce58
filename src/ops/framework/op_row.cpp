#include "ops/framework/op_row.h"

#include <memory>
#include <utility>

#include "runtime/kernel.h"
#include "runtime/kernel_info.h"

namespace tenon::internal {
namespace {

using OwnedAttributes = std::unique_ptr<const void, void (*)(const void*)>;

class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(OwnedAttributes attrs, const AttributeFunctions& functions,
                 const KernelTraits& traits)
      : attrs_(std::move(attrs)), functions_(functions), traits_(traits) {}
  KernelTraits traits() const override { return traits_; }
  Status InferShapes(ShapeContext& context) const override {
    return functions_.infer(attrs_.get(), context);
  }
  Status Run(KernelContext& context) const override {
    return functions_.run(attrs_.get(), context);
  }

 private:
  const OwnedAttributes attrs_;
  const AttributeFunctions& functions_;  // constant, of the operator's row
  const KernelTraits traits_;
};

}  // namespace

void MakeFunctionKernel(const void* attrs, const AttributeFunctions& functions,
                        const KernelTraits& traits, std::unique_ptr<Kernel>& kernel) {
  OwnedAttributes owned(attrs, functions.destroy);
  kernel = std::make_unique<FunctionKernel>(std::move(owned), functions, traits);
}

const Node& NodeOf(const KernelInfo& info) { return info.node(); }

}  // namespace tenon::internal
