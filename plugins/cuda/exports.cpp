// The functions that the library exports.

#include <cstdio>

#include "factory.h"
#include "provider.h"

extern "C" {

ORT_EXPORT OrtStatus* CreateEpFactories(const char*, const OrtApiBase* api_base,
                                        const OrtLogger* logger, OrtEpFactory** factories,
                                        size_t max_factories, size_t* num_factories) noexcept {
  using namespace cuda;
  ort = api_base->GetApi(kAbiVersion);
  if (!ort) {
    return api_base->GetApi(1)->CreateStatus(ORT_EP_FAIL,
                                             "the CUDA provider needs a runtime of ABI 25");
  }
  ep = ort->GetEpApi();
  std::sscanf(api_base->GetVersionString(), "%*u.%u", &runtime_version);
  return Guarded([&]() -> OrtStatus* {
    if (max_factories < 1) return ToOrt(Failure("expected room for a factory"));
    auto factory = Factory::Create(logger);
    if (!factory.ok()) return ToOrt(factory.status());
    factories[0] = (*factory).release();
    *num_factories = 1;
    return nullptr;
  });
}

ORT_EXPORT OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) noexcept {
  delete static_cast<cuda::Factory*>(factory);
  return nullptr;
}

ORT_EXPORT OrtStatus* TenonGetEpExtension(const OrtEpFactory*, uint32_t,
                                          const TenonEpExtension** out) noexcept {
  static constexpr TenonEpExtension kExtension = {
      sizeof(TenonEpExtension), 1, 0, [](OrtEp* provider, const TenonSessionEndInfo*) noexcept {
        return static_cast<cuda::Provider*>(provider)->OnSessionEnd();
      }};
  *out = &kExtension;
  return nullptr;
}
}
