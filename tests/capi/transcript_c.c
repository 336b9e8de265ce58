// A client in C: calls the library with the given path and prints the results, so that two
// libraries can be compared line by line.
//   capi_transcript_c LIBRARY MODEL
// MODEL has one float input with four dimensions; the first may be of any size.
#include <dlfcn.h>
#include <onnxruntime_c_api.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 4096 };

static const OrtApi* api;

// Prints the code of a status, which it releases. True if all is well.
static int Note(const char* what, OrtStatus* status) {
  printf("%s: %d\n", what, status == NULL ? 0 : (int)api->GetErrorCode(status));
  api->ReleaseStatus(status);
  return status == NULL;
}

static void PrintText(const char* what, OrtAllocator* allocator, char* text) {
  printf("%s '%s'\n", what, text == NULL ? "(null)" : text);
  if (text != NULL) Note("free", api->AllocatorFree(allocator, text));
}

static void Describe(const char* what, const OrtTypeInfo* type) {
  const OrtTensorTypeAndShapeInfo* info = NULL;
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  size_t rank = 0;
  int64_t dims[8];
  const char* symbols[8];
  Note("cast", api->CastTypeInfoToTensorInfo(type, &info));
  Note("element type", api->GetTensorElementType(info, &element));
  Note("rank", api->GetDimensionsCount(info, &rank));
  Note("dims", api->GetDimensions(info, dims, rank));
  Note("symbols", api->GetSymbolicDimensions(info, symbols, rank));
  printf("%s: type %d,", what, (int)element);
  for (size_t i = 0; i < rank; ++i) printf(" %lld'%s'", (long long)dims[i], symbols[i]);
  printf("\n");
}

static void Metadata(const OrtSession* session, OrtAllocator* allocator) {
  OrtModelMetadata* metadata = NULL;
  char* text = NULL;
  int64_t version = -1;
  if (!Note("metadata", api->SessionGetModelMetadata(session, &metadata))) return;
  Note("graph name", api->ModelMetadataGetGraphName(metadata, allocator, &text));
  PrintText(" ", allocator, text);
  Note("producer", api->ModelMetadataGetProducerName(metadata, allocator, &text));
  PrintText(" ", allocator, text);
  Note("domain", api->ModelMetadataGetDomain(metadata, allocator, &text));
  PrintText(" ", allocator, text);
  Note("version", api->ModelMetadataGetVersion(metadata, &version));
  printf("  %lld\n", (long long)version);
  Note("missing key",
       api->ModelMetadataLookupCustomMetadataMap(metadata, allocator, "none", &text));
  PrintText(" ", allocator, text);
  api->ReleaseModelMetadata(metadata);
}

static void PrintOutput(const OrtValue* output) {
  OrtTensorTypeAndShapeInfo* info = NULL;
  size_t count = 0;
  const void* data = NULL;
  Note("type and shape", api->GetTensorTypeAndShape(output, &info));
  Note("count", api->GetTensorShapeElementCount(info, &count));
  Note("data", api->GetTensorData(output, &data));
  for (size_t i = 0; i < count; ++i) printf(" %.4f", ((const float*)data)[i] + 0.0F);
  printf("\n");
  api->ReleaseTensorTypeAndShapeInfo(info);
}

static void RunBatches(OrtSession* session, const char* input_name, const char* output_name,
                       const int64_t dims[4]) {
  static float data[MOST];
  OrtMemoryInfo* cpu = NULL;
  Note("memory info", api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &cpu));
  for (int64_t batch = 0; batch <= 3; ++batch) {
    const int64_t shape[4] = {batch, dims[1], dims[2], dims[3]};
    const size_t count = (size_t)(batch * dims[1] * dims[2] * dims[3]);
    if (count > MOST) return;
    for (size_t i = 0; i < count; ++i) data[i] = (float)(i * 37 % 17);
    OrtValue *input = NULL, *output = NULL;
    Note("input", api->CreateTensorWithDataAsOrtValue(cpu, data, count * sizeof(float), shape, 4,
                                                      ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &input));
    const OrtValue* const inputs[] = {input};
    if (Note("run", api->Run(session, NULL, &input_name, inputs, 1, &output_name, 1, &output))) {
      PrintOutput(output);
    }
    api->ReleaseValue(output);
    output = NULL;
    const char* const wrong = "no such name";
    Note("wrong input", api->Run(session, NULL, &wrong, inputs, 1, &output_name, 1, &output));
    Note("wrong output", api->Run(session, NULL, &input_name, inputs, 1, &wrong, 1, &output));
    Note("no input", api->Run(session, NULL, NULL, NULL, 0, &output_name, 1, &output));
    api->ReleaseValue(input);
  }
  const int64_t flat[1] = {16};
  OrtValue *input = NULL, *output = NULL;
  Note("flat", api->CreateTensorWithDataAsOrtValue(cpu, data, sizeof(data), flat, 1,
                                                   ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &input));
  const OrtValue* const inputs[] = {input};
  Note("wrong rank", api->Run(session, NULL, &input_name, inputs, 1, &output_name, 1, &output));
  api->ReleaseValue(input);
  api->ReleaseMemoryInfo(cpu);
}

static void UseSession(OrtSession* session) {
  OrtAllocator* allocator = NULL;
  size_t inputs = 0, outputs = 0;
  char *input_name = NULL, *output_name = NULL;
  OrtTypeInfo* type = NULL;
  Note("allocator", api->GetAllocatorWithDefaultOptions(&allocator));
  Note("inputs", api->SessionGetInputCount(session, &inputs));
  Note("outputs", api->SessionGetOutputCount(session, &outputs));
  printf("%zu inputs, %zu outputs\n", inputs, outputs);
  Note("input name", api->SessionGetInputName(session, 0, allocator, &input_name));
  Note("output name", api->SessionGetOutputName(session, 0, allocator, &output_name));
  printf("'%s' '%s'\n", input_name, output_name);
  Note("output type", api->SessionGetOutputTypeInfo(session, 0, &type));
  Describe("output", type);
  api->ReleaseTypeInfo(type);
  Note("input type", api->SessionGetInputTypeInfo(session, 0, &type));
  Describe("input", type);
  const OrtTensorTypeAndShapeInfo* info = NULL;
  int64_t dims[4] = {0};
  Note("cast", api->CastTypeInfoToTensorInfo(type, &info));
  Note("dims", api->GetDimensions(info, dims, 4));
  api->ReleaseTypeInfo(type);
  Metadata(session, allocator);
  RunBatches(session, input_name, output_name, dims);
  Note("free", api->AllocatorFree(allocator, input_name));
  Note("free", api->AllocatorFree(allocator, output_name));
}

int main(int count, char** arguments) {
  void* const library = count == 3 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (library == NULL) {
    fprintf(stderr, "usage: capi_transcript_c LIBRARY MODEL\n");
    return 2;
  }
  const OrtApiBase* (*get_base)(void) = NULL;
  void* const symbol = dlsym(library, "OrtGetApiBase");
  memcpy(&get_base, &symbol, sizeof(symbol));
  api = get_base()->GetApi(ORT_API_VERSION);
  OrtEnv* env = NULL;
  OrtSessionOptions* options = NULL;
  OrtSession* session = NULL;
  Note("env", api->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "transcript", &env));
  Note("options", api->CreateSessionOptions(&options));
  Note("threads", api->SetIntraOpNumThreads(options, 1));
  Note("level", api->SetSessionGraphOptimizationLevel(options, ORT_ENABLE_BASIC));
  Note("missing file", api->CreateSession(env, "/none.onnx", options, &session));
  if (Note("session", api->CreateSession(env, arguments[2], options, &session))) {
    UseSession(session);
  }
  api->ReleaseSession(session);
  api->ReleaseSessionOptions(options);
  api->ReleaseEnv(env);
  return 0;
}
