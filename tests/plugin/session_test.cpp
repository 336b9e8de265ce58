// Sessions with plugin providers: claims, compiling, kernels, the life of a session (plugin-ep
// section 5, provider-lifecycle).
#include <fstream>
#include <sstream>

#include "base/temporary_folder.h"
#include "plugin/mock.h"

namespace tenon::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class PluginSessionTest : public MockTest {
 protected:
  void SetUp() override { ASSERT_EQ(Register(), ""); }

  // Opens and runs once; the error of either, or "".
  static std::string Try() {
    return ErrorOf([] {
      Ort::Session session = Open(SquareModel(), OptionsForMock());
      Run(session, {2});
    });
  }
};

// PE-42, PE-45, PE-46
TEST_F(PluginSessionTest, CompiledNodesRunOnTheDevice) {
  {
    Ort::Session session = Open(SquareModel(), OptionsForMock());
    EXPECT_THAT(Takers(session), Contains(kMock));
    for (int i = 0; i < 3; ++i) EXPECT_THAT(Run(session, {1, -2, 3}), ElementsAre(1, 4, 9));
    EXPECT_THAT(Run(session, {5}), ElementsAre(25));
    EXPECT_EQ(Mock().Count("Compile"), 1);
    EXPECT_EQ(Mock().Count("CreateState"), 1);
    EXPECT_EQ(Mock().Count("Compute"), 4);
    EXPECT_GT(Mock().copies, 0);
  }
  EXPECT_EQ(Mock().Count("ReleaseState"), 1);
  EXPECT_EQ(Mock().Count("ReleaseNodeComputeInfos"), 1);
  EXPECT_EQ(Mock().Count("ReleaseEp"), 1);
}

// PE-43, PE-51, PE-52, PE-53
TEST_F(PluginSessionTest, RegisteredKernelsRunOnTheDevice) {
  Mock().claims = MockClaims::kKernels;
  Ort::Session session = Open(SquareModel(), OptionsForMock());
  EXPECT_THAT(Takers(session), Contains(kMock));
  EXPECT_THAT(Run(session, {1, -2, 3}), ElementsAre(1, 4, 9));
  EXPECT_EQ(Mock().Count("CreateKernel"), 1);
  EXPECT_EQ(Mock().Count("Compile"), 0);
}

// PE-41
TEST_F(PluginSessionTest, AProviderThatCannotSayWhatItRunsRunsNothing) {
  for (const MockClaims claims : {MockClaims::kFused, MockClaims::kUnfusable}) {
    Mock().claims = claims;
    Mock().fails.clear();
    if (claims == MockClaims::kFused) Mock().fails = {"GetCapability"};
    // Of three products in a row, the first and the last cannot become one node.
    const std::string type = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {"n"});
    const std::string model = ModelBuilder()
                                  .Input("x", type)
                                  .Node("Mul", {"x", "x"}, {"a"})
                                  .Node("Relu", {"a"}, {"b"})
                                  .Node("Sqrt", {"b"}, {"y"})
                                  .Output("y", type)
                                  .Bytes();
    Ort::Session session = Open(model, OptionsForMock());
    EXPECT_THAT(Takers(session), Not(Contains(kMock)));
    EXPECT_THAT(Run(session, {4}), ElementsAre(4));
  }
}

// PE-45: a null compute info.
TEST_F(PluginSessionTest, EveryFusedNodeMustBeCompiled) {
  Mock().returns_null_infos = true;
  EXPECT_THAT(Try(), AllOf(StartsWith("1: "), HasSubstr("fused node 0 of 1")));
}

// PL-8, PE-46, PE-47: who fails, and with which code.
TEST_F(PluginSessionTest, FailuresNameTheSlotAndKeepTheCode) {
  for (const char* const slot :
       {"CreateEp", "Compile", "CreateState", "OnSessionInitializationEnd", "OnRunStart", "Compute",
        "OnRunEnd", "CreateAllocator", "CreateDataTransfer", "CreateSyncStreamForDevice",
        "CopyTensors"}) {
    Mock().fails = {slot};
    EXPECT_THAT(Try(), AllOf(StartsWith("11: "), HasSubstr(std::string(slot) + " was told")))
        << slot;
    Mock().fails.clear();
    EXPECT_EQ(Mock().live_blocks, 0) << slot;
  }
  Mock().fails = {"CreateEp"};
  EXPECT_THAT(Try(), HasSubstr(kMock));
}

// PE-2
TEST_F(PluginSessionTest, WhatAPluginThrowsIsAFailure) {
  for (const char* const slot : {"Compute", "CreateState"}) {
    Mock().throws = {slot};
    EXPECT_THAT(Try(), HasSubstr(std::string(slot) + " was told")) << slot;
  }
}

// PL-13, PL-15, PL-36, PL-43, PL-49
TEST_F(PluginSessionTest, IsToldOfRunsAndOfTheEnd) {
  {
    Ort::Session session = Open(SquareModel(), OptionsForMock());
    EXPECT_EQ(Mock().Count("OnSessionInitializationEnd"), 1);
    Run(session, {1});
    Run(session, {1});
    EXPECT_EQ(Mock().Count("OnRunStart"), 2);
    EXPECT_EQ(Mock().Count("OnRunEnd"), 2);
    EXPECT_EQ(Mock().Count("OnSessionEnd"), 0);
  }
  EXPECT_EQ(Mock().Count("OnSessionEnd"), 1);
  EXPECT_EQ(Mock().Count("Sync"), 0) << "the extension takes its place";
  EXPECT_EQ(Mock().end_reason, 0u);
  EXPECT_EQ(Mock().completed_runs, 2u);
  const std::vector<std::string>& calls = Mock().calls;
  const auto at = [&](const char* slot) {
    return std::find(calls.begin(), calls.end(), slot) - calls.begin();
  };
  EXPECT_LT(at("OnSessionEnd"), at("ReleaseState"));
  EXPECT_LT(at("ReleaseState"), at("ReleaseNodeComputeInfos"));
  EXPECT_LT(at("ReleaseNodeComputeInfos"), at("ReleaseEp"));
}

// PL-37: a failure at the end changes nothing.
TEST_F(PluginSessionTest, AFailureAtTheEndChangesNothing) {
  Mock().fails = {"OnSessionEnd"};
  EXPECT_EQ(Try(), "");
  EXPECT_EQ(Mock().Count("ReleaseEp"), 1);
}

// PE-28, PE-29
TEST_F(PluginSessionTest, OptionsReachTheProvider) {
  {
    const Ort::Session session = Open(SquareModel(), OptionsForMock());
    EXPECT_EQ(Mock().last_option, "grey") << "the device's default";
  }
  Ort::SessionOptions options;
  const char* const keys[] = {"color", nullptr};
  const char* const values[] = {"blue", "ignored"};
  const auto devices = MockDevices();
  ASSERT_EQ(Outcome(Api().SessionOptionsAppendExecutionProvider_V2(
                options, Env(), devices.data(), devices.size(), keys, values, 2)),
            "");
  Ort::Session session = Open(SquareModel(), options);
  EXPECT_EQ(Mock().last_option, "blue");
  const char* const key = "color";
  const char* const value = "red";
  EXPECT_EQ(Outcome(Api().SetEpDynamicOptions(session, &key, &value, 1)), "");
  EXPECT_EQ(Mock().last_option, "red");
}

// PE-65: no memory of its own, so nothing is copied.
TEST_F(PluginSessionTest, AProviderMayWorkOnTheCpusMemory) {
  ASSERT_EQ(Unregister(), "");
  Mock().has_device_memory = false;
  ASSERT_EQ(Register(), "");
  Ort::Session session = Open(SquareModel(), OptionsForMock());
  EXPECT_THAT(Takers(session), Contains(kMock));
  EXPECT_THAT(Run(session, {7}), ElementsAre(49));
  EXPECT_EQ(Mock().copies, 0);
}

// PE-1: slots of newer versions are not called.
TEST_F(PluginSessionTest, OldPluginsLackNewSlots) {
  ASSERT_EQ(Unregister(), "");
  Mock().api_version = 23;
  Mock().calls.clear();
  ASSERT_EQ(Register(), "");
  EXPECT_EQ(Try(), "");
  EXPECT_EQ(Mock().Count("Compute"), 1);
  EXPECT_EQ(Mock().Count("OnSessionInitializationEnd"), 0) << "PL-12";
  EXPECT_EQ(Mock().Count("CreateProfiler"), 0);
}

// PE-110, PR-30: events of the provider are in the trace.
TEST_F(PluginSessionTest, ItsEventsAreInTheTrace) {
  const TemporaryFolder folder;
  std::string file;
  {
    Ort::SessionOptions options = OptionsForMock();
    options.EnableProfiling((folder.path() + "/trace").c_str());
    Ort::Session session = Open(SquareModel(), options);
    Run(session, {1});
    file = session.EndProfilingAllocated(Ort::AllocatorWithDefaultOptions()).get();
  }
  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("mock_kernel"));
  EXPECT_THAT(text.str(), HasSubstr("\"queue\""));
  EXPECT_EQ(Mock().Count("StartProfiling"), 1);
  EXPECT_EQ(Mock().Count("EndProfiling"), 1);
}

}  // namespace
}  // namespace tenon::test
