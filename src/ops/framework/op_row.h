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
//
// Kernels that keep more than their attributes are classes: see stateful_kernel.h.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "ir/shape_context.h"
#include "ops/framework/attributes.h"
#include "runtime/kernel_context.h"
#include "runtime/kernel_traits.h"

namespace tenon {

class Kernel;
class KernelInfo;

// Where a row applies and what the planner may do with its kernel.
struct OpOptions {
  std::string_view domain = "";
  int32_t since = 1;  // first opset; the row holds until a later row of the same name
  // Its other inputs but narrow_inputs are not 16-bit floats: always true if `types` is only
  // float32.
  bool has_wide_floats = false;
  TypeSet types = kAnyTensor;  // element types of one input (of output 0 if that is left out)
  KernelTraits traits = {};
  uint8_t typed_input = 0;  // which input; the same for all rows of a version
  // Bit i: input or output i may have 16-bit floats, too, where the kernel computes in float32.
  uint8_t narrow_inputs = 0, narrow_outputs = 0;
  // Bit i: input i may be a constant of float16 numbers, too.
  uint8_t half_constants = 0;

  constexpr bool TakesNarrowInput(size_t i) const { return i < 8 && (narrow_inputs >> i & 1); }
  constexpr bool TakesHalfConstant(size_t i) const { return i < 8 && (half_constants >> i & 1); }
  constexpr bool MakesNarrowOutput(size_t i) const { return i < 8 && (narrow_outputs >> i & 1); }
};

// Sets `kernel`. (As a result of the function it would have to be of a known class here.)
using MakeKernel = Status (*)(KernelInfo& info, const KernelTraits& traits,
                              std::unique_ptr<Kernel>& kernel);

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

// A kernel whose only state is its attributes: functions that take them by their address.
struct AttributeFunctions {
  Status (*infer)(const void* attrs, ShapeContext& context);
  Status (*run)(const void* attrs, KernelContext& context);
  void (*destroy)(const void* attrs);
};
// Takes `attrs`, which `functions` are for.
void MakeFunctionKernel(const void* attrs, const AttributeFunctions& functions,
                        const KernelTraits& traits, std::unique_ptr<Kernel>& kernel);

// The node that a kernel is made for.
const Node& NodeOf(const KernelInfo& info);

template <auto Infer>
Status InferWith(const void* attrs, ShapeContext& context) {
  return Infer(*static_cast<const AttrsOf<Infer>*>(attrs), context);
}

template <auto Run>
Status RunWith(const void* attrs, KernelContext& context) {
  return Run(*static_cast<const AttrsOf<Run>*>(attrs), context);
}

template <class Attrs>
void Destroy(const void* attrs) {
  delete static_cast<const Attrs*>(attrs);
}

template <auto Infer, auto Run>
inline constexpr AttributeFunctions kFunctionsOf = {&InferWith<Infer>, &RunWith<Run>,
                                                    &Destroy<AttrsOf<Run>>};

template <auto Infer, auto Run>
Status MakeFunction(KernelInfo& info, const KernelTraits& traits, std::unique_ptr<Kernel>& kernel) {
  using Attrs = AttrsOf<Run>;
  TENON_ASSIGN_OR_RETURN(Attrs attrs, BindAttributes<Attrs>(NodeOf(info)));
  MakeFunctionKernel(new Attrs(std::move(attrs)), kFunctionsOf<Infer, Run>, traits, kernel);
  return OkStatus();
}

template <class Attrs>
Status RunNothing(const Attrs&, KernelContext&) {
  return OkStatus();
}

}  // namespace internal

// An operator whose kernel is a function of its attributes.
template <auto Infer, auto Run>
constexpr OpRow Op(std::string_view name, OpOptions options) {
  static_assert(std::is_same_v<internal::AttrsOf<Infer>, internal::AttrsOf<Run>>);
  return {name, options, &internal::BindAndInfer<Infer>, &internal::MakeFunction<Infer, Run>};
}

// An operator whose output 0 is input 0 under another shape; it has no code to run.
template <auto Infer>
constexpr OpRow View(std::string_view name, OpOptions options) {
  options.traits.is_view = true;
  constexpr auto kRun = &internal::RunNothing<internal::AttrsOf<Infer>>;
  return {name, options, &internal::BindAndInfer<Infer>, &internal::MakeFunction<Infer, kRun>};
}

// Defines a family: the rows of one file of operators. families.inc lists it for registry.cpp.
#define TENON_OP_FAMILY(name, rows)                    \
  extern const std::span<const OpRow> k##name##Family; \
  const std::span<const OpRow> k##name##Family = rows

}  // namespace tenon
