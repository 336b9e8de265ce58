// The end of what libraries are registered with: an environment, a process (plugin-ep, section 3).
// The tests make and release the environments of this program.
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "plugin/mock.h"

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// The log of an environment.
std::string& Logged() {
  static auto* const text = new std::string();
  return *text;
}

class EnvironmentTest : public testing::Test {
 protected:
  EnvironmentTest() {
    Mock().Reset();
    Logged().clear();
  }
  ~EnvironmentTest() override {
    if (env_ != nullptr) Release();
    EXPECT_EQ(Mock().live_objects, 0);
    EXPECT_EQ(Mock().live_blocks, 0);
  }

  // Makes the environment, with an entry if `key` is not null.
  void Make(const char* key = nullptr, const char* value = nullptr) {
    Ort::KeyValuePairs entries;
    if (key != nullptr) entries.Add(key, value);
    OrtEnvCreationOptions options = {};
    options.version = ORT_API_VERSION;
    options.logging_severity_level = ORT_LOGGING_LEVEL_WARNING;
    options.log_id = "environment";
    options.custom_logging_function = [](void*, OrtLoggingLevel, const char*, const char*,
                                         const char*, const char* message) {
      Logged() += message + std::string("\n");
    };
    options.config_entries = entries;
    ASSERT_EQ(Outcome(Api().CreateEnvWithOptions(&options, &env_)), "");
  }
  void Release() { Api().ReleaseEnv(std::exchange(env_, nullptr)); }

  std::string Register(const char* name) {
    return Outcome(Api().RegisterExecutionProviderLibrary(env_, name, MOCK_PLUGIN));
  }
  std::string Unregister(const char* name) {
    return Outcome(Api().UnregisterExecutionProviderLibrary(env_, name));
  }
  // The mock's device that was registered last; null if there is none.
  const OrtEpDevice* Device() {
    const OrtEpDevice* const* devices = nullptr;
    size_t count = 0;
    EXPECT_EQ(Outcome(Api().GetEpDevices(env_, &devices, &count)), "");
    return count > 1 ? devices[count - 1] : nullptr;
  }
  OrtAllocator* SharedAllocator() {
    OrtAllocator* shared = nullptr;
    EXPECT_EQ(Outcome(Api().GetSharedAllocator(
                  env_, Api().EpDevice_MemoryInfo(Device(), OrtDeviceMemoryType_DEFAULT), &shared)),
              "");
    return shared;
  }
  OrtSession* OpenSession() {
    const OrtEpDevice* const device = Device();
    OrtSessionOptions* options = nullptr;
    EXPECT_EQ(Outcome(Api().CreateSessionOptions(&options)), "");
    EXPECT_EQ(Outcome(Api().SessionOptionsAppendExecutionProvider_V2(options, env_, &device, 1,
                                                                     nullptr, nullptr, 0)),
              "");
    const std::string model = SquareModel();
    OrtSession* session = nullptr;
    EXPECT_EQ(
        Outcome(Api().CreateSessionFromArray(env_, model.data(), model.size(), options, &session)),
        "");
    Api().ReleaseSessionOptions(options);
    return session;
  }

  OrtEnv* env_ = nullptr;
};

// PL-51: the replacement of a missing extension can be turned off, and its failure is logged.
TEST_F(EnvironmentTest, ATeardownMayGoWithoutSync) {
  for (const bool syncs : {true, false}) {
    Mock().Reset();
    Logged().clear();
    Mock().extension = MockControl::Extension::kNone;
    Mock().fails = {"Sync"};
    Make("tenon.teardown_sync", syncs ? "1" : "0");
    ASSERT_EQ(Register("mock"), "");
    OrtSession* const session = OpenSession();
    EXPECT_EQ(Mock().Count("Sync"), 0);
    Api().ReleaseSession(session);
    EXPECT_EQ(Mock().Count("Sync"), syncs ? 1 : 0);
    EXPECT_EQ(Mock().Count("ReleaseEp"), 1);
    EXPECT_EQ(Logged().find("Sync was told to fail") != std::string::npos, syncs) << Logged();
    Release();
  }
}

// PE-24
TEST_F(EnvironmentTest, ReleasingItUnregistersTheLastFirst) {
  Make();
  for (const char* const name : {"a", "b", "c"}) ASSERT_EQ(Register(name), "");
  EXPECT_THAT(Mock().registered, ElementsAre("a", "b", "c"));
  Release();
  EXPECT_THAT(Mock().released, ElementsAre("c", "b", "a"));
}

// PE-24: a busy library is unloaded after its last use, whatever the policy.
TEST_F(EnvironmentTest, ASessionOutlivesIt) {
  Make("tenon.unregister_busy_library", "error");
  ASSERT_EQ(Register("a"), "");
  OrtSession* const session = OpenSession();
  Release();
  EXPECT_TRUE(Mock().released.empty()) << "the session keeps its environment";
  Api().ReleaseSession(session);
  EXPECT_THAT(Mock().released, ElementsAre("a"));
}

// PE-22: by default the code stays as long as it is used, and a warning says by what.
TEST_F(EnvironmentTest, BusyLibrariesAreUnloadedLater) {
  Make();
  ASSERT_EQ(Register("a"), "");
  OrtSession* const session = OpenSession();
  OrtSyncStream *first = nullptr, *second = nullptr;
  ASSERT_EQ(Outcome(Api().CreateSyncStreamForEpDevice(Device(), nullptr, &first)), "");
  ASSERT_EQ(Outcome(Api().CreateSyncStreamForEpDevice(Device(), nullptr, &second)), "");
  Mock().imports = true;
  OrtExternalResourceImporter* importer = nullptr;
  ASSERT_EQ(
      Outcome(Api().GetInteropApi()->CreateExternalResourceImporterForDevice(Device(), &importer)),
      "");
  OrtAllocator* const shared = SharedAllocator();
  void* const block = shared->Alloc(shared, 8);
  const int64_t shape = 2;
  OrtValue* value = nullptr;
  ASSERT_EQ(Outcome(Api().CreateTensorAsOrtValue(shared, &shape, 1,
                                                 ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value)),
            "");
  ASSERT_EQ(Unregister("a"), "");
  EXPECT_EQ(Device(), nullptr) << "gone from discovery";
  EXPECT_THAT(Logged(), AllOf(HasSubstr("'a'"), HasSubstr("1 provider"), HasSubstr("2 allocators"),
                              HasSubstr("2 blocks of memory"), HasSubstr("1 data transfer"),
                              HasSubstr("2 streams"), HasSubstr("1 importer")));
  EXPECT_THAT(Unregister("a"), AllOf(StartsWith("1: "), HasSubstr("'a'")));
  // Each keeps it by itself.
  Api().ReleaseSession(session);
  Api().ReleaseSyncStream(first);
  Api().ReleaseSyncStream(second);
  EXPECT_TRUE(Mock().released.empty());
  Api().GetInteropApi()->ReleaseExternalResourceImporter(importer);
  EXPECT_TRUE(Mock().released.empty());
  shared->Free(shared, block);
  EXPECT_TRUE(Mock().released.empty());
  Api().ReleaseValue(value);
  EXPECT_THAT(Mock().released, ElementsAre("a"));
  Logged().clear();
  ASSERT_EQ(Register("a"), "");
  ASSERT_EQ(Unregister("a"), "");
  EXPECT_EQ(Logged(), "") << "no session used it";
}

// PE-22: the other policy.
TEST_F(EnvironmentTest, OrUnregisteringThemIsAnError) {
  Make("tenon.unregister_busy_library", "error");
  ASSERT_EQ(Register("a"), "");
  const auto refuses = [&](const char* whom) {
    const size_t released = Mock().released.size();
    const OrtEpDevice* const device = Device();
    OrtAllocator* const shared = SharedAllocator();
    EXPECT_THAT(Unregister("a"), AllOf(StartsWith("1: "), HasSubstr("'a'"), HasSubstr(whom)));
    EXPECT_EQ(Device(), device) << "nothing has changed";
    EXPECT_EQ(SharedAllocator(), shared);
    EXPECT_EQ(Mock().released.size(), released);
  };
  OrtSession* const session = OpenSession();
  refuses("1 provider");
  Api().ReleaseSession(session);
  OrtSyncStream* stream = nullptr;
  ASSERT_EQ(Outcome(Api().CreateSyncStreamForEpDevice(Device(), nullptr, &stream)), "");
  refuses("1 stream");
  Api().ReleaseSyncStream(stream);
  OrtAllocator* const shared = SharedAllocator();
  void* const block = shared->Alloc(shared, 8);
  refuses("1 block of memory");
  shared->Free(shared, block);
  EXPECT_EQ(Unregister("a"), "") << "what the environment itself has of it is no use";
  EXPECT_THAT(Mock().released, ElementsAre("a"));
  EXPECT_THAT(Unregister("a"), StartsWith("1: "));
}

// Sessions come and go while others register and unregister.
TEST_F(EnvironmentTest, LibrariesComeAndGoUnderSessions) {
  Make();
  ASSERT_EQ(Register("kept"), "");
  OrtSession* const session = OpenSession();
  constexpr int kThreads = 4, kTimes = 250;
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::string name = "library of thread " + std::to_string(t);
      const char* const input = "x";
      const char* const output = "y";
      for (int i = 0; i < kTimes; ++i) {
        wrong += Register(name.c_str()).empty() ? 0 : 1;
        std::vector<float> x = {3};
        const Ort::Value feed = TensorOver(x, {1});
        const OrtValue* const feeds[] = {feed};
        OrtValue* result = nullptr;
        wrong += Outcome(Api().Run(session, nullptr, &input, feeds, 1, &output, 1, &result)).empty()
                     ? 0
                     : 1;
        Api().ReleaseValue(result);
        wrong += Unregister(name.c_str()).empty() ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  ASSERT_EQ(Unregister("kept"), "");
  EXPECT_EQ(Mock().released.size(), static_cast<size_t>(kThreads * kTimes));
  Api().ReleaseSession(session);
  EXPECT_EQ(Mock().released.size(), static_cast<size_t>(kThreads * kTimes + 1));
}

// PE-23: a process that ends unloads nothing, whatever the request: static objects of the plugin
// may already be destroyed.
TEST_F(EnvironmentTest, NothingIsTouchedWhileTheProcessEnds) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  static OrtEnv* env = nullptr;
  const auto end_process = [&](bool has_session) {
    Make();
    env = env_;
    (void)std::atexit([] {
      const size_t calls = Mock().calls.size();
      const std::string outcome = Outcome(Api().UnregisterExecutionProviderLibrary(env, "a"));
      Api().ReleaseEnv(env);
      const bool is_untouched = Mock().calls.size() == calls && Mock().live_objects > 0;
      std::fprintf(stderr, "unregistered: '%s', %s\n", outcome.c_str(),
                   is_untouched ? "untouched" : "touched");
    });
    if (!Register("a").empty()) std::abort();
    static OrtSession* const session = has_session ? OpenSession() : nullptr;  // ends alive
    if (has_session && session == nullptr) std::abort();
    std::exit(0);
  };
  EXPECT_EXIT(end_process(false), testing::ExitedWithCode(0), "unregistered: '', untouched");
  EXPECT_EXIT(end_process(true), testing::ExitedWithCode(0), "unregistered: '', untouched");
}

}  // namespace
}  // namespace tenon::test
