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

// PE-68: on failure the old one stays.
TEST_F(PluginAllocatorTest, IsReplacedAsAWhole) {
  ASSERT_EQ(Register(), "");
  OrtAllocator* const before = Find(MockMemory());
  OrtAllocator* made = nullptr;
  Mock().fails = {"CreateAllocator"};
  EXPECT_THAT(
      Outcome(Api().CreateSharedAllocator(Env(), MockDevices()[0], OrtDeviceMemoryType_DEFAULT,
                                          OrtDeviceAllocator, nullptr, &made)),
      HasSubstr("CreateAllocator was told to fail"));
  EXPECT_EQ(Find(MockMemory()), before);
  Mock().fails.clear();
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

// PE-69: an arena of the host's around it.
TEST_F(PluginAllocatorTest, MayBeWrappedInAnArena) {
  ASSERT_EQ(Register(), "");
  OrtAllocator* arena = nullptr;
  ASSERT_EQ(
      Outcome(Api().CreateSharedAllocator(Env(), MockDevices()[0], OrtDeviceMemoryType_DEFAULT,
                                          OrtArenaAllocator, nullptr, &arena)),
      "");
  for (int i = 0; i < 10; ++i) arena->Free(arena, arena->Alloc(arena, 1000));
  EXPECT_LT(Mock().allocations, 3) << "blocks are kept";
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
  EXPECT_THAT(Outcome(Api().RegisterAllocator(Env(), &client)), StartsWith("2: "));
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
