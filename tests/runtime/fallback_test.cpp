// A provider that fails is replaced. Requirements: python-fallback, section 3.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/temporary_folder.h"
#include "ops/cpu_provider.h"
#include "ops/framework/registry.h"
#include "runtime/fallback_session.h"
#include "runtime/probe_provider.h"
#include "runtime/profiler.h"
#include "runtime/run_report.h"
#include "runtime/test_provider.h"

namespace tenon {
namespace {

using Json = nlohmann::json;
using Names = std::vector<std::string>;

constexpr const char* kProbe = "ProbeExecutionProvider";
constexpr const char* kSecond = "SecondProbeExecutionProvider";
constexpr const char* kCpu = "CPUExecutionProvider";

// y = (x + x) * 2, with the sum on the probe; or the model that `build` makes.
Model AddModel() {
  ModelBuilder b;
  b.Input("x", {Dim::Symbol("n")}).Node("Add", {"x", "x"}, {"a"}, "", 14);
  b.Node("Scale", {"a"}, {"y"}).Output("y");
  return b.Build();
}

class FallbackTest : public ::testing::Test {
 protected:
  // A session of the probes, the test provider and the CPU's. Each probe is made anew, with the
  // same options, for each session.
  Result<std::unique_ptr<FallbackSession>> Open(const StringMap& config, ProbeOptions probe,
                                                bool has_model = true) {
    SessionOptions session_options;
    session_options.config = config;
    const auto build = [this, session_options,
                        probe](const SessionRequest& request) -> Result<std::unique_ptr<Session>> {
      const MutexLock lock(mutex_);
      requests_.push_back(request.providers);
      if (!build_failures_.empty() && requests_.size() > 1) {
        Status failure = std::move(build_failures_.back());
        build_failures_.pop_back();
        return Failure(std::move(failure));
      }
      SessionOptions options_of_this = session_options;
      options_of_this.equal_names_are_equal_sizes = request.equal_names_are_equal_sizes;
      SessionParts parts;
      for (const std::string& name : request.providers) {
        if (name == kCpu) continue;
        ProbeOptions options = probe;
        options.name = name;
        if (name == kSecond) options.fails_in = "", options.ops = {"Mul"};
        options.on_event = [this](const std::string& event) {
          const MutexLock event_lock(events_mutex_);
          events_.push_back(event);
        };
        parts.providers.push_back(MakeProbeProvider(std::move(options)));
      }
      parts.providers.push_back(MakeTestProvider());
      parts.providers.push_back(MakeCpuProvider());
      parts.shape_functions = &TestShapeFunctions();
      parts.failed = request.failed;
      parts.profiler = request.profiler ? request.profiler : profiler_;
      return Session::Create(environment_, make_model_(), options_of_this, std::move(parts));
    };
    FallbackOptions options = FallbackOptions::From(config);
    options.has_model = has_model;
    options.trusts_dim_names = trusts_dim_names_;
    return FallbackSession::Create(options, providers_, build);
  }

  Status Run(FallbackSession& session, std::vector<float>* result = nullptr,
             const RunOptions& options = {}) {
    const std::string_view in = "x", out = "y";
    const Value x = Tensor::Of<float>({2}, {1, 2});
    Value y;
    Status status = session.Run(options, {&in, 1}, {&x, 1}, {&out, 1}, {&y, 1});
    if (status.ok() && result != nullptr) {
      const auto values = y.tensor().values<float>();
      result->assign(values.begin(), values.end());
    }
    return status;
  }

  int Count(const std::string& event) {
    const MutexLock lock(events_mutex_);
    return static_cast<int>(std::count(events_.begin(), events_.end(), event));
  }
  void ExpectNotReplayed(const FallbackSession& session, const std::string& reason) {
    const FallbackReport report = session.report();
    EXPECT_EQ(report.state, FallbackState::kArmed);
    ASSERT_EQ(report.not_replayed.size(), 1u);
    EXPECT_EQ(report.not_replayed[0].reason, reason);
    EXPECT_EQ(requests_.size(), 1u);
  }

  const std::vector<float> kRight = {4, 8};
  const StringMap kOn = {{"tenon.ep_fail_fallback", "1"}};
  const ProbeOptions kFails = {.fails_in = "run"};
  Names providers_ = {kProbe, kCpu};
  bool trusts_dim_names_ = true;
  std::vector<Names> requests_;
  std::vector<Status> build_failures_;  // of the sessions after the first; the last one first
  std::function<Model()> make_model_ = AddModel;
  std::shared_ptr<Profiler> profiler_;
  Mutex mutex_, events_mutex_;
  std::vector<std::string> events_;
  std::vector<std::pair<Severity, std::string>> messages_;
  LogSink sink_{.write =
                    [](void* param, Severity severity, const char*, const char*, const char*,
                       const char* text) {
                      static_cast<FallbackTest*>(param)->messages_.emplace_back(severity, text);
                    },
                .param = this};
  Environment environment_{
      {.severity = Severity::kWarning, .sink = sink_, .threads = {.threads = 2}}};
};

// FB-22: off by default.
TEST_F(FallbackTest, IsOffByDefault) {
  auto session = *Open({}, kFails);
  EXPECT_EQ(Run(*session).code(), StatusCode::kEpFail);
  EXPECT_EQ(session->report().state, FallbackState::kOff);
  EXPECT_EQ(session->report().cause.code(), StatusCode::kEpFail);
  std::vector<float> y;
  EXPECT_TRUE(Run(*session, &y).ok());  // the probe fails once
  EXPECT_EQ(y, kRight);
  EXPECT_EQ(requests_.size(), 1u);
}

// FB-22, FB-26, FB-28, FB-39: the run is repeated without the provider of the failing node.
TEST_F(FallbackTest, RepeatsTheRunWithoutTheProviderThatFailed) {
  auto session = *Open(kOn, kFails);
  const std::string input = session->inputs()[0].name;
  std::vector<float> y;
  ASSERT_TRUE(Run(*session, &y).ok());
  EXPECT_EQ(y, kRight);
  EXPECT_EQ(requests_, (std::vector<Names>{{kProbe, kCpu}, {kCpu}}));
  const FallbackReport report = session->report();
  EXPECT_EQ(report.state, FallbackState::kUsed);
  EXPECT_EQ(report.from, (Names{kProbe, kCpu}));
  EXPECT_EQ(report.to, Names{kCpu});
  EXPECT_EQ(report.failed.provider_name, kProbe);
  EXPECT_EQ(report.failed.node, "node_a");
  EXPECT_EQ(report.failed.op_type, "Add");
  EXPECT_EQ(report.replays, 1u);
  EXPECT_EQ(session->inputs()[0].name, input);
  EXPECT_EQ(session->model().graph->name, "graph");
  ASSERT_TRUE(Run(*session, &y).ok());
  EXPECT_EQ(Count("run Add"), 1);  // the probe is gone
}

// FB-39: the text of the report.
TEST_F(FallbackTest, ReportsAsJson) {
  auto session = *Open(kOn, kFails);
  ASSERT_TRUE(Run(*session).ok());
  const Json report = Json::parse(session->report().ToJson());
  EXPECT_EQ(report["state"], "used");
  EXPECT_EQ(report["from"], (Json{kProbe, kCpu}));
  EXPECT_EQ(report["to"], Json{kCpu});
  EXPECT_EQ(report["provider"], kProbe);
  EXPECT_EQ(report["node"], "node_a");
  EXPECT_EQ(report["op_type"], "Add");
  EXPECT_EQ(report["code"], 11);
  EXPECT_NE(report["message"].get<std::string>().find("told to fail in run"), std::string::npos);
  EXPECT_GE(report["rebuild_ms"].get<int>(), 0);
  EXPECT_EQ(report["replays"], 1);
  EXPECT_TRUE(report["not_replayed"].empty());
}

// FB-23: auto keeps the providers that ran, in order, and drops those without nodes.
TEST_F(FallbackTest, KeepsOtherProvidersThatRan) {
  providers_ = {kProbe, kSecond, kCpu};
  make_model_ = [] {
    ModelBuilder b;
    b.Input("x", {2}).Node("Add", {"x", "x"}, {"a"}, "", 14);
    b.Node("Mul", {"a", "a"}, {"y"}, "", 14).Output("y");
    return b.Build();
  };
  auto session = *Open(kOn, kFails);
  ASSERT_TRUE(Run(*session).ok());
  EXPECT_EQ(requests_.back(), (Names{kSecond, kCpu}));
  requests_.clear();
  make_model_ = AddModel;  // nothing for the second one
  session = *Open(kOn, kFails);
  ASSERT_TRUE(Run(*session).ok());
  EXPECT_EQ(requests_.back(), Names{kCpu});
}

// FB-22, FB-23: a list of names, from which the failed provider is left out.
TEST_F(FallbackTest, TakesTheProvidersThatAreListed) {
  StringMap config = kOn;
  config["tenon.ep_fail_fallback.providers"] = "ProbeExecutionProvider, " + std::string(kSecond);
  auto session = *Open(config, kFails);
  ASSERT_TRUE(Run(*session).ok());
  EXPECT_EQ(requests_.back(), (Names{kSecond, kCpu}));
}

// FB-27: no other code, and no failure outside nodes.
TEST_F(FallbackTest, LeavesOtherFailuresAlone) {
  constexpr auto kDeviceReset = static_cast<StatusCode>(15);
  for (const StatusCode code :
       {StatusCode::kFail, StatusCode::kInvalidArgument, StatusCode::kRuntimeException,
        StatusCode::kEngineError, kDeviceReset}) {
    requests_.clear();
    auto session = *Open(kOn, {.fails_in = "run", .code = code});
    EXPECT_EQ(Run(*session).code(), code);
    EXPECT_EQ(requests_.size(), 1u);
    EXPECT_EQ(session->report().state, FallbackState::kArmed);
  }
  for (const char* hook : {"start", "end"}) {
    requests_.clear();
    auto session = *Open(kOn, {.fails_in = hook});
    EXPECT_EQ(Run(*session).code(), StatusCode::kEpFail);
    EXPECT_EQ(requests_.size(), 1u);
  }
}

// FB-27, FB-28: failures of Compile and of making kernels, at creation.
TEST_F(FallbackTest, CoversTheCreationOfTheSession) {
  for (const char* where : {"compile", "create"}) {
    requests_.clear();
    auto session = Open(kOn, {.fails_in = where});
    ASSERT_TRUE(session) << session.error().message();
    EXPECT_EQ(requests_, (std::vector<Names>{{kProbe, kCpu}, {kCpu}}));
    std::vector<float> y;
    ASSERT_TRUE(Run(**session, &y).ok());
    EXPECT_EQ(y, kRight);
    const FallbackReport report = (*session)->report();
    EXPECT_EQ(report.state, FallbackState::kUsed);
    EXPECT_EQ(report.failed.provider_name, kProbe);
    EXPECT_EQ(report.cause.code(), StatusCode::kEpFail);
  }
  EXPECT_EQ(Open(kOn, {.fails_in = "create", .code = StatusCode::kFail}).error().code(),
            StatusCode::kFail);
  EXPECT_EQ(Open({}, {.fails_in = "create"}).error().code(), StatusCode::kEpFail);
}

// FB-29: runs that are not to be repeated.
TEST_F(FallbackTest, DoesNotRepeatWhatWasTerminated) {
  auto session = *Open(kOn, kFails);
  std::atomic<bool> terminate = false;
  RunOptions options;
  options.terminate = &terminate;
  // The flag is set while the node runs, which fails then.
  std::unique_lock<Mutex> lock(events_mutex_);  // which the probe's kernel waits for
  std::thread run([&] { EXPECT_EQ(Run(*session, nullptr, options).code(), StatusCode::kEpFail); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  terminate = true;
  lock.unlock();
  run.join();
  ExpectNotReplayed(*session, "terminate");
}

TEST_F(FallbackTest, DoesNotRepeatWhatMustNotBe) {
  auto session = *Open(kOn, kFails);
  RunOptions options;
  options.not_repeatable = "sync_stream";  // FB-29
  EXPECT_EQ(Run(*session, nullptr, options).code(), StatusCode::kEpFail);
  ExpectNotReplayed(*session, "sync_stream");
  EXPECT_TRUE(Run(*session).ok());
}

// FB-30: 16 threads fail at once.
TEST_F(FallbackTest, IsMadeOnceForManyRuns) {
  auto session = *Open(kOn, {.fails_in = "run", .failures = -1});
  std::atomic<int> waiting = 0, right = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      ++waiting;
      while (waiting < 16) std::this_thread::yield();
      std::vector<float> y;
      if (Run(*session, &y).ok() && y == kRight) ++right;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 16);
  EXPECT_EQ(requests_.size(), 2u);
  EXPECT_EQ(Count("session_end 2"), 1);
  EXPECT_EQ(session->report().state, FallbackState::kUsed);
}

// FB-30: a later failure, of the second session, is returned as it is.
TEST_F(FallbackTest, HappensOnce) {
  StringMap config = kOn;
  config["tenon.ep_fail_fallback.providers"] = "ThirdProbeExecutionProvider";
  auto session = *Open(config, {.fails_in = "run", .failures = -1});
  const Status status = Run(*session);
  EXPECT_EQ(status.code(), StatusCode::kEpFail);
  EXPECT_EQ(Run(*session).code(), StatusCode::kEpFail);
  EXPECT_EQ(requests_.size(), 2u);
}

// 3.3: the provider of the first session is told its end once, with the reason, before it is
// released.
TEST_F(FallbackTest, EndsTheFirstSessionWithItsLastRun) {
  auto session = *Open(kOn, kFails);
  ASSERT_TRUE(Run(*session).ok());
  EXPECT_EQ(events_, (Names{"run Add", "session_end 2", "release"}));
  session.reset();
  EXPECT_EQ(events_.size(), 3u);
}

// FB-31: one warning.
TEST_F(FallbackTest, WarnsOnce) {
  auto session = *Open(kOn, kFails);
  ASSERT_TRUE(Run(*session).ok());
  ASSERT_TRUE(Run(*session).ok());
  ASSERT_EQ(messages_.size(), 1u);
  EXPECT_EQ(messages_[0].first, Severity::kWarning);
  EXPECT_EQ(
      messages_[0].second,
      "ProbeExecutionProvider failed at Add node 'node_a' (code 11): Non-zero status code "
      "returned while running Add node. Name:'node_a' Status Message: the probe was told to "
      "fail in run (node 0 of graph 'graph', ai.onnx opset 14; inputs: 'x' tensor(float) [2], "
      "'x' tensor(float) [2]); the session goes on with CPUExecutionProvider");
}

std::vector<Json> EventsNamed(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::vector<Json> events;
  for (const Json& event : Json::parse(file)) {
    if (event["name"] == name) events.push_back(event);
  }
  return events;
}

// FB-31, FB-32: one file, one "model_run" over both attempts.
TEST_F(FallbackTest, TracesBothAttemptsAsOneRun) {
  const TemporaryFolder folder;
  profiler_ = *Profiler::Open(folder / "trace", {}, environment_.logger());
  auto session = *Open(kOn, kFails);
  RunOptions options;
  options.tag = "tagged";
  ASSERT_TRUE(Run(*session, nullptr, options).ok());
  const std::string path = *session->current().EndProfiling();
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()),
                          std::filesystem::directory_iterator()),
            1);
  const std::vector<Json> fallbacks = EventsNamed(path, "ep_fallback");
  ASSERT_EQ(fallbacks.size(), 1u);
  EXPECT_EQ(fallbacks[0]["args"]["provider"], kProbe);
  const std::vector<Json> runs = EventsNamed(path, "model_run");
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0]["args"]["attempts"], "2");
  EXPECT_EQ(runs[0]["args"]["run_tag"], "tagged");
  EXPECT_LE(runs[0]["ts"].get<int64_t>(), fallbacks[0]["ts"].get<int64_t>());
  EXPECT_GE(runs[0]["dur"].get<int64_t>(), fallbacks[0]["dur"].get<int64_t>());
}

// y = (x + w) * 2, with the sum on the probe, where both are called [n].
Model SumModel() {
  ModelBuilder b;
  b.Input("x", {Dim::Symbol("n")}).Input("w", {Dim::Symbol("n")});
  b.Node("Add", {"x", "w"}, {"a"}, "", 14).Node("Scale", {"a"}, {"y"}).Output("y");
  return b.Build();
}

// One element added to two, which the names of the dimensions exclude.
Status RunUnequal(FallbackSession& session, std::vector<float>& result) {
  const std::array<std::string_view, 2> in = {"x", "w"};
  const std::array<Value, 2> feeds = {Tensor::Of<float>({2}, {1, 2}), Tensor::Of<float>({1}, {3})};
  const std::string_view out = "y";
  Value y;
  TENON_RETURN_IF_ERROR(session.Run({}, in, feeds, {&out, 1}, {&y, 1}));
  const auto values = y.tensor().values<float>();
  result.assign(values.begin(), values.end());
  return OkStatus();
}

// FB-26, FB-32: the session that does not trust names of dimensions is repeated as well, and the
// trace is that of the first session throughout.
TEST_F(FallbackTest, RepeatsRunsWithUnequalNames) {
  const TemporaryFolder folder;
  profiler_ = *Profiler::Open(folder / "trace", {}, environment_.logger());
  make_model_ = SumModel;
  trusts_dim_names_ = false;
  auto session = *Open(kOn, kFails);
  std::vector<float> y;
  ASSERT_TRUE(RunUnequal(*session, y).ok());
  EXPECT_EQ(y, (std::vector<float>{8, 10}));
  EXPECT_EQ(requests_, (std::vector<Names>{{kProbe, kCpu}, {kProbe, kCpu}, {kCpu}, {kCpu}}));
  EXPECT_EQ(session->report().state, FallbackState::kUsed);
  EXPECT_EQ(session->report().to, Names{kCpu});
  ASSERT_TRUE(RunUnequal(*session, y).ok());
  EXPECT_EQ(requests_.size(), 4u);
  EXPECT_EQ(Count("run Add"), 1);  // the probe is gone
  const std::string path = *session->current().EndProfiling();
  EXPECT_EQ(EventsNamed(path, "ep_fallback").size(), 1u);
}

// FB-22: without a fallback the failure is told, and the session that is made for such feeds has
// the session's own providers.
TEST_F(FallbackTest, TellsFailuresOfRunsWithUnequalNames) {
  make_model_ = SumModel;
  trusts_dim_names_ = false;
  auto session = *Open({}, kFails);
  std::vector<float> y;
  EXPECT_EQ(RunUnequal(*session, y).code(), StatusCode::kEpFail);
  EXPECT_EQ(session->report().cause.code(), StatusCode::kEpFail);
  ASSERT_TRUE(RunUnequal(*session, y).ok());  // the probe fails once
  EXPECT_EQ(y, (std::vector<float>{8, 10}));
  EXPECT_EQ(requests_, (std::vector<Names>{{kProbe, kCpu}, {kProbe, kCpu}}));
}

// FB-33: the output is in the memory of an input.
TEST_F(FallbackTest, DoesNotRepeatWhatWritesItsInputs) {
  auto session = *Open(kOn, kFails);
  const std::string_view in = "x", out = "y";
  const Value x = Tensor::Of<float>({2}, {1, 2});
  Value y = x;
  EXPECT_EQ(session->Run({}, {&in, 1}, {&x, 1}, {&out, 1}, {&y, 1}).code(), StatusCode::kEpFail);
  ExpectNotReplayed(*session, "alias");
}

// FB-34: memory that the caller gave is written by the second attempt.
TEST_F(FallbackTest, WritesGivenOutputsAgain) {
  auto session = *Open(kOn, kFails);
  const std::string_view in = "x", out = "y";
  const Value x = Tensor::Of<float>({2}, {1, 2});
  Value y = Tensor::Of<float>({2}, {-1, -1});
  const void* const memory = y.tensor().raw();
  ASSERT_TRUE(session->Run({}, {&in, 1}, {&x, 1}, {&out, 1}, {&y, 1}).ok());
  EXPECT_EQ(y.tensor().raw(), memory);
  EXPECT_EQ(y.tensor().values<float>()[1], 8);
}

// FB-35: values in memory of the provider that is removed.
TEST_F(FallbackTest, DoesNotRepeatWhatLiesInLostMemory) {
  auto session = *Open(kOn, {.fails_in = "run", .has_memory = true});
  const std::string_view in = "x", out = "y";
  const Tensor host = Tensor::Of<float>({2}, {1, 2});
  const Value x = Tensor::View(DataType::kFloat, Shape({2}), const_cast<void*>(host.raw()),
                               host.owner(), ProbeMemory());
  Value y;
  EXPECT_EQ(session->Run({}, {&in, 1}, {&x, 1}, {&out, 1}, {&y, 1}).code(), StatusCode::kEpFail);
  ExpectNotReplayed(*session, "binding");
}

TEST_F(FallbackTest, DoesNotRepeatWhatIsWantedInLostMemory) {
  auto session = *Open(kOn, {.fails_in = "run", .has_memory = true});
  const std::string_view in = "x", out = "y";
  const Value x = Tensor::Of<float>({2}, {1, 2});
  Value y;
  const MemoryInfo* const memory = &ProbeMemory();  // FB-35
  EXPECT_EQ(session->Run({}, {&in, 1}, {&x, 1}, {&out, 1}, {&y, 1}, {&memory, 1}).code(),
            StatusCode::kEpFail);
  ExpectNotReplayed(*session, "binding");
}

// FB-37: a seed in the model has the same effect in the second session.
TEST_F(FallbackTest, RepeatsRandomNumbersAsAnyNewSession) {
  make_model_ = [] {
    ModelBuilder b;
    b.Input("x", {2}).Node("Add", {"x", "x"}, {"a"}, "", 14);
    b.Node("RandomUniformLike", {"a"}, {"y"}, "", 1).Output("y");
    for (size_t i = 0; i < b.graph().node_capacity(); ++i) {
      Node* const node = b.graph().FindNode(static_cast<NodeId>(i));
      if (node->op_type == "RandomUniformLike") node->attributes.emplace_back("seed", 7.0f);
    }
    return b.Build();
  };
  auto session = *Open(kOn, kFails);
  auto other = *Open({}, {});
  std::vector<float> y, expected;
  ASSERT_TRUE(Run(*session, &y).ok());
  ASSERT_TRUE(Run(*other, &expected).ok());
  EXPECT_EQ(session->report().state, FallbackState::kUsed);
  EXPECT_EQ(y, expected);
}

// FB-38: nodes of a blocked domain have run, or have not.
TEST_F(FallbackTest, DoesNotRunBlockedDomainsTwice) {
  StringMap config = kOn;
  config["tenon.ep_fail_fallback.block_domains"] = "other, test";
  auto session = *Open(config, kFails);  // Scale, of domain "test", comes after the failure
  EXPECT_TRUE(Run(*session).ok());
  requests_.clear();
  make_model_ = [] {
    ModelBuilder b;
    b.Input("x", {2}).Node("Scale", {"x"}, {"a"});
    b.Node("Add", {"a", "a"}, {"y"}, "", 14).Output("y");
    return b.Build();
  };
  session = *Open(config, kFails);
  EXPECT_EQ(Run(*session).code(), StatusCode::kEpFail);
  ExpectNotReplayed(*session, "stateful");
}

// FB-40
TEST_F(FallbackTest, ReportsOfRuns) {
  auto session = *Open(kOn, kFails);
  RunReports reports;
  RunOptions options;
  options.reports = &reports;
  options.not_repeatable = "sync_stream";
  EXPECT_FALSE(Run(*session, nullptr, options).ok());
  EXPECT_EQ(reports.last().attempts, 1u);
  EXPECT_FALSE(reports.last().used_fallback);
  EXPECT_EQ(reports.last().reason, "sync_stream");
  session = *Open(kOn, kFails);
  options.not_repeatable = nullptr;
  EXPECT_TRUE(Run(*session, nullptr, options).ok());
  const Json report = Json::parse(reports.last().ToJson());
  EXPECT_EQ(report["run_id"], 1);
  EXPECT_EQ(report["attempts"], 2);
  EXPECT_EQ(report["fallback"], true);
  EXPECT_EQ(report["reason"], "");
}

TEST_F(FallbackTest, ReportsOfRunsWithoutFallback) {
  auto session = *Open({}, {});
  RunReports reports;
  RunOptions options;
  options.reports = &reports;
  EXPECT_TRUE(Run(*session, nullptr, options).ok());
  EXPECT_EQ(reports.last().run_id, 1u);
  EXPECT_EQ(reports.last().attempts, 1u);
  EXPECT_FALSE(reports.last().used_fallback);
}

// 3.3, step 5: the first session stays, disarmed.
TEST_F(FallbackTest, KeepsTheFirstSessionIfNoSecondCanBeMade) {
  build_failures_ = {Fail("no")};
  auto session = *Open(kOn, {.fails_in = "run", .failures = 2});
  const Status status = Run(*session);
  EXPECT_EQ(status.code(), StatusCode::kEpFail);
  EXPECT_EQ(session->report().state, FallbackState::kFailed);
  EXPECT_EQ(Run(*session).code(), StatusCode::kEpFail);
  EXPECT_EQ(requests_.size(), 2u);
  std::vector<float> y;
  EXPECT_TRUE(Run(*session, &y).ok());
  EXPECT_EQ(y, kRight);
}

// 3.3, step 3: without memory for both, the first session ends first.
TEST_F(FallbackTest, EndsTheFirstSessionIfMemoryIsShort) {
  build_failures_ = {RuntimeException("out of memory")};
  auto session = *Open(kOn, kFails);
  std::vector<float> y;
  ASSERT_TRUE(Run(*session, &y).ok());
  EXPECT_EQ(y, kRight);
  EXPECT_EQ(requests_.size(), 3u);
  EXPECT_EQ(Count("session_end 2"), 1);
  build_failures_ = {RuntimeException("out of memory"), RuntimeException("out of memory")};
  requests_.clear();
  session = *Open(kOn, kFails);
  EXPECT_EQ(Run(*session).code(), StatusCode::kEpFail);
  EXPECT_NE(Run(*session).message().find("could not be made anew"), std::string::npos);
}

// Section 6: a model that was not kept.
TEST_F(FallbackTest, NeedsTheModel) {
  auto session = *Open(kOn, kFails, false);
  EXPECT_EQ(Run(*session).code(), StatusCode::kEpFail);
  ExpectNotReplayed(*session, "no_model");
}

// Section 7: the same list would fail the same way.
TEST_F(FallbackTest, DoesNotMakeTheSameSessionAgain) {
  providers_ = {kCpu};
  auto session = *Open(kOn, kFails);
  EXPECT_TRUE(Run(*session).ok());  // nothing fails without the probe
  EXPECT_EQ(session->report().state, FallbackState::kArmed);
}

}  // namespace
}  // namespace tenon
