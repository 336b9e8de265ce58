// Memory of plugins: the memory of values, its allocators, and arenas (plugin-ep sections 4, 6 and
// 7).
#include <thread>

#include "plugin/mock.h"

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string StatOf(OrtAllocator* allocator, const char* key) {
  OrtKeyValuePairs* stats = nullptr;
  EXPECT_EQ(Outcome(Api().AllocatorGetStats(allocator, &stats)), "");
  const char* const value = Api().GetKeyValue(stats, key);
  const std::string text = value == nullptr ? "" : value;
  Api().ReleaseKeyValuePairs(stats);
  return text;
}

class PluginMemoryTest : public MockTest {
 protected:
  static const OrtMemoryInfo* MemoryOf(size_t device) {
    return Api().EpDevice_MemoryInfo(MockDevices()[device], OrtDeviceMemoryType_DEFAULT);
  }
  static OrtAllocator* Find(const OrtMemoryInfo* memory) {
    OrtAllocator* found = nullptr;
    EXPECT_EQ(Outcome(Api().GetSharedAllocator(Env(), memory, &found)), "");
    return found;
  }
  // Replaces the shared allocator of the first device.
  static OrtAllocator* Replace(OrtAllocatorType type = OrtDeviceAllocator,
                               const OrtKeyValuePairs* options = nullptr) {
    OrtAllocator* made = nullptr;
    EXPECT_EQ(Outcome(Api().CreateSharedAllocator(
                  Env(), MockDevices()[0], OrtDeviceMemoryType_DEFAULT, type, options, &made)),
              "");
    return made;
  }
  // Opens a session and runs it once; the error of either, or "".
  static std::string Try(const Ort::SessionOptions& options) {
    return ErrorOf([&] {
      Ort::Session session = Open(SquareModel(), options);
      EXPECT_THAT(Run(session, {2}), ElementsAre(4));
    });
  }
  static std::string Try() { return Try(OptionsForMock()); }
  // The name of the memory in which the session needs its input.
  static std::string InputMemory(const Ort::Session& session) {
    const OrtMemoryInfo* memory = nullptr;
    EXPECT_EQ(Outcome(Api().SessionGetMemoryInfoForInputs(session, &memory, 1)), "");
    const char* name = nullptr;
    EXPECT_EQ(Outcome(Api().MemoryInfoGetName(memory, &name)), "");
    return name;
  }
  static Ort::SessionOptions SharingOptions() {
    Ort::SessionOptions options = OptionsForMock();
    options.AddConfigEntry("session.use_env_allocators", "1");
    return options;
  }
};

// PE-38: the provider's choice if a device has such memory for values, else the first device's.
TEST_F(PluginMemoryTest, TheProviderChoosesWhereValuesLie) {
  const struct {
    MockMemory choice;
    const char* memory;
    size_t device;
  } cases[] = {
      {MockMemory::kNone, "Mock", 0},         {MockMemory::kFirst, "Mock", 0},
      {MockMemory::kSecond, "MockSecond", 1}, {MockMemory::kHost, "MockShared", 0},
      {MockMemory::kForeign, "Mock", 0},
  };
  Mock().devices = 2;
  Mock().has_two_memories = Mock().has_host_memory = Mock().has_read_only_memory = true;
  Mock().has_own_constants = true;
  ASSERT_EQ(Register(), "");
  for (const auto& c : cases) {
    Mock().default_memory = c.choice;
    Ort::Session session = Open(SquareModel(), OptionsForMock());
    EXPECT_EQ(InputMemory(session), c.memory);
    const OrtEpDevice* device = nullptr;
    EXPECT_EQ(Outcome(Api().SessionGetEpDeviceForInputs(session, &device, 1)), "");
    EXPECT_EQ(device, MockDevices()[c.device]) << c.memory;
    EXPECT_THAT(Run(session, {3}), ElementsAre(9)) << c.memory;
  }
  Mock().default_memory = MockMemory::kConstants;
  EXPECT_THAT(Try(), AllOf(StartsWith("2: "), HasSubstr(kMock), HasSubstr("constants")));
  ASSERT_EQ(Unregister(), "");
  Mock().has_device_memory = Mock().has_read_only_memory = Mock().has_host_memory = false;
  Mock().default_memory = MockMemory::kNone;
  ASSERT_EQ(Register(), "");
  EXPECT_EQ(InputMemory(Open(SquareModel(), OptionsForMock())), "Cpu") << "no device has any";
}

// Two libraries with one name of a provider: each session knows its own device.
TEST_F(PluginMemoryTest, DevicesAreNotToldApartByName) {
  ASSERT_EQ(Register(), "");
  ASSERT_EQ(Register(MOCK_PLUGIN, "again"), "");
  const auto devices = MockDevices();
  ASSERT_EQ(devices.size(), 2u);
  for (const OrtEpDevice* const wanted : devices) {
    Ort::SessionOptions options;
    ASSERT_EQ(Outcome(Api().SessionOptionsAppendExecutionProvider_V2(options, Env(), &wanted, 1,
                                                                     nullptr, nullptr, 0)),
              "");
    const Ort::Session session = Open(SquareModel(), options);
    const OrtEpDevice* device = nullptr;
    EXPECT_EQ(Outcome(Api().SessionGetEpDeviceForInputs(session, &device, 1)), "");
    EXPECT_EQ(device, wanted);
  }
  EXPECT_EQ(Unregister("again"), "");
}

// PE-69: all options go to the factory and to the arena; the arena respects streams if the factory
// does.
TEST_F(PluginMemoryTest, AnArenaHeedsStreamsAsItsFactoryDoes) {
  for (const bool has_streams : {true, false}) {
    Mock().has_streams = true;
    ASSERT_EQ(Register(), "");
    OrtSyncStream *first = nullptr, *second = nullptr;
    for (OrtSyncStream** const stream : {&first, &second}) {
      ASSERT_EQ(Outcome(Api().CreateSyncStreamForEpDevice(MockDevices()[0], nullptr, stream)), "");
    }
    Mock().has_streams = has_streams;
    Ort::KeyValuePairs options;
    options.Add("arena.initial_chunk_size_bytes", "4096");
    options.Add("arena.max_mem", "4096");
    options.Add("color", "green");
    OrtAllocator* const arena = Replace(OrtArenaAllocator, options);
    EXPECT_EQ(Mock().arena_options,
              "arena.initial_chunk_size_bytes=4096;arena.max_mem=4096;color=green;");
    void* const block = arena->AllocOnStream(arena, 4096, first);
    ASSERT_NE(block, nullptr);
    arena->Free(arena, block);
    // The first stream may still work on it, and there is no other room.
    void* const other = arena->AllocOnStream(arena, 4096, second);
    EXPECT_EQ(other, has_streams ? nullptr : block);
    arena->Free(arena, other);
    void* const same = arena->AllocOnStream(arena, 4096, first);
    EXPECT_EQ(same, block) << "work on one stream is in order";
    arena->Free(arena, same);
    Api().ReleaseSyncStream(first);
    void* const after = arena->AllocOnStream(arena, 4096, second);
    EXPECT_EQ(after, block) << "the first stream is over";
    Api().ReleaseSyncStream(second);
    arena->Free(arena, after);
    ASSERT_EQ(Unregister(), "");
  }
}

// PE-72
TEST_F(PluginMemoryTest, RetiredAllocatorsWorkUntilTheirLastBlockIsFreed) {
  ASSERT_EQ(Register(), "");
  OrtAllocator* const original = Find(MemoryOf(0));
  void* const first = original->Alloc(original, 100);
  OrtAllocator* const replacement = Replace();
  void* const second = replacement->Alloc(replacement, 100);
  const int64_t shape = 25;
  OrtValue* value = nullptr;
  ASSERT_EQ(Outcome(Api().CreateTensorAsOrtValue(replacement, &shape, 1,
                                                 ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value)),
            "");
  OrtAllocator* const last = Replace();
  void* const third = last->Alloc(last, 100);
  EXPECT_EQ(Mock().Count("ReleaseAllocator"), 0) << "all have blocks";
  void* const more = original->Alloc(original, 10);
  EXPECT_NE(more, nullptr) << "retired, and callable";
  original->Free(original, first);
  EXPECT_EQ(Mock().Count("ReleaseAllocator"), 0);
  original->Free(original, more);
  EXPECT_EQ(Mock().Count("ReleaseAllocator"), 1) << "the last block of the first one";
  replacement->Free(replacement, second);
  EXPECT_EQ(Mock().Count("ReleaseAllocator"), 1) << "a value is left";
  ASSERT_EQ(
      Outcome(Api().ReleaseSharedAllocator(Env(), MockDevices()[0], OrtDeviceMemoryType_DEFAULT)),
      "");
  EXPECT_EQ(Mock().Count("ReleaseAllocator"), 1) << "released with a block";
  ASSERT_EQ(Unregister(), "");
  EXPECT_EQ(Mock().Count("ReleaseEpFactory"), 0) << "its factory and its library stay";
  last->Free(last, third);
  EXPECT_EQ(Mock().Count("ReleaseAllocator"), 2);
  EXPECT_EQ(Mock().Count("ReleaseEpFactory"), 0);
  const OrtMemoryInfo* const memory = replacement->Info(replacement);
  EXPECT_NE(memory, nullptr) << "the value's allocator is whole";
  Api().ReleaseValue(value);
  EXPECT_EQ(Mock().Count("ReleaseAllocator"), 3);
  EXPECT_EQ(Mock().Count("ReleaseEpFactory"), 1);
}

// PE-74: the allocator that a client's allocator replaced comes back after it.
TEST_F(PluginMemoryTest, ADisplacedDefaultComesBack) {
  struct ClientAllocator : OrtAllocator {
    explicit ClientAllocator(const OrtMemoryInfo* of) : OrtAllocator{}, memory(of) {
      version = ORT_API_VERSION;
      Alloc = [](OrtAllocator*, size_t size) { return std::malloc(size); };
      Free = [](OrtAllocator*, void* block) { std::free(block); };
      Info = [](const OrtAllocator* self) {
        return static_cast<const ClientAllocator*>(self)->memory;
      };
    }
    const OrtMemoryInfo* memory;
  };
  ASSERT_EQ(Register(), "");
  const OrtMemoryInfo* const memory = MemoryOf(0);
  EXPECT_EQ(Mock().Count("CreateAllocator"), 1);
  ClientAllocator client(memory);
  ASSERT_EQ(Outcome(Api().RegisterAllocator(Env(), &client)), "");
  EXPECT_EQ(Find(memory), &client);
  ASSERT_EQ(Outcome(Api().UnregisterAllocator(Env(), memory)), "");
  EXPECT_EQ(Mock().Count("CreateAllocator"), 1) << "not before the first query";
  OrtAllocator* const again = Find(memory);
  ASSERT_NE(again, nullptr);
  EXPECT_NE(again, &client);
  EXPECT_EQ(Mock().Count("CreateAllocator"), 2);
  EXPECT_EQ(Find(memory), again);
}

// PE-76: by entry only, else the provider's function, else the factory's.
TEST_F(PluginMemoryTest, SessionsAskForTheirAllocators) {
  ASSERT_EQ(Register(), "");
  Mock().calls.clear();
  EXPECT_EQ(Try(), "");
  EXPECT_EQ(Mock().Count("CreateAllocator"), 1) << "the session's own, of the factory";
  Mock().provider_allocates = true;
  EXPECT_EQ(Try(), "");
  EXPECT_EQ(Mock().Count("CreateAllocator"), 1);
  EXPECT_EQ(Mock().Count("OrtEp::CreateAllocator"), 1);
  Mock().calls.clear();
  Ort::KeyValuePairs arena_options;
  arena_options.Add("arena.initial_chunk_size_bytes", "65536");
  OrtAllocator* const arena = Replace(OrtArenaAllocator, arena_options);
  Mock().calls.clear();
  EXPECT_EQ(Try(SharingOptions()), "");
  EXPECT_EQ(Mock().Count("CreateAllocator") + Mock().Count("OrtEp::CreateAllocator"), 0);
  EXPECT_NE(StatOf(arena, "NumAllocs"), "0") << "the session's values are in it";
  EXPECT_EQ(StatOf(arena, "InUse"), "0");
  const std::string before = StatOf(arena, "NumAllocs");
  EXPECT_EQ(Try(), "") << "without the entry";
  EXPECT_EQ(StatOf(arena, "NumAllocs"), before);
  ASSERT_EQ(Unregister(), "");
  // A memory without an allocator.
  Mock().provider_allocates = Mock().factory_allocates = false;
  ASSERT_EQ(Register(), "");
  EXPECT_THAT(Try(), AllOf(StartsWith("1: "), HasSubstr(kMock), HasSubstr("CreateAllocator")));
  ASSERT_EQ(Unregister(), "");
  Mock().has_device_memory = false;
  Mock().has_host_memory = true;
  ASSERT_EQ(Register(), "");
  EXPECT_THAT(Try(), AllOf(StartsWith("1: "), HasSubstr("CreateAllocator")));
}

// The entries of a session for arenas reach the factory, and the host puts one around on request.
TEST_F(PluginMemoryTest, ArenasOfSessionsAreConfiguredByEntries) {
  ASSERT_EQ(Register(), "");
  EXPECT_EQ(Try(), "");
  EXPECT_EQ(Mock().arena_options, "null");
  const auto with = [](const char* key, const char* value) {
    Ort::SessionOptions options = OptionsForMock();
    options.AddConfigEntry("ep.mockprovider.arena.initial_chunk_size_bytes", "65536");
    options.AddConfigEntry(key, value);
    return options;
  };
  EXPECT_EQ(Try(with("ep.mockprovider.arena.max_mem", "1000000")), "");
  EXPECT_EQ(Mock().arena_options, "arena.initial_chunk_size_bytes=65536;arena.max_mem=1000000;");
  Mock().allocations = 0;
  {
    Ort::Session session = Open(SquareModel(), with("ep.mockprovider.arena.host", "1"));
    for (int i = 1; i < 20; ++i) Run(session, std::vector<float>(static_cast<size_t>(i), 1));
    EXPECT_EQ(Mock().allocations, 1) << "one region for all";
  }
  Ort::SessionOptions wrong = with("ep.mockprovider.arena.host", "1");
  wrong.AddConfigEntry("ep.mockprovider.arena.max_mem", "much");
  EXPECT_THAT(Try(wrong), AllOf(StartsWith("2: "), HasSubstr("arena.max_mem")));
}

// Overlapping runs on their own streams share one arena, and no memory of values.
TEST_F(PluginMemoryTest, RunsInOneArenaDoNotMeet) {
  ASSERT_EQ(Register(), "");
  Replace(OrtArenaAllocator);
  Ort::Session session = Open(SquareModel(), SharingOptions());
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t) {
    threads.emplace_back([&, t] {
      const auto x = static_cast<float>(t);
      for (int i = 0; i < 50; ++i) EXPECT_THAT(Run(session, {x, x}), ElementsAre(x * x, x * x));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Allocators that know of streams are told which one a value is for.
TEST_F(PluginMemoryTest, AllocatorsHearOfStreams) {
  Mock().allocates_on_streams = true;
  ASSERT_EQ(Register(), "");
  EXPECT_EQ(Try(), "");
  EXPECT_GT(Mock().allocations_on_streams, 0);
}

// PE-94
TEST_F(PluginMemoryTest, ARunMayShrinkArenas) {
  Mock().shrinks = true;
  ASSERT_EQ(Register(), "");
  const auto run = [](Ort::Session& session, const char* devices) {
    Ort::RunOptions options;
    options.AddConfigEntry("memory.enable_memory_arena_shrinkage", devices);
    std::vector<float> x = {3};
    const Ort::Value feed = TensorOver(x, {1});
    const char* const input = "x";
    const char* const output = "y";
    return ErrorOf([&] {
      const auto outputs = session.Run(options, &input, &feed, 1, &output, 1);
      EXPECT_THAT(ElementsOf<float>(outputs[0]), ElementsAre(9));
    });
  };
  {
    Ort::Session session = Open(SquareModel(), OptionsForMock());
    Mock().calls.clear();
    EXPECT_EQ(run(session, "cpu:0"), "");
    EXPECT_EQ(Mock().Count("Shrink"), 0);
    EXPECT_EQ(run(session, "cpu:0;gpu:0"), "");
    EXPECT_EQ(Mock().Count("Shrink"), 1);
    EXPECT_LT(FirstCall("Compute"), FirstCall("Shrink"));
    EXPECT_LT(FirstCall("OnRunEnd"), FirstCall("Shrink"));
    Mock().fails = {"Shrink"};
    EXPECT_EQ(run(session, "gpu:0"), "") << "a warning";
    Mock().fails.clear();
    Mock().calls.clear();
    for (const char* const wrong :
         {"", "gpu", "gpu:", "gpu:x", "gpu:-1", "tpu:0", "gpu:1", "npu:0", "cpu:0;", "cpu:1",
          "gpu:99999999999", " gpu:0", "gpu:0,cpu:0"}) {
      EXPECT_THAT(run(session, wrong),
                  AllOf(StartsWith("2: "), HasSubstr("memory.enable_memory_arena_shrinkage")))
          << wrong;
    }
    EXPECT_EQ(Mock().Count("Compute"), 0) << "nothing has run";
    Run(session, {3});
    EXPECT_EQ(Mock().Count("Shrink"), 0) << "it is the entry of one run";
  }
  // The host's own arena around the provider's memory.
  Ort::KeyValuePairs arena_options;
  arena_options.Add("arena.extend_strategy", "1");
  OrtAllocator* const arena = Replace(OrtArenaAllocator, arena_options);
  {
    Ort::Session session = Open(SquareModel(), SharingOptions());
    EXPECT_EQ(run(session, "gpu:0"), "");
    EXPECT_EQ(StatOf(arena, "NumArenaExtensions"), "0") << "everything went back";
    EXPECT_EQ(StatOf(arena, "NumArenaShrinkages"), "1");
  }
  // Allocators of a version before Shrink, and allocators without it.
  ASSERT_EQ(Unregister(), "");
  for (const uint32_t version : {24u, 29u}) {
    Mock().api_version = version;
    Mock().shrinks = version == 24u;
    ASSERT_EQ(Register(), "");
    {
      Ort::Session session = Open(SquareModel(), OptionsForMock());
      EXPECT_THAT(run(session, "gpu:0"), AllOf(StartsWith("2: "), HasSubstr("cannot shrink")));
    }
    ASSERT_EQ(Unregister(), "");
  }
}

// PE-101
TEST_F(PluginMemoryTest, StreamsAreMadeByTheProviderThatCan) {
  ASSERT_EQ(Register(), "");
  Mock().provider_makes_streams = true;
  EXPECT_EQ(Try(), "");
  EXPECT_EQ(Mock().Count("OrtEp::CreateSyncStreamForDevice"), 1) << "the provider's comes first";
  EXPECT_EQ(Mock().Count("CreateSyncStreamForDevice"), 0);
  Mock().provider_makes_streams = false;
  EXPECT_EQ(Try(), "");
  EXPECT_EQ(Mock().Count("CreateSyncStreamForDevice"), 1);
  ASSERT_EQ(Unregister(), "");
  Mock().factory_makes_streams = false;
  ASSERT_EQ(Register(), "");
  EXPECT_THAT(ErrorOf([] { Open(SquareModel(), OptionsForMock()); }),
              AllOf(StartsWith("1: "), HasSubstr(kMock), HasSubstr("CreateSyncStreamForDevice")));
  Mock().has_streams = false;
  EXPECT_EQ(Try(), "") << "no run asks for streams";
  ASSERT_EQ(Unregister(), "");
  Mock().has_streams = Mock().factory_makes_streams = true;
  Mock().has_device_memory = false;
  ASSERT_EQ(Register(), "");
  Mock().calls.clear();
  EXPECT_EQ(Try(), "");
  EXPECT_EQ(Mock().Count("CreateSyncStreamForDevice"), 0) << "the CPU's memory has no stream";
}

}  // namespace
}  // namespace tenon::test
