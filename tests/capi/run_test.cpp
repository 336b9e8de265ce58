// Runs through the C++ classes: feeds and fetches, bindings, termination, errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/allocation_count.h"
#include "capi/client.h"
#include "capi/model_builder.h"
#include "capi/run_fixture.h"

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(RunTest, ComputesIntoANewValue) {
  const auto outputs = session_.Run({}, inputs_, feeds_, 2, &output_, 1);
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_THAT(outputs[0].GetTensorTypeAndShapeInfo().GetShape(), ElementsAre(2, 3));
  EXPECT_THAT(ElementsOf<float>(outputs[0]), ElementsAre(11, 0, 0, 14, 6, 0));
}

TEST_F(RunTest, WritesIntoTheCallersMemory) {
  std::vector<float> z(6, -1);
  Ort::Value fetch = TensorOver(z, {2, 3});
  session_.Run({}, inputs_, feeds_, 2, &output_, &fetch, 1);
  EXPECT_THAT(z, ElementsAre(11, 0, 0, 14, 6, 0));
  EXPECT_EQ(fetch.GetTensorData<float>(), z.data());
}

TEST_F(RunTest, ValuesOutliveTheSession) {
  const auto outputs = session_.Run({}, inputs_, feeds_, 2, &output_, 1);
  session_ = Ort::Session(nullptr);
  EXPECT_THAT(ElementsOf<float>(outputs[0]), ElementsAre(11, 0, 0, 14, 6, 0));
}

TEST_F(RunTest, TakesAnyNumberOfFeedsAndFetches) {
  constexpr size_t kMany = 20;
  const std::string scalar = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {1});
  ModelBuilder builder;
  std::vector<std::string> inputs, outputs;
  for (size_t i = 0; i < kMany; ++i) {
    inputs.push_back(std::to_string(i).insert(0, 1, 'x'));
    outputs.push_back(std::to_string(i).insert(0, 1, 'y'));
    builder.Input(inputs[i], scalar).Node("Neg", {inputs[i]}, {outputs[i]});
    builder.Output(outputs[i], scalar);
  }
  Ort::Session session = Open(builder.Bytes());
  std::vector<std::vector<float>> data;
  std::vector<const char*> input_names, output_names;
  std::vector<Ort::Value> feeds;
  for (size_t i = 0; i < kMany; ++i) data.push_back({static_cast<float>(i + 1)});
  for (size_t i = 0; i < kMany; ++i) {
    input_names.push_back(inputs[i].c_str());
    output_names.push_back(outputs[kMany - 1 - i].c_str());
    feeds.push_back(TensorOver(data[i], {1}));
  }
  const auto results =
      session.Run({}, input_names.data(), feeds.data(), kMany, output_names.data(), kMany);
  for (size_t i = 0; i < kMany; ++i) {
    EXPECT_THAT(ElementsOf<float>(results[i]), ElementsAre(-static_cast<float>(kMany - i)));
  }
}

TEST_F(RunTest, WrongArgumentsAreNamedAndTheSessionStaysUsable) {
  std::vector<int64_t> integers = {1, 2, 3};
  const int64_t three[] = {3};
  const auto cpu = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  const Ort::Value wrong_type =
      Ort::Value::CreateTensor<int64_t>(cpu, integers.data(), 3, three, 1);
  const Ort::Value wrong_rank = TensorOver(y_, {1, 3, 1});
  const Ort::Value wrong_size = TensorOver(x_, {6});
  const OrtValue *const x = feeds_[0], *const y = feeds_[1];
  using Names = std::vector<const char*>;
  using Values = std::vector<const OrtValue*>;
  const struct {
    Names inputs;
    Values values;
    Names outputs;
    std::vector<const char*> texts;
  } kCases[] = {
      {{"x", "why"}, {x, y}, {"z"}, {"why", "Invalid input name"}},
      {{"x", "y"}, {x, y}, {"zet"}, {"zet", "Invalid output name"}},
      {{"x"}, {x}, {"z"}, {"Required inputs", "'y'"}},
      {{"x", "x"}, {x, x}, {"z"}, {"x", "twice"}},
      {{"x", "y"}, {x, wrong_type}, {"z"}, {"'y'", "tensor(float)", "tensor(int64)"}},
      {{"x", "y"}, {x, wrong_rank}, {"z"}, {"'y'", "rank 1", "rank 3"}},
      {{"x", "y"}, {x, wrong_size}, {"z"}, {"'y'", "size 3", "[6]"}},
      {{"x", "y"}, {x, nullptr}, {"z"}, {"'y'", "null"}},
      {{"x", nullptr}, {x, y}, {"z"}, {"input_names[1]"}},
      {{"x", "y"}, {x, y}, {nullptr}, {"output_names[0]"}},
  };
  const OrtApi& api = Ort::GetApi();
  for (const auto& [inputs, values, outputs, texts] : kCases) {
    OrtValue* fetch = nullptr;
    const std::string error =
        Outcome(api.Run(session_, nullptr, inputs.data(), values.data(), inputs.size(),
                        outputs.data(), outputs.size(), &fetch));
    EXPECT_THAT(error, StartsWith(inputs.size() < 2 ? "1: " : "2: "));  // missing ones are 1
    for (const char* text : texts) EXPECT_THAT(error, HasSubstr(text));
    EXPECT_EQ(fetch, nullptr);
  }
  OrtValue* fetch = nullptr;
  const OrtValue* const values[] = {x, y};
  EXPECT_THAT(Outcome(api.Run(nullptr, nullptr, inputs_, values, 2, &output_, 1, &fetch)),
              HasSubstr("session"));
  EXPECT_THAT(Outcome(api.Run(session_, nullptr, nullptr, values, 2, &output_, 1, &fetch)),
              HasSubstr("input_names"));
  EXPECT_THAT(Outcome(api.Run(session_, nullptr, inputs_, nullptr, 2, &output_, 1, &fetch)),
              HasSubstr("inputs"));
  EXPECT_THAT(Outcome(api.Run(session_, nullptr, inputs_, values, 2, nullptr, 1, &fetch)),
              HasSubstr("output_names"));
  EXPECT_THAT(Outcome(api.Run(session_, nullptr, inputs_, values, 2, &output_, 1, nullptr)),
              HasSubstr("outputs"));
  EXPECT_THAT(ElementsOf<float>(session_.Run({}, inputs_, feeds_, 2, &output_, 1)[0]),
              ElementsAre(11, 0, 0, 14, 6, 0));
}

TEST_F(RunTest, AnOutputThatDoesNotFitIsRefused) {
  std::vector<float> z(6, -1);
  Ort::Value fetch = TensorOver(z, {3, 2});
  EXPECT_NE(ErrorOf([&] { session_.Run({}, inputs_, feeds_, 2, &output_, &fetch, 1); }), "");
  EXPECT_THAT(z, testing::Each(-1));
}

TEST_F(RunTest, TerminatedRunsFailUntilTheFlagIsTakenBack) {
  Ort::RunOptions options;
  options.SetTerminate();
  EXPECT_THAT(ErrorOf([&] { session_.Run(options, inputs_, feeds_, 2, &output_, 1); }),
              StartsWith("1: "));
  options.UnsetTerminate();
  EXPECT_EQ(session_.Run(options, inputs_, feeds_, 2, &output_, 1).size(), 1u);
}

TEST_F(RunTest, ASteadyRunAllocatesNothingButTheValuesItMakes) {
  std::vector<float> z(6);
  const OrtValue* const values[] = {feeds_[0], feeds_[1]};
  const Ort::Value fetch = TensorOver(z, {2, 3});
  Ort::IoBinding binding(session_);
  binding.BindInput("x", feeds_[0]);
  binding.BindInput("y", feeds_[1]);
  binding.BindOutput("z", fetch);
  const OrtApi& api = Ort::GetApi();
  const auto run_in_place = [&] {
    OrtValue* output = const_cast<OrtValue*>(static_cast<const OrtValue*>(fetch));
    ASSERT_EQ(api.Run(session_, nullptr, inputs_, values, 2, &output_, 1, &output), nullptr);
  };
  const auto run_anew = [&] {
    OrtValue* output = nullptr;
    ASSERT_EQ(api.Run(session_, nullptr, inputs_, values, 2, &output_, 1, &output), nullptr);
    api.ReleaseValue(output);
  };
  const auto run_bound = [&] {
    ASSERT_EQ(api.RunWithBinding(session_, nullptr, binding), nullptr);
  };
  const auto allocations_of = [](const auto& run) {
    for (int i = 0; i < 3; ++i) run();
    const size_t before = AllocationsOnThisThread();
    for (int i = 0; i < 100; ++i) run();
    return AllocationsOnThisThread() - before;
  };
  EXPECT_EQ(allocations_of(run_in_place), 0u);
  EXPECT_EQ(allocations_of(run_anew), 100u);
  EXPECT_EQ(allocations_of(run_bound), 0u);
}

TEST_F(RunTest, AsynchronousRunTellsTheCallback) {
  struct Done {
    std::string outcome = "not called";
    size_t count = 0;
    static void Call(void* self, OrtValue**, size_t count, OrtStatusPtr status) {
      static_cast<Done*>(self)->outcome = Outcome(status);
      static_cast<Done*>(self)->count = count;
    }
  };
  Done done, failed;
  Ort::Value fetch{nullptr}, nothing{nullptr};
  session_.RunAsync(Ort::RunOptions{nullptr}, inputs_, feeds_, 2, &output_, &fetch, 1, Done::Call,
                    &done);
  session_.RunAsync(Ort::RunOptions{nullptr}, inputs_, feeds_, 1, &output_, &nothing, 1, Done::Call,
                    &failed);
  session_ = Ort::Session(nullptr);  // its end awaits the runs
  EXPECT_EQ(done.outcome, "");
  EXPECT_EQ(done.count, 1u);
  EXPECT_THAT(ElementsOf<float>(fetch), ElementsAre(11, 0, 0, 14, 6, 0));
  EXPECT_THAT(failed.outcome, HasSubstr("Required inputs"));
  EXPECT_FALSE(nothing);
}

TEST_F(RunTest, BindingKeepsInputsAndOutputs) {
  Ort::IoBinding binding(session_);
  const auto cpu = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
  binding.BindInput("x", feeds_[0]);
  binding.BindInput("y", feeds_[1]);
  binding.BindOutput("z", cpu);
  EXPECT_THAT(binding.GetOutputNames(), ElementsAre("z"));
  session_.Run({}, binding);
  const std::vector<Ort::Value> first = binding.GetOutputValues();
  ASSERT_EQ(first.size(), 1u);
  x_[0] = 100;
  session_.Run({}, binding);
  EXPECT_THAT(ElementsOf<float>(binding.GetOutputValues()[0]), ElementsAre(110, 0, 0, 14, 6, 0));
  EXPECT_THAT(ElementsOf<float>(first[0]), ElementsAre(11, 0, 0, 14, 6, 0));

  std::vector<float> z(3, -1), row = {0, 0, 50};
  binding.BindInput("x", TensorOver(row, {1, 3}));
  binding.BindOutput("z", TensorOver(z, {1, 3}));
  session_.Run({}, binding);
  EXPECT_THAT(z, ElementsAre(10, 1, 45));

  binding.ClearBoundOutputs();
  EXPECT_TRUE(binding.GetOutputNames().empty());
  EXPECT_TRUE(binding.GetOutputValues().empty());
}

TEST_F(RunTest, BindingRefusesWhatTheSessionDoesNotHave) {
  Ort::IoBinding binding(session_);
  EXPECT_THAT(ErrorOf([&] { binding.BindInput("why", feeds_[0]); }), HasSubstr("why"));
  EXPECT_THAT(ErrorOf([&] { binding.BindOutput("zet", feeds_[0]); }), HasSubstr("zet"));
  const Ort::MemoryInfo gpu("Cuda", OrtDeviceAllocator, 0, OrtMemTypeDefault);
  EXPECT_THAT(ErrorOf([&] { binding.BindOutput("z", gpu); }), HasSubstr("Cuda"));
  Ort::Session other = Open(AddReluModel());
  EXPECT_THAT(ErrorOf([&] { other.Run({}, binding); }), HasSubstr("another session"));
}

// The view's shape is fed, so that no plan knows it; what it shows must stay as long as its readers
// need it.
TEST(ViewTest, ViewsOfFedShapesKeepWhatTheyShow) {
  constexpr auto kFloat = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  const std::string model = ModelBuilder()
                                .Input("x", TensorType(kFloat, {2, 3}))
                                .Input("s", TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, {2}))
                                .Node("Relu", {"x"}, {"a"})
                                .Node("Reshape", {"a", "s"}, {"b"})
                                .Node("Neg", {"x"}, {"c"})
                                .Node("Reshape", {"c", "s"}, {"d"})
                                .Node("Sub", {"b", "d"}, {"z"})
                                .Output("z", TensorTypeWithoutShape(kFloat))
                                .Bytes();
  for (const auto level : {ORT_DISABLE_ALL, ORT_ENABLE_ALL}) {
    Ort::SessionOptions options;
    options.SetGraphOptimizationLevel(level);
    Ort::Session session = Open(model, options);
    std::vector<float> x = {1, 2, 3, 4, 5, 6};
    std::vector<int64_t> s = {3, 2};
    const int64_t s_shape[] = {2};
    const auto cpu = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    const Ort::Value feeds[] = {TensorOver(x, {2, 3}),
                                Ort::Value::CreateTensor<int64_t>(cpu, s.data(), 2, s_shape, 1)};
    const char* const inputs[] = {"x", "s"};
    const char* const outputs[] = {"z"};
    for (int run = 0; run < 3; ++run) {
      const auto results = session.Run({}, inputs, feeds, 2, outputs, 1);
      EXPECT_THAT(ElementsOf<float>(results[0]), testing::ElementsAre(2, 4, 6, 8, 10, 12));
    }
  }
}

}  // namespace
}  // namespace tenon::test
