// Functions of clients that read and write the data of compiled models.
#include "capi/boundary/experimental.h"
#include "capi/boundary/status.h"
#include "capi/options/session_options.h"

struct OrtEpContextConfig {
  tenon::capi::ContextData data;
};

namespace tenon::capi {

OrtStatus* OrtApi_SessionOptions_SetEpContextDataReadFunc(OrtSessionOptions* options,
                                                          OrtReadNamedBufferFunc read_func,
                                                          void* state) noexcept {
  return AtBoundary([&]() -> Status {
    if (options == nullptr) return InvalidArgument("'options' parameter must not be NULL");
    options->context_data.read = read_func;
    options->context_data.read_state = read_func == nullptr ? nullptr : state;
    return OkStatus();
  });
}

OrtStatus* OrtEpApi_SessionOptions_GetEpContextConfig(const OrtSessionOptions* session_options,
                                                      OrtEpContextConfig** config) noexcept {
  return AtBoundary([&]() -> Status {
    if (session_options == nullptr) return InvalidArgument("OrtSessionOptions is NULL");
    if (config == nullptr) return InvalidArgument("Output OrtEpContextConfig is NULL");
    *config = new OrtEpContextConfig{session_options->context_data};
    return OkStatus();
  });
}

void OrtEpApi_ReleaseEpContextConfig(OrtEpContextConfig* config) noexcept { delete config; }

OrtStatus* OrtEpApi_EpContextConfig_GetEpContextDataReadFunc(const OrtEpContextConfig* config,
                                                             OrtReadNamedBufferFunc* read_func,
                                                             void** state) noexcept {
  return AtBoundary([&]() -> Status {
    if (config == nullptr) return InvalidArgument("OrtEpContextConfig is NULL");
    if (read_func == nullptr) return InvalidArgument("Output read_func is NULL");
    if (state == nullptr) return InvalidArgument("Output state is NULL");
    *read_func = config->data.read;
    *state = config->data.read_state;
    return OkStatus();
  });
}

OrtStatus* OrtEpApi_EpContextConfig_GetEpContextDataWriteFunc(const OrtEpContextConfig* config,
                                                              OrtWriteNamedBufferFunc* write_func,
                                                              void** state) noexcept {
  return AtBoundary([&]() -> Status {
    if (config == nullptr) return InvalidArgument("OrtEpContextConfig is NULL");
    if (write_func == nullptr) return InvalidArgument("Output write_func is NULL");
    if (state == nullptr) return InvalidArgument("Output state is NULL");
    *write_func = config->data.write;
    *state = config->data.write_state;
    return OkStatus();
  });
}

}  // namespace tenon::capi
