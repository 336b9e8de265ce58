// Providers are told of runs and of the session's end. Requirements: provider-lifecycle.
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "runtime/test_provider.h"

namespace tenon {
namespace {

// What providers were told, in order, and what they do when they are.
struct Probe {
  std::vector<std::string> calls;
  std::string fails_in;  // "<name>.<hook>"
  std::string throws_in;
  std::string throws_number_in;  // throws what is no std::exception

  Status Call(const std::string& who, const std::string& hook) {
    const std::string call = who + "." + hook;
    calls.push_back(call);
    if (call == throws_in) throw std::runtime_error("thrown by " + call);
    if (call == throws_number_in) throw 7;
    return call == fails_in ? Status(EpFail("told to fail in {}", call)) : OkStatus();
  }
  int Count(const std::string& call) const {
    return static_cast<int>(std::count(calls.begin(), calls.end(), call));
  }
};

class ProbeProvider final : public ExecutionProvider {
 public:
  ProbeProvider(std::string name, Probe& probe, std::vector<SessionEndInfo>& ends)
      : name_(std::move(name)), probe_(probe), ends_(ends) {}
  ~ProbeProvider() override { probe_.calls.push_back(name_ + ".gone"); }

  const std::string& name() const override { return name_; }
  Result<std::vector<Claim>> GetCapability(const Graph&) override { return std::vector<Claim>(); }
  Result<std::unique_ptr<Kernel>> CreateKernel(KernelInfo&) override { return Fail("no kernels"); }
  Status OnSessionInitialized() override { return probe_.Call(name_, "initialized"); }
  Status OnRunStart(const RunInfo&) override { return probe_.Call(name_, "start"); }
  Status OnRunEnd(const RunInfo&, bool synchronize) override {
    return probe_.Call(name_, synchronize ? "end" : "end without waiting");
  }
  Status OnSessionEnd(const SessionEndInfo& info) override {
    ends_.push_back(info);
    return probe_.Call(name_, "session end");
  }

 private:
  const std::string name_;
  Probe& probe_;
  std::vector<SessionEndInfo>& ends_;
};

class LifecycleTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<Session>> Open(const std::string& op_type = "Scale") {
    ModelBuilder b;
    b.Input("x", {Dim::Symbol("n")}).Node(op_type, {"x"}, {"y"}).Output("y");
    std::vector<std::unique_ptr<ExecutionProvider>> providers;
    for (const char* name : {"A", "B", "C"}) {
      providers.push_back(std::make_unique<ProbeProvider>(name, probe_, ends_));
    }
    return MakeSession(environment_, b.Build(), {}, std::move(providers));
  }

  Status Run(Session& session, const RunOptions& options = {}) {
    const std::string_view in = "x", out = "y";
    const Value x = Tensor::Of<float>({2}, {1, 2});
    Value y;
    return session.Run(options, {&in, 1}, {&x, 1}, {&out, 1}, {&y, 1});
  }

  using Calls = std::vector<std::string>;
  Probe probe_;
  std::vector<SessionEndInfo> ends_;
  Environment environment_{{.severity = Severity::kFatal, .threads = {.threads = 2}}};
};

// PL-10, PL-13, PL-15, PL-25, PL-35 (T3, T7)
TEST_F(LifecycleTest, EveryoneIsToldOnceAndInOrder) {
  auto session = Open();
  ASSERT_TRUE(session) << session.error().message();
  EXPECT_EQ(probe_.calls, (Calls{"A.initialized", "B.initialized", "C.initialized"}));
  probe_.calls.clear();
  ASSERT_TRUE(Run(**session).ok());
  EXPECT_EQ(probe_.calls, (Calls{"A.start", "B.start", "C.start", "A.end", "B.end", "C.end"}));
  probe_.calls.clear();
  session->reset();
  EXPECT_EQ(probe_.calls, (Calls{"A.session end", "B.session end", "C.session end", "C.gone",
                                 "B.gone", "A.gone"}));
  ASSERT_EQ(ends_.size(), 3u);
  EXPECT_EQ(ends_[0].reason, SessionEndReason::kReleased);
  EXPECT_EQ(ends_[0].completed_runs, 1u);
  EXPECT_FALSE(ends_[0].is_profiling);
}

// PL-11
TEST_F(LifecycleTest, AFailureAtInitializationKeepsNobodyFromHearing) {
  probe_.fails_in = "A.initialized";
  const auto session = Open();
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code(), StatusCode::kEpFail);
  EXPECT_EQ(session.error().message(), "told to fail in A.initialized");
  EXPECT_EQ(probe_.Count("C.initialized"), 1);
  // PL-27: the session's end is told also now, with its reason.
  ASSERT_EQ(ends_.size(), 3u);
  EXPECT_EQ(ends_[0].reason, SessionEndReason::kInitFailed);
}

// PL-27
TEST_F(LifecycleTest, ASessionThatCannotBeMadeEndsToo) {
  ModelBuilder b;
  ASSERT_FALSE(Open("NoSuchOperator"));
  ASSERT_EQ(ends_.size(), 3u);
  EXPECT_EQ(ends_[1].reason, SessionEndReason::kInitFailed);
  EXPECT_EQ(probe_.Count("A.initialized"), 0);
}

// PL-14
TEST_F(LifecycleTest, AFailedStartEndsTheRun) {
  auto session = Open();
  probe_.calls.clear();
  probe_.fails_in = "B.start";
  const Status status = Run(**session);
  EXPECT_EQ(status.message(), "told to fail in B.start");
  EXPECT_EQ(probe_.calls, (Calls{"A.start", "B.start", "A.end"}));
  probe_.fails_in = "";
  EXPECT_TRUE(Run(**session).ok());
}

// PL-15: all ends are told; the first error is kept, and the run's own error wins.
TEST_F(LifecycleTest, ErrorsAtTheEndDoNotHideEachOther) {
  auto session = Open();
  probe_.fails_in = "A.end";
  probe_.calls.clear();
  EXPECT_EQ(Run(**session).message(), "told to fail in A.end");
  EXPECT_EQ(probe_.Count("B.end") + probe_.Count("C.end"), 2);
  auto failing = Open("Fail");
  probe_.calls.clear();
  EXPECT_NE(Run(**failing).message().find("wanted to"), std::string::npos);
  EXPECT_EQ(probe_.calls, (Calls{"A.start", "B.start", "C.start", "A.end", "B.end", "C.end"}));
}

// PL-15: also when a kernel throws. PL-18: the text is the exception's.
TEST_F(LifecycleTest, EndsAreToldWhenAKernelThrows) {
  auto session = Open("Throw");
  probe_.calls.clear();
  const Status status = Run(**session);
  EXPECT_EQ(status.code(), StatusCode::kRuntimeException);
  // TX-28: the format of every kernel failure
  EXPECT_EQ(status.message(),
            "Non-zero status code returned while running Throw node. Name:'node_y' Status Message: "
            "thrown by a kernel (node 0 of graph 'graph', test opset 1; inputs: 'x' tensor(float) "
            "[2])");
  EXPECT_EQ(probe_.calls, (Calls{"A.start", "B.start", "C.start", "A.end", "B.end", "C.end"}));
}

// PL-18
TEST_F(LifecycleTest, ExceptionsOfHooksBecomeFailures) {
  auto session = Open();
  probe_.throws_in = "B.start";
  Status status = Run(**session);
  EXPECT_EQ(status.code(), StatusCode::kFail);
  EXPECT_EQ(status.message(), "thrown by B.start");
  probe_.throws_in = "";
  probe_.throws_number_in = "A.end";
  status = Run(**session);
  EXPECT_EQ(status.code(), StatusCode::kRuntimeException);
  EXPECT_EQ(status.message(), "unknown exception");
}

// PL-16
TEST_F(LifecycleTest, ARunMayEndWithoutWaiting) {
  auto session = Open();
  RunOptions options;
  options.info.config["disable_synchronize_execution_providers"] = "1";
  ASSERT_TRUE(Run(**session, options).ok());
  EXPECT_EQ(probe_.Count("A.end without waiting"), 1);
  EXPECT_EQ(probe_.Count("A.end"), 0);
}

struct Message {
  Severity severity;
  std::string text;
};

// PL-29, PL-30: one provider's failure at the end is logged and silences nobody.
TEST_F(LifecycleTest, FailuresAtTheEndAreIsolated) {
  std::vector<Message> messages;
  LogSink sink;
  sink.write = [](void* param, Severity severity, const char*, const char*, const char*,
                  const char* text) {
    static_cast<std::vector<Message>*>(param)->push_back({severity, text});
  };
  sink.param = &messages;
  Environment environment{{.sink = sink, .threads = {.threads = 1}}};
  const auto end = [&] {
    ModelBuilder b;
    b.Input("x", {1}).Node("Scale", {"x"}, {"y"}).Output("y");
    std::vector<std::unique_ptr<ExecutionProvider>> providers;
    for (const char* name : {"A", "B", "C"}) {
      providers.push_back(std::make_unique<ProbeProvider>(name, probe_, ends_));
    }
    ASSERT_TRUE(MakeSession(environment, b.Build(), {}, std::move(providers)));
  };
  probe_.fails_in = "A.session end";
  end();
  probe_.fails_in = "";
  probe_.throws_in = "A.session end";
  end();
  probe_.throws_in = "";
  probe_.throws_number_in = "B.session end";
  end();
  EXPECT_EQ(probe_.Count("C.session end"), 3);
  ASSERT_EQ(messages.size(), 3u);
  for (const Message& message : messages) EXPECT_EQ(message.severity, Severity::kError);
  EXPECT_EQ(messages[0].text,
            "A failed at the session's end (code 11): told to fail in A.session end");
  EXPECT_EQ(messages[1].text, "A failed at the session's end (code 1): thrown by A.session end");
  EXPECT_EQ(messages[2].text, "B failed at the session's end (code 6): unknown exception");
}

// PL-28: the end waits for runs in flight, and refuses later ones.
TEST_F(LifecycleTest, TheEndWaitsForRuns) {
  auto session = Open("Wait");
  ASSERT_TRUE(session);
  std::atomic<bool> terminate = false;
  RunOptions options;
  options.terminate = &terminate;
  Status status;
  std::thread run([&] { status = Run(**session, options); });
  while (RunsOf("Wait") == 0) std::this_thread::yield();
  std::atomic<bool> has_ended = false;
  std::thread end([&] {
    session->reset();
    has_ended = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(has_ended);
  terminate = true;
  run.join();
  end.join();
  EXPECT_EQ(ends_.size(), 3u);
  EXPECT_EQ(probe_.calls.back(), "A.gone");
}

// PL-41
TEST_F(LifecycleTest, SessionsEndIndependently) {
  auto first = Open(), second = Open();
  first->reset();
  EXPECT_EQ(ends_.size(), 3u);
  EXPECT_TRUE(Run(**second).ok());
  second->reset();
  ASSERT_EQ(ends_.size(), 6u);
  EXPECT_NE(ends_[0].session_id, ends_[3].session_id);
}

}  // namespace
}  // namespace tenon
