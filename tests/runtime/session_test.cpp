#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "base/allocation_count.h"
#include "base/text.h"
#include "runtime/io_binding.h"
#include "runtime/session_fixture.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;

TEST_F(SessionTest, RepeatedRunsOverAnyMixOfShapesAgree) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"a"}).Node("Scale", {"a"}, {"b"});
  b.Node("Add", {"a", "b"}, {"c"}).Node("Add", {"c", "x"}, {"y"}).Output("y");
  Open(b);
  for (int run = 0; run < 3; ++run) {
    EXPECT_EQ(RunRow({1, 2, 3}), (Floats{7, 14, 21}));
    EXPECT_EQ(RunRow({-1}), (Floats{-7}));
    EXPECT_EQ(RunRow({}), (Floats{}));
  }
}

TEST_F(SessionTest, OutputsOfEarlierRunsStayAsTheyWere) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"y"}).Output("y");
  Open(b);
  std::vector<Value> first, second;
  for (int run = 0; run < 2; ++run) {
    ASSERT_TRUE(Run({"x"}, {Row({1, 2})}, {"y"}, first).ok());
    second.clear();
    ASSERT_TRUE(Run({"x"}, {Row({5, 6})}, {"y"}, second).ok());
    EXPECT_EQ(ValuesOf(first[0]), (Floats{2, 4}));
    EXPECT_EQ(ValuesOf(second[0]), (Floats{10, 12}));
    first.clear();
  }
}

TEST_F(SessionTest, OutputsNeverAliasFeedsConstantsOrEachOther) {
  ModelBuilder b;
  b.Input("x", {n}).Constant("k", Row({9})).Node("Scale", {"x"}, {"s"});
  b.Node("Identity", {"x"}, {"view"}, "", 16).Node("Identity", {"s"}, {"s_view"}, "", 16);
  b.Output("view").Output("k").Output("s").Output("s_view").Output("x");
  Open(b);
  for (int run = 0; run < 3; ++run) {
    const Tensor x = Row({1, 2});
    std::vector<Value> y;
    ASSERT_TRUE(Run({"x"}, {x}, {"view", "k", "s", "s_view", "x"}, y).ok());
    for (Value& value : y) {
      for (int64_t i = 0; i < value.tensor().size(); ++i) value.tensor().data<float>()[i] += 100;
    }
    EXPECT_EQ(ValuesOf(x), (Floats{1, 2}));
    EXPECT_EQ(ValuesOf(y[0]), (Floats{101, 102}));
    EXPECT_EQ(ValuesOf(y[1]), (Floats{109}));
    EXPECT_EQ(ValuesOf(y[2]), (Floats{102, 104}));
    EXPECT_EQ(ValuesOf(y[3]), (Floats{102, 104}));
    EXPECT_EQ(ValuesOf(y[4]), (Floats{101, 102}));
  }
}

TEST_F(SessionTest, ValuesReadTwiceAreNotOverwritten) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"a"}).Node("Scale", {"a"}, {"b"});
  b.Node("Scale", {"a"}, {"c"}).Node("Add", {"b", "c"}, {"d"}).Node("Add", {"d", "a"}, {"y"});
  b.Output("y").Output("a");
  Open(b);
  for (int run = 0; run < 3; ++run) EXPECT_EQ(RunRow({1, 3}), (Floats{10, 30}));
}

TEST_F(SessionTest, AnOperandThatAStepReadsTwiceIsNotOverwritten) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"a"}).Node("Fold", {"a", "a"}, {"y"}).Output("y");
  Open(b);
  for (int run = 0; run < 3; ++run) EXPECT_EQ(RunRow({1, 2, 4}), (Floats{10, 8, 10}));
}

TEST_F(SessionTest, WhatDependsOnShapesAloneRunsOncePerShape) {
  ModelBuilder b;
  b.Input("x", {n, Dim(2)}).Constant("c", Row({1, 1, 1}));
  b.Node("Scale", {"c"}, {"c2"}).Node("Shape", {"x"}, {"shape"}, "", 21);
  b.Node("Reshape", {"x", "shape"}, {"r"}, "", 21).Node("Scale", {"r"}, {"y"});
  b.Output("y").Output("c2");
  Open(b);
  for (int run = 0; run < 4; ++run) {
    std::vector<Value> y;
    const Tensor x = Tensor::Of<float>({2, 2}, {1, 2, 3, 4});
    ASSERT_TRUE(Run({"x"}, {x}, {"y", "c2"}, y).ok());
    EXPECT_EQ(ValuesOf(y[0]), (Floats{2, 4, 6, 8}));
    EXPECT_EQ(y[0].tensor().shape(), Shape({2, 2}));
    EXPECT_EQ(ValuesOf(y[1]), (Floats{2, 2, 2}));
  }
  EXPECT_EQ(RunsOf("Scale"), 5);  // four times for y, once for c2
}

TEST_F(SessionTest, SizesThatDependOnDataMayChangeFromRunToRun) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"a"}).Node("Positive", {"a"}, {"p"});
  b.Node("Scale", {"p"}, {"q"}).Node("Scale", {"q"}, {"y"}).Output("y").Output("q");
  Open(b);
  for (int run = 0; run < 3; ++run) {
    EXPECT_EQ(RunRow({1, -1, 2}), (Floats{8, 16}));
    EXPECT_EQ(RunRow({-1, -1, -1}), (Floats{}));
    EXPECT_EQ(RunRow({1, 1, 1}), (Floats{8, 8, 8}));
  }
}

TEST_F(SessionTest, WritesIntoTheCallersOutput) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"y"}).Output("y");
  Open(b);
  for (int run = 0; run < 3; ++run) {
    std::vector<Value> y = {Row({0, 0})};
    const void* memory = y[0].tensor().raw();
    ASSERT_TRUE(Run({"x"}, {Row({1, 2})}, {"y"}, y).ok());
    EXPECT_EQ(y[0].tensor().raw(), memory);
    EXPECT_EQ(ValuesOf(y[0]), (Floats{2, 4}));
    std::vector<Value> wrong = {Row({0})};
    EXPECT_EQ(Run({"x"}, {Row({1, 2})}, {"y"}, wrong).message(),
              "output 'y': the given tensor is float [1], but the result is float [2]");
  }
}

TEST_F(SessionTest, AFailureNamesTheNodeAndTheSessionStaysUsable) {
  ModelBuilder b;
  b.Input("x", {n}).Input("z", {n}).Node("Scale", {"x"}, {"y"}).Node("Fail", {"z"}, {"w"});
  b.Output("y").Output("w");
  Open(b);
  for (int run = 0; run < 2; ++run) {
    std::vector<Value> fetches;
    const Status status = Run({"x", "z"}, {Row({1}), Row({1})}, {"y", "w"}, fetches);
    // TX-28
    EXPECT_EQ(
        status.message(),
        "Non-zero status code returned while running Fail node. Name:'node_w' Status Message: "
        "wanted to (node 1 of graph 'graph', test opset 1; inputs: 'z' tensor(float) [1])");
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  }
}

TEST_F(SessionTest, WrongFeedsAreNamed) {
  ModelBuilder b;
  b.Input("x", {n, Dim(2)}).Input("input_z", {n}).Node("Scale", {"x"}, {"y"}).Output("y");
  b.Node("Scale", {"input_z"}, {"w"}).Output("w");
  Open(b);
  const Tensor x = Tensor::Of<float>({1, 2}, {1, 2});
  const auto message = [&](std::vector<std::string_view> names, std::vector<Value> feeds,
                           std::string_view output = "y") {
    std::vector<Value> fetches;
    return Run(names, feeds, {output}, fetches).message();
  };
  EXPECT_EQ(message({"x"}, {x}),
            "Required inputs (['input_z']) are missing from input feed (['x']).");
  EXPECT_EQ(message({"x", "input_y"}, {x, Row({1})}),
            "Invalid input name: 'input_y' (did you mean 'input_z'?); the model's inputs are: x, "
            "input_z");
  EXPECT_EQ(message({"x", "x"}, {x, x}), "input 'x' is given twice");
  EXPECT_EQ(
      message({"x", "input_z"}, {Tensor::Of<int64_t>({1, 2}, {1, 2}), Row({1})}),
      "Unexpected input data type. Actual: (tensor(int64)) , expected: (tensor(float)) for input "
      "'x'");
  EXPECT_EQ(message({"x", "input_z"}, {Row({1}), Row({1})}),
            "input 'x': expected rank 2 [n, 2], got rank 1 [1]");
  EXPECT_EQ(message({"x", "input_z"}, {Tensor::Of<float>({1, 3}, {1, 2, 3}), Row({1})}),
            "input 'x': expected size 2 at axis 1 of [n, 2], got [1, 3]");
  EXPECT_EQ(message({"x", "input_z"}, {x, Row({1, 2})}),
            "input 'input_z': expected size 1 at axis 0 of [n], got [2]");
  EXPECT_EQ(message({"x", "input_z"}, {x, Row({1})}, "why"),
            "Invalid output name: 'why' (did you mean 'y'?); the model's outputs are: y, w");
  EXPECT_EQ(message({"x", "input_z"}, {x, Row({1})}), "");
}

// Feeds and fetches that lie as the model lists them are used there, others are put in order.
TEST_F(SessionTest, ManyNamesMayComeInAnyOrder) {
  constexpr size_t kCount = 100;
  std::vector<std::string> inputs, outputs;
  ModelBuilder b;
  for (size_t i = 0; i < kCount; ++i) {
    inputs.push_back(Format("x{}", i));
    outputs.push_back(Format("y{}", i));
    b.Input(inputs[i], {Dim::Symbol(Format("n{}", i))});
    b.Node("Scale", {inputs[i]}, {outputs[i]}).Output(outputs[i]);
  }
  Open(b);
  for (const size_t step : {1, 99, 37}) {  // none divides 100
    std::vector<std::string_view> feed_names, fetch_names;
    std::vector<Value> feeds, fetches(kCount);
    for (size_t i = 0; i < kCount; ++i) {
      const size_t input = i * step % kCount, output = (i * step + 7) % kCount;
      feed_names.push_back(inputs[input]);
      feeds.push_back(Row(Floats(input % 3, static_cast<float>(input))));
      fetch_names.push_back(outputs[step == 1 ? i : output]);
    }
    const auto run = [&] {
      std::fill(fetches.begin(), fetches.end(), Value());
      return session_->Run({}, feed_names, feeds, fetch_names, fetches);
    };
    for (int repeat = 0; repeat < 3; ++repeat) ASSERT_TRUE(run().ok());
    const size_t before = AllocationsOnThisThread();
    ASSERT_TRUE(run().ok());
    EXPECT_EQ(AllocationsOnThisThread() - before, 0u);
    for (size_t i = 0; i < kCount; ++i) {
      const size_t output = step == 1 ? i : (i * step + 7) % kCount;
      EXPECT_EQ(ValuesOf(fetches[i]), Floats(output % 3, 2 * static_cast<float>(output)));
    }
    feed_names[kCount - 1] = feed_names[kCount / 2];
    EXPECT_EQ(run().message(), Format("input '{}' is given twice", feed_names[kCount / 2]));
  }
}

TEST_F(SessionTest, AnOutputMayBeFetchedTwice) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"y"}).Node("Scale", {"y"}, {"z"}).Output("y").Output("z");
  Open(b);
  std::vector<Value> fetches;
  ASSERT_TRUE(Run({"x"}, {Row({1, 2})}, {"z", "z"}, fetches).ok());
  EXPECT_EQ(ValuesOf(fetches[0]), (Floats{4, 8}));
  EXPECT_EQ(ValuesOf(fetches[1]), (Floats{4, 8}));
}

TEST_F(SessionTest, ABoundNameIsBoundAnew) {
  ModelBuilder b;
  b.Input("x", {n}).Input("w", {n}).Node("Add", {"x", "w"}, {"y"}).Output("y");
  b.Node("Scale", {"x"}, {"z"}).Output("z");
  Open(b);
  IoBinding binding(*session_);
  for (const float x : {1.0f, 2.0f}) {
    ASSERT_TRUE(binding.BindInput("w", Row({10})).ok());
    ASSERT_TRUE(binding.BindInput("x", Row({x})).ok());
    ASSERT_TRUE(binding.BindOutput("z", {}).ok());
    ASSERT_TRUE(binding.BindOutput("y", {}).ok());
    EXPECT_THAT(binding.input_names(), ElementsAre("x", "w"));
    EXPECT_THAT(binding.output_names(), ElementsAre("z", "y"));
    ASSERT_TRUE(binding.Run({}).ok());
    EXPECT_EQ(ValuesOf(binding.results()[0]), (Floats{2 * x}));
    EXPECT_EQ(ValuesOf(binding.results()[1]), (Floats{10 + x}));
  }
  binding.ClearInputs();
  binding.ClearOutputs();
  EXPECT_TRUE(binding.input_names().empty());
  ASSERT_TRUE(binding.BindOutput("y", {}).ok());
  EXPECT_THAT(binding.output_names(), ElementsAre("y"));
  EXPECT_EQ(binding.BindInput("v", Row({1})).message(),
            "Invalid input name: 'v'; the model's inputs are: x, w");
}

TEST_F(SessionTest, AnInitializerThatIsAnInputMayBeReplaced) {
  ModelBuilder b;
  b.Input("x", {n}).Constant("k", Row({10, 20})).Node("Add", {"x", "k"}, {"y"}).Output("y");
  b.graph().AddInput(b.graph().FindValue("k"));
  Open(b);
  EXPECT_EQ(session_->inputs().size(), 1u);
  EXPECT_EQ(session_->overridable_initializers()[0].name, "k");
  for (int run = 0; run < 3; ++run) {
    EXPECT_EQ(RunRow({1, 2}), (Floats{11, 22}));
    std::vector<Value> y;
    ASSERT_TRUE(Run({"x", "k"}, {Row({1, 2}), Row({0, 0})}, {"y"}, y).ok());
    EXPECT_EQ(ValuesOf(y[0]), (Floats{1, 2}));
  }
}

TEST_F(SessionTest, AnUnknownOperatorIsNamedWhenTheSessionIsMade) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Quux", {"x"}, {"y"}).Output("y");
  const auto session = MakeSession(environment_, b.Build());
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code(), StatusCode::kFail);
  EXPECT_EQ(
      session.error().message(),
      "test.Quux-1 node 'node_y': test:Quux(-1) is not a registered function/op (node 0 of graph "
      "'graph', test opset 1; inputs: 'x' tensor(float) [n])");
}

TEST_F(SessionTest, ARunPastItsTimeoutEnds) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"y"}).Output("y");
  Open(b);
  RunOptions options;
  options.timeout = std::chrono::nanoseconds(-1);
  std::vector<Value> y;
  EXPECT_EQ(Run({"x"}, {Row({1})}, {"y"}, y, options).message(),
            "the run passed its deadline of 0 ms before test.Scale-1 node 'node_y'");
  options.timeout = std::chrono::hours(1);
  EXPECT_TRUE(Run({"x"}, {Row({1})}, {"y"}, y, options).ok());
}

TEST_F(SessionTest, KeepsToItsMemoryLimit) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"a"}).Node("Add", {"a", "x"}, {"y"}).Output("y");
  SessionOptions options;
  options.config["session.memory_limit"] = "100000";
  auto session = MakeSession(environment_, b.Build(), options);
  ASSERT_TRUE(session) << session.error().message();
  session_ = std::move(*session);
  for (int run = 0; run < 3; ++run) {
    EXPECT_EQ(RunRow({1, 2}), (Floats{3, 6}));
    std::vector<Value> y;
    const Status status = Run({"x"}, {Row(Floats(100000, 1.0f))}, {"y"}, y);
    EXPECT_EQ(status.message(),
              "Non-zero status code returned while running Scale node. Name:'node_a' Status "
              "Message: out of memory: 400000 bytes for a float tensor of shape [100000]; "
              "session.memory_limit is 100000 bytes, of which 0 are in use (node 0 of graph "
              "'graph', test opset 1; inputs: 'x' tensor(float) [100000])");
  }
  ModelBuilder wrong;
  wrong.Input("x", {n}).Node("Scale", {"x"}, {"y"}).Output("y");
  options.config["session.memory_limit"] = "1 GB";
  EXPECT_EQ(MakeSession(environment_, wrong.Build(), options).error().message(),
            "config entry 'session.memory_limit': expected a number of bytes, got '1 GB'");
}

TEST_F(SessionTest, ARunThatFindsNoRoomForItsSlabGoesWithoutOne) {
  // The arena rounds the slab of the five values that are alive at once up to 655,360 bytes, and
  // each of them by itself to 114,688.
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"p"}).Node("Scale", {"x"}, {"q"});
  b.Node("Add", {"p", "q"}, {"r"}).Node("Add", {"r", "p"}, {"y"}).Output("y");
  SessionOptions options;
  options.config["session.memory_limit"] = "300000";
  auto session = MakeSession(environment_, b.Build(), options);
  ASSERT_TRUE(session) << session.error().message();
  session_ = std::move(*session);
  for (const size_t size : {100u, 9000u, 20000u, 27504u, 27504u, 100u}) {
    std::vector<Value> y;
    const Status status = Run({"x"}, {Row(Floats(size, 1.0f))}, {"y"}, y);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(ValuesOf(y[0]), Floats(size, 6.0f));
  }
}

TEST_F(SessionTest, ASteadyRunAllocatesNothing) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"a"}).Node("Scale", {"a"}, {"c"});
  b.Node("Shape", {"x"}, {"s"}, "", 21).Node("Reshape", {"c", "s"}, {"d"}, "", 21);
  b.Node("Add", {"a", "d"}, {"y"}).Output("y");
  Open(b);
  const std::string_view names[] = {"x"}, outputs[] = {"y"};
  const Value feeds[] = {Row({1, 2, 3})};
  Value fetches[1];
  const RunOptions options;
  const auto run = [&] {
    fetches[0] = Value();
    EXPECT_TRUE(session_->Run(options, names, feeds, outputs, fetches).ok());
  };
  for (int i = 0; i < 3; ++i) run();
  const size_t before = AllocationsOnThisThread();
  for (int i = 0; i < 100; ++i) run();
  EXPECT_EQ(AllocationsOnThisThread() - before, 0u);
  EXPECT_EQ(ValuesOf(fetches[0]), (Floats{6, 12, 18}));
}

}  // namespace
}  // namespace tenon
