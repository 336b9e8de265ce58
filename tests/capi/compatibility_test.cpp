// Details of onnxruntime on which programs rely.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnxruntime_experimental_cxx_api.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/temporary_folder.h"
#include "capi/client.h"
#include "capi/model_builder.h"

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr auto kUndefined = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;

const OrtApi& Api() { return Ort::GetApi(); }

std::string NegModel() {
  const std::string type = TensorType(kFloat, {"n"});
  return ModelBuilder().Input("x", type).Node("Neg", {"x"}, {"y"}).Output("y", type).Bytes();
}

// --- experimental functions ---

TEST(ExperimentalTest, FunctionsAreFoundByNameAndVersion) {
  const auto test = Ort::Experimental::Get_OrtApi_ExperimentalApiTest_SinceV28_Fn(&Api());
  ASSERT_NE(test, nullptr);
  int64_t number = 0;
  ASSERT_EQ(Outcome(test(&number)), "");
  EXPECT_EQ(number, 12345);
  EXPECT_EQ(Api().GetExperimentalFunction("OrtApi_ExperimentalApiTest"), nullptr);
  EXPECT_EQ(Api().GetExperimentalFunction("OrtApi_ExperimentalApiTest_SinceV29"), nullptr);
}

TEST(ExperimentalTest, ContextFunctionsRefuseNullPointers) {
  namespace experimental = Ort::Experimental;
  const auto get =
      experimental::Get_OrtEpApi_SessionOptions_GetEpContextConfig_SinceV28_FnOrThrow(&Api());
  const auto read =
      experimental::Get_OrtEpApi_EpContextConfig_GetEpContextDataReadFunc_SinceV28_FnOrThrow(
          &Api());
  Ort::SessionOptions options;
  OrtEpContextConfig* config = nullptr;
  EXPECT_EQ(Outcome(get(nullptr, &config)), "2: OrtSessionOptions is NULL");
  EXPECT_EQ(Outcome(get(options, nullptr)), "2: Output OrtEpContextConfig is NULL");
  ASSERT_EQ(Outcome(get(options, &config)), "");
  OrtReadNamedBufferFunc function = nullptr;
  void* state = nullptr;
  EXPECT_EQ(Outcome(read(nullptr, &function, &state)), "2: OrtEpContextConfig is NULL");
  EXPECT_EQ(Outcome(read(config, nullptr, &state)), "2: Output read_func is NULL");
  EXPECT_EQ(Outcome(read(config, &function, nullptr)), "2: Output state is NULL");
  experimental::Get_OrtEpApi_ReleaseEpContextConfig_SinceV28_FnOrThrow (&Api())(config);
}

// --- model packages ---

class PackageTest : public testing::Test {
 protected:
  // "" or the error.
  std::string Read(const std::string& manifest) {
    folder_.Write("manifest.json", manifest);
    OrtModelPackageContext* raw = nullptr;
    const std::string outcome = Outcome(
        Ort::Experimental::Get_OrtModelPackageApi_CreateModelPackageContext_SinceV28_FnOrThrow(
            &Api())((folder_ / "").c_str(), &raw));
    context_.reset(raw);
    return outcome;
  }

  // The outcome of the reference, and its path.
  std::pair<std::string, std::string> Resolve(const std::string& reference, bool must_exist) {
    const char* path = nullptr;
    const std::string outcome = Outcome(
        Ort::Experimental::Get_OrtModelPackageApi_ModelPackage_ResolveStringRef_SinceV28_FnOrThrow(
            &Api())(context_.get(), nullptr, reference.c_str(), must_exist ? 1 : 0, &path));
    return {outcome, path == nullptr ? "" : path};
  }

  struct Release {
    void operator()(OrtModelPackageContext* context) const {
      Ort::Experimental::Get_OrtModelPackageApi_ReleaseModelPackageContext_SinceV28_Fn (&Api())(
          context);
    }
    void operator()(OrtModelPackageOptions* options) const {
      Ort::Experimental::Get_OrtModelPackageApi_ReleaseModelPackageOptions_SinceV28_Fn (&Api())(
          options);
    }
    void operator()(OrtModelPackageComponentContext* context) const {
      Ort::Experimental::Get_OrtModelPackageApi_ReleaseModelPackageComponentContext_SinceV28_Fn (
          &Api())(context);
    }
  };

  const TemporaryFolder folder_;
  std::unique_ptr<OrtModelPackageContext, Release> context_;
};

constexpr const char* kManifest = R"({
  "schema_version": "1.0",
  "components": {"net": {"variants": {
    "other": {"ep": "OtherProvider", "executor_info": {"ort": {"model_file": "none.onnx"}}},
    "cpu": {"ep": "CPUExecutionProvider", "device": "CPU", "variant_directory": "files",
            "executor_info": {"ort": {
              "model_file": "neg.onnx",
              "session_options": {"session.intra_op_num_threads": "2"}}}}}}}})";

TEST_F(PackageTest, SessionsAreMadeOfTheVariantForTheProvider) {
  namespace experimental = Ort::Experimental;
  folder_.Write("files/neg.onnx", NegModel());
  ASSERT_EQ(Read(kManifest), "");
  int64_t version = 0;
  size_t count = 0;
  const char* const* names = nullptr;
  ASSERT_EQ(
      Outcome(experimental::Get_OrtModelPackageApi_ModelPackage_GetSchemaVersion_SinceV28_FnOrThrow(
          &Api())(context_.get(), &version)),
      "");
  EXPECT_EQ(version, 1);
  ASSERT_EQ(
      Outcome(experimental::Get_OrtModelPackageApi_ModelPackage_GetVariantNames_SinceV28_FnOrThrow(
          &Api())(context_.get(), "net", &names, &count)),
      "");
  ASSERT_EQ(count, 2u);
  EXPECT_STREQ(names[0], "other");

  OrtModelPackageOptions* raw_options = nullptr;
  const Ort::SessionOptions options;
  ASSERT_EQ(
      Outcome(
          experimental::
              Get_OrtModelPackageApi_CreateModelPackageOptionsFromSessionOptions_SinceV28_FnOrThrow(
                  &Api())(Env(), options, &raw_options)),
      "");
  const std::unique_ptr<OrtModelPackageOptions, Release> choice(raw_options);
  OrtModelPackageComponentContext* raw_selected = nullptr;
  ASSERT_EQ(Outcome(experimental::Get_OrtModelPackageApi_SelectComponent_SinceV28_FnOrThrow(&Api())(
                context_.get(), "net", choice.get(), &raw_selected)),
            "");
  const std::unique_ptr<OrtModelPackageComponentContext, Release> selected(raw_selected);
  context_.reset();
  const char* name = nullptr;
  ASSERT_EQ(
      Outcome(
          experimental::
              Get_OrtModelPackageApi_ModelPackageComponent_GetSelectedVariantName_SinceV28_FnOrThrow(
                  &Api())(selected.get(), &name)),
      "");
  EXPECT_STREQ(name, "cpu");
  OrtSession* raw_session = nullptr;
  ASSERT_EQ(Outcome(experimental::Get_OrtModelPackageApi_CreateSession_SinceV28_FnOrThrow(&Api())(
                Env(), selected.get(), nullptr, &raw_session)),
            "");
  Ort::Session session(raw_session);
  std::vector<float> x = {1, -2};
  const Ort::Value feed = TensorOver(x, {2});
  const char* const inputs[] = {"x"};
  const char* const outputs[] = {"y"};
  EXPECT_THAT(ElementsOf<float>(session.Run(Ort::RunOptions(), inputs, &feed, 1, outputs, 1)[0]),
              ElementsAre(-1, 2));
}

TEST_F(PackageTest, MistakesInManifestsAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"{", "is no JSON document"},
      {R"({"components": {}})", "'schema_version' is missing"},
      {R"({"schema_version": "2.0", "components": {}})", "schema_version: 2 is not known"},
      {R"({"schema_version": "one", "components": {}})", "expected \"<major>.<minor>\", got 'one'"},
      {R"({"schema_version": 1})", "'components' must be an object"},
      {R"({"schema_version": 1, "component": {}})", "did you mean 'components'?"},
      {R"({"schema_version": 1, "layout": "flat", "components": {}})",
       "expected 'portable' or 'installed', got 'flat'"},
      {R"({"schema_version": 1, "components": {"net": {}}})",
       "component 'net': 'variants' must be an object"},
      {R"({"schema_version": 1, "components": {"net": {"variants": {"v": {"ep": 3}}}}})",
       "variant 'v': 'ep' must be a text"},
      {R"({"schema_version": 1, "components": {"net": {"variants":
           {"v": {"variant_directory": "../away"}}}}})",
       "expected a relative path without '..'"},
      {R"({"schema_version": 1, "shared_assets": {"sha256:12": "a"}, "components": {}})",
       "is not sha256: and 64 digits"},
  };
  for (const auto& [manifest, text] : cases) EXPECT_THAT(Read(manifest), HasSubstr(text));
}

TEST_F(PackageTest, ReferencesStayInThePackage) {
  const std::string digest(64, 'a');
  folder_.Write("shared_assets/sha256-" + digest + "/tokens.txt", "t");
  folder_.Write("plain.txt", "p");
  ASSERT_EQ(Read(R"({"schema_version": 1, "components": {}})"), "");
  const auto ends_with = [](const std::string& text, const std::string& end) {
    return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
  };
  auto [outcome, path] = Resolve("sha256:" + digest + "/tokens.txt", true);
  EXPECT_EQ(outcome, "");
  EXPECT_TRUE(ends_with(path, "/shared_assets/sha256-" + digest + "/tokens.txt")) << path;
  std::tie(outcome, path) = Resolve("./plain.txt", true);
  EXPECT_EQ(outcome, "");
  EXPECT_TRUE(ends_with(path, "/plain.txt")) << path;
  EXPECT_THAT(Resolve("sha256:" + std::string(64, 'b'), false).first,
              HasSubstr("has no shared asset"));
  EXPECT_THAT(Resolve("absent.txt", true).first, HasSubstr("does not exist"));
  EXPECT_EQ(Resolve("absent.txt", false).first, "");
  for (const char* const reference : {"/etc/passwd", "../x", "a/../../x"}) {
    EXPECT_THAT(Resolve(reference, false).first, HasSubstr("without '..'")) << reference;
  }
  folder_.Link("link", "/etc");
  EXPECT_THAT(Resolve("link/passwd", true).first, HasSubstr("leaves the folder"));
}

TEST_F(PackageTest, AFolderIsNoModel) {
  EXPECT_THAT(ErrorOf([&] { Ort::Session(Env(), (folder_ / "").c_str(), Ort::SessionOptions()); }),
              AllOf(HasSubstr("is a directory"), HasSubstr("model package API")));
}

// --- options ---

TEST(SessionEntriesTest, SomeEntriesAreSettings) {
  Ort::SessionOptions options;
  options.AddConfigEntry("session.execution_mode", "Parallel");
  EXPECT_EQ(options.GetExecutionMode(), ORT_PARALLEL);
  options.AddConfigEntry("session.enable_mem_pattern", "false");
  EXPECT_FALSE(options.GetMemPatternEnabled());
  options.AddConfigEntry("session.graph_optimization_level", "enable_basic");
  options.AddConfigEntry("session.intra_op_num_threads", "2");
  options.AddConfigEntry("session.log_severity_level", "4");
  EXPECT_FALSE(options.HasConfigEntry("session.intra_op_num_threads"));
  const std::pair<const char*, const char*> mistakes[] = {
      {"session.intra_op_num_threads", "two"},   {"session.enable_mem_pattern", "maybe"},
      {"session.graph_optimization_level", "9"}, {"session.execution_mode", "both"},
      {"session.log_severity_level", "7"},       {"session.use_per_session_threads", ""}};
  for (const auto& [key, value] : mistakes) {
    EXPECT_THAT(ErrorOf([&, key = key, value = value] { options.AddConfigEntry(key, value); }),
                AllOf(StartsWith("2: AddSessionConfigEntry"), HasSubstr(key)));
  }
}

TEST(SessionEntriesTest, LongAndEmptyEntriesAreRefused) {
  Ort::SessionOptions options;
  options.AddConfigEntry("key", std::string(8192, 'v').c_str());
  EXPECT_THAT(ErrorOf([&] { options.AddConfigEntry("key", std::string(8193, 'v').c_str()); }),
              HasSubstr("Config value is longer than maximum length: "));
  EXPECT_THAT(ErrorOf([&] { options.AddConfigEntry(std::string(1025, 'k').c_str(), "v"); }),
              HasSubstr("Config key is longer than maximum length: "));
  options.AddConfigEntry("session.intra_op_thread_affinities", "");
  EXPECT_THAT(ErrorOf([&] { Open(NegModel(), options); }),
              HasSubstr("Affinity string must not be empty"));
}

TEST(EnvironmentTest, OptionsNeedAVersion) {
  OrtEnvCreationOptions options = {};
  options.logging_severity_level = ORT_LOGGING_LEVEL_WARNING;
  options.log_id = "log";
  OrtEnv* env = nullptr;
  EXPECT_THAT(Outcome(Api().CreateEnvWithOptions(&options, &env)),
              HasSubstr("version set equal to ORT_API_VERSION"));
  EXPECT_EQ(env, nullptr);
}

// --- values ---

TEST(ValueDetailsTest, ShapesOfScalarsAndSparseTensors) {
  std::vector<float> number = {1};
  const Ort::Value scalar = TensorOver(number, {});
  ONNXTensorElementDataType type = kUndefined;
  constexpr int64_t kNoShape = 0;
  const int64_t* shape = &kNoShape;
  size_t rank = 1;
  ASSERT_EQ(Outcome(Api().GetTensorElementTypeAndShapeDataReference(scalar, &type, &shape, &rank)),
            "");
  EXPECT_EQ(type, kFloat);
  EXPECT_EQ(shape, nullptr);
  EXPECT_EQ(rank, 0u);

  const Ort::AllocatorWithDefaultOptions allocator;
  const int64_t dense[] = {3, 4};
  Ort::Value sparse = Ort::Value::CreateSparseTensor<float>(allocator, {dense, 2});
  ASSERT_EQ(Outcome(Api().GetTensorElementTypeAndShapeDataReference(sparse, &type, &shape, &rank)),
            "");
  ASSERT_EQ(rank, 2u);
  EXPECT_EQ(shape[1], 4);
}

TEST(ValueDetailsTest, MemoryHasTheNamesOfToday) {
  const Ort::MemoryInfo buffer("WebGPU_Buffer", OrtDeviceAllocator, 0, OrtMemTypeDefault);
  EXPECT_EQ(buffer.GetAllocatorName(), "WebGPU_Buf");
  const Ort::MemoryInfo tensor("WebNN_Tensor", OrtDeviceAllocator, 0, OrtMemTypeDefault);
  EXPECT_EQ(tensor.GetAllocatorName(), "WebNN_Ten");
}

TEST(ValueDetailsTest, TheDefaultAllocatorHasNoStatistics) {
  Ort::AllocatorWithDefaultOptions allocator;
  allocator.Free(allocator.Alloc(10));
  EXPECT_THAT(allocator.GetStats().GetKeyValuePairs(), IsEmpty());
}

TEST(ProfilingDetailsTest, TheStartIsATimeOfDay) {
  const TemporaryFolder folder;
  const auto now = [] {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::system_clock::now().time_since_epoch())
                                     .count());
  };
  Ort::SessionOptions options;
  options.EnableProfiling((folder / "trace").c_str());
  const uint64_t before = now();
  const Ort::Session session = Open(NegModel(), options);
  const uint64_t start = session.GetProfilingStartTimeNs();
  EXPECT_LE(before, start);
  EXPECT_LE(start, now());
}

TEST(SessionDetailsTest, AnInputThatNothingReadsHasNoDevice) {
  const std::string type = TensorType(kFloat, {"n"});
  const std::string model = ModelBuilder()
                                .Input("x", type)
                                .Input("unused", type)
                                .Node("Neg", {"x"}, {"y"})
                                .Output("y", type)
                                .Bytes();
  const Ort::Session session = Open(model);
  const auto devices = session.GetEpDeviceForInputs();
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_NE(devices[0], nullptr);
  EXPECT_EQ(devices[1], nullptr);
}

// --- shared allocators ---

struct CountingAllocator : OrtAllocator {
  CountingAllocator() : OrtAllocator{} {
    version = ORT_API_VERSION;
    OrtAllocator::Alloc = [](OrtAllocator* self, size_t size) {
      ++static_cast<CountingAllocator*>(self)->count;
      return std::malloc(size);
    };
    OrtAllocator::Free = [](OrtAllocator*, void* block) { std::free(block); };
    OrtAllocator::Info = [](const OrtAllocator* self) -> const OrtMemoryInfo* {
      return static_cast<const CountingAllocator*>(self)->info;
    };
  }
  const Ort::MemoryInfo info = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
  int count = 0;
};

TEST(SharedAllocatorTest, ASecondRegistrationReplacesTheFirst) {
  CountingAllocator first, second;
  Env().RegisterAllocator(&first);
  Env().RegisterAllocator(&second);
  Ort::SessionOptions options;
  options.AddConfigEntry("session.use_env_allocators", "1");
  const Ort::Session session = Open(NegModel(), options);
  // The session's allocator of that memory is the registered one.
  Ort::Allocator own(session, first.info);
  own.Free(own.Alloc(100));
  EXPECT_EQ(first.count, 0);
  EXPECT_GT(second.count, 0);
  Env().UnregisterAllocator(second.info);
}

// --- custom operators ---

// y = 7, an int64; its shape function says nothing of the type. `makes` decides whether it makes
// its output, `version` since when there is the operator.
struct SevenKernel {
  explicit SevenKernel(bool makes_output) : makes(makes_output) {}
  void Compute(OrtKernelContext* raw) {
    if (!makes) return;
    const Ort::KernelContext context(raw);
    const auto shape = context.GetInput(0).GetTensorTypeAndShapeInfo().GetShape();
    context.GetOutput(0, shape).GetTensorMutableData<int64_t>()[0] = value;
  }
  bool makes;
  int64_t value = 7;
};
struct Seven : Ort::CustomOpBase<Seven, SevenKernel> {
  explicit Seven(bool makes_output = true) : makes(makes_output) {}
  void* CreateKernel(const OrtApi&, const OrtKernelInfo*) const { return new SevenKernel(makes); }
  const char* GetName() const { return "Seven"; }
  size_t GetInputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetInputType(size_t) const { return kFloat; }
  size_t GetOutputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetOutputType(size_t) const { return kInt64; }
  static Ort::Status InferOutputShape(Ort::ShapeInferContext& context) {
    context.SetOutputShape(0, context.GetInputShape(0));
    return Ort::Status();
  }
  bool makes;
};

class ClientsOperatorTest : public testing::Test {
 protected:
  Ort::Session OpenWith(const std::string& model, std::initializer_list<const OrtCustomOp*> ops) {
    for (const OrtCustomOp* const op : ops) {
      Ort::ThrowOnError(Api().CustomOpDomain_Add(domain_, op));
    }
    Ort::SessionOptions options;
    options.Add(domain_);
    return Open(model, options);
  }
  static std::vector<Ort::Value> RunOn(Ort::Session& session) {
    std::vector<float> x = {1};
    const Ort::Value feed = TensorOver(x, {1});
    const char* const inputs[] = {"x"};
    const char* const outputs[] = {"y"};
    return session.Run(Ort::RunOptions(), inputs, &feed, 1, outputs, 1);
  }
  static std::string ModelOf(const char* reader = nullptr) {
    ModelBuilder model;
    model.Input("x", TensorType(kFloat, {1}));
    model.UnimportedNode("clients", "Seven", {"x"}, {reader == nullptr ? "y" : "m"});
    if (reader != nullptr) model.Node(reader, {"m"}, {"y"});
    return model.Output("y", TensorType(kInt64, {1})).Bytes();
  }

  Ort::CustomOpDomain domain_{"clients"};
};

TEST_F(ClientsOperatorTest, DomainsNeedNoImport) {
  EXPECT_THAT(ErrorOf([] { Open(ModelOf()); }),
              HasSubstr("no opset import for the domain 'clients'"));
  const Seven op;
  Ort::Session session = OpenWith(ModelOf(), {&op});
  // The declared type holds, though SetOutputShape says float.
  EXPECT_THAT(ElementsOf<int64_t>(RunOn(session)[0]), ElementsAre(7));
}

TEST_F(ClientsOperatorTest, AnOutputThatNothingReadsMayStayAway) {
  const Seven op(false);
  Ort::Session session = OpenWith(ModelOf(), {&op});
  EXPECT_THAT(ElementsOf<int64_t>(RunOn(session)[0]), IsEmpty());
}

TEST_F(ClientsOperatorTest, AnOutputThatANodeReadsMayNot) {
  const Seven op(false);
  Ort::Session session = OpenWith(ModelOf("Abs"), {&op});
  EXPECT_THAT(ErrorOf([&] { RunOn(session); }), HasSubstr("did not make output 0"));
}

TEST_F(ClientsOperatorTest, LaterVersionsOfTheTableAndOfModelsAreTaken) {
  Seven op;
  op.version = ORT_API_VERSION + 1;
  op.OrtCustomOp::GetEndVersion = [](const OrtCustomOp*) { return 3; };
  Ort::Session session = OpenWith(ModelOf(), {&op});
  EXPECT_THAT(ElementsOf<int64_t>(RunOn(session)[0]), ElementsAre(7));
}

TEST_F(ClientsOperatorTest, OnlyTheLastFormalIsVariadic) {
  Seven op;
  op.OrtCustomOp::GetInputTypeCount = [](const OrtCustomOp*) -> size_t { return 2; };
  op.OrtCustomOp::GetInputCharacteristic = [](const OrtCustomOp*, size_t i) {
    return i == 0 ? INPUT_OUTPUT_VARIADIC : INPUT_OUTPUT_REQUIRED;
  };
  EXPECT_THAT(ErrorOf([&] { OpenWith(ModelOf(), {&op}); }),
              HasSubstr("Only the last input to a custom op may be marked variadic."));
}

}  // namespace
}  // namespace tenon::test
