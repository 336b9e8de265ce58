// How an operator is declared: attributes, shape function, kernel, and the row that joins them.
//
//   struct SoftmaxAttrs {
//     int64_t axis;
//     static constexpr auto Fields() { return std::tuple(Field("axis", &SoftmaxAttrs::axis)); }
//   };
//   Status InferSoftmax(const SoftmaxAttrs& attrs, ShapeContext& context);
//   Status RunSoftmax(const SoftmaxAttrs& attrs, KernelContext& context);
//   constexpr OpRow kSoftmaxRows[] = {
//       Op<InferSoftmax, RunSoftmax>("Softmax", {.since = 13, .types = kFloats}),
//   };
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "ops/framework/attributes.h"
#include "runtime/kernel.h"

namespace tenon {

// Where a row applies and what the planner may do with its kernel.
struct OpOptions {
  std::string_view domain = "";
  int32_t since = 1;  // first opset; the row holds until a later row of the same name
  // Its other inputs are no floats of 16 bits: always so where `types` are float32 alone.
  bool has_wide_floats = false;
  TypeSet types = kAnyTensor;  // element types of one input (of output 0 if that is left out)
  KernelTraits traits = {};
  uint8_t typed_input = 0;  // which input; the same for all rows of a version
};

using MakeKernel = Result<std::unique_ptr<Kernel>> (*)(KernelInfo& info,
                                                       const KernelTraits& traits);

struct OpRow {
  std::string_view name;
  OpOptions options;
  ShapeFunction infer = nullptr;
  MakeKernel make = nullptr;
};

namespace internal {

// The attribute struct of a shape function or a run function: its first parameter.
template <class F>
struct FirstParameter;
template <class A, class C>
struct FirstParameter<Status (*)(const A&, C&)> {
  using Type = A;
};
template <auto F>
using AttrsOf = typename FirstParameter<decltype(F)>::Type;

template <auto Infer>
Status BindAndInfer(const Node& node, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const auto attrs, BindAttributes<AttrsOf<Infer>>(node));
  return Infer(attrs, context);
}

// A kernel whose only state is its attributes.
template <auto Infer, auto Run_>
class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(AttrsOf<Run_> attrs, const KernelTraits& traits)
      : attrs_(std::move(attrs)), traits_(traits) {}
  KernelTraits traits() const override { return traits_; }
  Status InferShapes(ShapeContext& context) const override { return Infer(attrs_, context); }
  Status Run(KernelContext& context) const override { return Run_(attrs_, context); }

  static Result<std::unique_ptr<Kernel>> Make(KernelInfo& info, const KernelTraits& traits) {
    TENON_ASSIGN_OR_RETURN(auto attrs, BindAttributes<AttrsOf<Run_>>(info.node()));
    return std::make_unique<FunctionKernel>(std::move(attrs), traits);
  }

 private:
  AttrsOf<Run_> attrs_;
  KernelTraits traits_;
};

template <class Attrs>
Status RunNothing(const Attrs&, KernelContext&) {
  return OkStatus();
}

template <class K>
Result<std::unique_ptr<Kernel>> MakeClass(KernelInfo& info, const KernelTraits& traits) {
  auto kernel = std::make_unique<K>();
  TENON_RETURN_IF_ERROR(kernel->Prepare(info));
  kernel->set_traits(traits);
  return std::unique_ptr<Kernel>(std::move(kernel));
}

}  // namespace internal

// An operator whose kernel is a function of its attributes.
template <auto Infer, auto Run>
constexpr OpRow Op(std::string_view name, OpOptions options) {
  static_assert(std::is_same_v<internal::AttrsOf<Infer>, internal::AttrsOf<Run>>);
  return {name, options, &internal::BindAndInfer<Infer>,
          &internal::FunctionKernel<Infer, Run>::Make};
}

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

// An operator whose output 0 is input 0 under another shape; it has no code to run.
template <auto Infer>
constexpr OpRow View(std::string_view name, OpOptions options) {
  options.traits.is_view = true;
  constexpr auto kRun = &internal::RunNothing<internal::AttrsOf<Infer>>;
  return {name, options, &internal::BindAndInfer<Infer>,
          &internal::FunctionKernel<Infer, kRun>::Make};
}

// Defines a family: the rows of one file of operators. families.inc lists it for registry.cpp.
#define TENON_OP_FAMILY(name, rows)                    \
  extern const std::span<const OpRow> k##name##Family; \
  const std::span<const OpRow> k##name##Family = rows

}  // namespace tenon
