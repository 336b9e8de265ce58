// Graphs that are run in stages. Requirements: partial-execution. (tests/python has more.)
#include "training/training_agent.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "base/mapped_file.h"
#include "runtime/device_provider.h"
#include "runtime/rows.h"
#include "runtime/test_provider.h"

namespace tenon {
namespace {

const Dim n = Dim::Symbol("n");

class TrainingAgentTest : public ::testing::Test {
 protected:
  void Open(ModelBuilder& builder, std::vector<std::string> fetch_names,
            std::vector<size_t> fetch_counts, SessionOptions options = {},
            std::vector<std::string> feed_names = {"x"}) {
    ResetRuns();
    auto session = MakeSession(environment_, builder.Build(), std::move(options));
    ASSERT_TRUE(session) << session.error().message();
    session_ = std::move(*session);
    TrainingAgentParts parts;
    parts.feed_names = std::move(feed_names);
    parts.fetch_names = std::move(fetch_names);
    for (const size_t count : fetch_counts) {
      parts.fetch_memory.emplace_back(count, &CpuMemory());
    }
    auto agent = TrainingAgent::Create(session_, std::move(parts));
    ASSERT_TRUE(agent) << agent.error().message();
    agent_ = std::move(*agent);
  }

  Environment environment_{{.severity = Severity::kFatal, .threads = {.threads = 2}}};
  std::shared_ptr<Session> session_;
  std::unique_ptr<TrainingAgent> agent_;
};

TEST_F(TrainingAgentTest, SeveralYieldsMakeSeveralStages) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"a"}).Node("Yield", {"a"}, {"b"});
  b.Node("Add", {"a", "b"}, {"c"}).Node("Yield", {"c"}, {"d"});
  b.Node("Add", {"d", "x"}, {"e"}).Output("e");
  Open(b, {"e"}, {1, 1, 1});
  ASSERT_EQ(agent_->stage_count(), 3u);
  EXPECT_EQ(agent_->feed_names(1)[0], "b");
  EXPECT_EQ(agent_->fetch_names(1)[0], "c");
  for (int repeat = 0; repeat < 3; ++repeat) {
    PartialGraphExecutionState state;
    std::vector<Value> fetches;
    const Value x = Row({1, 2}), b_value = Row({10, 20}), d = Row({100, 200});
    ASSERT_TRUE(agent_->RunStage(0, {}, {&x, 1}, fetches, state).ok());
    EXPECT_EQ(ValuesOf(fetches[0]), (Floats{2, 4}));
    fetches.clear();
    ASSERT_TRUE(agent_->RunStage(1, {}, {&b_value, 1}, fetches, state).ok());
    EXPECT_EQ(ValuesOf(fetches[0]), (Floats{12, 24}));
    fetches.clear();
    ASSERT_TRUE(agent_->RunStage(2, {}, {&d, 1}, fetches, state).ok());
    EXPECT_EQ(ValuesOf(fetches[0]), (Floats{101, 202}));
    EXPECT_EQ(agent_->RunStage(3, {}, {}, fetches, state).code(), StatusCode::kInvalidArgument);
  }
}

// TX-12: one thread at a time; TX-30: after a failure the state cannot be used.
TEST_F(TrainingAgentTest, AStateInUseIsRefused) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Wait", {"x"}, {"a"}).Node("Yield", {"a"}, {"b"});
  b.Node("Scale", {"b"}, {"c"}).Output("c");
  Open(b, {"c"}, {1, 1});
  std::atomic<bool> terminate = false;
  RunOptions options;
  options.terminate = &terminate;
  PartialGraphExecutionState state;
  const Value x = Row({1});
  Status first;
  std::thread runs([&] {
    std::vector<Value> fetches;
    first = agent_->RunForward(options, {&x, 1}, fetches, state);
  });
  while (RunsOf("Wait") == 0) std::this_thread::yield();
  std::vector<Value> fetches;
  const Status second = agent_->RunForward(options, {&x, 1}, fetches, state);
  terminate = true;
  runs.join();
  EXPECT_EQ(second.code(), StatusCode::kFail);
  EXPECT_EQ(second.message(), "the execution state is in use");
  EXPECT_TRUE(first.ok()) << first.message();
}

// TX-28, TX-29: the status and one line of the log have the same text.
TEST_F(TrainingAgentTest, AFailureIsLoggedOnce) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Fail", {"x"}, {"a"}).Node("Yield", {"a"}, {"b"});
  b.Node("Scale", {"b"}, {"c"}).Output("c");
  std::vector<std::string> lines;
  SessionOptions options;
  options.severity = Severity::kError;
  options.log_sink = {
      [](void* param, Severity, const char*, const char*, const char*, const char* message) {
        static_cast<std::vector<std::string>*>(param)->emplace_back(message);
      },
      &lines};
  Open(b, {"c"}, {1, 1}, std::move(options));
  PartialGraphExecutionState state;
  const Value x = Row({1});
  std::vector<Value> fetches;
  const Status status = agent_->RunForward({}, {&x, 1}, fetches, state);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0], status.message());
  EXPECT_EQ(status.message().find("Non-zero status code returned while running Fail node. "
                                  "Name:'node_a' Status Message: wanted to"),
            0u);
  EXPECT_EQ(agent_->RunForward({}, {&x, 1}, fetches, state).code(), StatusCode::kFail);
}

// TX-26: the text is the check's own.
TEST_F(TrainingAgentTest, InputsThatMustLieSideBySide) {
  ModelBuilder b;
  b.Input("x", {n}).Input("w", {n}).Node("Joined", {"x", "w"}, {"a"}).Node("Yield", {"a"}, {"b"});
  b.Node("Scale", {"b"}, {"c"}).Output("c");
  Open(b, {"c"}, {1, 1}, {}, {"x", "w"});
  const Value both = Row({1, 2, 10, 20});
  const auto part = [&](size_t first) {
    const Tensor& tensor = both.tensor();
    return Value(Tensor::View(DataType::kFloat, Shape({2}),
                              const_cast<float*>(tensor.data<float>()) + first, tensor.owner(),
                              tensor.memory()));
  };
  for (int repeat = 0; repeat < 2; ++repeat) {
    PartialGraphExecutionState state;
    std::vector<Value> fetches;
    const Value feeds[] = {part(0), part(2)};
    const Status status = agent_->RunForward({}, feeds, fetches, state);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(ValuesOf(fetches[0]), (Floats{11, 22}));
  }
  PartialGraphExecutionState state;
  std::vector<Value> fetches;
  const Value feeds[] = {part(2), part(0)};
  const Status status = agent_->RunForward({}, feeds, fetches, state);
  EXPECT_EQ(status.code(), StatusCode::kFail);
  EXPECT_EQ(status.message(),
            "Joined node 'node_a': expected input 1 right behind the input before it, got it -16 "
            "bytes away");
}

// TX-59, TX-61: the log of a half that succeeds, and the profile of a pair that fails.
TEST_F(TrainingAgentTest, MemoryProfileOfAFailure) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Reuse", {"x"}, {"a"}).Node("Yield", {"a"}, {"b"});
  b.Node("Reuse", {"b"}, {"c"}).Node("Fail", {"c"}, {"d"}).Output("d");
  std::vector<std::string> lines;
  SessionOptions options;
  const std::string folder = testing::TempDir();
  options.config = {{"tenon.memory_profile", folder}};
  options.severity = Severity::kInfo;
  options.log_sink = {
      [](void* param, Severity, const char*, const char*, const char*, const char* message) {
        static_cast<std::vector<std::string>*>(param)->emplace_back(message);
      },
      &lines};
  Open(b, {"d"}, {1, 1}, std::move(options));
  // The number of the process keeps apart the files of tests that run at once.
  agent_->SetLocalRank(static_cast<int32_t>(getpid()));
  const auto count = [&](const char* text) {
    return std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  };
  {
    PartialGraphExecutionState state;
    const Value x = Row({1, 2, 3});
    std::vector<Value> fetches;
    ASSERT_TRUE(agent_->RunForward({}, {&x, 1}, fetches, state).ok());
    EXPECT_EQ(count("[Memory] ExecutionFrame statically allocates 0 bytes for Cpu:0"), 1);
    EXPECT_EQ(count("[Memory] ExecutionFrame dynamically allocates"), 1);
    EXPECT_FALSE(agent_->RunBackward({}, {&x, 1}, fetches, state).ok());
    EXPECT_EQ(count("[Memory]"), 2);
  }
  agent_.reset();
  const std::string path = Format("{}/memory_profile_{}_0.json", folder, getpid());
  const auto content = ReadFile(path);
  ASSERT_TRUE(content) << content.error().message();
  std::remove(path.c_str());
  const std::string text(reinterpret_cast<const char*>(content->data()), content->size());
  EXPECT_NE(text.find("dynamic activations_0"), std::string::npos);
  EXPECT_NE(text.find(R"("name":"a")"), std::string::npos);
  EXPECT_NE(text.find(R"("name":"c")"), std::string::npos);
  EXPECT_EQ(text.find(R"("name":"d")"), std::string::npos);
}

// TX-19, TX-48, TX-57: values on a device are fed, fetched and freed there.
TEST_F(TrainingAgentTest, StagesOnADevice) {
  DeviceLog log;
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"a"}).Node("Yield", {"a"}, {"b"});
  b.Node("Add", {"a", "b"}, {"c"}).Output("c");
  std::vector<std::unique_ptr<ExecutionProvider>> providers;
  providers.push_back(MakeDeviceProvider(log));
  ExecutionProvider& device = *providers[0];
  session_ = *MakeSession(environment_, b.Build(), {}, std::move(providers));
  TrainingAgentParts parts;
  parts.feed_names = {"x"};
  parts.fetch_names = {"c"};
  parts.fetch_memory = {{&device.memory()}, {&CpuMemory()}};
  agent_ = *TrainingAgent::Create(session_, parts);
  int blocks = 0;
  for (int repeat = 0; repeat < 3; ++repeat) {
    {
      PartialGraphExecutionState state;
      std::vector<Value> fetches;
      const Value x = Row({1, 2});
      ASSERT_TRUE(agent_->RunForward({}, {&x, 1}, fetches, state).ok());
      EXPECT_TRUE(fetches[0].tensor().memory().SameDevice(device.memory()));
      const Value gradient = OnDevice(device, Row({10, 20}));
      std::vector<Value> results;
      ASSERT_TRUE(agent_->RunBackward({}, {&gradient, 1}, results, state).ok());
      EXPECT_EQ(ValuesOf(results[0]), (Floats{12, 24}));
      EXPECT_GT(log.live_blocks, blocks);
    }
    // The arena and the frame's buffers keep their memory; the pair adds none to it.
    if (repeat == 1) blocks = log.live_blocks;
    if (repeat == 2) {
      EXPECT_EQ(log.live_blocks, blocks);
    }
    EXPECT_EQ(log.streams, repeat + 1) << "a state has streams of its own";
  }
  agent_.reset();
  session_.reset();
  EXPECT_EQ(log.live_blocks, 0);
}

// TX-20, TX-52
TEST_F(TrainingAgentTest, StatesAndAgentsKeepTheSession) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"a"}).Node("Yield", {"a"}, {"b"});
  b.Node("Add", {"a", "b"}, {"c"}).Output("c");
  Open(b, {"c"}, {1, 1});
  std::weak_ptr<Session> session = std::exchange(session_, nullptr);
  PartialGraphExecutionState state;
  const Value x = Row({1});
  std::vector<Value> fetches;
  ASSERT_TRUE(agent_->RunForward({}, {&x, 1}, fetches, state).ok());
  {
    PartialGraphExecutionState other;
    ASSERT_TRUE(agent_->RunForward({}, {&x, 1}, fetches, other).ok());
    agent_.reset();
    EXPECT_FALSE(session.expired());
  }
  EXPECT_FALSE(session.expired());
}

}  // namespace
}  // namespace tenon
