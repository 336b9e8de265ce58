// The experimental functions, each under its name without a version.
#pragma once

#include <onnxruntime_experimental_c_api.h>

namespace tenon::capi {

#define ORT_EXPERIMENTAL_API(since, type, name, ...) type name(__VA_ARGS__) noexcept;
#include <onnxruntime_experimental_c_api.inc>
#undef ORT_EXPERIMENTAL_API

// A function as clients get it; it has the type that is declared for its name.
template <class Pointer>
OrtExperimentalFnPtr Untyped(Pointer function) {
  return reinterpret_cast<OrtExperimentalFnPtr>(function);
}

}  // namespace tenon::capi
