// Which execution providers there are, and the slots of those that ONNX Runtime builds in and this
// library does not.
#include <cstring>
#include <memory>
#include <string_view>

#include "capi/arguments.h"
#include "capi/session_options.h"
#include "capi/slots.h"
#include "capi/status.h"

namespace tenon::capi {
namespace {

constexpr std::string_view kCpuProvider = "CPUExecutionProvider";

OrtStatus* NotPartOfBuild(const char* provider) noexcept {
  return AtBoundary([&]() -> Status {
    return Fail("the {} execution provider is not part of this build; available: {}", provider,
                kCpuProvider);
  });
}

}  // namespace

OrtStatus* GetAvailableProviders(char*** out_ptr, int* provider_length) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(out_ptr);
    TENON_RETURN_IF_NULL(provider_length);
    auto name = std::make_unique<char[]>(kCpuProvider.size() + 1);
    kCpuProvider.copy(name.get(), kCpuProvider.size());
    *out_ptr = new char* [1] { name.get() };
    name.release();
    *provider_length = 1;
    return OkStatus();
  });
}

OrtStatus* ReleaseAvailableProviders(char** ptr, int providers_length) noexcept {
  if (ptr == nullptr) return nullptr;
  for (int i = 0; i < providers_length; ++i) delete[] ptr[i];
  delete[] ptr;
  return nullptr;
}

OrtStatus* SessionOptionsAppendExecutionProvider(OrtSessionOptions* options,
                                                 const char* provider_name, const char* const*,
                                                 const char* const*, size_t) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL(provider_name);
    // Every session ends with the CPU, and it has no options.
    if (provider_name == kCpuProvider || provider_name == std::string_view("CPU")) {
      return OkStatus();
    }
    return InvalidArgument("there is no execution provider '{}'; available: {}", provider_name,
                           kCpuProvider);
  });
}

OrtStatus* SessionOptionsAppendExecutionProvider_CUDA(OrtSessionOptions*,
                                                      const OrtCUDAProviderOptions*) noexcept {
  return NotPartOfBuild("CUDA");
}

OrtStatus* SessionOptionsAppendExecutionProvider_CUDA_V2(OrtSessionOptions*,
                                                         const OrtCUDAProviderOptionsV2*) noexcept {
  return NotPartOfBuild("CUDA");
}

OrtStatus* CreateCUDAProviderOptions(OrtCUDAProviderOptionsV2**) noexcept {
  return NotPartOfBuild("CUDA");
}

OrtStatus* SessionOptionsAppendExecutionProvider_ROCM(OrtSessionOptions*,
                                                      const OrtROCMProviderOptions*) noexcept {
  return NotPartOfBuild("ROCM");
}

OrtStatus* CreateROCMProviderOptions(OrtROCMProviderOptions**) noexcept {
  return NotPartOfBuild("ROCM");
}

OrtStatus* SessionOptionsAppendExecutionProvider_OpenVINO(
    OrtSessionOptions*, const OrtOpenVINOProviderOptions*) noexcept {
  return NotPartOfBuild("OpenVINO");
}

OrtStatus* SessionOptionsAppendExecutionProvider_OpenVINO_V2(OrtSessionOptions*, const char* const*,
                                                             const char* const*, size_t) noexcept {
  return NotPartOfBuild("OpenVINO");
}

OrtStatus* SessionOptionsAppendExecutionProvider_TensorRT(
    OrtSessionOptions*, const OrtTensorRTProviderOptions*) noexcept {
  return NotPartOfBuild("TensorRT");
}

OrtStatus* SessionOptionsAppendExecutionProvider_TensorRT_V2(
    OrtSessionOptions*, const OrtTensorRTProviderOptionsV2*) noexcept {
  return NotPartOfBuild("TensorRT");
}

OrtStatus* CreateTensorRTProviderOptions(OrtTensorRTProviderOptionsV2**) noexcept {
  return NotPartOfBuild("TensorRT");
}

OrtStatus* SessionOptionsAppendExecutionProvider_MIGraphX(
    OrtSessionOptions*, const OrtMIGraphXProviderOptions*) noexcept {
  return NotPartOfBuild("MIGraphX");
}

OrtStatus* SessionOptionsAppendExecutionProvider_CANN(OrtSessionOptions*,
                                                      const OrtCANNProviderOptions*) noexcept {
  return NotPartOfBuild("CANN");
}

OrtStatus* CreateCANNProviderOptions(OrtCANNProviderOptions**) noexcept {
  return NotPartOfBuild("CANN");
}

OrtStatus* SessionOptionsAppendExecutionProvider_Dnnl(OrtSessionOptions*,
                                                      const OrtDnnlProviderOptions*) noexcept {
  return NotPartOfBuild("Dnnl");
}

OrtStatus* CreateDnnlProviderOptions(OrtDnnlProviderOptions**) noexcept {
  return NotPartOfBuild("Dnnl");
}

OrtStatus* SessionOptionsAppendExecutionProvider_VitisAI(OrtSessionOptions*, const char* const*,
                                                         const char* const*, size_t) noexcept {
  return NotPartOfBuild("VitisAI");
}

}  // namespace tenon::capi
