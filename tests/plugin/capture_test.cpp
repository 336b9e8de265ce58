// Providers that record runs and replay them (provider-lifecycle PL-19 to PL-24).
#include <cmath>
#include <optional>

#include "plugin/mock.h"

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// y = (x * x) * (x * x): the mock takes all of it, as two compiled nodes.
std::string FourthPowerModel() {
  const std::string type = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {"n"});
  return ModelBuilder()
      .Input("x", type)
      .Node("Mul", {"x", "x"}, {"square"})
      .Node("Mul", {"square", "square"}, {"y"})
      .Output("y", type)
      .Bytes();
}

class CaptureTest : public MockTest {
 protected:
  void SetUp() override {
    ASSERT_EQ(Register(), "");
    Mock().capture.is_enabled = true;
  }

  static Ort::RunOptions WithGraph(const char* id) {
    Ort::RunOptions options;
    options.AddConfigEntry("gpu_graph_id", id);
    return options;
  }

  // The result, or the error as text.
  static std::string Try(Ort::Session& session, std::vector<float> x, const char* id = "0") {
    return ErrorOf([&] { EXPECT_EQ(RunAs(session, x, id), Powers(x)); });
  }
  static std::vector<float> RunAs(Ort::Session& session, std::vector<float> x, const char* id) {
    const char* const input = "x";
    const char* const output = "y";
    const Ort::Value feed = TensorOver(x, {static_cast<int64_t>(x.size())});
    const auto outputs = session.Run(WithGraph(id), &input, &feed, 1, &output, 1);
    return ElementsOf<float>(outputs[0]);
  }
  static std::vector<float> Powers(std::vector<float> x) {
    for (float& value : x) value = value * value * value * value;
    return x;
  }
};

// A graph without nodes can be captured, too.
TEST_F(CaptureTest, AGraphWithoutNodesIsReplayed) {
  const std::string type = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {"n"});
  const std::string model = ModelBuilder().Input("x", type).Output("x", type).Bytes();
  Ort::Session session = Open(model, OptionsForMock());
  const char* const name = "x";
  for (const float value : {1.0f, 2.0f, 3.0f}) {
    std::vector<float> x = {value};
    const Ort::Value feed = TensorOver(x, {1});
    const auto outputs = session.Run(WithGraph("0"), &name, &feed, 1, &name, 1);
    EXPECT_THAT(ElementsOf<float>(outputs[0]), ElementsAre(value));
  }
  EXPECT_EQ(Mock().Count("ReplayGraph"), 2);
}

// PL-19: what is captured is replayed, without the hooks of a run; other ids are other graphs, and
// -1 is neither captured nor replayed.
TEST_F(CaptureTest, ACapturedRunIsReplayed) {
  Ort::Session session = Open(FourthPowerModel(), OptionsForMock());
  EXPECT_EQ(Try(session, {1, 2}), "");
  EXPECT_EQ(Mock().recordings, 1);
  Mock().calls.clear();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Try(session, {static_cast<float>(i), 3}), "");
  EXPECT_EQ(Mock().Count("ReplayGraph"), 5);
  EXPECT_EQ(Mock().Count("OnRunStart") + Mock().Count("OnRunEnd") + Mock().Count("Compute"), 0);
  EXPECT_EQ(Mock().recordings, 1);
  const char* const input = "x";
  const char* const output = "y";
  std::vector<float> x = {2, 1};
  const Ort::Value feed = TensorOver(x, {2});
  EXPECT_THAT(ElementsOf<float>(session.Run({}, &input, &feed, 1, &output, 1)[0]),
              ElementsAre(16, 1));
  EXPECT_EQ(Mock().Count("ReplayGraph"), 6) << "0 is the default";
  EXPECT_EQ(Try(session, {5, 6}, "7"), "");
  EXPECT_EQ(Mock().recordings, 2);
  EXPECT_EQ(Try(session, {6, 7}, "7"), "");
  EXPECT_EQ(Mock().Count("ReplayGraph"), 7);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Try(session, {1, 2, 3}, "-1"), "");
  EXPECT_EQ(Mock().Count("ReplayGraph"), 7);
  EXPECT_EQ(Mock().recordings, 2);
  EXPECT_EQ(Try(session, {2, 2}), "") << "what ran in between has left the graph's memory alone";
  EXPECT_THAT(Try(session, {1}, "x"), AllOf(StartsWith("2: "), HasSubstr("gpu_graph_id")));
}

// The bound values, and their addresses, change from run to run; the device records once.
TEST_F(CaptureTest, OtherTensorsAreNoReasonToRecordAgain) {
  Ort::Session session = Open(FourthPowerModel(), OptionsForMock());
  const OrtMemoryInfo* const memory =
      Api().EpDevice_MemoryInfo(MockDevices()[0], OrtDeviceMemoryType_DEFAULT);
  std::vector<std::vector<float>> inputs = {{1, 2}, {3, 4}, {5, 6}};
  std::vector<Ort::Value> results;
  for (std::vector<float>& x : inputs) {
    Ort::IoBinding binding(session);
    binding.BindInput("x", TensorOver(x, {2}));
    ASSERT_EQ(Outcome(Api().BindOutputToDevice(binding, "y", memory)), "");
    session.Run(WithGraph("0"), binding);
    results.push_back(std::move(binding.GetOutputValues()[0]));
  }
  EXPECT_EQ(Mock().recordings, 1);
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(ElementsOf<float>(results[i]), Powers(inputs[i])) << "a replay wrote over a result";
  }
}

// PL-20: repeated with all hooks until the provider has captured, eight times at most.
TEST_F(CaptureTest, ARunIsRepeatedUntilItIsCaptured) {
  for (const int warm_ups : {0, 1, 3, 7}) {
    Mock().capture.warm_ups = warm_ups;
    Ort::Session session = Open(FourthPowerModel(), OptionsForMock());
    Mock().calls.clear();
    EXPECT_EQ(Try(session, {1, -2}), "") << warm_ups;
    EXPECT_EQ(Mock().Count("OnRunStart"), warm_ups + 1);
    EXPECT_EQ(Mock().Count("OnRunEnd"), warm_ups + 1);
    EXPECT_EQ(Mock().Count("Compute"), 2 * (warm_ups + 1));
    EXPECT_EQ(Mock().Count("ReplayGraph"), 0);
    EXPECT_EQ(Try(session, {3, 4}), "");
    EXPECT_EQ(Mock().Count("ReplayGraph"), 1);
  }
  Mock().capture.warm_ups = 8;
  Ort::Session session = Open(FourthPowerModel(), OptionsForMock());
  Mock().calls.clear();
  EXPECT_THAT(Try(session, {1}), AllOf(StartsWith("1: "), HasSubstr(kMock), HasSubstr("8 runs")));
  EXPECT_EQ(Mock().Count("OnRunStart"), 8);
  EXPECT_EQ(Mock().Count("OnRunEnd"), 8);
  EXPECT_EQ(Try(session, {1, 2}, "-1"), "") << "the session goes on";
}

// PL-21: slots that are missing.
TEST_F(CaptureTest, WithoutItsSlotsNothingIsCaptured) {
  for (const bool has_captured : {true, false}) {
    Mock().capture.has_captured = has_captured;
    Mock().capture.has_replay = !has_captured;
    LoggedMessages messages;
    {
      Ort::SessionOptions options = OptionsForMock();
      messages.Watch(options);
      Ort::Session session = Open(FourthPowerModel(), options);
      for (int i = 0; i < 3; ++i) EXPECT_EQ(Try(session, {1, 2}), "");
    }
    EXPECT_EQ(Mock().Count("ReplayGraph"), 0);
    EXPECT_THAT(messages.At(ORT_LOGGING_LEVEL_WARNING),
                ElementsAre(AllOf(HasSubstr(kMock),
                                  HasSubstr(has_captured ? "ReplayGraph" : "IsGraphCaptured")),
                            HasSubstr("goes")));
  }
}

// PL-21: nodes of others, and control flow.
TEST_F(CaptureTest, WhatCannotBeReplayedFailsTheSession) {
  EXPECT_THAT(ErrorOf([] { Open(SquareModel(), OptionsForMock()); }),
              AllOf(StartsWith("1: "), HasSubstr(kMock), HasSubstr("Relu"), HasSubstr("CPU")));
  Mock().capture.policy = OrtGraphCaptureNodeAssignmentPolicy_ALLOW_CPU_FOR_SHAPES;
  EXPECT_THAT(ErrorOf([] { Open(SquareModel(), OptionsForMock()); }), HasSubstr("Relu"));
  Mock().capture.is_enabled = false;
  EXPECT_EQ(ErrorOf([] { Open(SquareModel(), OptionsForMock()); }), "");
}

// PL-21: nodes that depend only on shapes may be the CPU's, if the provider says so.
TEST_F(CaptureTest, ShapesMayBeTheCpusIfTheProviderSaysSo) {
  const std::string type = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {"n"});
  const std::string model =
      ModelBuilder()
          .Input("x", type)
          .Node("Mul", {"x", "x"}, {"y"})
          .Node("Shape", {"x"}, {"size"})
          .Output("y", type)
          .Output("size", TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, {1}))
          .Bytes();
  EXPECT_THAT(ErrorOf([&] { Open(model, OptionsForMock()); }), HasSubstr("Shape"));
  Mock().capture.policy = OrtGraphCaptureNodeAssignmentPolicy_ALLOW_CPU_FOR_SHAPES;
  Ort::Session session = Open(model, OptionsForMock());
  for (const float x : {2.0f, 3.0f}) {
    std::vector<float> values = {x, 1, 1};
    const Ort::Value feed = TensorOver(values, {3});
    const char* const input = "x";
    const char* const outputs[] = {"y", "size"};
    const auto results = session.Run({}, &input, &feed, 1, outputs, 2);
    EXPECT_THAT(ElementsOf<float>(results[0]), ElementsAre(x * x, 1, 1));
    EXPECT_THAT(ElementsOf<int64_t>(results[1]), ElementsAre(3));
  }
  EXPECT_EQ(Mock().Count("ReplayGraph"), 1);
}

// PL-24
TEST_F(CaptureTest, ACapturedGraphCanBeReleased) {
  Mock().runs_overlap = false;
  Ort::Session session = Open(FourthPowerModel(), OptionsForMock());
  EXPECT_EQ(Try(session, {1, 2}), "");
  EXPECT_EQ(Outcome(Api().SessionReleaseCapturedGraph(session, 0)), "");
  EXPECT_EQ(Mock().Count("ReleaseCapturedGraph"), 1);
  EXPECT_EQ(Try(session, {1, 2, 3}), "") << "another size is no matter to a new recording";
  EXPECT_EQ(Mock().recordings, 2);
  Mock().fails = {"ReleaseCapturedGraph"};
  EXPECT_THAT(Outcome(Api().SessionReleaseCapturedGraph(session, 0)),
              AllOf(StartsWith("11: "), HasSubstr("was told to fail")));
  EXPECT_EQ(Try(session, {3, 2, 1}), "") << "it is still there";
  EXPECT_EQ(Mock().recordings, 2);
  Mock().fails.clear();
  Mock().capture.has_release = false;
  Ort::Session without = Open(FourthPowerModel(), OptionsForMock());
  EXPECT_EQ(Try(without, {1, 2}), "");
  EXPECT_EQ(Outcome(Api().SessionReleaseCapturedGraph(without, 0)), "") << "no slot";
  EXPECT_EQ(Try(without, {4, 2}), "");
  Mock().capture.is_enabled = false;
  Ort::Session none = Open(FourthPowerModel(), OptionsForMock());
  EXPECT_EQ(Outcome(Api().SessionReleaseCapturedGraph(none, 5)), "") << "no provider captures";
}

TEST_F(CaptureTest, FailuresOfACaptureAreTheRuns) {
  Ort::Session session = Open(FourthPowerModel(), OptionsForMock());
  Mock().fails = {"Compute"};
  EXPECT_THAT(Try(session, {1, 2}), AllOf(StartsWith("11: "), HasSubstr("Compute was told")));
  Mock().fails.clear();
  EXPECT_EQ(Try(session, {1, 2}), "");
  EXPECT_THAT(Try(session, {1, 2, 3}), AllOf(StartsWith("2: "), HasSubstr("'x'")))
      << "a graph is of one shape";
  Mock().fails = {"ReplayGraph"};
  EXPECT_THAT(Try(session, {1, 2}), AllOf(StartsWith("11: "), HasSubstr("ReplayGraph was told")));
  Mock().fails.clear();
  EXPECT_EQ(Try(session, {1, 2}), "");
  Mock().capture.always_has = true;
  EXPECT_THAT(Try(session, {1, 2}, "3"), AllOf(StartsWith("1: "), HasSubstr(kMock)))
      << "a provider that has what no run captured";
}

// A device that records by address: the buffers of a compiled graph stay where they are from run to
// run, and all of them go with the session.
TEST_F(CaptureTest, DeviceBuffersAreKeptBetweenRuns) {
  Mock().capture.is_enabled = false;
  const std::string type = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {"n"});
  const std::string model =
      ModelBuilder().Input("x", type).Node("Mul", {"x", "x"}, {"y"}).Output("y", type).Bytes();
  const int before = Mock().live_blocks;
  std::optional<Ort::Session> session = Open(model, OptionsForMock());
  EXPECT_THAT(Run(*session, {1, 2}), ElementsAre(1, 4));
  const int allocations = Mock().allocations;
  for (float i = 0; i < 10; ++i) EXPECT_THAT(Run(*session, {i, 2}), ElementsAre(i * i, 4));
  EXPECT_EQ(Mock().recordings, 1);
  EXPECT_EQ(Mock().allocations, allocations);
  EXPECT_GT(Mock().live_blocks, before);
  session.reset();
  EXPECT_EQ(Mock().live_blocks, before);
}

// The same for tensors that the client has bound.
TEST_F(CaptureTest, BoundTensorsAreUsedWhereTheyAre) {
  Mock().capture.is_enabled = false;
  const std::string type = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {"n"});
  const std::string model =
      ModelBuilder().Input("x", type).Node("Mul", {"x", "x"}, {"y"}).Output("y", type).Bytes();
  Ort::Session session = Open(model, OptionsForMock());
  OrtAllocator* shared = nullptr;
  const OrtMemoryInfo* const memory =
      Api().EpDevice_MemoryInfo(MockDevices()[0], OrtDeviceMemoryType_DEFAULT);
  ASSERT_EQ(Outcome(Api().GetSharedAllocator(Env(), memory, &shared)), "");
  const int64_t size = 2;
  const Ort::Value x = Ort::Value::CreateTensor<float>(shared, &size, 1);
  const Ort::Value y = Ort::Value::CreateTensor<float>(shared, &size, 1);
  Ort::IoBinding binding(session);
  binding.BindInput("x", x);
  binding.BindOutput("y", y);
  for (float i = 1; i < 5; ++i) {
    auto* const input = const_cast<float*>(x.GetTensorData<float>());  // in the host's memory
    input[0] = i;
    input[1] = -i;
    session.Run({}, binding);
    EXPECT_THAT(ElementsOf<float>(y), ElementsAre(i * i, i * i));
  }
  EXPECT_EQ(Mock().copies, 0);
  EXPECT_EQ(Mock().recordings, 1);
  EXPECT_EQ(Mock().places.begin()->first, x.GetTensorRawData());
  EXPECT_EQ(Mock().places.begin()->second, y.GetTensorRawData());
}

// A kernel may look for the tensor that is bound to its output, and compute right into it.
TEST_F(CaptureTest, KernelsFindTheTensorsThatOutputsAreBoundTo) {
  Mock().capture.is_enabled = false;
  const std::string type = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {"n"});
  const std::string model =
      ModelBuilder().Input("x", type).Node("Mul", {"x", "x"}, {"y"}).Output("y", type).Bytes();
  Ort::Session session = Open(model, OptionsForMock());
  OrtAllocator* shared = nullptr;
  const OrtMemoryInfo* const memory =
      Api().EpDevice_MemoryInfo(MockDevices()[0], OrtDeviceMemoryType_DEFAULT);
  ASSERT_EQ(Outcome(Api().GetSharedAllocator(Env(), memory, &shared)), "");
  std::vector<const void*> given;
  Mock().on_compute = [&](OrtKernelContext* context) {
    OrtValue* output = nullptr;
    ASSERT_EQ(Outcome(Api().KernelContext_GetPreallocatedOutput(context, 0, &output)), "");
    given.push_back(output == nullptr ? nullptr : Ort::UnownedValue(output).GetTensorRawData());
    EXPECT_THAT(Outcome(Api().KernelContext_GetPreallocatedOutput(context, 1, &output)),
                HasSubstr("outputs"));
  };
  const int64_t size = 2;
  Ort::Value x = Ort::Value::CreateTensor<float>(shared, &size, 1);
  const Ort::Value y = Ort::Value::CreateTensor<float>(shared, &size, 1);
  std::fill_n(x.GetTensorMutableData<float>(), size, 3.0F);  // in the host's memory
  Ort::IoBinding binding(session);
  binding.BindInput("x", x);
  binding.BindOutput("y", memory);
  session.Run({}, binding);
  binding.BindOutput("y", y);
  session.Run({}, binding);
  EXPECT_THAT(given, ElementsAre(nullptr, y.GetTensorRawData()));
  EXPECT_THAT(ElementsOf<float>(y), ElementsAre(9, 9));
}

// PL-22: once for each provider that reads or makes a bound value.
TEST_F(CaptureTest, OnlyTheProvidersOfWhatIsBoundAreSynchronized) {
  Mock().capture.is_enabled = false;
  const std::string type = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {"n"});
  const std::string model = ModelBuilder()
                                .Input("a", type)
                                .Input("b", type)
                                .Node("Mul", {"a", "a"}, {"c"})
                                .Node("Mul", {"a", "a"}, {"d"})
                                .Node("Relu", {"b"}, {"e"})
                                .Output("c", type)
                                .Output("d", type)
                                .Output("e", type)
                                .Bytes();
  Ort::Session session = Open(model, OptionsForMock());
  const Ort::MemoryInfo cpu = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  std::vector<float> x = {1};
  const Ort::Value feed = TensorOver(x, {1});
  const auto syncs = [&](Ort::IoBinding& binding) {
    Mock().calls.clear();
    EXPECT_EQ(Outcome(Api().SynchronizeBoundInputs(binding)), "");
    const int of_inputs = Mock().Count("Sync");
    EXPECT_EQ(Outcome(Api().SynchronizeBoundOutputs(binding)), "");
    return std::pair(of_inputs, Mock().Count("Sync") - of_inputs);
  };
  Ort::IoBinding binding(session);
  EXPECT_EQ(syncs(binding), std::pair(0, 0));
  binding.BindInput("b", feed);
  binding.BindOutput("e", cpu);
  EXPECT_EQ(syncs(binding), std::pair(0, 0)) << "the CPU's";
  binding.BindInput("a", feed);
  EXPECT_EQ(syncs(binding), std::pair(1, 0));
  binding.BindOutput("c", cpu);
  binding.BindOutput("d", cpu);
  EXPECT_EQ(syncs(binding), std::pair(1, 1));
  Mock().fails = {"Sync"};
  EXPECT_THAT(Outcome(Api().SynchronizeBoundInputs(binding)), StartsWith("11: "));
  Mock().fails.clear();
}

// PL-23
TEST_F(CaptureTest, DynamicOptionsGoToEveryProvider) {
  Mock().capture.is_enabled = false;
  const char* const keys[] = {"first", "second"};
  const char* const values[] = {"1", "2"};
  Ort::Session session = Open(SquareModel(), OptionsForMock());
  EXPECT_EQ(Outcome(Api().SetEpDynamicOptions(session, keys, values, 2)), "");
  EXPECT_THAT(Mock().dynamic_options, ElementsAre("first=1", "second=2"));
  Mock().fails = {"SetDynamicOptions"};
  EXPECT_THAT(Outcome(Api().SetEpDynamicOptions(session, keys, values, 2)),
              AllOf(StartsWith("11: "), HasSubstr("was told")));
  Mock().fails.clear();
  Ort::Session without = Open(SquareModel());
  EXPECT_EQ(Outcome(Api().SetEpDynamicOptions(without, keys, values, 2)), "")
      << "the CPU has no such thing";
}

}  // namespace
}  // namespace tenon::test
