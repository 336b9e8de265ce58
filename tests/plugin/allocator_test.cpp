// Allocators of plugins that an environment shares (plugin-ep section 6).
#include <cstdlib>

#include "plugin/mock.h"

namespace tenon::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class PluginAllocatorTest : public MockTest {
 protected:
  static const OrtMemoryInfo* MockMemory() {
    return Api().EpDevice_MemoryInfo(MockDevices()[0], OrtDeviceMemoryType_DEFAULT);
  }
  static OrtAllocator* Find(const OrtMemoryInfo* memory) {
    OrtAllocator* found = nullptr;
    EXPECT_EQ(Outcome(Api().GetSharedAllocator(Env(), memory, &found)), "");
    return found;
  }
};

// PE-66, PE-70, PE-71
TEST_F(PluginAllocatorTest, ComesWithTheLibrary) {
  ASSERT_EQ(Register(), "");
  OrtAllocator* const shared = Find(MockMemory());
  ASSERT_NE(shared, nullptr);
  void* const block = shared->Alloc(shared, 100);
  EXPECT_NE(block, nullptr);
  EXPECT_EQ(Mock().allocations, 1);
  shared->Free(shared, block);
  EXPECT_EQ(
      Outcome(Api().ReleaseSharedAllocator(Env(), MockDevices()[0], OrtDeviceMemoryType_DEFAULT)),
      "");
  EXPECT_EQ(Find(MockMemory()), nullptr);
  EXPECT_EQ(
      Outcome(Api().ReleaseSharedAllocator(Env(), MockDevices()[0], OrtDeviceMemoryType_DEFAULT)),
      "")
      << "nothing registered is a success";
  EXPECT_THAT(Outcome(Api().ReleaseSharedAllocator(Env(), MockDevices()[0],
                                                   OrtDeviceMemoryType_HOST_ACCESSIBLE)),
              StartsWith("2: "));
}

// PE-67
TEST_F(PluginAllocatorTest, MustBeOfTheMemoryThatWasAskedFor) {
  Mock().wrong_memory = "Wrong";
  EXPECT_THAT(Register(), AllOf(StartsWith("2: "), HasSubstr("Wrong"), HasSubstr("Mock")));
  EXPECT_EQ(Mock().live_objects, 0);
}

// PE-68: on failure the old one stays, or a default one is made again.
TEST_F(PluginAllocatorTest, IsReplacedAsAWhole) {
  ASSERT_EQ(Register(), "");
  OrtAllocator* made = nullptr;
  Mock().fails = {"CreateAllocator"};
  EXPECT_THAT(
      Outcome(Api().CreateSharedAllocator(Env(), MockDevices()[0], OrtDeviceMemoryType_DEFAULT,
                                          OrtDeviceAllocator, nullptr, &made)),
      HasSubstr("CreateAllocator was told to fail"));
  Mock().fails.clear();
  EXPECT_NE(Find(MockMemory()), nullptr);
  EXPECT_EQ(
      Outcome(Api().CreateSharedAllocator(Env(), MockDevices()[0], OrtDeviceMemoryType_DEFAULT,
                                          OrtDeviceAllocator, nullptr, &made)),
      "");
  EXPECT_EQ(Find(MockMemory()), made);
  EXPECT_THAT(Outcome(Api().CreateSharedAllocator(Env(), MockDevices()[0],
                                                  OrtDeviceMemoryType_HOST_ACCESSIBLE,
                                                  OrtDeviceAllocator, nullptr, &made)),
              StartsWith("2: "));
}

std::string StatOf(OrtAllocator* allocator, const char* key) {
  OrtKeyValuePairs* stats = nullptr;
  EXPECT_EQ(Outcome(Api().AllocatorGetStats(allocator, &stats)), "");
  const std::string value = Api().GetKeyValue(stats, key);
  Api().ReleaseKeyValuePairs(stats);
  return value;
}

// PE-84, PE-89, PE-91, PE-92: an arena of the host's around it, configured by options.
TEST_F(PluginAllocatorTest, MayBeWrappedInAnArena) {
  ASSERT_EQ(Register(), "");
  Ort::KeyValuePairs options;
  options.Add("arena.initial_chunk_size_bytes", "4096");
  options.Add("arena.max_mem", "1000000");
  OrtAllocator* arena = nullptr;
  const auto create = [&] {
    return Outcome(Api().CreateSharedAllocator(Env(), MockDevices()[0], OrtDeviceMemoryType_DEFAULT,
                                               OrtArenaAllocator, options, &arena));
  };
  ASSERT_EQ(create(), "");
  EXPECT_EQ(Mock().allocations, 0) << "nothing before the first request";
  EXPECT_EQ(arena->Alloc(arena, 0), nullptr);
  for (int i = 0; i < 10; ++i) arena->Free(arena, arena->Alloc(arena, 1000));
  EXPECT_EQ(Mock().allocations, 1) << "one region for all";
  EXPECT_EQ(StatOf(arena, "NumAllocs"), "10");
  EXPECT_EQ(StatOf(arena, "TotalAllocated"), "4096");
  EXPECT_EQ(StatOf(arena, "Limit"), "1000000");
  EXPECT_EQ(arena->Alloc(arena, 1000001), nullptr);
  void* const reserved = arena->Reserve(arena, 5000);
  EXPECT_EQ(StatOf(arena, "NumReserves"), "1");
  arena->Free(arena, reserved);
  arena->Free(arena, arena->Alloc(arena, 100000));
  EXPECT_EQ(StatOf(arena, "NumArenaExtensions"), "2");
  EXPECT_EQ(Outcome(arena->Shrink(arena)), "");
  EXPECT_EQ(StatOf(arena, "NumArenaExtensions"), "1") << "the first region stays";
  EXPECT_EQ(StatOf(arena, "NumArenaShrinkages"), "1");
  // PE-80
  for (const char* const wrong : {"-2", "x", "", "99999999999999999999", "1,5", "1.5"}) {
    options.Add("arena.max_dead_bytes_per_chunk", wrong);
    EXPECT_THAT(create(), AllOf(StartsWith("2: "), HasSubstr("arena.max_dead_bytes_per_chunk")))
        << wrong;
  }
  EXPECT_EQ(Find(MockMemory()), arena) << "a failure changes nothing";
}

// PE-75: of the CPU's memory.
TEST_F(PluginAllocatorTest, TheCpuMayHaveAnArenaToo) {
  const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  OrtArenaCfg* config = nullptr;
  const char* const keys[] = {"initial_chunk_size_bytes", "max_mem"};
  const size_t values[] = {8192, SIZE_MAX};
  ASSERT_EQ(Outcome(Api().CreateArenaCfgV2(keys, values, 2, &config)), "");
  ASSERT_EQ(Outcome(Api().CreateAndRegisterAllocator(Env(), memory, config)), "");
  Api().ReleaseArenaCfg(config);
  OrtAllocator* const arena = Find(memory);
  arena->Free(arena, arena->Alloc(arena, 100));
  EXPECT_EQ(StatOf(arena, "TotalAllocated"), "8192");
  EXPECT_EQ(StatOf(arena, "Limit"), "-1") << "all bits set is the default (PE-82)";
  {
    Ort::SessionOptions options;
    options.AddConfigEntry("session.use_env_allocators", "1");
    Ort::Session session = Open(SquareModel(), options);
    EXPECT_THAT(Run(session, {3}), testing::ElementsAre(9));
    EXPECT_THAT(Run(session, {}), testing::ElementsAre()) << "no bytes at all";
    for (int i = 0; i < 3; ++i) Run(session, {3});
    EXPECT_NE(StatOf(arena, "NumAllocs"), "1") << "the session takes from it";
    EXPECT_EQ(StatOf(arena, "NumArenaShrinkages"), "0") << "but does not shrink it for its plans";
  }
  EXPECT_EQ(StatOf(arena, "InUse"), "0");
  EXPECT_EQ(Outcome(Api().UnregisterAllocator(Env(), memory)), "");
  ASSERT_EQ(Register(), "");
  const OrtMemoryInfo* const device = MockMemory();
  EXPECT_THAT(Outcome(Api().CreateAndRegisterAllocator(Env(), device, nullptr)), StartsWith("2: "));
}

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

// PE-66, PE-73, PE-74: a client's own allocator is never hidden.
TEST_F(PluginAllocatorTest, AClientsOwnComesFirst) {
  OrtMemoryInfo* memory = nullptr;
  ASSERT_EQ(Outcome(Api().CreateMemoryInfo_V2("Client", OrtMemoryInfoDeviceType_GPU, 0xBE57, 0,
                                              OrtDeviceMemoryType_DEFAULT, 0, OrtDeviceAllocator,
                                              &memory)),
            "");
  ClientAllocator client(memory);
  ASSERT_EQ(Outcome(Api().RegisterAllocator(Env(), &client)), "");
  ASSERT_EQ(Register(), "");
  EXPECT_EQ(Find(MockMemory()), &client) << "registered before the library";
  EXPECT_EQ(Outcome(Api().RegisterAllocator(Env(), &client)), "") << "in place of itself";
  ASSERT_EQ(Unregister(), "");
  EXPECT_EQ(Find(memory), &client) << "it stays when the library goes";
  ASSERT_EQ(Outcome(Api().UnregisterAllocator(Env(), memory)), "");
  EXPECT_THAT(Outcome(Api().UnregisterAllocator(Env(), memory)), StartsWith("2: "));
  ASSERT_EQ(Register(), "");
  ASSERT_EQ(Outcome(Api().RegisterAllocator(Env(), &client)), "") << "in place of the default one";
  EXPECT_EQ(Find(MockMemory()), &client);
  ASSERT_EQ(Outcome(Api().UnregisterAllocator(Env(), memory)), "");
  Api().ReleaseMemoryInfo(memory);
}

}  // namespace
}  // namespace tenon::test
