// Kernels of plugins: control flow that the host runs, and packed weights (plugin-ep section 5).
#include <map>

#include "plugin/mock.h"

namespace tenon::test {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kFloats = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {"n"});
const std::string kTwoFloats = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {2});
const std::string kRows = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {"rows", 2});
const std::string kNumber = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, {});
const std::string kCondition = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, {});

class PluginKernelTest : public MockTest {
 protected:
  void SetUp() override {
    Mock().claims = MockClaims::kKernels;
    ASSERT_EQ(Register(), "");
  }

  static Ort::Value CpuValue(bool& value) {
    const auto cpu = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    return Ort::Value::CreateTensor<bool>(cpu, &value, 1, nullptr, 0);
  }
};

// y = x * x if the condition holds, and Relu(x) otherwise; the mock multiplies.
std::string IfModel() {
  return ModelBuilder()
      .Input("which", kCondition)
      .Input("x", kFloats)
      .ControlNode(
          "If", {"which"}, {"y"},
          {{"then_branch", ModelBuilder().Node("Mul", {"x", "x"}, {"a"}).Output("a", kFloats)},
           {"else_branch", ModelBuilder().Node("Relu", {"x"}, {"b"}).Output("b", kFloats)}})
      .Output("y", kFloats)
      .Bytes();
}

// PE-55: If
TEST_F(PluginKernelTest, TheHostRunsIf) {
  Ort::Session session = Open(IfModel(), OptionsForMock());
  EXPECT_EQ(Mock().Count("CreateIf"), 1);
  EXPECT_EQ(Mock().Count("CreateKernel"), 1) << "the branch has a kernel of the mock";
  std::vector<float> x = {1, -2, 3};
  for (bool which : {true, false}) {
    const char* const names[] = {"which", "x"};
    const Ort::Value feeds[] = {CpuValue(which), TensorOver(x, {3})};
    const char* const output = "y";
    const auto outputs = session.Run({}, names, feeds, 2, &output, 1);
    const auto y = ElementsOf<float>(outputs[0]);
    if (which) {
      EXPECT_THAT(y, ElementsAre(1, 4, 9));
    } else {
      EXPECT_THAT(y, ElementsAre(1, 0, 3));
    }
  }
  EXPECT_EQ(Mock().Count("Compute"), 1);
}

// PE-55: Loop. A value is squared again and again, and its squares are collected.
TEST_F(PluginKernelTest, TheHostRunsLoop) {
  const std::string model = ModelBuilder()
                                .Input("trips", kNumber)
                                .Input("x", kTwoFloats)
                                .ControlNode("Loop", {"trips", "", "x"}, {"last", "y"},
                                             {{"body", ModelBuilder()
                                                           .Input("i", kNumber)
                                                           .Input("go", kCondition)
                                                           .Input("v", kTwoFloats)
                                                           .Node("Identity", {"go"}, {"go_on"})
                                                           .Node("Mul", {"v", "v"}, {"w"})
                                                           .Node("Relu", {"w"}, {"row"})
                                                           .Output("go_on", kCondition)
                                                           .Output("w", kTwoFloats)
                                                           .Output("row", kTwoFloats)}})
                                .Output("last", kTwoFloats)
                                .Output("y", kRows)
                                .Bytes();
  {
    Ort::Session session = Open(model, OptionsForMock());
    EXPECT_EQ(Mock().Count("CreateLoop"), 1);
    const auto cpu = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    int64_t trips = 3;
    std::vector<float> x = {1, -2};
    const char* const names[] = {"trips", "x"};
    const Ort::Value feeds[] = {Ort::Value::CreateTensor<int64_t>(cpu, &trips, 1, nullptr, 0),
                                TensorOver(x, {2})};
    const char* const outputs[] = {"last", "y"};
    const auto results = session.Run({}, names, feeds, 2, outputs, 2);
    EXPECT_THAT(ElementsOf<float>(results[0]), ElementsAre(1, 256));
    EXPECT_THAT(ElementsOf<float>(results[1]), ElementsAre(1, 4, 1, 16, 1, 256));
    EXPECT_EQ(Mock().Count("Compute"), 3);
    EXPECT_EQ(Mock().Count("ReleaseLoopHelper"), 0);
  }
  EXPECT_EQ(Mock().Count("ReleaseLoopHelper"), 1) << "the host's";
}

ModelBuilder ScanBody() {
  return ModelBuilder()
      .Input("row", kTwoFloats)
      .Node("Mul", {"row", "row"}, {"square"})
      .Output("square", kTwoFloats);
}

// PE-55: Scan, from version 9 on.
TEST_F(PluginKernelTest, TheHostRunsScan) {
  const std::string model =
      ModelBuilder()
          .Input("x", kRows)
          .ControlNode("Scan", {"x"}, {"y"}, {{"body", ScanBody()}}, {{"num_scan_inputs", 1}})
          .Output("y", kRows)
          .Bytes();
  {
    Ort::Session session = Open(model, OptionsForMock());
    EXPECT_EQ(Mock().Count("CreateScan"), 1);
    std::vector<float> x = {1, -2, 3, 4};
    const char* const input = "x";
    const char* const output = "y";
    const Ort::Value feed = TensorOver(x, {2, 2});
    const auto results = session.Run({}, &input, &feed, 1, &output, 1);
    EXPECT_THAT(ElementsOf<float>(results[0]), ElementsAre(1, 4, 9, 16));
  }
  EXPECT_EQ(Mock().Count("ReleaseScanHelper"), 1);

  const std::string batches = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {1, "rows", 2});
  const std::string old =
      ModelBuilder()
          .Opset(8)
          .Input("x", batches)
          .ControlNode("Scan", {"", "x"}, {"y"}, {{"body", ScanBody()}}, {{"num_scan_inputs", 1}})
          .Output("y", batches)
          .Bytes();
  EXPECT_THAT(ErrorOf([&] { Open(old, OptionsForMock()); }),
              AllOf(StartsWith("1: "), HasSubstr("Scan is supported from version 9 on, got 8")));
}

// y = x * w
std::string WeightedModel() {
  return ModelBuilder()
      .Input("x", kTwoFloats)
      .Initializer("w", {10, 100})
      .Node("Mul", {"x", "w"}, {"y"})
      .Output("y", kTwoFloats)
      .Bytes();
}

struct ReleaseContainer {
  void operator()(OrtPrepackedWeightsContainer* container) const {
    Api().ReleasePrepackedWeightsContainer(container);
  }
};

class PackingTest : public PluginKernelTest {
 protected:
  Ort::Session OpenSharing(const std::string& model = WeightedModel()) {
    OrtSession* session = nullptr;
    Ort::ThrowOnError(Api().CreateSessionFromArrayWithPrepackedWeightsContainer(
        Env(), model.data(), model.size(), OptionsForMock(), container_.get(), &session));
    return Ort::Session(session);
  }

  std::unique_ptr<OrtPrepackedWeightsContainer, ReleaseContainer> container_ = [] {
    OrtPrepackedWeightsContainer* container = nullptr;
    EXPECT_EQ(Outcome(Api().CreatePrepackedWeightsContainer(&container)), "");
    return std::unique_ptr<OrtPrepackedWeightsContainer, ReleaseContainer>(container);
  }();
};

// PE-54: private, and shared if there is no other session.
TEST_F(PackingTest, KernelsPackForThemselves) {
  for (const MockPacking packing : {MockPacking::kPrivate, MockPacking::kShared}) {
    Mock().packing = packing;
    Mock().calls.clear();
    Ort::Session session = Open(WeightedModel(), OptionsForMock());
    EXPECT_EQ(Mock().Count("PrePackWeight"), 1);
    EXPECT_FALSE(Mock().has_cache) << "the session shares nothing";
    EXPECT_THAT(Run(session, {1, -2}), ElementsAre(10, -200));
    EXPECT_EQ(Mock().Count("SetSharedPrePackedWeight"), 0);
  }
}

// PE-54: shared. The content is stored once, as long as any of the sessions lives.
TEST_F(PackingTest, SessionsShareWhatTheirKernelsPack) {
  Mock().packing = MockPacking::kShared;
  auto first = std::make_unique<Ort::Session>(OpenSharing());
  auto second = std::make_unique<Ort::Session>(OpenSharing());
  EXPECT_TRUE(Mock().has_cache);
  EXPECT_EQ(Mock().Count("SetSharedPrePackedWeight"), 2);
  ASSERT_EQ(Mock().shared_data.size(), 2u);
  EXPECT_EQ(Mock().shared_data[0], Mock().shared_data[1]);
  EXPECT_THAT(Run(*first, {1, -2}), ElementsAre(10, -200));
  first.reset();
  container_.reset();
  EXPECT_THAT(Run(*second, {1, -2}), ElementsAre(10, -200));
}

// PE-54: other content is stored separately.
TEST_F(PackingTest, OtherWeightsAreNotShared) {
  Mock().packing = MockPacking::kShared;
  Ort::Session first = OpenSharing();
  Ort::Session second = OpenSharing(ModelBuilder()
                                        .Input("x", kTwoFloats)
                                        .Initializer("w", {10, 101})
                                        .Node("Mul", {"x", "w"}, {"y"})
                                        .Output("y", kTwoFloats)
                                        .Bytes());
  ASSERT_EQ(Mock().shared_data.size(), 2u);
  EXPECT_NE(Mock().shared_data[0], Mock().shared_data[1]);
  EXPECT_THAT(Run(first, {1, -2}), ElementsAre(10, -200));
  EXPECT_THAT(Run(second, {1, -2}), ElementsAre(10, -202));
}

// PE-54: the last of several stores counts, and none if nothing is packed.
TEST_F(PackingTest, TheLastStoreCounts) {
  Mock().packing = MockPacking::kSharedTwice;
  {
    Ort::Session session = OpenSharing();
    EXPECT_THAT(Run(session, {1, -2}), ElementsAre(10, -200));
  }
  Mock().packing = MockPacking::kSharedUnpacked;
  Mock().calls.clear();
  Ort::Session session = OpenSharing();
  EXPECT_EQ(Mock().Count("SetSharedPrePackedWeight"), 0);
  EXPECT_THAT(Run(session, {1, -2}), ElementsAre(10, -200));
}

// PE-54: failures are returned when the session is created.
TEST_F(PackingTest, FailuresOfPackingFailTheSession) {
  Mock().packing = MockPacking::kShared;
  for (const char* const slot : {"PrePackWeight", "SetSharedPrePackedWeight"}) {
    Mock().fails = {slot};
    EXPECT_THAT(ErrorOf([&] { OpenSharing(); }), AllOf(StartsWith("11: "), HasSubstr(slot)));
  }
  Mock().fails.clear();
  Mock().packing = MockPacking::kBadShared;
  EXPECT_THAT(ErrorOf([&] { OpenSharing(); }),
              AllOf(StartsWith("1: "), HasSubstr("cannot take it back")));
}

// PE-50: nodes whose constants do not fit go elsewhere.
TEST_F(PackingTest, ClaimsStayWithinTheDevicesMemory) {
  Mock().packing = MockPacking::kPrivate;
  const std::string model = ModelBuilder()
                                .Input("x", kTwoFloats)
                                .Initializer("w", {10, 100})
                                .Initializer("v", {2, 3})
                                .Node("Mul", {"x", "w"}, {"a"})
                                .Node("Mul", {"a", "v"}, {"b"})
                                .Node("Mul", {"b", "w"}, {"y"})
                                .Output("y", kTwoFloats)
                                .Bytes();
  const struct {
    int64_t budget;
    const char* own;  // the session's entry
    int kernels, calls;
  } cases[] = {
      {0, "", 0, 1},   {7, "", 0, 1},
      {8, "", 1, 1},   {15, "", 1, 1},
      {16, "", 3, 1},  {MockControl::kNoCount, "", 3, 1},
      {0, "1,", 3, 0}, {MockControl::kNoSlot, "", 3, 0},
  };
  for (const auto& c : cases) {
    Mock().budget = c.budget;
    Mock().calls.clear();
    Ort::SessionOptions options = OptionsForMock();
    options.AddConfigEntry("session.resource_cuda_partitioning_settings", c.own);
    Ort::Session session = Open(model, options);
    EXPECT_EQ(Mock().Count("CreateKernel"), c.kernels) << c.budget << " '" << c.own << "'";
    EXPECT_EQ(Mock().Count("GetAvailableResource") > 0 ? 1 : 0, c.calls) << c.budget;
    EXPECT_THAT(Run(session, {1, -2}), ElementsAre(200, -60000));
  }
  Mock().budget = 16;
  Mock().fails = {"GetAvailableResource"};
  Ort::Session session = Open(model, OptionsForMock());
  EXPECT_THAT(Takers(session), testing::Not(Contains(kMock))) << "an error counts as no claim";
}

}  // namespace
}  // namespace tenon::test
