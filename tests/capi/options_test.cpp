// Environments and options through the C++ classes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capi/client.h"
#include "capi/model_builder.h"

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST(EnvTest, AllEnvironmentsAreOne) {
  const OrtApi& api = Ort::GetApi();
  OrtEnv *first = nullptr, *second = nullptr;
  Ort::ThrowOnError(api.CreateEnv(ORT_LOGGING_LEVEL_WARNING, "a", &first));
  Ort::ThrowOnError(api.CreateEnv(ORT_LOGGING_LEVEL_ERROR, "b", &second));
  EXPECT_EQ(first, second);
  api.ReleaseEnv(second);
  const std::string model = AddReluModel();
  OrtSession* session = nullptr;
  Ort::ThrowOnError(
      api.CreateSessionFromArray(first, model.data(), model.size(), nullptr, &session));
  api.ReleaseEnv(first);
  // A session keeps what it needs of its environment.
  size_t count = 0;
  Ort::ThrowOnError(api.SessionGetInputCount(session, &count));
  EXPECT_EQ(count, 2u);
  api.ReleaseSession(session);
  api.ReleaseEnv(nullptr);
}

TEST(EnvTest, WrongArgumentsAreNamed) {
  const OrtApi& api = Ort::GetApi();
  OrtEnv* env = nullptr;
  EXPECT_THAT(Outcome(api.CreateEnv(ORT_LOGGING_LEVEL_WARNING, nullptr, &env)), HasSubstr("logid"));
  EXPECT_THAT(Outcome(api.CreateEnv(ORT_LOGGING_LEVEL_WARNING, "a", nullptr)), HasSubstr("out"));
  EXPECT_THAT(Outcome(api.CreateEnv(static_cast<OrtLoggingLevel>(5), "a", &env)),
              AllOf(StartsWith("2: "), HasSubstr("5")));
  EXPECT_THAT(Outcome(api.CreateEnvWithCustomLogger(nullptr, nullptr, ORT_LOGGING_LEVEL_WARNING,
                                                    "a", &env)),
              HasSubstr("logging_function"));
  EXPECT_THAT(
      Outcome(api.CreateEnvWithGlobalThreadPools(ORT_LOGGING_LEVEL_WARNING, "a", nullptr, &env)),
      HasSubstr("tp_options"));
}

TEST(EnvTest, ThreadingOptionsAreChecked) {
  Ort::ThreadingOptions options;
  options.SetGlobalIntraOpNumThreads(2).SetGlobalInterOpNumThreads(1).SetGlobalSpinControl(0);
  options.SetGlobalDenormalAsZero();
  EXPECT_THAT(ErrorOf([&] { options.SetGlobalIntraOpNumThreads(-1); }), HasSubstr("-1"));
  EXPECT_THAT(ErrorOf([&] { options.SetGlobalSpinControl(2); }), HasSubstr("2"));
  OrtThreadingOptions* raw = options;
  EXPECT_EQ(Outcome(Ort::GetApi().SetGlobalIntraOpThreadAffinity(raw, "1;1")), "");
  EXPECT_THAT(Outcome(Ort::GetApi().SetGlobalIntraOpThreadAffinity(raw, "x")), HasSubstr("'x'"));
}

TEST(SessionOptionsTest, WrongArgumentsAreNamed) {
  const OrtApi& api = Ort::GetApi();
  const Ort::SessionOptions options;
  auto* const raw = const_cast<OrtSessionOptions*>(static_cast<const OrtSessionOptions*>(options));
  EXPECT_THAT(Outcome(api.SetIntraOpNumThreads(nullptr, 1)), HasSubstr("options"));
  EXPECT_THAT(Outcome(api.SetIntraOpNumThreads(raw, -1)), HasSubstr("-1"));
  EXPECT_THAT(Outcome(api.SetInterOpNumThreads(raw, -1)), HasSubstr("-1"));
  EXPECT_THAT(
      Outcome(api.SetSessionGraphOptimizationLevel(raw, static_cast<GraphOptimizationLevel>(42))),
      HasSubstr("42"));
  EXPECT_THAT(Outcome(api.SetSessionExecutionMode(raw, static_cast<ExecutionMode>(7))),
              HasSubstr("7"));
  EXPECT_THAT(Outcome(api.SetSessionLogSeverityLevel(raw, 5)), HasSubstr("5"));
  EXPECT_THAT(Outcome(api.AddSessionConfigEntry(raw, "", "1")), HasSubstr("config_key"));
  EXPECT_THAT(Outcome(api.SetSessionLogId(raw, nullptr)), HasSubstr("logid"));
}

TEST(SessionOptionsTest, ConfigEntriesAreKeptAndCloned) {
  Ort::SessionOptions options;
  options.AddConfigEntry("some.unknown.key", "value");
  options.SetExecutionMode(ORT_PARALLEL).DisableMemPattern();
  Ort::SessionOptions clone = options.Clone();
  options.AddConfigEntry("some.unknown.key", "changed");
  EXPECT_EQ(clone.GetConfigEntry("some.unknown.key"), "value");
  EXPECT_TRUE(clone.HasConfigEntry("some.unknown.key"));
  EXPECT_FALSE(clone.HasConfigEntry("another"));
  EXPECT_THAT(ErrorOf([&] { clone.GetConfigEntry("another"); }), HasSubstr("another"));
  const OrtApi& api = Ort::GetApi();
  ExecutionMode mode = ORT_SEQUENTIAL;
  Ort::ThrowOnError(api.GetSessionExecutionMode(clone, &mode));
  EXPECT_EQ(mode, ORT_PARALLEL);
  int enabled = 1;
  Ort::ThrowOnError(api.GetMemPatternEnabled(clone, &enabled));
  EXPECT_EQ(enabled, 0);
  char small[2];
  size_t size = sizeof(small);
  EXPECT_THAT(Outcome(api.GetSessionConfigEntry(clone, "some.unknown.key", small, &size)),
              StartsWith("2: "));
  EXPECT_EQ(size, 6u);
}

TEST(SessionOptionsTest, FreeDimensionsBecomeFixedAndOthersKeepTheirNames) {
  Ort::SessionOptions options;
  Ort::ThrowOnError(Ort::GetApi().AddFreeDimensionOverrideByName(options, "n", 4));
  const std::string type = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {"n", "m"});
  const Ort::Session session =
      Open(ModelBuilder().Input("x", type).Node("Relu", {"x"}, {"y"}).Output("y", type).Bytes(),
           options);
  for (const Ort::TypeInfo& info : {session.GetInputTypeInfo(0), session.GetOutputTypeInfo(0)}) {
    const auto tensor = info.GetTensorTypeAndShapeInfo();
    EXPECT_THAT(tensor.GetShape(), ElementsAre(4, -1));
    EXPECT_STREQ(tensor.GetSymbolicDimensions()[1], "m");
  }
}

TEST(SessionOptionsTest, LogLinesReachTheClientsFunction) {
  std::vector<std::string> lines;
  Ort::SessionOptions options;
  options.SetLogId("mine");
  Ort::ThrowOnError(Ort::GetApi().SetUserLoggingFunction(
      options,
      [](void* param, OrtLoggingLevel, const char*, const char* log_id, const char*,
         const char* message) {
        static_cast<std::vector<std::string>*>(param)->push_back(std::string(log_id) + message);
      },
      &lines));
  options.SetLogSeverityLevel(ORT_LOGGING_LEVEL_ERROR);
  Open(AddReluModel(), options);
  EXPECT_THAT(lines, testing::IsEmpty());
  options.SetLogSeverityLevel(ORT_LOGGING_LEVEL_INFO);
  Open(AddReluModel(), options);
  EXPECT_THAT(lines, testing::Contains(AllOf(StartsWith("mine"), HasSubstr("'small'"))));
}

TEST(EnvTest, WorkCallbacksAreChecked) {
  const OrtApi& api = Ort::GetApi();
  OrtThreadPoolCallbacksConfig config = {};
  EXPECT_THAT(Outcome(api.SetPerSessionThreadPoolCallbacks(nullptr, &config)), HasSubstr("env"));
  EXPECT_THAT(Outcome(api.SetPerSessionThreadPoolCallbacks(Env(), nullptr)), HasSubstr("config"));
  EXPECT_THAT(Outcome(api.SetPerSessionThreadPoolCallbacks(Env(), &config)),
              AllOf(StartsWith("2: config->version"), HasSubstr("got 0")));
}

TEST(SessionOptionsTest, ThreadSettingsThatAreWrongFailTheSession) {
  for (const auto& [key, value] :
       std::map<std::string, std::string>{{"session.intra_op_thread_affinities", "1,x"},
                                          {"session.intra_op.spin_duration_us", "soon"}}) {
    Ort::SessionOptions options;
    options.SetIntraOpNumThreads(2);
    options.AddConfigEntry(key.c_str(), value.c_str());
    EXPECT_THAT(ErrorOf([&] { Open(AddReluModel(), options); }), StartsWith("2: ")) << key;
  }
}

TEST(SessionOptionsTest, CanceledLoadingGivesUp) {
  Ort::SessionOptions options;
  options.SetLoadCancellationFlag(true);
  EXPECT_THAT(ErrorOf([&] { Open(AddReluModel(), options); }), StartsWith("12: "));
  options.SetLoadCancellationFlag(false);
  EXPECT_EQ(ErrorOf([&] { Open(AddReluModel(), options); }), "");
}

TEST(RunOptionsTest, KeepsWhatIsSet) {
  Ort::RunOptions options;
  options.SetRunTag("tag").SetRunLogSeverityLevel(3).SetRunLogVerbosityLevel(2);
  EXPECT_STREQ(options.GetRunTag(), "tag");
  EXPECT_EQ(options.GetRunLogSeverityLevel(), 3);
  EXPECT_EQ(options.GetRunLogVerbosityLevel(), 2);
  options.AddConfigEntry("key", "value");
  EXPECT_STREQ(options.GetConfigEntry("key"), "value");
  EXPECT_EQ(options.GetConfigEntry("other"), nullptr);
}

TEST(ProvidersTest, OnlyTheCpuIsBuiltIn) {
  EXPECT_THAT(Ort::GetAvailableProviders(), ElementsAre("CPUExecutionProvider"));
  Ort::SessionOptions options;
  options.AppendExecutionProvider("CPUExecutionProvider");
  EXPECT_THAT(ErrorOf([&] { options.AppendExecutionProvider("Abacus"); }),
              AllOf(HasSubstr("Abacus"), HasSubstr("CPUExecutionProvider")));
  const OrtCUDAProviderOptions cuda;
  EXPECT_THAT(ErrorOf([&] { options.AppendExecutionProvider_CUDA(cuda); }),
              AllOf(HasSubstr("CUDA"), HasSubstr("CPUExecutionProvider")));
}

TEST(KeyValuePairsTest, SetsFindsAndRemoves) {
  Ort::KeyValuePairs pairs;
  pairs.Add("b", "2");
  pairs.Add("a", "1");
  pairs.Add("b", "3");
  pairs.Add("", "ignored");
  EXPECT_STREQ(pairs.GetValue("b"), "3");
  EXPECT_EQ(pairs.GetValue("c"), nullptr);
  EXPECT_EQ(pairs.GetKeyValuePairs().size(), 2u);
  pairs.Remove("a");
  pairs.Remove("a");
  EXPECT_EQ(pairs.GetValue("a"), nullptr);
}

}  // namespace
}  // namespace tenon::test
