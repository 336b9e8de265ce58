// Slots that no other test needs, each called as a client would.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "capi/client.h"
#include "capi/model_builder.h"

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const OrtApi& Api() { return Ort::GetApi(); }

TEST(SlotTest, SettingsOfSessionsAreTaken) {
  Ort::SessionOptions options;
  EXPECT_EQ(Outcome(Api().DisableProfiling(options)), "");
  EXPECT_EQ(Outcome(Api().EnableMemPattern(options)), "");
  EXPECT_EQ(Outcome(Api().EnableCpuMemArena(options)), "");
  EXPECT_EQ(Outcome(Api().DisableCpuMemArena(options)), "");
  EXPECT_EQ(Outcome(Api().SetSessionLogVerbosityLevel(options, 1)), "");
  EXPECT_EQ(Outcome(Api().SetInterOpNumThreads(options, 2)), "");
  EXPECT_EQ(Outcome(Api().DisablePerSessionThreads(options)), "");
  EXPECT_EQ(Outcome(Api().SetDeterministicCompute(options, true)), "");
  EXPECT_NE(Outcome(Api().SetInterOpNumThreads(nullptr, 2)), "");
  options.AddConfigEntry("a.key", "a value");
  OrtKeyValuePairs* pairs = nullptr;
  EXPECT_EQ(Outcome(Api().GetSessionOptionsConfigEntries(options, &pairs)), "");
  EXPECT_STREQ(Api().GetKeyValue(pairs, "a.key"), "a value");
  Api().ReleaseKeyValuePairs(pairs);
  Ort::Session session = Open(AddReluModel(), options);
  EXPECT_EQ(session.GetInputCount(), 2u);
}

TEST(SlotTest, SettingsOfEnvironmentsAreTaken) {
  OrtEnv* const env = Env();
  EXPECT_EQ(Outcome(Api().EnableTelemetryEvents(env)), "");
  EXPECT_EQ(Outcome(Api().DisableTelemetryEvents(env)), "");
  EXPECT_EQ(Outcome(Api().SetLanguageProjection(env, ORT_PROJECTION_C)), "");
  EXPECT_EQ(Outcome(Api().UpdateEnvWithCustomLogLevel(env, ORT_LOGGING_LEVEL_FATAL)), "");
  EXPECT_NE(Outcome(Api().UpdateEnvWithCustomLogLevel(nullptr, ORT_LOGGING_LEVEL_FATAL)), "");
  EXPECT_NE(std::strlen(Api().GetBuildInfoString()), 0u);
  EXPECT_NE(Api().GetTrainingApi(ORT_API_VERSION), nullptr);
  const void* functions = &functions;
  EXPECT_THAT(Outcome(Api().GetExecutionProviderApi("Missing", 1, &functions)),
              HasSubstr("Missing"));
}

TEST(SlotTest, ProvidersThatAreNotHereSayWhatTheyNeed) {
  Ort::SessionOptions options;
  const OrtTensorRTProviderOptions tensorrt{};
  const OrtMIGraphXProviderOptions migraphx{};
  const OrtOpenVINOProviderOptions openvino{};
  EXPECT_THAT(Outcome(Api().SessionOptionsAppendExecutionProvider_TensorRT(options, &tensorrt)),
              HasSubstr("TensorRT"));
  EXPECT_THAT(Outcome(Api().SessionOptionsAppendExecutionProvider_MIGraphX(options, &migraphx)),
              HasSubstr("MIGraphX"));
  EXPECT_THAT(Outcome(Api().SessionOptionsAppendExecutionProvider_OpenVINO(options, &openvino)),
              HasSubstr("OpenVINO"));
  EXPECT_THAT(Outcome(Api().SessionOptionsAppendExecutionProvider_OpenVINO_V2(options, nullptr,
                                                                              nullptr, 0)),
              HasSubstr("OpenVINO"));
  EXPECT_THAT(
      Outcome(Api().SessionOptionsAppendExecutionProvider_VitisAI(options, nullptr, nullptr, 0)),
      HasSubstr("VitisAI"));
}

TEST(SlotTest, ContainersOfPackedWeightsServeSessions) {
  OrtPrepackedWeightsContainer* container = nullptr;
  ASSERT_EQ(Outcome(Api().CreatePrepackedWeightsContainer(&container)), "");
  const std::string model = AddReluModel();
  OrtSession* session = nullptr;
  EXPECT_EQ(Outcome(Api().CreateSessionFromArrayWithPrepackedWeightsContainer(
                Env(), model.data(), model.size(), nullptr, container, &session)),
            "");
  Api().ReleaseSession(session);
  EXPECT_THAT(Outcome(Api().CreateSessionWithPrepackedWeightsContainer(
                  Env(), "missing.onnx", nullptr, container, &session)),
              StartsWith("3: "));
  Api().ReleasePrepackedWeightsContainer(container);
}

TEST(SlotTest, BindingsAreClearedAndAwaited) {
  Ort::Session session = Open(AddReluModel());
  std::vector<float> x = {1, -2, 3}, y = {10, 1, -5};
  Ort::IoBinding binding(session);
  binding.BindInput("x", TensorOver(x, {1, 3}));
  OrtIoBinding* const raw = binding;
  EXPECT_EQ(Outcome(Api().SynchronizeBoundInputs(raw)), "");
  Api().ClearBoundInputs(raw);
  binding.BindInput("y", TensorOver(y, {3}));
  binding.BindOutput("z", Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault));
  EXPECT_THAT(ErrorOf([&] { session.Run({}, binding); }), HasSubstr("x"));
  binding.BindInput("x", TensorOver(x, {1, 3}));
  session.Run({}, binding);
  EXPECT_THAT(ElementsOf<float>(binding.GetOutputValues()[0]), ElementsAre(11, 0, 0));
}

TEST(SlotTest, TypesTellWhatTheyMean) {
  Ort::Session session = Open(AddReluModel());
  const Ort::TypeInfo type = session.GetInputTypeInfo(0);
  const char* denotation = nullptr;
  size_t length = 1;
  EXPECT_EQ(Outcome(Api().GetDenotationFromTypeInfo(type, &denotation, &length)), "");
  EXPECT_EQ(length, 0u);
  const OrtOptionalTypeInfo* optional = nullptr;
  EXPECT_EQ(Outcome(Api().CastTypeInfoToOptionalTypeInfo(type, &optional)), "");
  EXPECT_EQ(optional, nullptr);
  std::vector<const OrtMemoryInfo*> infos(1);
  EXPECT_EQ(Outcome(Api().SessionGetMemoryInfoForOutputs(session, infos.data(), 1)), "");
  ASSERT_NE(infos[0], nullptr);
  std::vector<float> x = {1, 2, 3, 4};
  const Ort::Value value = TensorOver(x, {2, 2});
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  const int64_t* shape = nullptr;
  size_t rank = 0;
  EXPECT_EQ(
      Outcome(Api().GetTensorElementTypeAndShapeDataReference(value, &element, &shape, &rank)), "");
  EXPECT_EQ(element, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
  EXPECT_THAT(std::vector<int64_t>(shape, shape + rank), ElementsAre(2, 2));
  Ort::Value::Shape same = {};
  value.GetTensorElementTypeAndShapeDataReference(element, same);
  EXPECT_EQ(same.shape, shape);
  EXPECT_EQ(same.shape_len, rank);
}

TEST(SlotTest, TypesAreMadeOfTypes) {
  const OrtModelEditorApi& editor = *Api().GetModelEditorApi();
  OrtTensorTypeAndShapeInfo* tensor = nullptr;
  Ort::ThrowOnError(Api().CreateTensorTypeAndShapeInfo(&tensor));
  Ort::ThrowOnError(Api().SetTensorElementType(tensor, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT));
  OrtTypeInfo *plain = nullptr, *sparse = nullptr, *map = nullptr, *sequence = nullptr,
              *optional = nullptr;
  EXPECT_EQ(Outcome(editor.CreateTensorTypeInfo(tensor, &plain)), "");
  EXPECT_EQ(Outcome(editor.CreateSparseTensorTypeInfo(tensor, &sparse)), "");
  EXPECT_EQ(Outcome(editor.CreateMapTypeInfo(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, plain, &map)),
            "");
  EXPECT_EQ(Outcome(editor.CreateSequenceTypeInfo(map, &sequence)), "");
  EXPECT_EQ(Outcome(editor.CreateOptionalTypeInfo(plain, &optional)), "");
  const std::pair<OrtTypeInfo*, ONNXType> kinds[] = {{sparse, ONNX_TYPE_SPARSETENSOR},
                                                     {map, ONNX_TYPE_MAP},
                                                     {sequence, ONNX_TYPE_SEQUENCE},
                                                     {optional, ONNX_TYPE_OPTIONAL}};
  for (const auto& [type, kind] : kinds) {
    ONNXType found = ONNX_TYPE_UNKNOWN;
    EXPECT_EQ(Outcome(Api().GetOnnxTypeFromTypeInfo(type, &found)), "");
    EXPECT_EQ(found, kind);
  }
  const OrtOptionalTypeInfo* held = nullptr;
  EXPECT_EQ(Outcome(Api().CastTypeInfoToOptionalTypeInfo(optional, &held)), "");
  OrtTypeInfo* inner = nullptr;
  EXPECT_EQ(Outcome(Api().GetOptionalContainedTypeInfo(held, &inner)), "");
  ONNXType found = ONNX_TYPE_UNKNOWN;
  EXPECT_EQ(Outcome(Api().GetOnnxTypeFromTypeInfo(inner, &found)), "");
  EXPECT_EQ(found, ONNX_TYPE_TENSOR);
  // The caller owns the parts of map and sequence types.
  const OrtMapTypeInfo* map_part = nullptr;
  const OrtSequenceTypeInfo* sequence_part = nullptr;
  EXPECT_EQ(Outcome(Api().CastTypeInfoToMapTypeInfo(map, &map_part)), "");
  EXPECT_NE(map_part, nullptr);
  EXPECT_EQ(Outcome(Api().CastTypeInfoToSequenceTypeInfo(sequence, &sequence_part)), "");
  EXPECT_NE(sequence_part, nullptr);
  Api().ReleaseMapTypeInfo(nullptr);
  Api().ReleaseSequenceTypeInfo(nullptr);
  for (OrtTypeInfo* type : {plain, sparse, map, sequence, optional, inner}) {
    Api().ReleaseTypeInfo(type);
  }
  Api().ReleaseTensorTypeAndShapeInfo(tensor);
}

TEST(SlotTest, TheCpuIsDescribed) {
  const OrtEpDevice* const* devices = nullptr;
  size_t count = 0;
  ASSERT_EQ(Outcome(Api().GetEpDevices(Env(), &devices, &count)), "");
  ASSERT_GE(count, 1u);
  const OrtHardwareDevice* const hardware = Api().EpDevice_Device(devices[0]);
  EXPECT_EQ(Api().HardwareDevice_Type(hardware), OrtHardwareDeviceType_CPU);
  EXPECT_NE(Api().HardwareDevice_Metadata(hardware), nullptr);
  EXPECT_NE(Api().EpDevice_EpOptions(devices[0]), nullptr);
  const uint32_t vendor = Api().HardwareDevice_VendorId(hardware);
  EXPECT_EQ(vendor, Api().HardwareDevice_VendorId(hardware));
  EXPECT_EQ(Api().HardwareDevice_DeviceId(hardware), 0u);
  OrtCompiledModelCompatibility fits = OrtCompiledModelCompatibility_EP_UNSUPPORTED;
  EXPECT_EQ(Outcome(Api().GetModelCompatibilityForEpDevices(devices, 1, "any", &fits)), "");
  EXPECT_EQ(fits, OrtCompiledModelCompatibility_EP_NOT_APPLICABLE);
}

TEST(SlotTest, EnvironmentsAreMadeInEveryWay) {
  struct Threads {
    static OrtCustomThreadHandle Create(void*, OrtThreadWorkerFn, void*) { return nullptr; }
    static void Join(OrtCustomThreadHandle) {}
    static void Log(void*, OrtLoggingLevel, const char*, const char*, const char*, const char*) {}
  };
  OrtThreadingOptions* threads = nullptr;
  ASSERT_EQ(Outcome(Api().CreateThreadingOptions(&threads)), "");
  EXPECT_EQ(Outcome(Api().SetGlobalCustomCreateThreadFn(threads, Threads::Create)), "");
  EXPECT_NE(Outcome(Api().SetGlobalCustomCreateThreadFn(threads, nullptr)), "");
  EXPECT_EQ(Outcome(Api().SetGlobalCustomThreadCreationOptions(threads, nullptr)), "");
  EXPECT_EQ(Outcome(Api().SetGlobalCustomJoinThreadFn(threads, Threads::Join)), "");
  EXPECT_NE(Outcome(Api().SetGlobalCustomJoinThreadFn(threads, nullptr)), "");
  // All environments of a process are one: the first one's settings hold.
  OrtEnv *with_logger = nullptr, *with_options = nullptr;
  EXPECT_EQ(Outcome(Api().CreateEnvWithCustomLoggerAndGlobalThreadPools(
                Threads::Log, nullptr, ORT_LOGGING_LEVEL_FATAL, "more", threads, &with_logger)),
            "");
  OrtEnvCreationOptions options{};
  options.version = ORT_API_VERSION;
  options.logging_severity_level = ORT_LOGGING_LEVEL_FATAL;
  options.log_id = "options";
  EXPECT_EQ(Outcome(Api().CreateEnvWithOptions(&options, &with_options)), "");
  EXPECT_NE(Outcome(Api().CreateEnvWithOptions(nullptr, &with_options)), "");
  Api().ReleaseEnv(with_options);
  Api().ReleaseEnv(with_logger);
  Api().ReleaseThreadingOptions(threads);
}

TEST(SlotTest, AllocatorsAreRegisteredForProviders) {
  const auto cpu = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  const Ort::MemoryInfo gpu("Cuda", OrtArenaAllocator, 0, OrtMemTypeDefault);
  EXPECT_EQ(Outcome(Api().CreateAndRegisterAllocatorV2(Env(), "CPUExecutionProvider", cpu, nullptr,
                                                       nullptr, nullptr, 0)),
            "");
  EXPECT_EQ(Outcome(Api().UnregisterAllocator(Env(), cpu)), "");
  EXPECT_NE(Outcome(Api().CreateAndRegisterAllocatorV2(Env(), "CUDAExecutionProvider", gpu, nullptr,
                                                       nullptr, nullptr, 0)),
            "");
}

TEST(SlotTest, PointersAreOptionsOfTensorRt) {
  OrtTensorRTProviderOptionsV2* options = nullptr;
  ASSERT_EQ(Outcome(Api().CreateTensorRTProviderOptions(&options)), "");
  int stream = 0;
  EXPECT_EQ(Outcome(Api().UpdateTensorRTProviderOptionsWithValue(options, "user_compute_stream",
                                                                 &stream)),
            "");
  void* held = nullptr;
  EXPECT_EQ(Outcome(Api().GetTensorRTProviderOptionsByName(options, "user_compute_stream", &held)),
            "");
  EXPECT_EQ(held, &stream);
  Api().ReleaseTensorRTProviderOptions(options);
}

TEST(SlotTest, WeightlessModelsHaveASource) {
  Ort::SessionOptions options;
  const std::string model = AddReluModel();
  EXPECT_EQ(Outcome(Api().SessionOptionsSetWeightlessSourceModelBuffer(options, model.data(),
                                                                       model.size())),
            "");
  EXPECT_NE(Outcome(Api().SessionOptionsSetWeightlessSourceModelBuffer(options, nullptr, 1)), "");
  EXPECT_EQ(Open(model, options).GetInputCount(), 2u);
}

TEST(SlotTest, ModelsSayWhatTheyWereCompiledFor) {
  const std::string model = ModelBuilder()
                                .Input("x", TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {1}))
                                .Node("Neg", {"x"}, {"y"})
                                .Output("y", TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {1}))
                                .Metadata("ep_compatibility_info.AProvider", "version 3")
                                .Bytes();
  Ort::AllocatorWithDefaultOptions allocator;
  char* text = nullptr;
  EXPECT_EQ(Outcome(Api().GetCompatibilityInfoFromModelBytes(model.data(), model.size(),
                                                             "AProvider", allocator, &text)),
            "");
  EXPECT_STREQ(text, "version 3");
  allocator.Free(text);
  EXPECT_THAT(
      Outcome(Api().GetCompatibilityInfoFromModel("missing.onnx", "AProvider", allocator, &text)),
      StartsWith("3: "));
}

}  // namespace
}  // namespace tenon::test
