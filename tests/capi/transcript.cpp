// Calls the library with the given path and prints the results, so that two libraries can be
// compared line by line. It uses only the public headers. Statuses are printed as codes, because
// the texts differ on purpose.
//   capi_transcript LIBRARY [MODEL...]
// Each model is run once on made-up inputs; the elements of its outputs are printed.
#include <dlfcn.h>
#include <onnxruntime_c_api.h>

#include <cstdio>
#include <string>
#include <vector>

#include "capi/model_builder.h"

namespace {

const OrtApi* api = nullptr;

// The code of a status, which it releases.
int Code(OrtStatus* status) {
  if (status == nullptr) return ORT_OK;
  const int code = api->GetErrorCode(status);
  api->ReleaseStatus(status);
  return code;
}

void PrintTensor(const char* name, const OrtValue* value) {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  if (Code(api->GetTensorTypeAndShape(value, &info)) != ORT_OK) {
    std::printf("%s: no tensor\n", name);
    return;
  }
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  size_t rank = 0, count = 0;
  Code(api->GetTensorElementType(info, &type));
  Code(api->GetDimensionsCount(info, &rank));
  Code(api->GetTensorShapeElementCount(info, &count));
  std::vector<int64_t> dims(rank);
  Code(api->GetDimensions(info, dims.data(), rank));
  api->ReleaseTensorTypeAndShapeInfo(info);
  std::printf("%s: type %d shape", name, type);
  for (const int64_t dim : dims) std::printf(" %lld", static_cast<long long>(dim));
  const void* data = nullptr;
  Code(api->GetTensorData(value, &data));
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) {
    std::printf(" values");
    // Enough digits for a comparison, but so few that the order of a sum does not matter.
    for (size_t i = 0; i < count && i < 16; ++i) {
      std::printf(" %.4g", static_cast<const float*>(data)[i] + 0.0f);
    }
  }
  std::printf("\n");
}

void Values() {
  OrtMemoryInfo* cpu = nullptr;
  OrtMemoryInfo* other = nullptr;
  std::printf("cpu info %d\n",
              Code(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &cpu)));
  const struct {
    const char* name;
    OrtAllocatorType allocator;
    int id;
    OrtMemType memory;
  } kInfos[] = {{"Cpu", OrtArenaAllocator, 0, OrtMemTypeDefault},
                {"Cpu", OrtDeviceAllocator, 0, OrtMemTypeDefault},
                {"Cpu", OrtArenaAllocator, 1, OrtMemTypeDefault},
                {"Cpu", OrtArenaAllocator, 0, OrtMemTypeCPUInput},
                {"Cuda", OrtArenaAllocator, 0, OrtMemTypeDefault},
                {"CudaPinned", OrtDeviceAllocator, 0, OrtMemTypeDefault},
                {"Abacus", OrtArenaAllocator, 0, OrtMemTypeDefault}};
  for (const auto& row : kInfos) {
    const int code =
        Code(api->CreateMemoryInfo(row.name, row.allocator, row.id, row.memory, &other));
    std::printf("memory info %s: %d", row.name, code);
    if (code == ORT_OK) {
      int differs = 7;
      OrtMemoryInfoDeviceType device = OrtMemoryInfoDeviceType_CPU;
      Code(api->CompareMemoryInfo(cpu, other, &differs));
      api->MemoryInfoGetDeviceType(other, &device);
      std::printf(" compares %d, device %d, memory %d, vendor %x", differs, device,
                  api->MemoryInfoGetDeviceMemType(other), api->MemoryInfoGetVendorId(other));
      api->ReleaseMemoryInfo(other);
    }
    std::printf("\n");
  }

  float data[6] = {1, 2, 3, 4, 5, 6};
  const std::vector<std::vector<int64_t>> kShapes = {{2, 3}, {6}, {}, {0, 4}, {3, 3}, {-1}};
  for (const auto& shape : kShapes) {
    OrtValue* value = nullptr;
    const int code = Code(
        api->CreateTensorWithDataAsOrtValue(cpu, data, sizeof(data), shape.data(), shape.size(),
                                            ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
    std::printf("tensor over memory: %d\n", code);
    if (code != ORT_OK) continue;
    PrintTensor("tensor", value);
    size_t bytes = 0;
    std::printf("bytes %d", Code(api->GetTensorSizeInBytes(value, &bytes)));
    std::printf(" %zu\n", bytes);
    api->ReleaseValue(value);
  }

  OrtAllocator* allocator = nullptr;
  Code(api->GetAllocatorWithDefaultOptions(&allocator));
  for (int type = 0; type <= ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4; ++type) {
    const bool is_complex = type == ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64 ||
                            type == ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128;
    if (type == 0 || is_complex) continue;  // ONNX Runtime has no complex tensors
    const int64_t dim = 5;
    OrtValue* value = nullptr;
    const int code = Code(api->CreateTensorAsOrtValue(
        allocator, &dim, 1, static_cast<ONNXTensorElementDataType>(type), &value));
    size_t bytes = 0;
    int is_tensor = 0;
    ONNXType kind = ONNX_TYPE_UNKNOWN;
    if (type != ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
      Code(api->GetTensorSizeInBytes(value, &bytes));
    }
    Code(api->IsTensor(value, &is_tensor));
    Code(api->GetValueType(value, &kind));
    std::printf("type %d: %d, %zu bytes, tensor %d, kind %d\n", type, code, bytes, is_tensor, kind);
    api->ReleaseValue(value);
  }
  api->ReleaseMemoryInfo(cpu);
}

void Options() {
  OrtSessionOptions* options = nullptr;
  std::printf("options %d\n", Code(api->CreateSessionOptions(&options)));
  for (const int level : {-1, 0, 1, 2, 3, 4, 99}) {
    std::printf("optimization level %d: %d\n", level,
                Code(api->SetSessionGraphOptimizationLevel(
                    options, static_cast<GraphOptimizationLevel>(level))));
  }
  std::printf("threads %d\n", Code(api->SetIntraOpNumThreads(options, 2)));
  std::printf("entry %d\n", Code(api->AddSessionConfigEntry(options, "a.key", "a value")));
  for (const char* key : {"a.key", "another"}) {
    int has = 7;
    char text[32] = "";
    size_t size = sizeof(text);
    std::printf("has '%s': %d", key, Code(api->HasSessionConfigEntry(options, key, &has)));
    std::printf(" %d", has);
    if (has == 1) {
      std::printf(", get %d", Code(api->GetSessionConfigEntry(options, key, text, &size)));
      std::printf(" '%s' %zu", text, size);
      size = 3;
      std::printf(", too small %d", Code(api->GetSessionConfigEntry(options, key, text, &size)));
      std::printf(" %zu", size);
      std::printf(", ask %d", Code(api->GetSessionConfigEntry(options, key, nullptr, &size)));
      std::printf(" %zu", size);
    }
    std::printf("\n");
  }
  api->ReleaseSessionOptions(options);
  OrtRunOptions* run_options = nullptr;
  int severity = 7, verbosity = 7;
  const char* tag = nullptr;
  Code(api->CreateRunOptions(&run_options));
  Code(api->RunOptionsGetRunLogSeverityLevel(run_options, &severity));
  Code(api->RunOptionsGetRunLogVerbosityLevel(run_options, &verbosity));
  Code(api->RunOptionsGetRunTag(run_options, &tag));
  std::printf("run options: severity %d, verbosity %d, tag '%s'\n", severity, verbosity, tag);
  api->ReleaseRunOptions(run_options);
}

// Floats that depend only on their index; other types stay zero.
OrtValue* MakeInput(const OrtTensorTypeAndShapeInfo* info) {
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  size_t rank = 0, count = 1, bytes = 0;
  Code(api->GetTensorElementType(info, &type));
  Code(api->GetDimensionsCount(info, &rank));
  std::vector<int64_t> dims(rank);
  Code(api->GetDimensions(info, dims.data(), rank));
  for (int64_t& dim : dims) {
    if (dim < 0) dim = 2;
    count *= static_cast<size_t>(dim);
  }
  OrtAllocator* allocator = nullptr;
  OrtValue* value = nullptr;
  void* data = nullptr;
  Code(api->GetAllocatorWithDefaultOptions(&allocator));
  Code(api->CreateTensorAsOrtValue(allocator, dims.data(), rank, type, &value));
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) return value;
  Code(api->GetTensorMutableData(value, &data));
  Code(api->GetTensorSizeInBytes(value, &bytes));
  std::memset(data, 0, bytes);
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) {
    for (size_t i = 0; i < count; ++i) static_cast<float*>(data)[i] = (i * 37 % 101) / 101.0f;
  }
  return value;
}

std::string NameAndType(const OrtSession* session, size_t index,
                        OrtStatus* (*get_name)(const OrtSession*, size_t, OrtAllocator*, char**),
                        OrtTypeInfo* type) {
  OrtAllocator* allocator = nullptr;
  char* text = nullptr;
  Code(api->GetAllocatorWithDefaultOptions(&allocator));
  Code(get_name(session, index, allocator, &text));
  const std::string name = text;
  Code(api->AllocatorFree(allocator, text));
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  Code(api->GetOnnxTypeFromTypeInfo(type, &kind));
  std::printf("  '%s' kind %d", name.c_str(), kind);
  const OrtTensorTypeAndShapeInfo* info = nullptr;
  Code(api->CastTypeInfoToTensorInfo(type, &info));
  if (info != nullptr) {
    size_t rank = 0;
    Code(api->GetDimensionsCount(info, &rank));
    std::vector<int64_t> dims(rank);
    std::vector<const char*> symbols(rank);
    Code(api->GetDimensions(info, dims.data(), rank));
    Code(api->GetSymbolicDimensions(info, symbols.data(), rank));
    for (size_t axis = 0; axis < rank; ++axis) {
      std::printf(" %lld'%s'", static_cast<long long>(dims[axis]), symbols[axis]);
    }
  }
  std::printf("\n");
  return name;
}

void RunSession(OrtSession* session) {
  size_t input_count = 0, output_count = 0;
  Code(api->SessionGetInputCount(session, &input_count));
  Code(api->SessionGetOutputCount(session, &output_count));
  std::printf(" %zu inputs, %zu outputs\n", input_count, output_count);
  std::vector<std::string> names;
  std::vector<OrtValue*> inputs;
  for (size_t i = 0; i < input_count + output_count; ++i) {
    const bool is_input = i < input_count;
    const size_t index = is_input ? i : i - input_count;
    OrtTypeInfo* type = nullptr;
    Code((is_input ? api->SessionGetInputTypeInfo : api->SessionGetOutputTypeInfo)(session, index,
                                                                                   &type));
    names.push_back(NameAndType(
        session, index, is_input ? api->SessionGetInputName : api->SessionGetOutputName, type));
    const OrtTensorTypeAndShapeInfo* info = nullptr;
    Code(api->CastTypeInfoToTensorInfo(type, &info));
    if (is_input) inputs.push_back(MakeInput(info));
    api->ReleaseTypeInfo(type);
  }
  std::vector<const char*> pointers;
  for (const std::string& name : names) pointers.push_back(name.c_str());
  std::vector<OrtValue*> outputs(output_count, nullptr);
  std::printf(" run %d\n",
              Code(api->Run(session, nullptr, pointers.data(), inputs.data(), input_count,
                            pointers.data() + input_count, output_count, outputs.data())));
  for (size_t i = 0; i < output_count; ++i) {
    if (outputs[i] != nullptr) PrintTensor(names[input_count + i].c_str(), outputs[i]);
    api->ReleaseValue(outputs[i]);
  }
  for (OrtValue* input : inputs) api->ReleaseValue(input);
}

}  // namespace

int main(int count, char** arguments) {
  void* const library = count < 2 ? nullptr : dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "usage: capi_transcript LIBRARY [MODEL...]\n");
    return 2;
  }
  const auto get_base = reinterpret_cast<decltype(&OrtGetApiBase)>(dlsym(library, "OrtGetApiBase"));
  api = get_base()->GetApi(ORT_API_VERSION);
  OrtEnv* env = nullptr;
  std::printf("env %d\n", Code(api->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "transcript", &env)));
  Values();
  Options();
  const std::string model = tenon::test::AddReluModel();
  OrtSession* session = nullptr;
  std::printf("small model: %d\n", Code(api->CreateSessionFromArray(env, model.data(), model.size(),
                                                                    nullptr, &session)));
  RunSession(session);
  api->ReleaseSession(session);
  std::printf("no model: %d\n", Code(api->CreateSession(env, "/none.onnx", nullptr, &session)));
  std::printf("no protobuf: %d\n",
              Code(api->CreateSessionFromArray(env, "\xff\xff\xff", 3, nullptr, &session)));
  for (int i = 2; i < count; ++i) {
    std::printf("%s:\n", arguments[i]);
    const int code = Code(api->CreateSession(env, arguments[i], nullptr, &session));
    std::printf(" create %d\n", code);
    if (code != ORT_OK) continue;
    RunSession(session);
    api->ReleaseSession(session);
  }
  api->ReleaseEnv(env);
  return 0;
}
