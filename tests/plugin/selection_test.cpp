// The choice of devices by list, policy and function (plugin-ep section 4).
#include "plugin/mock.h"

namespace tenon::test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class SelectionTest : public MockTest {
 protected:
  void SetUp() override { ASSERT_EQ(Register(), ""); }

  static Ort::SessionOptions Recording() {
    Ort::SessionOptions options;
    options.AddConfigEntry("session.record_ep_graph_assignment_info", "1");
    return options;
  }
};

// PE-28
TEST_F(SelectionTest, ListsAreOfOneProvider) {
  Ort::SessionOptions options;
  const OrtEpDevice* const* devices = nullptr;
  size_t count = 0;
  ASSERT_EQ(Outcome(Api().GetEpDevices(Env(), &devices, &count)), "");
  const auto append = [&](const OrtEpDevice* const* list, size_t size) {
    return Outcome(Api().SessionOptionsAppendExecutionProvider_V2(options, Env(), list, size,
                                                                  nullptr, nullptr, 0));
  };
  EXPECT_THAT(append(devices, 0), StartsWith("2: "));
  EXPECT_THAT(append(devices, 2), AllOf(StartsWith("2: "), HasSubstr(kMock)));
  const auto* const foreign = reinterpret_cast<const OrtEpDevice*>(&options);
  EXPECT_THAT(append(&foreign, 1), StartsWith("2: "));
  EXPECT_EQ(append(devices + 1, 1), "");
  EXPECT_THAT(append(devices + 1, 1), AllOf(StartsWith("1: "), HasSubstr("already registered")))
      << "PL-3";
}

// PE-33, PE-36: the mock is paired with the CPU, and comes before the built-in provider.
TEST_F(SelectionTest, PoliciesChoose) {
  const std::string model = SquareModel();
  EXPECT_THAT(Takers(Open(model, Recording())), Not(Contains(kMock)))
      << "the options do not name it";
  for (const auto policy :
       {OrtExecutionProviderDevicePolicy_DEFAULT, OrtExecutionProviderDevicePolicy_PREFER_CPU,
        OrtExecutionProviderDevicePolicy_PREFER_NPU,
        OrtExecutionProviderDevicePolicy_MAX_PERFORMANCE}) {
    Ort::SessionOptions options = Recording();
    ASSERT_EQ(Outcome(Api().SessionOptionsSetEpSelectionPolicy(options, policy)), "");
    EXPECT_THAT(Takers(Open(model, options)), Contains(kMock)) << policy;
    EXPECT_EQ(Mock().last_option, "grey");
  }
}

// PE-31: explicit providers win.
TEST_F(SelectionTest, ListsRuleOutPolicies) {
  Ort::SessionOptions options = OptionsForMock();
  ASSERT_EQ(Outcome(Api().SessionOptionsSetEpSelectionPolicyDelegate(
                options,
                [](const OrtEpDevice**, size_t, const OrtKeyValuePairs*, const OrtKeyValuePairs*,
                   const OrtEpDevice**, size_t, size_t*, void*) -> OrtStatus* {
                  return Api().CreateStatus(ORT_FAIL, "must not be asked");
                },
                nullptr)),
            "");
  EXPECT_THAT(Takers(Open(SquareModel(), options)), Contains(kMock));
}

// PE-34
TEST_F(SelectionTest, FunctionsChooseAmongWhatTheyAreOffered) {
  static enum { kMockDevice, kError, kNothing, kNine, kForeign } wish;
  const auto choose = [](const OrtEpDevice** devices, size_t count, const OrtKeyValuePairs*,
                         const OrtKeyValuePairs*, const OrtEpDevice** selected, size_t room,
                         size_t* num_selected, void*) -> OrtStatus* {
    EXPECT_EQ(count, 2u);
    EXPECT_EQ(room, 8u);
    EXPECT_STREQ(Api().EpDevice_EpName(devices[0]), kMock) << "the built-in one is last (PE-32)";
    if (wish == kError) return Api().CreateStatus(ORT_NO_MODEL, "no idea");
    selected[0] = wish == kForeign ? reinterpret_cast<const OrtEpDevice*>(&wish) : devices[0];
    *num_selected = wish == kNothing ? 0 : wish == kNine ? 9 : 1;
    return nullptr;
  };
  const auto open = [&] {
    return ErrorOf([&] {
      Ort::SessionOptions options = Recording();
      EXPECT_EQ(Outcome(Api().SessionOptionsSetEpSelectionPolicyDelegate(options, choose, nullptr)),
                "");
      EXPECT_THAT(Takers(Open(SquareModel(), options)), Contains(kMock));
    });
  };
  wish = kMockDevice;
  EXPECT_EQ(open(), "");
  wish = kError;
  EXPECT_THAT(open(), AllOf(StartsWith("1: "), HasSubstr("no idea")));
  for (const auto wrong : {kNothing, kNine, kForeign}) {
    wish = wrong;
    EXPECT_THAT(open(), StartsWith("1: ")) << wrong;
  }
}

}  // namespace
}  // namespace tenon::test
