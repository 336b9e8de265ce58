// The list of execution providers, and the slots of those that ONNX Runtime has and this library
// lacks.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "capi/boundary/arguments.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/options/built_in_providers.h"
#include "capi/options/session_options.h"

namespace tenon::capi {
namespace {

// The end of providers' full names.
constexpr std::string_view kSuffix = "ExecutionProvider";

// Providers that ONNX Runtime can have, with their short and their full names.
struct AbsentProvider {
  const char* name;
  std::string_view needs;
};
constexpr AbsentProvider kAbsentProviders[] = {
    {"ACL", "the Arm Compute Library"},
    {"ArmNN", "Arm NN"},
    {"AZURE", "an Azure endpoint"},
    {"CANN", "an Ascend device and Huawei's CANN toolkit"},
    {"CoreML", "macOS or iOS"},
    {"CUDA", "an NVIDIA GPU with CUDA and cuDNN"},
    {"Dml", "Windows with DirectX 12"},
    {"Dnnl", "oneDNN"},
    {"JS", "a browser"},
    {"MIGraphX", "an AMD GPU with ROCm and MIGraphX"},
    {"NNAPI", "Android"},
    {"NvTensorRtRtx", "an NVIDIA RTX GPU with TensorRT for RTX"},
    {"OpenVINO", "Intel's OpenVINO"},
    {"QNN", "a Qualcomm device with the QNN SDK"},
    {"ROCM", "an AMD GPU with ROCm"},
    {"SNPE", "a Qualcomm device with the SNPE SDK"},
    {"TensorRT", "an NVIDIA GPU with CUDA and TensorRT"},
    {"VitisAI", "an AMD NPU with Vitis AI"},
    {"VSINPU", "a VeriSilicon NPU"},
    {"WebGPU", "a GPU with WebGPU"},
    {"WebNN", "a browser with WebNN"},
    {"XNNPACK", "XNNPACK"},
};

Status AbsentStatus(const AbsentProvider& provider) {
  return Fail(
      "the {} execution provider is not part of this build; available: {}. It needs {}, and comes "
      "as a plugin library: RegisterExecutionProviderLibrary loads it, and "
      "SessionOptionsAppendExecutionProvider_V2 adds its devices",
      provider.name, AvailableProviderNames(), provider.needs);
}

OrtStatus* NotPartOfBuild(std::string_view name) noexcept {
  return AtBoundary([&]() -> Status {
    for (const AbsentProvider& provider : kAbsentProviders) {
      if (provider.name == name) return AbsentStatus(provider);
    }
    return Fail("the {} execution provider is not part of this build", name);
  });
}

// "CUDA" and "CUDAExecutionProvider", in any case.
bool IsNamed(const AbsentProvider& provider, std::string_view name) {
  if (name.ends_with(kSuffix)) name.remove_suffix(kSuffix.size());
  const std::string_view known = provider.name;
  const auto same = [](char a, char b) { return (a | 0x20) == (b | 0x20); };
  return std::equal(name.begin(), name.end(), known.begin(), known.end(), same);
}

// A struct of options must not be null.
OrtStatus* Append(const char* provider, const OrtSessionOptions* options,
                  const void* provider_options) noexcept {
  OrtStatus* const status = AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL(provider_options);
    return OkStatus();
  });
  return status != nullptr ? status : NotPartOfBuild(provider);
}

}  // namespace

const BuiltInProvider* FindBuiltInProvider(std::string_view name) {
  const auto providers = BuiltInProviders();
  const auto found =
      std::find_if(providers.begin(), providers.end(), [&](const BuiltInProvider& one) {
        return one.name.starts_with(name) &&
               (one.name.size() == name.size() || one.name.substr(name.size()) == kSuffix);
      });
  return found == providers.end() ? nullptr : &*found;
}

std::string AvailableProviderNames() {
  std::string names;
  for (const BuiltInProvider& provider : BuiltInProviders()) names += Format("{}, ", provider.name);
  return names.append(kCpuProviderName);
}

OrtStatus* GetAvailableProviders(char*** out_ptr, int* provider_length) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(out_ptr);
    TENON_RETURN_IF_NULL(provider_length);
    std::vector<std::unique_ptr<char[]>> names;
    const auto add = [&](std::string_view name) {
      names.push_back(std::make_unique<char[]>(name.size() + 1));
      name.copy(names.back().get(), name.size());
    };
    for (const BuiltInProvider& provider : BuiltInProviders()) add(provider.name);
    add(kCpuProviderName);
    *out_ptr = new char*[names.size()];
    std::transform(names.begin(), names.end(), *out_ptr, [](auto& name) { return name.release(); });
    *provider_length = static_cast<int>(names.size());
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
                                                 const char* provider_name,
                                                 const char* const* provider_options_keys,
                                                 const char* const* provider_options_values,
                                                 size_t num_keys) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL(provider_name);
    // Every session ends with the CPU provider, which has no options.
    if (provider_name == kCpuProviderName || provider_name == std::string_view("CPU")) {
      options->has_cpu_provider = true;
      return OkStatus();
    }
    if (FindBuiltInProvider(provider_name) != nullptr) {
      TENON_RETURN_IF_NULL_ARRAY(provider_options_keys, num_keys);
      TENON_RETURN_IF_NULL_ARRAY(provider_options_values, num_keys);
      ProviderChoice& choice = options->providers.emplace_back();
      choice.name = provider_name;
      for (size_t i = 0; i < num_keys; ++i) {
        choice.options.insert_or_assign(provider_options_keys[i], provider_options_values[i]);
      }
      return OkStatus();
    }
    for (const AbsentProvider& provider : kAbsentProviders) {
      if (IsNamed(provider, provider_name)) return AbsentStatus(provider);
    }
    return InvalidArgument("there is no execution provider '{}'; available: {}", provider_name,
                           AvailableProviderNames());
  });
}

// The slots of providers whose options are a struct.
#define TENON_APPEND_PROVIDER(Slot, provider, Options)                                     \
  OrtStatus* SessionOptionsAppendExecutionProvider_##Slot(OrtSessionOptions* options,      \
                                                          const Options* given) noexcept { \
    return Append(provider, options, given);                                               \
  }

TENON_APPEND_PROVIDER(CANN, "CANN", OrtCANNProviderOptions)
TENON_APPEND_PROVIDER(CUDA, "CUDA", OrtCUDAProviderOptions)
TENON_APPEND_PROVIDER(CUDA_V2, "CUDA", OrtCUDAProviderOptionsV2)
TENON_APPEND_PROVIDER(Dnnl, "Dnnl", OrtDnnlProviderOptions)
TENON_APPEND_PROVIDER(MIGraphX, "MIGraphX", OrtMIGraphXProviderOptions)
TENON_APPEND_PROVIDER(OpenVINO, "OpenVINO", OrtOpenVINOProviderOptions)
TENON_APPEND_PROVIDER(ROCM, "ROCM", OrtROCMProviderOptions)
TENON_APPEND_PROVIDER(TensorRT, "TensorRT", OrtTensorRTProviderOptions)
TENON_APPEND_PROVIDER(TensorRT_V2, "TensorRT", OrtTensorRTProviderOptionsV2)

OrtStatus* SessionOptionsAppendExecutionProvider_OpenVINO_V2(OrtSessionOptions*, const char* const*,
                                                             const char* const*, size_t) noexcept {
  return NotPartOfBuild("OpenVINO");
}

OrtStatus* SessionOptionsAppendExecutionProvider_VitisAI(OrtSessionOptions*, const char* const*,
                                                         const char* const*, size_t) noexcept {
  return NotPartOfBuild("VitisAI");
}

}  // namespace tenon::capi
