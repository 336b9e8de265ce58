// The life of providers from their registration with a session to their end, as plugins see it
// (provider-lifecycle), and how the host handles those that misbehave.
#include <malloc.h>
#include <tenon_c_api.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <sstream>
#include <thread>

#include "base/temporary_folder.h"
#include "plugin/mock.h"

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using testing::UnorderedElementsAre;

class PluginLifecycleTest : public MockTest {
 protected:
  void SetUp() override { ASSERT_EQ(Register(), ""); }
};

// y = x * x, all of which the mock takes.
std::string ProductModel() {
  const std::string type = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {"n"});
  return ModelBuilder().Input("x", type).Node("Mul", {"x", "x"}, {"y"}).Output("y", type).Bytes();
}

// A session that is created in two steps.
class EditedSession {
 public:
  EditedSession() : model_(SquareModel()) {
    OrtSession* made = nullptr;
    EXPECT_EQ(Outcome(Editor().CreateModelEditorSessionFromArray(
                  Env(), model_.data(), model_.size(), Ort::SessionOptions(), &made)),
              "");
    session = Ort::Session(made);
  }
  std::string Finalize(const Ort::SessionOptions& options) {
    return Outcome(Editor().FinalizeModelEditorSession(session, options, nullptr));
  }

  Ort::Session session{nullptr};

 private:
  static const OrtModelEditorApi& Editor() { return *Api().GetModelEditorApi(); }
  const std::string model_;
};

// PL-1: and the session can be created nevertheless.
TEST_F(PluginLifecycleTest, ANullProviderIsRefused) {
  const Ort::SessionOptions options = OptionsForMock();
  EditedSession edited;
  Mock().makes_null_providers = true;
  EXPECT_THAT(edited.Finalize(options), AllOf(StartsWith("1: "), HasSubstr(kMock)));
  EXPECT_EQ(Mock().Count("ReleaseEp"), 0);
  Mock().makes_null_providers = false;
  EXPECT_EQ(edited.Finalize(options), "");
  EXPECT_THAT(Run(edited.session, {3}), ElementsAre(9));
  EXPECT_EQ(Mock().Count("Compute"), 1);
}

// PL-2
TEST_F(PluginLifecycleTest, AnInitializedSessionTakesNoProvider) {
  LoggedMessages messages;
  Ort::SessionOptions quiet;
  messages.Watch(quiet);
  EditedSession edited;
  ASSERT_EQ(edited.Finalize(quiet), "");
  EXPECT_THAT(edited.Finalize(OptionsForMock()), StartsWith("1: "));
  EXPECT_THAT(messages.At(ORT_LOGGING_LEVEL_ERROR), ElementsAre(HasSubstr("initialized")));
  EXPECT_EQ(Mock().Count("CreateEp"), 0);
  EXPECT_THAT(Run(edited.session, {3}), ElementsAre(9));
  edited.session = Ort::Session(nullptr);  // before the messages
}

// PL-6: and is marked so; the session that adds it removes the mark.
TEST_F(PluginLifecycleTest, TheCpuProviderIsAddedIfItIsNotThere) {
  for (const bool is_explicit : {false, true}) {
    LoggedMessages messages;
    Ort::SessionOptions options = OptionsForMock();
    messages.Watch(options);
    if (is_explicit) options.AppendExecutionProvider("CPU", {});
    Ort::Session session = Open(SquareModel(), options);
    EXPECT_THAT(Takers(session), UnorderedElementsAre(kMock, "CPUExecutionProvider"));
    const auto notes = messages.At(ORT_LOGGING_LEVEL_INFO);
    const auto is_note = [](const std::string& text) {
      return text == "CPUExecutionProvider is implicitly added";
    };
    EXPECT_EQ(std::count_if(notes.begin(), notes.end(), is_note), is_explicit ? 0 : 1);
    session = Ort::Session(nullptr);
  }
}

// PL-7
TEST_F(PluginLifecycleTest, TheCpuMayBeRuledOut) {
  const auto outcome = [](const std::string& model, Ort::SessionOptions options) {
    options.AddConfigEntry("session.disable_cpu_ep_fallback", "1");
    return ErrorOf([&] { Open(model, options); });
  };
  EXPECT_EQ(outcome(ProductModel(), OptionsForMock()), "");
  EXPECT_THAT(outcome(SquareModel(), OptionsForMock()),
              AllOf(StartsWith("1: "), HasSubstr("Relu")));
  EXPECT_THAT(outcome(ProductModel(), Ort::SessionOptions()), StartsWith("1: "));
  Ort::SessionOptions by_name = OptionsForMock();
  by_name.AppendExecutionProvider("CPU", {});
  EXPECT_THAT(outcome(ProductModel(), std::move(by_name)),
              AllOf(StartsWith("2: "), HasSubstr("CPUExecutionProvider")));
  Ort::SessionOptions by_device = OptionsForMock();
  const OrtEpDevice* const* devices = nullptr;
  size_t count = 0;
  ASSERT_EQ(Outcome(Api().GetEpDevices(Env(), &devices, &count)), "");
  ASSERT_EQ(Outcome(Api().SessionOptionsAppendExecutionProvider_V2(by_device, Env(), devices, 1,
                                                                   nullptr, nullptr, 0)),
            "");
  EXPECT_THAT(outcome(ProductModel(), std::move(by_device)), StartsWith("2: "));
}

// PL-9
TEST_F(PluginLifecycleTest, ANameIsCopiedOnce) {
  LoggedMessages messages;
  Ort::SessionOptions options = OptionsForMock();
  messages.Watch(options);
  {
    Ort::Session session = Open(SquareModel(), options);
    Mock().name[0] = 'X';  // in the buffer that GetName returned
    EXPECT_THAT(Takers(session), Contains(kMock));
    Run(session, {1});
    Mock().fails = {"OnSessionEnd"};
  }
  EXPECT_EQ(Mock().name_calls, 1);
  EXPECT_THAT(messages.At(ORT_LOGGING_LEVEL_ERROR), ElementsAre(StartsWith(kMock)));
}

// The data for the callback of an asynchronous run.
struct ReleaseInCallback {
  static void Call(void* data, OrtValue**, size_t, OrtStatus* status) {
    auto& self = *static_cast<ReleaseInCallback*>(data);
    self.outcome = Outcome(status);
    Api().ReleaseSession(self.session);
    self.is_released.set_value();
    self.may_return.get_future().wait();
  }

  OrtSession* session;
  OrtValue* output = nullptr;
  std::string outcome;
  std::promise<void> is_released, may_return;
};

// PL-28: if the callback of a session's own run releases the session, the release waits for that
// run.
TEST_F(PluginLifecycleTest, ACallbackMayReleaseItsSession) {
  ReleaseInCallback state;
  state.session = Open(SquareModel(), OptionsForMock()).release();
  std::vector<float> x = {3};
  const Ort::Value feed = TensorOver(x, {1});
  const OrtValue* const feeds[] = {feed};
  const char* const input = "x";
  const char* const output = "y";
  ASSERT_EQ(Outcome(Api().RunAsync(state.session, nullptr, &input, feeds, 1, &output, 1,
                                   &state.output, ReleaseInCallback::Call, &state)),
            "");
  state.is_released.get_future().wait();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(Mock().Count("OnSessionEnd"), 0);
  state.may_return.set_value();
  for (int i = 0; i < 5000 && Mock().Count("ReleaseEp") == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(state.outcome, "");
  EXPECT_EQ(Mock().Count("OnSessionEnd"), 1);
  EXPECT_EQ(Mock().Count("ReleaseEp"), 1);
  EXPECT_EQ(*Ort::Value(state.output).GetTensorData<float>(), 9);
}

// PL-31: which calls a provider may make in the notification of the end, and which not.
TEST_F(PluginLifecycleTest, WhatAProviderMayDoAtTheEnd) {
  LoggedMessages messages;
  Ort::SessionOptions options = OptionsForMock();
  messages.Watch(options);
  OrtSession* const session = Open(SquareModel(), options).release();
  std::string unregistered, allocated, described;
  Mock().on_session_end = [&] {
    unregistered = Unregister();
    Api().ReleaseSession(session);
    OrtAllocator* shared = nullptr;
    const OrtMemoryInfo* const memory =
        Api().EpDevice_MemoryInfo(MockDevices()[0], OrtDeviceMemoryType_DEFAULT);
    allocated = Outcome(Api().GetSharedAllocator(Env(), memory, &shared));
    shared->Free(shared, shared->Alloc(shared, 100));
    described = Outcome(Api().CreateStatus(ORT_FAIL, "made"));
  };
  Api().ReleaseSession(session);
  EXPECT_THAT(unregistered, AllOf(StartsWith("1: "), HasSubstr(kLibrary)));
  EXPECT_EQ(allocated, "");
  EXPECT_EQ(described, "1: made");
  EXPECT_THAT(messages.At(ORT_LOGGING_LEVEL_ERROR),
              ElementsAre(AllOf(HasSubstr("ReleaseSession"), HasSubstr("code 1"))));
  EXPECT_EQ(Mock().Count("OnSessionEnd"), 1);
  EXPECT_EQ(Mock().Count("ReleaseEp"), 1);
  EXPECT_EQ(Unregister(), "") << "allowed again";
}

// PL-32: the calls after the notification.
TEST_F(PluginLifecycleTest, NothingRunsAfterTheEnd) {
  const TemporaryFolder folder;
  for (const MockClaims claims : {MockClaims::kFused, MockClaims::kKernels}) {
    Mock().claims = claims;
    Ort::SessionOptions options = OptionsForMock();
    options.EnableProfiling((folder.path() + "/trace").c_str());
    {
      Ort::Session session = Open(SquareModel(), options);
      Run(session, {1});
      Mock().calls.clear();
    }
    const size_t end = FirstCall("OnSessionEnd");
    ASSERT_LT(end, Mock().calls.size());
    const std::vector<std::string> after(Mock().calls.begin() + static_cast<ptrdiff_t>(end) + 1,
                                         Mock().calls.end());
    EXPECT_THAT(after, Contains("ReleaseEp"));
    EXPECT_THAT(
        after, testing::Each(testing::AnyOf("ReleaseState", "ReleaseNodeComputeInfos", "StartEvent",
                                            "StopEvent", "EndProfiling", "ReleaseProfiler",
                                            "ReleaseEp", "ReleaseAllocator", "ReleaseTransfer")));
  }
}

// PL-37: a profiler that may outlive its provider sees how that is released.
TEST_F(PluginLifecycleTest, AProfilerThatOutlivesItsProvider) {
  const TemporaryFolder folder;
  const auto last_call = [](const char* name) {
    const std::vector<std::string>& calls = Mock().calls;
    return std::find(calls.rbegin(), calls.rend(), name) - calls.rbegin();
  };
  for (const bool outlives : {false, true}) {
    ASSERT_EQ(Unregister(), "");
    Mock().extension_flags = outlives ? TENON_EP_EXTENSION_PROFILER_OUTLIVES_EP : 0;
    ASSERT_EQ(Register(), "");
    Ort::SessionOptions options = OptionsForMock();
    options.EnableProfiling((folder.path() + "/trace").c_str());
    {
      Ort::Session session = Open(SquareModel(), options);
      Run(session, {1});
      Mock().calls.clear();
    }
    EXPECT_EQ(FirstCall("ReleaseEp") < FirstCall("EndProfiling"), outlives);
    EXPECT_EQ(last_call("StopEvent") < last_call("ReleaseEp"), outlives) << "its own release";
    EXPECT_LT(FirstCall("EndProfiling"), FirstCall("ReleaseProfiler"));
    EXPECT_EQ(Mock().Count("EndProfiling"), 1);
    EXPECT_EQ(Mock().Count("ReleaseProfiler"), 1);
    EXPECT_EQ(Mock().Count("StartEvent"), Mock().Count("StopEvent"));
  }
}

// PL-34: a process that ends with live sessions calls no provider.
TEST_F(PluginLifecycleTest, TheEndOfTheProcessIsNotTheSessions) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        Ort::Session session = Open(SquareModel(), OptionsForMock());
        Run(session, {1});
        static OrtSession* alive = session.release();  // reachable, so not a leak
        Mock().exits_when_called = alive != nullptr;
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

// The files in a folder as text.
std::string TextIn(const TemporaryFolder& folder) {
  std::stringstream text;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    text << std::ifstream(entry.path()).rdbuf();
  }
  return text.str();
}

// PL-38: a value keeps what it needs after the session, the trace and the library have ended.
TEST_F(PluginLifecycleTest, AValueOutlivesEverythingElse) {
  const TemporaryFolder folder;
  std::optional<Ort::Value> kept;
  Mock().provider_allocates = true;
  {
    Ort::SessionOptions options = OptionsForMock();
    options.EnableProfiling((folder.path() + "/trace").c_str());
    Ort::Session session = Open(ProductModel(), options);
    std::vector<float> x = {3, 4};
    Ort::IoBinding binding(session);
    binding.BindInput("x", TensorOver(x, {2}));
    ASSERT_EQ(Outcome(Api().BindOutputToDevice(
                  binding, "y",
                  Api().EpDevice_MemoryInfo(MockDevices()[0], OrtDeviceMemoryType_DEFAULT))),
              "");
    session.Run({}, binding);
    kept = std::move(binding.GetOutputValues()[0]);
  }
  const std::string trace = TextIn(folder);
  EXPECT_THAT(trace, HasSubstr("session_teardown"));
  ASSERT_EQ(Unregister(), "");
  EXPECT_EQ(Mock().Count("ReleaseEpFactory"), 0);
  EXPECT_EQ(Mock().live_blocks, 1);
  EXPECT_THAT(ElementsOf<float>(*kept), ElementsAre(9, 16)) << "the mock's memory is the host's";
  kept.reset();
  EXPECT_EQ(Mock().live_blocks, 0);
  EXPECT_EQ(Mock().calls.back(), "ReleaseEpFactory");
  EXPECT_LT(FirstCall("ReleaseAllocator"), FirstCall("ReleaseEpFactory"));
  EXPECT_EQ(TextIn(folder), trace);
}

// PL-39
TEST_F(PluginLifecycleTest, ATraceThatEndedEarlierHasNoTeardown) {
  const TemporaryFolder folder;
  std::string trace;
  {
    Ort::SessionOptions options = OptionsForMock();
    options.EnableProfiling((folder.path() + "/trace").c_str());
    Ort::Session session = Open(SquareModel(), options);
    Run(session, {1});
    EXPECT_NE(session.EndProfilingAllocated(Ort::AllocatorWithDefaultOptions()).get(),
              std::string());
    trace = TextIn(folder);
    EXPECT_THAT(trace, HasSubstr("model_run"));
    Mock().calls.clear();
  }
  EXPECT_EQ(Mock().Count("OnSessionEnd"), 1);
  EXPECT_EQ(Mock().Count("StartEvent"), 0);
  EXPECT_EQ(TextIn(folder), trace);
  EXPECT_THAT(trace, Not(HasSubstr("teardown")));
}

// PL-42
TEST_F(PluginLifecycleTest, NoSessionIsReleasedAsWell) {
  Mock().calls.clear();
  Api().ReleaseSession(nullptr);
  EXPECT_THAT(Mock().calls, IsEmpty());
}

// PL-46: in a page that is read-only, and unreadable after the factory is released.
TEST_F(PluginLifecycleTest, TheHostOnlyReadsAnExtension) {
  for (const auto extension : {MockControl::Extension::kExported, MockControl::Extension::kSet}) {
    ASSERT_EQ(Unregister(), "");
    Mock().Reset();
    Mock().guards_extension = true;
    Mock().extension = extension;
    ASSERT_EQ(Register(), "");
    std::optional<Ort::Session> session = Open(SquareModel(), OptionsForMock());
    Run(*session, {1});
    ASSERT_EQ(Unregister(), "");
    EXPECT_EQ(Mock().Count("ReleaseEpFactory"), 0) << "the session keeps it";
    session.reset();
    EXPECT_EQ(Mock().Count("OnSessionEnd"), 1);
    EXPECT_EQ(Mock().Count("ReleaseEpFactory"), 1);
    ASSERT_EQ(Register(), "");
  }
}

// PL-50: the entries are C functions that do not throw, and what they return is released.
TEST_F(PluginLifecycleTest, TheStatusOfAnEntryIsReleased) {
  static_assert(noexcept(TenonEpExtension().OnSessionEnd(nullptr, nullptr)));
  static_assert(
      std::is_same_v<OrtStatus*, decltype(TenonEpExtension().OnSessionEnd(nullptr, nullptr))>);
  constexpr size_t kBytes = size_t{1} << 22;
  Mock().padding = kBytes;
  Mock().fails = {"OnSessionEnd"};
  const std::string model = SquareModel();
  const auto in_use = [] {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  Open(model, OptionsForMock());
  const size_t before = in_use();
  for (int i = 0; i < 8; ++i) Open(model, OptionsForMock());
  EXPECT_EQ(Mock().Count("OnSessionEnd"), 9);
  EXPECT_LT(in_use(), before + 4 * kBytes);
}

// A provider that hangs at the end of its session is named repeatedly.
TEST_F(PluginLifecycleTest, AProviderThatHangsIsNamed) {
  LoggedMessages messages;
  Ort::SessionOptions options = OptionsForMock();
  messages.Watch(options);
  options.AddConfigEntry("tenon.session_end_patience_us", "5000");
  Mock().on_session_end = [&] {
    for (int i = 0; i < 5000 && messages.At(ORT_LOGGING_LEVEL_WARNING).size() < 2; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  Open(SquareModel(), options);
  EXPECT_GE(messages.At(ORT_LOGGING_LEVEL_WARNING).size(), 2u);
  EXPECT_THAT(messages.At(ORT_LOGGING_LEVEL_WARNING), testing::Each(HasSubstr(kMock)));
  EXPECT_EQ(Mock().Count("ReleaseEp"), 1) << "the end only waits";
}

// Every failure names the provider and the function.
TEST_F(PluginLifecycleTest, FailuresOfHooksNameTheProvider) {
  for (const char* const slot :
       {"OnSessionInitializationEnd", "OnRunStart", "OnRunEnd", "SetDynamicOptions", "Sync"}) {
    Mock().fails = {slot};
    const std::string error = ErrorOf([&] {
      Ort::Session session = Open(SquareModel(), OptionsForMock());
      if (slot == std::string("SetDynamicOptions")) {
        Ort::ThrowOnError(Api().SetEpDynamicOptions(session, &slot, &slot, 1));
      }
      if (slot == std::string("Sync")) {
        std::vector<float> x = {1};
        Ort::IoBinding binding(session);
        binding.BindInput("x", TensorOver(x, {1}));
        binding.SynchronizeInputs();
      }
      Run(session, {1});
    });
    EXPECT_THAT(error, AllOf(StartsWith("11: "), HasSubstr(kMock), HasSubstr(slot))) << slot;
    Mock().fails.clear();
  }
}

}  // namespace
}  // namespace tenon::test
