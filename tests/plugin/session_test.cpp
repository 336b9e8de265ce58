// Sessions with plugin providers: claims, compiling, kernels, the life of a session (plugin-ep
// section 5, provider-lifecycle).
#include <tenon_c_api.h>

#include <fstream>
#include <sstream>
#include <thread>

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

// PE-37: one piece of hardware and its metadata for each device, the session's options, and its
// logger, which lives until the provider has gone.
TEST_F(PluginSessionTest, ProvidersKnowTheirDevicesAndTheirSession) {
  ASSERT_EQ(Unregister(), "");
  Mock().devices = 3;
  ASSERT_EQ(Register(), "");
  static std::string* logged = nullptr;
  std::string text;
  logged = &text;
  Ort::SessionOptions options = OptionsForMock();
  options.AddConfigEntry("ep.mockprovider.color", "of this session");
  options.SetLogId("the session");
  options.SetLogSeverityLevel(ORT_LOGGING_LEVEL_WARNING);
  ASSERT_EQ(Outcome(Api().SetUserLoggingFunction(
                options,
                [](void*, OrtLoggingLevel, const char*, const char* id, const char*,
                   const char* message) { *logged += id + std::string(": ") + message + "\n"; },
                nullptr)),
            "");
  {
    Ort::Session session = Open(SquareModel(), options);
    options = Ort::SessionOptions(nullptr);
    ASSERT_EQ(Mock().ep_arguments.size(), 3u);
    const std::string hardware =
        Api().HardwareDevice_Vendor(Api().EpDevice_Device(MockDevices()[0]));
    for (const std::string& argument : Mock().ep_arguments) {
      EXPECT_EQ(argument, hardware + " " + MOCK_PLUGIN);
    }
    EXPECT_EQ(Mock().last_option, "of this session");
    Run(session, {1});
  }
  EXPECT_THAT(text, HasSubstr("the session: MockProvider goes"));
}

// PE-45: a null compute info.
TEST_F(PluginSessionTest, EveryFusedNodeMustBeCompiled) {
  Mock().returns_null_infos = true;
  EXPECT_THAT(Try(), AllOf(StartsWith("1: "), HasSubstr("fused node 0 of 1")));
  EXPECT_EQ(Mock().Count("a null among the infos"), 0);
}

// PL-8, PE-46, PE-47: the failing function, and its code.
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
  EXPECT_LT(FirstCall("OnSessionEnd"), FirstCall("ReleaseState"));
  EXPECT_LT(FirstCall("ReleaseState"), FirstCall("ReleaseNodeComputeInfos"));
  EXPECT_LT(FirstCall("ReleaseNodeComputeInfos"), FirstCall("ReleaseEp"));
}

// PL-29: a failure at the end has no effect.
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

// PE-44: the same model gives the same names.
TEST_F(PluginSessionTest, FusedNodesHaveStableNames) {
  for (int i = 0; i < 2; ++i) Open(SquareModel(), OptionsForMock());
  ASSERT_EQ(Mock().node_names.size(), 2u);
  EXPECT_EQ(Mock().node_names[0], Mock().node_names[1]);
  EXPECT_THAT(Mock().node_names[0], testing::MatchesRegex("MockProvider_[0-9]+_0"));
}

// PE-48
TEST_F(PluginSessionTest, FusingNeedsCompile) {
  Mock().has_compile = false;
  EXPECT_THAT(Try(), AllOf(StartsWith("9: "), HasSubstr(kMock)));
  Mock().claims = MockClaims::kKernels;
  EXPECT_EQ(Try(), "") << "kernels need none";
}

// PE-39
TEST_F(PluginSessionTest, TellsWhereInputsAndOutputsAre) {
  const Ort::Session session = Open(SquareModel(), OptionsForMock());
  const OrtEpDevice* device = nullptr;
  const OrtMemoryInfo* memory = nullptr;
  EXPECT_EQ(Outcome(Api().SessionGetEpDeviceForInputs(session, &device, 1)), "");
  EXPECT_EQ(device, MockDevices()[0]) << "the mock squares x";
  EXPECT_EQ(Outcome(Api().SessionGetMemoryInfoForInputs(session, &memory, 1)), "");
  EXPECT_EQ(memory, Api().EpDevice_MemoryInfo(device, OrtDeviceMemoryType_DEFAULT));
  EXPECT_EQ(Outcome(Api().SessionGetEpDeviceForOutputs(session, &device, 1)), "");
  EXPECT_STREQ(Api().EpDevice_EpName(device), "CPUExecutionProvider") << "Relu is the CPU's";
  EXPECT_THAT(Outcome(Api().SessionGetEpDeviceForInputs(session, &device, 2)), StartsWith("2: "));
  EXPECT_EQ(Unregister(), "");
  EXPECT_EQ(Outcome(Api().SessionGetEpDeviceForInputs(session, &device, 1)), "");
  EXPECT_EQ(device, nullptr) << "its library was unregistered";
}

// PL-5
TEST_F(PluginSessionTest, RunsOverlapOnlyWhereTheProviderAllowsIt) {
  Mock().runs_overlap = false;
  Ort::Session session = Open(SquareModel(), OptionsForMock());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) EXPECT_THAT(Run(session, {3}), ElementsAre(9));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Mock().most_computing, 1);
  EXPECT_EQ(Mock().Count("Compute"), 200);
}

// PL-17
TEST_F(PluginSessionTest, StreamsEndAfterTheProvidersRun) {
  Ort::Session session = Open(SquareModel(), OptionsForMock());
  Mock().calls.clear();
  Run(session, {1});
  EXPECT_LT(FirstCall("OnRunStart"), FirstCall("Compute"));
  EXPECT_LT(FirstCall("Compute"), FirstCall("OnRunEnd"));
  EXPECT_LT(FirstCall("OnRunEnd"), FirstCall("OnSessionRunEnd"));
}

// PL-44, PL-45: by the host's function, which the exported one does not rule out.
TEST_F(PluginSessionTest, TheExtensionMayBeSet) {
  ASSERT_EQ(Unregister(), "");
  Mock().extension = MockControl::Extension::kSet;
  ASSERT_EQ(Register(), "");
  EXPECT_EQ(Try(), "");
  EXPECT_EQ(Mock().Count("OnSessionEnd"), 1);
  Mock().extension = MockControl::Extension::kSetTooLate;
  EXPECT_THAT(Try(), AllOf(StartsWith("1: "), HasSubstr("GetSupportedDevices")));
}

// PL-51: without an extension, Sync is called in place of the notification: before anything is
// released, once, from API 25 on, and not if the environment turns it off
// (ATeardownMayGoWithoutSync).
TEST_F(PluginSessionTest, SyncTakesThePlaceOfAMissingExtension) {
  for (const uint32_t version : {24u, 25u}) {
    ASSERT_EQ(Unregister(), "");
    Mock().Reset();
    Mock().extension = MockControl::Extension::kNone;
    Mock().api_version = version;
    ASSERT_EQ(Register(), "");
    EXPECT_EQ(Try(), "");
    EXPECT_EQ(Mock().Count("OnSessionEnd"), 0);
    EXPECT_EQ(Mock().Count("Sync"), version >= 25 ? 1 : 0);
    if (version < 25) continue;
    EXPECT_LT(FirstCall("OnRunEnd"), FirstCall("Sync"));
    EXPECT_LT(FirstCall("Sync"), FirstCall("ReleaseState"));
    EXPECT_LT(FirstCall("Sync"), FirstCall("ReleaseEp"));
    Mock().calls.clear();
    Mock().fails = {"Sync"};
    EXPECT_EQ(Try(), "") << "a failure changes nothing";
    EXPECT_EQ(Mock().Count("ReleaseEp"), 1);
  }
}

// PL-47, PL-51: what is not inside the struct, or of no version, is not read; Sync takes its place.
TEST_F(PluginSessionTest, AnExtensionIsReadAsFarAsItGoes) {
  const struct {
    MockControl::Extension extension;
    uint32_t size, version;
    uint64_t flags;
    int ends, syncs;
  } cases[] = {
      {MockControl::Extension::kExported, ~0u, 1, 0, 1, 0},
      {MockControl::Extension::kExported, ~0u, 1, uint64_t{1} << 63, 1, 0},
      {MockControl::Extension::kExported, offsetof(TenonEpExtension, OnSessionEnd), 1, 0, 0, 1},
      {MockControl::Extension::kExported, offsetof(TenonEpExtension, OnSessionEnd), 1,
       TENON_EP_EXTENSION_SKIP_TEARDOWN_SYNC, 0, 0},
      {MockControl::Extension::kExported, 8, 1, TENON_EP_EXTENSION_SKIP_TEARDOWN_SYNC, 0, 1},
      {MockControl::Extension::kExported, ~0u, 0, 0, 0, 1},
      {MockControl::Extension::kNone, ~0u, 1, 0, 0, 1},
  };
  for (const auto& c : cases) {
    ASSERT_EQ(Unregister(), "");
    Mock().Reset();
    Mock().extension = c.extension;
    Mock().extension_size = c.size;
    Mock().extension_version = c.version;
    Mock().extension_flags = c.flags;
    ASSERT_EQ(Register(), "");
    EXPECT_EQ(Try(), "");
    EXPECT_EQ(Mock().Count("OnSessionEnd"), c.ends) << c.size << " " << c.version;
    EXPECT_EQ(Mock().Count("Sync"), c.syncs) << c.size << " " << c.version;
  }
  ASSERT_EQ(Unregister(), "");
  Mock().Reset();
  Mock().fails = {"TenonGetEpExtension"};
  EXPECT_EQ(Register(), "") << "an error counts as no extension (PL-43)";
}

// PL-51: the device need not be awaited again.
TEST_F(PluginSessionTest, AnEndAfterASyncWithoutARunNeedsNoOther) {
  Mock().extension = MockControl::Extension::kNone;
  ASSERT_EQ(Unregister(), "");
  ASSERT_EQ(Register(), "");
  const std::string type = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {"n"});
  const std::string model =
      ModelBuilder().Input("x", type).Node("Mul", {"x", "x"}, {"y"}).Output("y", type).Bytes();
  const auto syncs_of_end = [&](int runs_after_sync) {
    int before = 0;
    {
      Ort::Session session = Open(model, OptionsForMock());
      std::vector<float> x = {3, 4};
      const Ort::Value feed = TensorOver(x, {2});
      Ort::IoBinding binding(session);
      binding.BindInput("x", feed);
      binding.BindOutput("y", Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault));
      session.Run({}, binding);
      (void)Outcome(Api().SynchronizeBoundOutputs(binding));
      const char *const input = "x", *const output = "y";
      for (int i = 0; i < runs_after_sync; ++i) {
        (void)session.Run(Ort::RunOptions(), &input, &feed, 1, &output, 1);
      }
      before = Mock().Count("Sync");
    }
    return Mock().Count("Sync") - before;
  };
  EXPECT_EQ(syncs_of_end(0), 0);
  EXPECT_EQ(syncs_of_end(1), 1);
  Mock().fails = {"Sync"};
  EXPECT_EQ(syncs_of_end(0), 1) << "an attempt that failed does not count";
}

// A value in device memory outlives its session and its library.
TEST_F(PluginSessionTest, AValueKeepsItsAllocatorAndItsLibrary) {
  const std::string type = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {"n"});
  const std::string model =
      ModelBuilder().Input("x", type).Node("Mul", {"x", "x"}, {"y"}).Output("y", type).Bytes();
  OrtValue* kept = nullptr;
  {
    Ort::Session session = Open(model, OptionsForMock());
    std::vector<float> x = {3, 4};
    const Ort::Value feed = TensorOver(x, {2});
    Ort::IoBinding binding(session);
    binding.BindInput("x", feed);
    const OrtMemoryInfo* const memory =
        Api().EpDevice_MemoryInfo(MockDevices()[0], OrtDeviceMemoryType_DEFAULT);
    ASSERT_EQ(Outcome(Api().BindOutputToDevice(binding, "y", memory)), "");
    session.Run({}, binding);
    EXPECT_EQ(Outcome(Api().SynchronizeBoundOutputs(binding)), "");
    EXPECT_EQ(Mock().Count("Sync"), 1);
    OrtValue** outputs = nullptr;
    size_t count = 0;
    Ort::AllocatorWithDefaultOptions allocator;
    ASSERT_EQ(Outcome(Api().GetBoundOutputValues(binding, allocator, &outputs, &count)), "");
    ASSERT_EQ(count, 1u);
    kept = outputs[0];
    allocator.Free(outputs);
    const OrtMemoryInfo* where = nullptr;
    ASSERT_EQ(Outcome(Api().GetTensorMemoryInfo(kept, &where)), "");
    EXPECT_EQ(where, memory);
  }
  ASSERT_EQ(Unregister(), "");
  EXPECT_EQ(Mock().Count("ReleaseEpFactory"), 0);
  const float* data = nullptr;
  ASSERT_EQ(Outcome(Api().GetTensorMutableData(
                kept, reinterpret_cast<void**>(const_cast<float**>(&data)))),
            "");
  EXPECT_THAT(std::vector<float>(data, data + 2), ElementsAre(9, 16)) << "the mock's is the host's";
  Api().ReleaseValue(kept);
  EXPECT_EQ(Mock().Count("ReleaseEpFactory"), 1);
}

// PR-34, PR-35, PR-38: the profiler of the provider.
TEST_F(PluginSessionTest, ItsProfilerSeesPairsAndEndsOnce) {
  const TemporaryFolder folder;
  {
    Ort::SessionOptions options = OptionsForMock();
    options.EnableProfiling((folder.path() + "/trace").c_str());
    Ort::Session session = Open(SquareModel(), options);
    Run(session, {1});
  }
  EXPECT_GT(Mock().Count("StartEvent"), 0);
  EXPECT_EQ(Mock().Count("StartEvent"), Mock().Count("StopEvent"));
  EXPECT_EQ(Mock().Count("EndProfiling"), 1);
  EXPECT_EQ(Mock().Count("ReleaseProfiler"), 1);
  EXPECT_LT(FirstCall("EndProfiling"), FirstCall("ReleaseProfiler"));
  EXPECT_LT(FirstCall("ReleaseProfiler"), FirstCall("ReleaseEp"));
}

// PR-37: failures of its profiler do not affect runs.
TEST_F(PluginSessionTest, AProfilerThatFailsHurtsNoRun) {
  const TemporaryFolder folder;
  for (const char* const slot :
       {"CreateProfiler", "StartProfiling", "StartEvent", "StopEvent", "EndProfiling"}) {
    Mock().fails = {slot};
    Ort::SessionOptions options = OptionsForMock();
    options.EnableProfiling((folder.path() + "/trace").c_str());
    Ort::Session session = Open(SquareModel(), options);
    EXPECT_THAT(Run(session, {3}), ElementsAre(9)) << slot;
  }
}

// PE-77, PE-78: allocators of the provider's own go back through the factory.
TEST_F(PluginSessionTest, TheProvidersOwnAllocatorComesFirst) {
  Mock().provider_allocates = true;
  Mock().calls.clear();
  EXPECT_EQ(Try(), "");
  EXPECT_EQ(Mock().Count("OrtEp::CreateAllocator"), 1);
  EXPECT_EQ(Mock().Count("CreateAllocator"), 0);
  EXPECT_EQ(Mock().Count("ReleaseAllocator"), 1);
}

// PE-63, PE-64: constants have a separate memory if the device has one for them.
TEST_F(PluginSessionTest, ConstantsGoIntoReadOnlyMemory) {
  ASSERT_EQ(Unregister(), "");
  Mock().has_read_only_memory = true;
  ASSERT_EQ(Register(), "");
  Mock().calls.clear();
  EXPECT_EQ(Try(), "");
  EXPECT_EQ(Mock().Count("CreateAllocator"), 2) << "for values, and for constants";
}

// PE-104, PE-108: the order of waits, and the effect of their failures.
TEST_F(PluginSessionTest, WaitsAreMarkedFirstAndTheirFailuresAreTheRuns) {
  {
    Ort::Session session = Open(SquareModel(), OptionsForMock());
    Mock().calls.clear();
    Run(session, {1});
    EXPECT_LT(FirstCall("Compute"), FirstCall("CreateNotification"));
    EXPECT_LT(FirstCall("CreateNotification"), FirstCall("Activate"));
    EXPECT_LT(FirstCall("Activate"), FirstCall("WaitOnHost"));
  }
  for (const char* const slot :
       {"CreateNotification", "Activate", "WaitOnHost", "Flush", "OnSessionRunEnd"}) {
    Mock().fails = {slot};
    EXPECT_THAT(Try(), AllOf(StartsWith("11: "), HasSubstr(std::string(slot) + " was told")))
        << slot;
  }
}

// PE-35
TEST_F(PluginSessionTest, TheCpuCanBeRuledOut) {
  const std::string type = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {"n"});
  const std::string product =
      ModelBuilder().Input("x", type).Node("Mul", {"x", "x"}, {"y"}).Output("y", type).Bytes();
  Ort::SessionOptions options = OptionsForMock();
  options.AddConfigEntry("session.disable_cpu_ep_fallback", "1");
  Ort::Session session = Open(product, options);
  EXPECT_THAT(Run(session, {3}), ElementsAre(9));
  EXPECT_THAT(ErrorOf([&] { Open(SquareModel(), options); }),
              AllOf(StartsWith("1: "), HasSubstr("Relu"), HasSubstr("disable_cpu_ep_fallback")));

  // The same if devices are selected: without the CPU's, none is left to select.
  ASSERT_EQ(Unregister(), "");
  Ort::SessionOptions chosen;
  Ort::ThrowOnError(Api().SessionOptionsSetEpSelectionPolicy(
      chosen, OrtExecutionProviderDevicePolicy_PREFER_CPU));
  EXPECT_EQ(ErrorOf([&] { Open(product, chosen); }), "");
  chosen.AddConfigEntry("session.disable_cpu_ep_fallback", "1");
  EXPECT_THAT(ErrorOf([&] { Open(product, chosen); }),
              AllOf(StartsWith("1: "), HasSubstr("no execution provider was selected")));
}

// y = Triple(Ghost(x)) of the mock's own operators.
std::string OwnOperatorsModel() {
  const std::string type = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {"n"});
  return ModelBuilder()
      .Input("x", type)
      .CustomNode("mock.ops", "Ghost", {"x"}, {"square"})
      .CustomNode("mock.ops", "Triple", {"square"}, {"y"})
      .Output("y", type)
      .Bytes();
}

// PE-30, PE-109: one kernel is the operator's, the other node is compiled.
TEST_F(PluginSessionTest, OperatorsOfThePluginComeWithIt) {
  Mock().op_domains = 2;  // the same one twice
  {
    const Ort::SessionOptions options = OptionsForMock();
    EXPECT_EQ(Mock().Count("GetCustomOpDomains"), 1) << "when the provider is appended";
    Ort::Session session = Open(OwnOperatorsModel(), options);
    EXPECT_EQ(Mock().Count("CreateCustomKernel"), 1);
    EXPECT_EQ(Mock().Count("Compile"), 1);
    ASSERT_EQ(Unregister(), "");
    EXPECT_EQ(Mock().Count("ReleaseEpFactory"), 0) << "its operators are in use";
    EXPECT_THAT(Run(session, {1, -2}), ElementsAre(3, 12));
  }
  ASSERT_EQ(Register(), "");
  Mock().op_domains = 0;
  EXPECT_THAT(ErrorOf([&] { Open(OwnOperatorsModel(), OptionsForMock()); }), HasSubstr("mock.ops"));
  Mock().fails = {"GetNumCustomOpDomains"};
  Ort::SessionOptions options;
  const auto devices = MockDevices();
  EXPECT_THAT(Outcome(Api().SessionOptionsAppendExecutionProvider_V2(
                  options, Env(), devices.data(), devices.size(), nullptr, nullptr, 0)),
              StartsWith("11: "));
}

// PE-30: an input that an operator needs on the host is there, others where the provider works.
TEST_F(PluginSessionTest, OperatorsOfThePluginSayWhereTheirInputsLie) {
  Mock().op_domains = 1;
  for (const OrtMemType type : {OrtMemTypeDefault, OrtMemTypeCPUInput}) {
    Mock().operator_memory = type;
    Ort::Session session = Open(OwnOperatorsModel(), OptionsForMock());
    for (int run = 0; run < 3; ++run) {
      EXPECT_THAT(Run(session, {1, -2}), ElementsAre(3, 12));
      EXPECT_EQ(Mock().operator_input == "Cpu", type == OrtMemTypeCPUInput);
    }
  }
}

// Sessions map external data; the graph still says in which file it is.
TEST_F(PluginSessionTest, GraphsToClaimFromSayWhichInitializersAreInFiles) {
  const TemporaryFolder folder;
  const std::vector<float> weights = {0, 5, 6, 7};
  std::ofstream(folder.path() + "/weights.bin", std::ios::binary)
      .write(reinterpret_cast<const char*>(weights.data()), sizeof(float) * 4);
  const std::string type = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {3});
  const std::string model = ModelBuilder()
                                .Input("x", type)
                                .ExternalInitializer("w", 3, "weights.bin", 4)
                                .Initializer("v", {1, 2, 3})
                                .Node("Mul", {"x", "w"}, {"p"})
                                .Node("Add", {"p", "v"}, {"y"})
                                .Output("y", type)
                                .Bytes();
  const std::string path = folder.path() + "/model.onnx";
  std::ofstream(path, std::ios::binary) << model;
  Ort::Session session(Env(), path.c_str(), OptionsForMock());
  EXPECT_THAT(Mock().initializers, testing::UnorderedElementsAre("w: weights.bin 4 12", "v:"));
}

// PE-3: the host frees the statuses that it gets, and keeps their code and text.
TEST_F(PluginSessionTest, StatusesOfThePluginAreFreed) {
  const auto failing_run = [] {
    Mock().fails = {"Compute"};
    return Try();
  };
  const std::string first = failing_run();
  EXPECT_THAT(first, AllOf(StartsWith("11: "), HasSubstr("Compute was told to fail")));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(failing_run(), first);
}

// PE-4: the plugin's strings are copied at once.
TEST_F(PluginSessionTest, TextsOfThePluginAreCopied) {
  const OrtEpDevice* const device = MockDevices()[0];
  const OrtKeyValuePairs* const metadata = Api().EpDevice_EpMetadata(device);
  EXPECT_STREQ(Api().GetKeyValue(metadata, "version"), "1.2.3");
  Mock().version = "9.9.9";
  EXPECT_STREQ(Api().GetKeyValue(metadata, "version"), "1.2.3");
}

}  // namespace
}  // namespace tenon::test
