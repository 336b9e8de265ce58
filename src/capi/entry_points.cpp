// The symbols that libtenon.so exports.
#include <cpu_provider_factory.h>
#include <onnxruntime_c_api.h>
#include <tenon_c_api.h>

#include "capi/api_table.h"
#include "capi/boundary/client_api.h"
#include "capi/boundary/status.h"
#include "capi/graph/describe_model.h"

namespace {

constexpr TenonApi kTenonApi = {[]() noexcept -> const char* { return TENON_VERSION; },
                                tenon::capi::DescribeModel};

OrtStatus* NotPartOfBuild(const char* provider) noexcept {
  return tenon::capi::AtBoundary([&]() -> tenon::Status {
    return tenon::Fail("the {} execution provider is not part of this build", provider);
  });
}

}  // namespace

extern "C" {

const OrtApiBase* OrtGetApiBase() noexcept {
  tenon::capi::SetClientApi(tenon::capi::kApiBase);
  return &tenon::capi::kApiBase;
}

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

// Every symbol of the C ABI again, as an alias, under the version of each older release; the newest
// version is that of the function itself. releases.inc comes from CMakeLists.txt.
#define TENON_ALIAS(Name, id, version)                                       \
  ORT_EXPORT __attribute__((alias(#Name), used)) decltype(Name) Name##_##id; \
  __asm__(".symver " #Name "_" #id ", " #Name "@" version);
#define TENON_NEWEST(Name, version) __asm__(".symver " #Name ", " #Name "@@@" version);
#define RELEASE(id, version)                                                  \
  TENON_ALIAS(OrtGetApiBase, id, version)                                     \
  TENON_ALIAS(OrtSessionOptionsAppendExecutionProvider_CPU, id, version)      \
  TENON_ALIAS(OrtSessionOptionsAppendExecutionProvider_CUDA, id, version)     \
  TENON_ALIAS(OrtSessionOptionsAppendExecutionProvider_ROCM, id, version)     \
  TENON_ALIAS(OrtSessionOptionsAppendExecutionProvider_MIGraphX, id, version) \
  TENON_ALIAS(OrtSessionOptionsAppendExecutionProvider_Dnnl, id, version)     \
  TENON_ALIAS(OrtSessionOptionsAppendExecutionProvider_Tensorrt, id, version)
#define NEWEST_RELEASE(version)                                            \
  TENON_NEWEST(OrtGetApiBase, version)                                     \
  TENON_NEWEST(OrtSessionOptionsAppendExecutionProvider_CPU, version)      \
  TENON_NEWEST(OrtSessionOptionsAppendExecutionProvider_CUDA, version)     \
  TENON_NEWEST(OrtSessionOptionsAppendExecutionProvider_ROCM, version)     \
  TENON_NEWEST(OrtSessionOptionsAppendExecutionProvider_MIGraphX, version) \
  TENON_NEWEST(OrtSessionOptionsAppendExecutionProvider_Dnnl, version)     \
  TENON_NEWEST(OrtSessionOptionsAppendExecutionProvider_Tensorrt, version)
#include "releases.inc"

}  // extern "C"
