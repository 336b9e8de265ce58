// A client in C11 that uses only the public headers: they compile as C, and the library links.
#include <cpu_provider_factory.h>
#include <onnxruntime_c_api.h>
#include <onnxruntime_run_options_config_keys.h>
#include <onnxruntime_session_options_config_keys.h>
#include <stdio.h>
#include <tenon_c_api.h>

_Static_assert(sizeof(OrtStatusPtr) == sizeof(void*), "a status is a pointer");
_Static_assert(ORT_API_VERSION == 30, "the header declares version 30");

int main(void) {
  const OrtApi* api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
  if (api == NULL || TenonGetApi(TENON_API_VERSION) == NULL) return 1;
  OrtStatus* status = api->CreateStatus(ORT_INVALID_ARGUMENT, "from C");
  int ok = api->GetErrorCode(status) == ORT_INVALID_ARGUMENT &&
           strcmp(api->GetErrorMessage(status), "from C") == 0;
  api->ReleaseStatus(status);
  OrtEnv* env = NULL;
  status = api->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "c11", &env);
  if (status != NULL) printf("CreateEnv: %s\n", api->GetErrorMessage(status));
  api->ReleaseStatus(status);
  api->ReleaseEnv(env);
  return ok ? 0 : 1;
}
