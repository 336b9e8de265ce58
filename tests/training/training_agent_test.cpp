// Graphs that are run in stages. Requirements: partial-execution. (tests/python has more.)
#include "training/training_agent.h"

#include <gtest/gtest.h>

#include <thread>

#include "runtime/device_provider.h"
#include "runtime/rows.h"
#include "runtime/test_provider.h"

namespace tenon {
namespace {

const Dim n = Dim::Symbol("n");

class TrainingAgentTest : public ::testing::Test {
 protected:
  void Open(ModelBuilder& builder, std::vector<std::string> fetch_names,
            std::vector<size_t> fetch_counts, SessionOptions options = {}) {
    ResetRuns();
    auto session = MakeSession(environment_, builder.Build(), std::move(options));
    ASSERT_TRUE(session) << session.error().message();
    session_ = std::move(*session);
    TrainingAgentParts parts;
    parts.feed_names = {"x"};
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
