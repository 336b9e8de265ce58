// Runs the digit classifier on an empty picture and prints its scores: client MODEL.
#include <onnxruntime_c_api.h>
#include <stdio.h>
#include <stdlib.h>

static const OrtApi* api;

static void Check(OrtStatus* status) {
  if (status == NULL) return;
  fprintf(stderr, "%s\n", api->GetErrorMessage(status));
  exit(1);
}

int main(int count, char** arguments) {
  float pixels[64] = {0};
  const int64_t shape[] = {1, 1, 8, 8};
  const char* const input = "image";
  const char* const output = "probabilities";
  OrtEnv* env = NULL;
  OrtSessionOptions* options = NULL;
  OrtSession* session = NULL;
  OrtMemoryInfo* memory = NULL;
  OrtValue* image = NULL;
  OrtValue* result = NULL;
  void* scores = NULL;
  api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
  if (api == NULL || count != 2) return 1;
  Check(api->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "client", &env));
  Check(api->CreateSessionOptions(&options));
  Check(api->CreateSession(env, arguments[1], options, &session));
  Check(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
  Check(api->CreateTensorWithDataAsOrtValue(memory, pixels, sizeof(pixels), shape, 4,
                                            ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &image));
  Check(api->Run(session, NULL, &input, (const OrtValue* const*)&image, 1, &output, 1, &result));
  Check(api->GetTensorMutableData(result, &scores));
  for (int i = 0; i < 10; ++i) printf("%.9g\n", ((const float*)scores)[i]);
  api->ReleaseValue(result);
  api->ReleaseValue(image);
  api->ReleaseMemoryInfo(memory);
  api->ReleaseSession(session);
  api->ReleaseSessionOptions(options);
  api->ReleaseEnv(env);
  return 0;
}
