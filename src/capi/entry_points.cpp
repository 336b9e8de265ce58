// The symbols that libtenon.so exports.
#include <cpu_provider_factory.h>
#include <onnxruntime_c_api.h>
#include <tenon_c_api.h>

#include "capi/api_table.h"
#include "capi/status.h"

namespace {

constexpr OrtApiBase kApiBase = {tenon::capi::GetApi, tenon::capi::GetVersionString};

constexpr TenonApi kTenonApi = {[]() noexcept -> const char* { return TENON_VERSION; }};

OrtStatus* NotPartOfBuild(const char* provider) noexcept {
  return tenon::capi::AtBoundary([&]() -> tenon::Status {
    return tenon::Fail("the {} execution provider is not part of this build", provider);
  });
}

}  // namespace

extern "C" {

const OrtApiBase* OrtGetApiBase() noexcept { return &kApiBase; }

const TenonApi* TenonGetApi(uint32_t version) noexcept {
  return version >= 1 && version <= TENON_API_VERSION ? &kTenonApi : nullptr;
}

OrtStatusPtr OrtSessionOptionsAppendExecutionProvider_CPU(OrtSessionOptions* options,
                                                          int use_arena) noexcept {
  const OrtApi* const api = tenon::capi::GetApi(ORT_API_VERSION);
  return use_arena ? api->EnableCpuMemArena(options) : api->DisableCpuMemArena(options);
}

OrtStatusPtr OrtSessionOptionsAppendExecutionProvider_CUDA(OrtSessionOptions*, int) noexcept {
  return NotPartOfBuild("CUDA");
}

OrtStatusPtr OrtSessionOptionsAppendExecutionProvider_ROCM(OrtSessionOptions*, int) noexcept {
  return NotPartOfBuild("ROCM");
}

OrtStatusPtr OrtSessionOptionsAppendExecutionProvider_MIGraphX(OrtSessionOptions*, int) noexcept {
  return NotPartOfBuild("MIGraphX");
}

OrtStatusPtr OrtSessionOptionsAppendExecutionProvider_Dnnl(OrtSessionOptions*, int) noexcept {
  return NotPartOfBuild("Dnnl");
}

OrtStatusPtr OrtSessionOptionsAppendExecutionProvider_Tensorrt(OrtSessionOptions*, int) noexcept {
  return NotPartOfBuild("Tensorrt");
}

// A client that was linked against a release of ONNX Runtime asks for its symbols under that
// release's version, such as OrtGetApiBase@VERS_1.22.0. Each version is an alias; new clients get
// the newest one.
#define TENON_ALIAS(Name, n)                                                \
  ORT_EXPORT __attribute__((alias(#Name), used)) decltype(Name) Name##_##n; \
  __asm__(".symver " #Name "_" #n ", " #Name "@VERS_1." #n ".0");
// clang-format off
#define TENON_ALL_VERSIONS(Name)                                                          \
  TENON_ALIAS(Name, 17) TENON_ALIAS(Name, 18) TENON_ALIAS(Name, 19) TENON_ALIAS(Name, 20) \
  TENON_ALIAS(Name, 21) TENON_ALIAS(Name, 22) TENON_ALIAS(Name, 23) TENON_ALIAS(Name, 24) \
  TENON_ALIAS(Name, 25) TENON_ALIAS(Name, 26) TENON_ALIAS(Name, 27) TENON_ALIAS(Name, 28) \
  TENON_ALIAS(Name, 29)                                                                   \
  __asm__(".symver " #Name ", " #Name "@@@VERS_1.30.0");
// clang-format on
TENON_ALL_VERSIONS(OrtGetApiBase)
TENON_ALL_VERSIONS(OrtSessionOptionsAppendExecutionProvider_CPU)
TENON_ALL_VERSIONS(OrtSessionOptionsAppendExecutionProvider_CUDA)
TENON_ALL_VERSIONS(OrtSessionOptionsAppendExecutionProvider_ROCM)
TENON_ALL_VERSIONS(OrtSessionOptionsAppendExecutionProvider_MIGraphX)
TENON_ALL_VERSIONS(OrtSessionOptionsAppendExecutionProvider_Dnnl)
TENON_ALL_VERSIONS(OrtSessionOptionsAppendExecutionProvider_Tensorrt)

}  // extern "C"
