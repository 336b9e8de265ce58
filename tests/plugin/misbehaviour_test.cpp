// Plugins that do what they should not: the host says who did what, and goes on.
#include <cstdint>
#include <optional>

#include "plugin/mock.h"

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class MisbehaviourTest : public MockTest {
 protected:
  // Registers, opens, runs, and takes everything back; the first error, or "".
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
  for (const char* const slot : {"GetName", "GetSupportedDevices", "CreateEp"}) {
    Mock().lacks = {slot};
    EXPECT_THAT(Live(), AllOf(StartsWith("1: "), HasSubstr(MOCK_PLUGIN), HasSubstr(slot)));
  }
  Mock().lacks = {"name of the factory"};
  EXPECT_THAT(Live(), AllOf(StartsWith("1: "), HasSubstr(MOCK_PLUGIN), HasSubstr("no name")));
  Mock().lacks.clear();
  EXPECT_EQ(Live(), "");
}

TEST_F(MisbehaviourTest, OtherSlotsMayBeMissing) {
  for (const char* const slot : {"GetVersion", "IsStreamAware", "CreateSyncStreamForDevice",
                                 "CreateDataTransfer", "CreateAllocator", "name of the provider"}) {
    Mock().Reset();
    Mock().lacks = {slot};
    const std::string error = Live();
    // Memory that nobody can copy to, or allocate, or a stream that nobody makes, is an error.
    if (!error.empty()) {
      EXPECT_THAT(error, HasSubstr("Mock")) << slot;
    }
  }
}

TEST_F(MisbehaviourTest, ACompiledNodeThatCannotRunIsNamed) {
  for (const char* const slot : {"CreateState", "Compute"}) {
    Mock().lacks = {slot};
    EXPECT_THAT(Live(), AllOf(StartsWith("1: "), HasSubstr(kMock), HasSubstr(slot)));
  }
}

// From before the ABI had plugins to long after this host was written.
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

// A provider that keeps a value which it made for longer than anything else lives.
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

// In any slot, one after the other, and each twice in a row: an error that says in what it failed,
// no crash, nothing left over, and a host that works afterwards.
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
