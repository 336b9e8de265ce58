// Operators whose kernels keep more than their attributes.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "ops/framework/op_row.h"
#include "runtime/kernel.h"
#include "runtime/kernel_info.h"

namespace tenon {

namespace internal {

template <class K>
Status MakeClass(KernelInfo& info, const KernelTraits& traits, std::unique_ptr<Kernel>& kernel) {
  auto made = std::make_unique<K>();
  TENON_RETURN_IF_ERROR(made->Prepare(info));
  made->set_traits(traits);
  kernel = std::move(made);
  return OkStatus();
}

}  // namespace internal

// A kernel with state, such as packed weights. A subclass has
//   Status Prepare(KernelInfo& info);   // reads attributes, packs constants; called once
//   Status Run(KernelContext& context) const override;
// and the row names its shape function, which static inference uses too.
template <auto Infer>
class StatefulKernel : public Kernel {
 public:
  using Attrs = internal::AttrsOf<Infer>;
  KernelTraits traits() const override { return traits_; }
  void set_traits(const KernelTraits& traits) { traits_ = traits; }
  Status InferShapes(ShapeContext& context) const override { return Infer(attrs_, context); }
  static constexpr ShapeFunction kInfer = &internal::BindAndInfer<Infer>;

 protected:
  // Fills attrs_; the first line of Prepare.
  Status Bind(const KernelInfo& info) {
    TENON_ASSIGN_OR_RETURN(attrs_, BindAttributes<Attrs>(info.node()));
    return OkStatus();
  }
  Attrs attrs_;

 private:
  KernelTraits traits_;
};

template <class K>
constexpr OpRow OpClass(std::string_view name, OpOptions options) {
  return {name, options, K::kInfer, &internal::MakeClass<K>};
}

}  // namespace tenon
