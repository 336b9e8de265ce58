// Declares a function for every slot: the slot CreateEnv of a table points to the function
// `CreateEnv`. A file that implements slots includes this, so that the compiler compares the
// signatures.
#pragma once

#include <onnxruntime_c_api.h>
#include <onnxruntime_ep_c_api.h>
#include <onnxruntime_training_c_api.h>

namespace tenon::capi {

// The function type of a slot. All implementations are noexcept, also where the slot's type leaves
// it out, as for the release functions.
template <class Pointer>
struct SlotFunction;
template <class R, class... Args>
struct SlotFunction<R (*)(Args...)> {
  using Type = R(Args...) noexcept;
};
template <class R, class... Args>
struct SlotFunction<R (*)(Args...) noexcept> {
  using Type = R(Args...) noexcept;
};

// A template argument keeps the type and drops the attribute "result must be used", which is
// acceptable here.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#define ABI_SLOT(Table, Name, slot, ...) SlotFunction<decltype(Table::Name)>::Type Name;
#define ABI_MEMBER(Struct, Name, offset, ...)
#define ABI_SIZE(Struct, bytes)
#include "capi/boundary/abi_slots.inc"
#undef ABI_SLOT
#undef ABI_MEMBER
#undef ABI_SIZE
#pragma GCC diagnostic pop

}  // namespace tenon::capi
