// Providers that prefer channels-last images (NHWC).
#include <cmath>

#include "plugin/mock.h"

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Not;
using testing::Pointwise;

std::string Floats(std::initializer_list<DeclaredDim> dims) {
  return TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, dims);
}

// y = Conv(Relu(Conv(x, v)), w): 2 channels, then 3, then 4.
std::string ConvModel() {
  return ModelBuilder()
      .Input("x", Floats({1, 2, 6, 5}))
      .Input("v", Floats({3, 2, 3, 3}))
      .Input("w", Floats({4, 3, 2, 2}))
      .Node("Conv", {"x", "v"}, {"a"})
      .Node("Relu", {"a"}, {"b"})
      .Node("Conv", {"b", "w"}, {"y"})
      .Output("y", Floats({1, 4, 3, 2}))
      .Bytes();
}

// The same after an If, which is taken where c is true.
std::string ConvInBranchModel() {
  const auto branch = [](const char* op_type) {
    return ModelBuilder()
        .Node("Conv", {"x", "v"}, {"a"})
        .Node(op_type, {"a"}, {"b"})
        .Output("b", Floats({1, 3, 4, 3}));
  };
  return ModelBuilder()
      .Input("x", Floats({1, 2, 6, 5}))
      .Input("v", Floats({3, 2, 3, 3}))
      .Input("c", TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, {}))
      .ControlNode("If", {"c"}, {"y"},
                   {{"then_branch", branch("Relu")}, {"else_branch", branch("Neg")}})
      .Output("y", Floats({1, 3, 4, 3}))
      .Bytes();
}

std::vector<float> Waves(size_t count, float step) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = std::sin(step * static_cast<float>(i));
  return values;
}

class LayoutTest : public MockTest {
 protected:
  void SetUp() override {
    Mock().layout.is_on = true;
    Mock().layout.takes = {"Conv", "nhwc.Conv", "Relu"};
    ASSERT_EQ(Register(), "");
  }

  static std::vector<float> Run(Ort::Session& session) {
    std::vector<float> x = Waves(60, 0.7f), v = Waves(54, 0.3f), w = Waves(48, 1.1f);
    const Ort::Value feeds[] = {TensorOver(x, {1, 2, 6, 5}), TensorOver(v, {3, 2, 3, 3}),
                                TensorOver(w, {4, 3, 2, 2})};
    const char* const inputs[] = {"x", "v", "w"};
    const char* const output = "y";
    return ElementsOf<float>(session.Run({}, inputs, feeds, 3, &output, 1)[0]);
  }
  static std::vector<float> RunBranch(Ort::Session& session, bool condition) {
    std::vector<float> x = Waves(60, 0.7f), v = Waves(54, 0.3f);
    const Ort::MemoryInfo cpu = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
    const Ort::Value feeds[] = {TensorOver(x, {1, 2, 6, 5}), TensorOver(v, {3, 2, 3, 3}),
                                Ort::Value::CreateTensor(cpu, &condition, 1, nullptr, 0)};
    const char* const inputs[] = {"x", "v", "c"};
    const char* const output = "y";
    return ElementsOf<float>(session.Run({}, inputs, feeds, 3, &output, 1)[0]);
  }
  // Twice, with the results of the CPU.
  static void ExpectRuns(Ort::Session& session) {
    Ort::Session cpu = Open(ConvModel(), Ort::SessionOptions());
    const std::vector<float> expected = Run(cpu);
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(Run(session), Pointwise(FloatNear(1e-5f), expected));
    }
  }
};

// PE-40, PE-49
TEST_F(LayoutTest, ConvertedNodesComeBackAndAreTaken) {
  Ort::Session session = Open(ConvModel(), OptionsForMock());
  EXPECT_THAT(Mock().layout.seen,
              ElementsAre("Conv Relu Conv", "Transpose nhwc.Conv Relu nhwc.Conv Transpose"));
  EXPECT_THAT(Mock().layout.asked, ElementsAre(":Conv", ":Conv"));
  ExpectRuns(session);
  EXPECT_EQ(Mock().Count("Compute"), 6);
}

// PE-43, PE-49
TEST_F(LayoutTest, KernelsOfTheInternalDomainAreFound) {
  Mock().claims = MockClaims::kKernels;
  Ort::Session session = Open(ConvModel(), OptionsForMock());
  EXPECT_EQ(Mock().Count("CreateConv"), 2);
  ExpectRuns(session);
}

// PE-49: 0 keeps, below 0 the host decides, above 0 it converts.
TEST_F(LayoutTest, TheProviderMayExemptOperators) {
  for (const int answer : {-7, 0, 3}) {
    Mock().layout.conversions = {{"Conv", answer}};
    Mock().layout.seen.clear();
    Ort::Session session = Open(ConvModel(), OptionsForMock());
    EXPECT_EQ(Mock().layout.seen.size(), answer == 0 ? 1u : 2u) << answer;
    ExpectRuns(session);
  }
}

// PE-49: the standard's layout.
TEST_F(LayoutTest, OtherProvidersGetWhatIsThere) {
  Mock().layout.preferred = 0;
  Ort::Session session = Open(ConvModel(), OptionsForMock());
  EXPECT_THAT(Mock().layout.seen, ElementsAre("Conv Relu Conv"));
  EXPECT_EQ(Mock().Count("ShouldConvertDataLayoutForOp"), 0);
  ExpectRuns(session);
}

// PE-40: a provider that claims nothing is not asked for a layout.
TEST_F(LayoutTest, OnlyWhatIsClaimedIsConverted) {
  Mock().layout.takes = {};
  Ort::Session session = Open(ConvModel(), OptionsForMock());
  EXPECT_THAT(Mock().layout.seen, Each("Conv Relu Conv"));
  EXPECT_EQ(Mock().Count("GetPreferredDataLayout"), 0);
  ExpectRuns(session);
}

// PE-40: nodes that it does not take in the other form get their own form back.
TEST_F(LayoutTest, WhatIsLeftIsConvertedBack) {
  Mock().layout.takes = {"Conv", "Relu"};
  Ort::Session session = Open(ConvModel(), OptionsForMock());
  ASSERT_EQ(Mock().layout.seen.size(), 3u);
  EXPECT_EQ(Mock().layout.seen[2], "Conv Relu Conv");
  ExpectRuns(session);
  EXPECT_EQ(Mock().Count("Compute"), 6);
}

TEST_F(LayoutTest, OnePartMayBeConverted) {
  Mock().layout.most_channels = 2;
  Ort::Session session = Open(ConvModel(), OptionsForMock());
  ASSERT_EQ(Mock().layout.seen.size(), 3u);
  EXPECT_THAT(Mock().layout.seen[2],
              AllOf(HasSubstr("Transpose nhwc.Conv"), HasSubstr(" Conv"), HasSubstr("Relu")));
  ExpectRuns(session);
}

// A provider whose answers differ from call to call.
TEST_F(LayoutTest, NodesThatTheProviderLeavesRunOnTheCpu) {
  Mock().layout.takes = {"Relu", "Conv"};
  Mock().claims = MockClaims::kKernels;  // it has none of the standard's Conv
  EXPECT_THAT(ErrorOf([] { Open(ConvModel(), OptionsForMock()); }), HasSubstr(kMock));
  Mock().layout.takes = {"nhwc.Conv"};
  Ort::Session session = Open(ConvModel(), OptionsForMock());
  EXPECT_THAT(Takers(session), Not(Contains(kMock)));
  ExpectRuns(session);
}

// PE-40: subgraphs separately.
TEST_F(LayoutTest, InnerGraphsAreConvertedByThemselves) {
  Ort::Session session = Open(ConvInBranchModel(), OptionsForMock());
  EXPECT_THAT(Mock().layout.seen,
              ElementsAre("If", "Conv Relu", "Transpose nhwc.Conv Relu Transpose", "Conv Neg",
                          "Transpose nhwc.Conv Transpose Neg"));
  Ort::Session cpu = Open(ConvInBranchModel(), Ort::SessionOptions());
  for (const bool condition : {true, false}) {
    EXPECT_THAT(RunBranch(session, condition),
                Pointwise(FloatNear(1e-5f), RunBranch(cpu, condition)));
  }
}

// PE-49: a provider that returns an invalid layout, or none.
TEST_F(LayoutTest, UnknownLayoutsAreErrors) {
  Mock().layout.preferred = 7;
  EXPECT_THAT(ErrorOf([] { Open(ConvModel(), OptionsForMock()); }),
              AllOf(HasSubstr(kMock), HasSubstr("layout 7"), HasSubstr("0 (NCHW) or 1 (NHWC)")));
  Mock().layout.preferred = 1;
  for (const char* const slot : {"GetPreferredDataLayout", "ShouldConvertDataLayoutForOp"}) {
    Mock().fails = {slot};
    EXPECT_THAT(ErrorOf([] { Open(ConvModel(), OptionsForMock()); }),
                AllOf(HasSubstr(kMock), HasSubstr(std::string(slot) + " was told")));
  }
}

// PE-41: its claim after the conversion is impossible; the nodes get their form back.
TEST_F(LayoutTest, GroupsThatCannotBeFusedRunOnTheCpu) {
  Mock().claims = MockClaims::kUnfusable;
  Ort::Session session = Open(ConvModel(), OptionsForMock());
  EXPECT_EQ(Mock().layout.seen.size(), 2u);
  EXPECT_THAT(Takers(session), Not(Contains(kMock)));
  ExpectRuns(session);
}

// PE-41: it claims first, and fails in the second call.
TEST_F(LayoutTest, AProviderThatFailsLaterTakesNothing) {
  Mock().layout.fails_later = true;
  Ort::Session session = Open(ConvModel(), OptionsForMock());
  EXPECT_THAT(Takers(session), Not(Contains(kMock)));
  ExpectRuns(session);
}

}  // namespace
}  // namespace tenon::test
