// The functions of onnxruntime_experimental_c_api.h in C++.
//
//   auto* test =
//   Ort::Experimental::Get_OrtApi_ExperimentalApiTest_SinceV28_FnOrThrow(&Ort::GetApi());
#pragma once

#include <utility>

#include "onnxruntime_cxx_api.h"
#include "onnxruntime_experimental_c_api.h"

namespace Ort::Experimental {

// Get_<name>_SinceV<since>_Fn is a function, or null if the library has none of that name. With
// OrThrow it is never null; the exception's code is ORT_NOT_IMPLEMENTED.
#define ORT_EXPERIMENTAL_API(SINCE, RETURN_TYPE, NAME, ...)                                  \
  inline OrtExperimental_##NAME##_SinceV##SINCE##_Fn Get_##NAME##_SinceV##SINCE##_Fn(        \
      const OrtApi* api) {                                                                   \
    return reinterpret_cast<OrtExperimental_##NAME##_SinceV##SINCE##_Fn>(                    \
        api->GetExperimentalFunction(kOrtExperimental_##NAME##_SinceV##SINCE##_FnName));     \
  }                                                                                          \
  inline OrtExperimental_##NAME##_SinceV##SINCE##_Fn Get_##NAME##_SinceV##SINCE##_FnOrThrow( \
      const OrtApi* api) {                                                                   \
    const auto function = Get_##NAME##_SinceV##SINCE##_Fn(api);                              \
    if (function == nullptr) {                                                               \
      ORT_CXX_API_THROW("the library has no function " #NAME "_SinceV" #SINCE,               \
                        ORT_NOT_IMPLEMENTED);                                                \
    }                                                                                        \
    return function;                                                                         \
  }
#include "onnxruntime_experimental_c_api.inc"
#undef ORT_EXPERIMENTAL_API

// The client's functions for the data of compiled models, for a provider; it keeps a copy of its
// own.
class EpContextConfig {
 public:
  explicit EpContextConfig(std::nullptr_t) noexcept {}
  explicit EpContextConfig(const SessionOptions& session_options)
      : EpContextConfig(session_options.GetConst()) {}
  explicit EpContextConfig(ConstSessionOptions session_options) {
    Get_OrtEpApi_ReleaseEpContextConfig_SinceV28_FnOrThrow(&GetApi());
    ThrowOnError(Get_OrtEpApi_SessionOptions_GetEpContextConfig_SinceV28_FnOrThrow(&GetApi())(
        session_options, &config_));
  }
  EpContextConfig(EpContextConfig&& other) noexcept : config_(other.release()) {}
  EpContextConfig& operator=(EpContextConfig&& other) noexcept {
    if (this == &other) return *this;
    reset();
    config_ = other.release();
    return *this;
  }
  EpContextConfig(const EpContextConfig&) = delete;
  EpContextConfig& operator=(const EpContextConfig&) = delete;
  ~EpContextConfig() { reset(); }

  OrtEpContextConfig* get() const noexcept { return config_; }
  explicit operator bool() const noexcept { return config_ != nullptr; }
  OrtEpContextConfig* release() noexcept { return std::exchange(config_, nullptr); }
  void reset() noexcept {
    if (config_ == nullptr) return;
    const auto free = Get_OrtEpApi_ReleaseEpContextConfig_SinceV28_Fn(&GetApi());
    if (free != nullptr) free(release());
  }

  // The function and its state; both null if the client set none.
  void GetReadFunc(OrtReadNamedBufferFunc& read_func, void*& state) const {
    ThrowOnError(Get_OrtEpApi_EpContextConfig_GetEpContextDataReadFunc_SinceV28_FnOrThrow(
        &GetApi())(config_, &read_func, &state));
  }
  void GetWriteFunc(OrtWriteNamedBufferFunc& write_func, void*& state) const {
    ThrowOnError(Get_OrtEpApi_EpContextConfig_GetEpContextDataWriteFunc_SinceV28_FnOrThrow(
        &GetApi())(config_, &write_func, &state));
  }

 private:
  OrtEpContextConfig* config_ = nullptr;
};

}  // namespace Ort::Experimental
