// Libraries of providers: loading, devices, unloading (plugin-ep sections 3 and 12).
#include <cstdio>
#include <filesystem>
#include <thread>

#include "base/temporary_folder.h"
#include "plugin/mock.h"

namespace tenon::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

using RegistrationTest = MockTest;

// PE-13, PE-14, PE-16, PE-17, PE-20
TEST_F(RegistrationTest, DevicesAppearAndDisappear) {
  EXPECT_TRUE(MockDevices().empty());
  ASSERT_EQ(Register(), "");
  const auto devices = MockDevices();
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_STREQ(Api().EpDevice_EpVendor(devices[0]), "Mock");
  const OrtKeyValuePairs* const metadata = Api().EpDevice_EpMetadata(devices[0]);
  EXPECT_STREQ(Api().GetKeyValue(metadata, "version"), "1.2.3");
  EXPECT_STREQ(Api().GetKeyValue(metadata, "library_path"), MOCK_PLUGIN);
  const OrtEpDevice* const* all = nullptr;
  size_t count = 0;
  ASSERT_EQ(Outcome(Api().GetEpDevices(Env(), &all, &count)), "");
  ASSERT_EQ(count, 2u);
  EXPECT_STREQ(Api().EpDevice_EpName(all[0]), "CPUExecutionProvider") << "built-in ones first";
  EXPECT_THAT(Register(), AllOf(StartsWith("1: "), HasSubstr(kLibrary), HasSubstr("already")));
  EXPECT_EQ(Unregister(), "");
  EXPECT_TRUE(MockDevices().empty());
  EXPECT_THAT(Unregister(), AllOf(StartsWith("1: "), HasSubstr(kLibrary)));
  EXPECT_EQ(Mock().Count("ReleaseEpFactory"), 1);
}

// PE-13: the same file under two names.
// PE-17: an array of devices is the environment's: what comes later does not take it away.
TEST_F(RegistrationTest, ListsOfDevicesStayValid) {
  ASSERT_EQ(Register(), "");
  const OrtEpDevice* const* before = nullptr;
  size_t count = 0;
  ASSERT_EQ(Outcome(Api().GetEpDevices(Env(), &before, &count)), "");
  const std::vector<const OrtEpDevice*> devices(before, before + count);
  for (const std::string name : {"second", "third", "fourth"}) {
    ASSERT_EQ(Register(MOCK_PLUGIN, name.c_str()), "");
    EXPECT_EQ(std::vector<const OrtEpDevice*>(before, before + count), devices) << name;
    EXPECT_EQ(Api().EpDevice_EpName(before[count - 1]), std::string(kMock));
  }
  for (const char* const name : {"third", "second", "fourth"}) ASSERT_EQ(Unregister(name), "");
  EXPECT_EQ(std::vector<const OrtEpDevice*>(before, before + count), devices);
  const OrtEpDevice* const* after = nullptr;
  ASSERT_EQ(Outcome(Api().GetEpDevices(Env(), &after, &count)), "");
  EXPECT_EQ(after, before) << "the same devices are the same array";
}

TEST_F(RegistrationTest, OneFileServesTwoNames) {
  ASSERT_EQ(Register(), "");
  ASSERT_EQ(Register(MOCK_PLUGIN, "again"), "");
  EXPECT_EQ(MockDevices().size(), 2u);
  EXPECT_EQ(Unregister("again"), "");
  EXPECT_EQ(MockDevices().size(), 1u);
}

// PE-9, and the error table.
TEST_F(RegistrationTest, SaysWhatIsWrongWithALibrary) {
  EXPECT_THAT(Register("/nowhere/at_all.so"),
              AllOf(StartsWith("1: "), HasSubstr("/nowhere/at_all.so")));
  EXPECT_THAT(Register(MOCK_PLUGIN_WITHOUT_EXPORTS),
              AllOf(StartsWith("1: "), HasSubstr("CreateEpFactories")));
  EXPECT_THAT(Register(nullptr), HasSubstr("path"));
  EXPECT_EQ(dlopen(MOCK_PLUGIN_WITHOUT_EXPORTS, RTLD_NOLOAD | RTLD_NOW), nullptr) << "still loaded";
}

// PE-10
TEST_F(RegistrationTest, RefusesNoFactoryAndTooMany) {
  for (const size_t factories : {size_t{0}, size_t{5}, SIZE_MAX / 2}) {
    Mock().factories = factories;
    EXPECT_THAT(Register(), AllOf(StartsWith("1: "), HasSubstr("factories"))) << factories;
  }
  Mock().factories = 4;
  ASSERT_EQ(Register(), "");
  EXPECT_EQ(MockDevices().size(), 4u);
}

// PE-11
TEST_F(RegistrationTest, RefusesMoreDevicesThanThereIsRoomFor) {
  Mock().devices = 8;
  ASSERT_EQ(Register(), "");
  EXPECT_EQ(MockDevices().size(), 8u);
  EXPECT_EQ(Mock().Count("GetSupportedDevices"), 1);
  EXPECT_EQ(Unregister(), "");
  Mock().devices = 9;
  EXPECT_THAT(Register(), AllOf(StartsWith("1: "), HasSubstr("9 devices")));
}

// PE-12, PE-21
TEST_F(RegistrationTest, AFailureLeavesNoTrace) {
  for (const char* const slot :
       {"CreateEpFactories", "GetSupportedDevices", "CreateAllocator", "CreateDataTransfer"}) {
    Mock().fails = {slot};
    EXPECT_THAT(Register(), HasSubstr(std::string(slot) + " was told to fail"));
    Mock().fails.clear();
    EXPECT_TRUE(MockDevices().empty()) << slot;
    EXPECT_EQ(Mock().live_objects, 0) << slot;
  }
  Mock().fails = {"ReleaseEpFactory"};
  ASSERT_EQ(Register(), "");
  EXPECT_EQ(Unregister(), "") << "a factory that fails to go counts as gone";
}

// PE-2: what leaves a call that may throw.
TEST_F(RegistrationTest, CatchesWhatAPluginThrows) {
  Mock().throws = {"CreateEpFactories"};
  EXPECT_THAT(Register(), HasSubstr("CreateEpFactories was told to fail"));
}

// PE-15
TEST_F(RegistrationTest, VersionsAreSemantic) {
  for (const char* const version : {"1.2", "v1.2.3", "1.2.3.4", "01.2.3", ""}) {
    Mock().version = version;
    EXPECT_THAT(Register(), AllOf(StartsWith("2: "), HasSubstr("Semantic"))) << version;
  }
}

// PE-18
TEST_F(RegistrationTest, VirtualDevicesNeedLeave) {
  Mock().is_virtual = true;
  ASSERT_EQ(Register(), "");
  EXPECT_TRUE(MockDevices().empty()) << "allow_virtual_devices is not set";
  EXPECT_EQ(Unregister(), "");
}

// PE-8: the loader's count. The file is a copy, which nothing else keeps loaded.
TEST_F(RegistrationTest, UnloadsWhatItLoaded) {
  const TemporaryFolder folder;
  const std::string copy = folder.path() + "/copy.so";
  std::filesystem::copy_file(MOCK_PLUGIN, copy);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(Register(copy.c_str(), "copy"), "");
    void* const loaded = dlopen(copy.c_str(), RTLD_NOLOAD | RTLD_NOW);
    EXPECT_NE(loaded, nullptr);
    dlclose(loaded);
    ASSERT_EQ(Unregister("copy"), "");
    EXPECT_EQ(dlopen(copy.c_str(), RTLD_NOLOAD | RTLD_NOW), nullptr) << "still loaded";
  }
}

// The code stays as long as it is used.
TEST_F(RegistrationTest, ASessionKeepsItsLibrary) {
  ASSERT_EQ(Register(), "");
  const std::string model = SquareModel();
  Ort::Session session = Open(model, OptionsForMock());
  ASSERT_EQ(Unregister(), "");
  EXPECT_TRUE(MockDevices().empty());
  EXPECT_EQ(Mock().Count("ReleaseEpFactory"), 0);
  EXPECT_THAT(Run(session, {3}), testing::ElementsAre(9));
  session = Ort::Session(nullptr);
  EXPECT_EQ(Mock().Count("ReleaseEpFactory"), 1);
}

TEST_F(RegistrationTest, AThousandTimesInSeveralThreads) {
  constexpr int kThreads = 4, kTimes = 250;
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::string name = "library of thread " + std::to_string(t);
      for (int i = 0; i < kTimes; ++i) {
        wrong += Register(MOCK_PLUGIN, name.c_str()).empty() ? 0 : 1;
        wrong += Unregister(name.c_str()).empty() ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(Mock().Count("ReleaseEpFactory"), kThreads * kTimes);
}

// PE-7: relative to the folder of libtenon.so.
TEST_F(RegistrationTest, RelativePathsBeginAtTheRuntime) {
  Dl_info info = {};
  ASSERT_NE(dladdr(reinterpret_cast<const void*>(&OrtGetApiBase), &info), 0);
  const auto folder = std::filesystem::canonical(info.dli_fname).parent_path();
  const std::string relative = std::filesystem::relative(MOCK_PLUGIN, folder);
  ASSERT_EQ(relative.find('/') == 0, false);
  EXPECT_EQ(Register(relative.c_str()), "");
}

// PE-19
TEST_F(RegistrationTest, TakesThingsBackInOrder) {
  ASSERT_EQ(Register(), "");
  Mock().calls.clear();
  ASSERT_EQ(Unregister(), "");
  EXPECT_THAT(Mock().calls,
              testing::ElementsAre("ReleaseAllocator", "ReleaseTransfer", "ReleaseEpFactory"));
}

// PE-27
TEST_F(RegistrationTest, SaysWhyADeviceCannotBeUsed) {
  ASSERT_EQ(Register(), "");
  const OrtHardwareDevice* const cpu = Api().EpDevice_Device(MockDevices()[0]);
  OrtDeviceEpIncompatibilityDetails* details = nullptr;
  ASSERT_EQ(Outcome(Api().GetHardwareDeviceEpIncompatibilityDetails(Env(), kMock, cpu, &details)),
            "");
  uint32_t reasons = 0;
  int32_t code = 0;
  const char* notes = nullptr;
  EXPECT_EQ(Outcome(Api().DeviceEpIncompatibilityDetails_GetReasonsBitmask(details, &reasons)), "");
  EXPECT_EQ(Outcome(Api().DeviceEpIncompatibilityDetails_GetErrorCode(details, &code)), "");
  EXPECT_EQ(Outcome(Api().DeviceEpIncompatibilityDetails_GetNotes(details, &notes)), "");
  EXPECT_EQ(std::pair(reasons, code), std::pair(5u, 42));
  EXPECT_STREQ(notes, "no driver");
  Api().ReleaseDeviceEpIncompatibilityDetails(details);
  EXPECT_THAT(
      Outcome(Api().GetHardwareDeviceEpIncompatibilityDetails(Env(), "NoProvider", cpu, &details)),
      AllOf(StartsWith("2: "), HasSubstr(kMock)));
}

}  // namespace
}  // namespace tenon::test
