// Plugins that break the rules: the host names the provider and the mistake, and still works.
#include <cstdint>
#include <optional>

#include "base/temporary_folder.h"
#include "plugin/mock.h"

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class MisbehaviourTest : public MockTest {
 protected:
  // Registers, opens, runs, and releases everything. Returns the first error, or "".
  static std::string Live() {
    const std::string error = Register();
    if (!error.empty()) return error;
    const std::string outcome = ErrorOf([] {
      Ort::Session session = Open(SquareModel(), OptionsForMock());
      EXPECT_THAT(Run(session, {3}), ElementsAre(9));
    });
    EXPECT_EQ(Unregister(), "");
    EXPECT_EQ(Mock().live_objects, 0);
    EXPECT_EQ(Mock().live_blocks, 0);
    return outcome;
  }
};

TEST_F(MisbehaviourTest, WithoutItsSlotsAFactoryIsNone) {
  for (const char* const slot :
       {"GetName", "GetVendor", "GetSupportedDevices", "CreateEp", "ReleaseEp"}) {
    Mock().lacks = {std::string("OrtEpFactory::") + slot};
    EXPECT_THAT(Live(), AllOf(StartsWith("1: "), HasSubstr(MOCK_PLUGIN), HasSubstr(slot)));
  }
  Mock().lacks = {"name of the factory"};
  EXPECT_THAT(Live(), AllOf(StartsWith("1: "), HasSubstr(MOCK_PLUGIN), HasSubstr("no name")));
  Mock().lacks.clear();
  EXPECT_EQ(Live(), "");
}

// The missing slot, and the text of the error; no text if the host does not need the slot.
struct Missing {
  const char* what;
  const char* error;
};
class MissingTest : public MisbehaviourTest, public testing::WithParamInterface<Missing> {};

// Every slot of every table, and null objects with a good status: an error that names the provider
// and the slot, no fault, no leak, and a host that still works.
TEST_P(MissingTest, IsAnErrorOrNotNeeded) {
  const auto& [what, error] = GetParam();
  const std::string text = error;
  if (std::string_view(what).find("ernel") != std::string_view::npos) {
    Mock().claims = MockClaims::kKernels;
  }
  Mock().lacks = {what};
  const std::string outcome = Live();
  if (text.empty()) {
    EXPECT_EQ(outcome, "");
  } else {
    EXPECT_THAT(outcome, AllOf(HasSubstr("Mock"), HasSubstr(text)));
  }
  Mock().lacks.clear();
  EXPECT_EQ(Live(), "");
}

INSTANTIATE_TEST_SUITE_P(
    AllTables, MissingTest,
    testing::ValuesIn<Missing>({
        {"OrtEpFactory::GetVendorId", ""},
        {"OrtEpFactory::GetVersion", "CreateEp lacks"},
        {"OrtEpFactory::ValidateCompiledModelCompatibilityInfo", ""},
        {"OrtEpFactory::CreateAllocator", "CreateAllocator"},
        {"OrtEpFactory::ReleaseAllocator", "lacks ReleaseAllocator"},
        {"OrtEpFactory::CreateDataTransfer", "no data transfer can copy"},
        {"OrtEpFactory::IsStreamAware", ""},
        {"OrtEpFactory::CreateSyncStreamForDevice", "CreateSyncStreamForDevice"},
        {"OrtEpFactory::GetHardwareDeviceIncompatibilityDetails", ""},
        {"OrtEpFactory::CreateExternalResourceImporterForDevice", ""},
        {"OrtEpFactory::GetNumCustomOpDomains", ""},
        {"OrtEpFactory::GetCustomOpDomains", ""},
        {"a vendor", ""},
        {"a version", "is no version"},
        {"name of the provider", ""},
        {"OrtEp::GetName", ""},
        {"OrtEp::GetCapability", ""},
        {"OrtEp::Compile", "cannot compile"},
        {"OrtEp::ReleaseNodeComputeInfos", "provider lacks ReleaseNodeComputeInfos"},
        {"OrtEp::SetDynamicOptions", ""},
        {"OrtEp::OnRunStart", ""},
        {"OrtEp::OnRunEnd", ""},
        {"OrtEp::GetKernelRegistry", ""},
        {"OrtEp::IsConcurrentRunSupported", ""},
        {"OrtEp::Sync", ""},
        {"OrtEp::CreateProfiler", ""},
        {"OrtEp::GetDefaultMemoryDevice", ""},
        {"OrtEp::OnSessionInitializationEnd", ""},
        {"OrtEp::GetCompiledModelCompatibilityInfo", ""},
        {"OrtAllocator::Alloc", "allocator lacks Alloc"},
        {"OrtAllocator::Free", "allocator lacks Free"},
        {"OrtAllocator::Info", "allocator lacks Info"},
        {"the info of an allocator", "allocator of 'nothing'"},
        {"OrtDataTransferImpl::Release", "data transfer lacks Release"},
        {"OrtDataTransferImpl::CanCopy", "data transfer lacks CanCopy"},
        {"OrtDataTransferImpl::CopyTensors", "data transfer lacks CopyTensors"},
        {"OrtSyncStreamImpl::Release", "stream lacks Release"},
        {"OrtSyncStreamImpl::GetHandle", "stream lacks GetHandle"},
        {"OrtSyncStreamImpl::CreateNotification", "stream lacks CreateNotification"},
        {"OrtSyncStreamImpl::Flush", "stream lacks Flush"},
        {"OrtSyncStreamImpl::OnSessionRunEnd", "stream lacks OnSessionRunEnd"},
        {"a stream", "made no stream"},
        {"OrtSyncNotificationImpl::Release", "notification lacks Release"},
        {"OrtSyncNotificationImpl::Activate", "notification lacks Activate"},
        {"OrtSyncNotificationImpl::WaitOnDevice", "notification lacks WaitOnDevice"},
        {"OrtSyncNotificationImpl::WaitOnHost", "notification lacks WaitOnHost"},
        {"a notification", "made no notification"},
        {"OrtNodeComputeInfo::CreateState", "compiled node lacks CreateState"},
        {"OrtNodeComputeInfo::Compute", "compiled node lacks Compute"},
        {"OrtNodeComputeInfo::ReleaseState", "compiled node lacks ReleaseState"},
        {"OrtKernelImpl::Compute", "kernel lacks Compute"},
        {"OrtKernelImpl::Release", "kernel lacks Release"},
        {"a kernel", "made no kernel"},
    }),
    [](const testing::TestParamInfo<Missing>& info) {
      std::string name = info.param.what;
      std::erase_if(name, [](char c) { return c == ':' || c == ' '; });
      return name;
    });

TEST_F(MisbehaviourTest, CountsThatCannotBeAreErrors) {
  for (const size_t count : {size_t{1025}, size_t{1} << 40, SIZE_MAX}) {
    Mock().op_domains = count;
    ASSERT_EQ(Register(), "");
    Ort::SessionOptions options;
    const std::vector<const OrtEpDevice*> devices = MockDevices();
    EXPECT_THAT(Outcome(Api().SessionOptionsAppendExecutionProvider_V2(
                    options, Env(), devices.data(), devices.size(), nullptr, nullptr, 0)),
                AllOf(StartsWith("1: "), HasSubstr(kMock), HasSubstr(std::to_string(count))));
    EXPECT_EQ(Unregister(), "");
  }
}

// PE-110: an incomplete profiler is ignored, with a warning.
TEST_F(MisbehaviourTest, ProfilersThatLackASlotAreNotUsed) {
  const TemporaryFolder folder;
  for (const char* const slot :
       {"Release", "StartProfiling", "EndProfiling", "StartEvent", "StopEvent"}) {
    Mock().lacks = {std::string("OrtEpProfilerImpl::") + slot};
    ASSERT_EQ(Register(), "");
    LoggedMessages logged;
    {
      Ort::SessionOptions options = OptionsForMock();
      logged.Watch(options);
      options.EnableProfiling((folder.path() + "/trace").c_str());
      Ort::Session session = Open(SquareModel(), options);
      EXPECT_THAT(Run(session, {3}), ElementsAre(9));
    }
    EXPECT_EQ(Unregister(), "");
    const bool is_needed = std::string_view(slot).find("Event") == std::string_view::npos;
    const auto warning = AllOf(HasSubstr(kMock), HasSubstr(std::string("lacks ") + slot));
    if (is_needed) {
      EXPECT_THAT(logged.At(ORT_LOGGING_LEVEL_WARNING), testing::Contains(warning));
    } else {
      EXPECT_THAT(logged.At(ORT_LOGGING_LEVEL_WARNING),
                  testing::Not(testing::Contains(HasSubstr("lacks"))));
    }
  }
}

// From versions before the ABI had plugins to versions long after this host.
TEST_F(MisbehaviourTest, AnyVersionIsSurvived) {
  for (const uint32_t version : {0u, 1u, 21u, 22u, 23u, 24u, 26u, 28u, 29u, 30u, 99u, ~0u}) {
    Mock().Reset();
    Mock().api_version = version;
    const std::string error = Live();
    if (version >= 23) {
      EXPECT_EQ(error, "") << version;
    }
  }
}

TEST_F(MisbehaviourTest, ShapesThatCannotBeAreErrors) {
  ASSERT_EQ(Register(), "");
  Ort::Session session = Open(SquareModel(), OptionsForMock());
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{INT64_MAX},
                                            {INT64_MAX, INT64_MAX},
                                            {-1},
                                            {INT64_MIN},
                                            {1LL << 40, 8}}) {
    Mock().output_shape = shape;
    EXPECT_THAT(ErrorOf([&] { Run(session, {3}); }), HasSubstr(kMock)) << shape[0];
  }
  Mock().output_shape.clear();
  EXPECT_THAT(Run(session, {3}), ElementsAre(9));
}

// A provider that keeps a value for longer than anything else lives.
TEST_F(MisbehaviourTest, AValueOfAProviderMayOutliveItsSession) {
  ASSERT_EQ(Register(), "");
  OrtValue* kept = nullptr;
  Mock().on_compute = [&](OrtKernelContext*) {
    if (kept != nullptr) return;
    OrtAllocator* allocator = nullptr;
    const int64_t size = 2;
    EXPECT_EQ(Outcome(Api().GetAllocatorWithDefaultOptions(&allocator)), "");
    EXPECT_EQ(Outcome(Api().CreateTensorAsOrtValue(allocator, &size, 1,
                                                   ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &kept)),
              "");
  };
  {
    Ort::Session session = Open(SquareModel(), OptionsForMock());
    EXPECT_THAT(Run(session, {3}), ElementsAre(9));
  }
  ASSERT_EQ(Unregister(), "");
  ASSERT_NE(kept, nullptr);
  int is_tensor = 0;
  EXPECT_EQ(Outcome(Api().IsTensor(kept, &is_tensor)), "");
  EXPECT_EQ(is_tensor, 1);
  Api().ReleaseValue(kept);
}

// In any slot, one after the other, and each twice in a row: an error that names the slot, no
// crash, no leak, and a host that still works.
TEST_F(MisbehaviourTest, AnySlotMayFail) {
  for (const char* const slot : {"CreateEpFactories",
                                 "GetSupportedDevices",
                                 "CreateEp",
                                 "CreateAllocator",
                                 "CreateDataTransfer",
                                 "GetCapability",
                                 "Compile",
                                 "CreateState",
                                 "OnRunStart",
                                 "Compute",
                                 "OnRunEnd",
                                 "CreateSyncStreamForDevice",
                                 "CreateNotification",
                                 "Activate",
                                 "WaitOnHost",
                                 "Flush",
                                 "OnSessionRunEnd",
                                 "CopyTensors",
                                 "OnSessionInitializationEnd",
                                 "OnSessionEnd",
                                 "TenonGetEpExtension",
                                 "ReleaseEpFactory"}) {
    Mock().Reset();
    Mock().fails = {slot};
    const std::string error = Live();
    if (!error.empty()) {
      EXPECT_THAT(error, HasSubstr(std::string(slot) + " was told")) << slot;
    }
    Mock().fails.clear();
    EXPECT_EQ(Live(), "") << "after " << slot;
  }
}

}  // namespace
}  // namespace tenon::test
