// Providers are told of runs and of the session's end. Requirements: provider-lifecycle.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <stdexcept>
#include <thread>

#include "base/temporary_folder.h"
#include "runtime/executor.h"
#include "runtime/kernel.h"
#include "runtime/kernel_info.h"
#include "runtime/profiler.h"
#include "runtime/test_provider.h"

namespace tenon {
namespace {

// The calls of providers, in order, and what they do in these calls.
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
  Status OnRunStart(const RunOptions&) override { return probe_.Call(name_, "start"); }
  Status OnRunEnd(const RunOptions&, bool synchronize) override {
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
    Status status = session.Run(options, {&in, 1}, {&x, 1}, {&out, 1}, {&y, 1});
    EXPECT_EQ(y.has_value(), status.ok());  // even if it failed after the last node
    return status;
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

// TX-10: each part of a run is one run for the providers, and the host does not wait at its end.
TEST_F(LifecycleTest, PartsAreRunsToProviders) {
  auto session = Open();
  probe_.calls.clear();
  {
    const Plan& plan = (*session)->executor().plan();
    const FrameLease frame((*session)->executor().frames());
    const Slot x = *plan.FindSlot("x"), y = *plan.FindSlot("y");
    const Value feed = Tensor::Of<float>({2}, {1, 2});
    Value fetch;
    const PlanPart first{0, 1, {&x, 1}, {&y, 1}};
    ASSERT_TRUE((*session)->RunPart({}, *frame, {{&feed, 1}, {&fetch, 1}, {}, first}).ok());
    EXPECT_EQ(fetch.tensor().data<float>()[1], 4);
    EXPECT_FALSE((*session)->RunPart({}, *frame, {.part = PlanPart{0, 1}}).ok());
  }
  const Calls part = {"A.start",
                      "B.start",
                      "C.start",
                      "A.end without waiting",
                      "B.end without waiting",
                      "C.end without waiting"};
  Calls both = part;
  both.insert(both.end(), part.begin(), part.end());
  EXPECT_EQ(probe_.calls, both);
  session->reset();
  EXPECT_EQ(ends_[0].completed_runs, 1u);
}

// PL-11
TEST_F(LifecycleTest, AllProvidersHearOfInitializationDespiteAFailure) {
  probe_.fails_in = "A.initialized";
  const auto session = Open();
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code(), StatusCode::kEpFail);
  EXPECT_EQ(session.error().message(), "told to fail in A.initialized");
  EXPECT_EQ(probe_.Count("C.initialized"), 1);
  // PL-27: the session's end is also told in this case, with its reason.
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
  options.config["disable_synchronize_execution_providers"] = "1";
  ASSERT_TRUE(Run(**session, options).ok());
  EXPECT_EQ(probe_.Count("A.end without waiting"), 1);
  EXPECT_EQ(probe_.Count("A.end"), 0);
}

struct Message {
  Severity severity;
  std::string text;
};

// A log that keeps its lines.
LogSink SinkInto(std::vector<Message>& messages) {
  LogSink sink;
  sink.write = [](void* param, Severity severity, const char*, const char*, const char*,
                  const char* text) {
    static_cast<std::vector<Message>*>(param)->push_back({severity, text});
  };
  sink.param = &messages;
  return sink;
}

// PL-29, PL-30: one provider's failure at the end is logged and does not silence the others.
TEST_F(LifecycleTest, FailuresAtTheEndAreIsolated) {
  std::vector<Message> messages;
  Environment environment{{.sink = SinkInto(messages), .threads = {.threads = 1}}};
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

// Brings the operator Twice, and reports its registration.
class GuestProvider final : public ExecutionProvider, public ShapeFunctionTable {
 public:
  explicit GuestProvider(std::vector<std::string>& calls) : calls_(calls) {}

  const std::string& name() const override { return name_; }
  void AdjustConfig(StringMap& config) override {
    calls_.emplace_back("config");
    config["tenon.guest"] = "in";
    config["tenon.seen"] = "2";
  }
  const ShapeFunctionTable* operators() const override {
    calls_.emplace_back("operators");
    return this;
  }
  ShapeFunction Find(const Node& node) const override {
    if (node.op_type != "Twice") return nullptr;
    return [](const Node&, ShapeContext& context) -> Status {
      TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
      return context.SetOutput(0, std::move(x), DataType::kFloat);
    };
  }
  bool SupportsConcurrentRuns() const override {
    calls_.emplace_back("concurrency");
    return true;
  }
  std::shared_ptr<DataTransfer> data_transfer() override {
    calls_.emplace_back("transfer");
    return nullptr;
  }
  void SetLogger(const Logger& logger) override {
    calls_.emplace_back("logger");
    TENON_LOG(logger, kInfo, "hello from {}", name_);
  }
  std::unique_ptr<ProviderProfiler> CreateProfiler() override;
  Result<std::vector<Claim>> GetCapability(const Graph& graph) override {
    calls_.emplace_back("capability");
    std::vector<Claim> claims;
    for (size_t i = 0; i < graph.node_capacity(); ++i) {
      const Node* const node = graph.FindNode(static_cast<NodeId>(i));
      if (node != nullptr && node->op_type == "Twice") claims.push_back({{node->id}});
    }
    return claims;
  }
  Result<std::unique_ptr<Kernel>> CreateKernel(KernelInfo&) override;

 private:
  const std::string name_ = "Guest";
  std::vector<std::string>& calls_;
};

class TwiceKernel final : public Kernel {
 public:
  Status InferShapes(ShapeContext& context) const override {
    TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
    return context.SetOutput(0, std::move(x), DataType::kFloat);
  }
  Status Run(KernelContext& context) const override {
    for (int64_t i = 0; i < context.Output(0).size(); ++i) {
      context.Output(0).data<float>()[i] = 2 * context.Input(0).data<float>()[i];
    }
    return OkStatus();
  }
};

Result<std::unique_ptr<Kernel>> GuestProvider::CreateKernel(KernelInfo&) {
  return std::make_unique<TwiceKernel>();
}

class GuestProfiler final : public ProviderProfiler {
 public:
  explicit GuestProfiler(std::vector<std::string>& calls) : calls_(calls) {}
  Status Start(std::chrono::nanoseconds) override {
    calls_.emplace_back("profiler start");
    return OkStatus();
  }
  Status StartEvent(uint64_t) override { return OkStatus(); }
  Status StopEvent(uint64_t, const TraceEvent&) override { return OkStatus(); }
  Status End(std::vector<TraceEvent>&) override { return OkStatus(); }

 private:
  std::vector<std::string>& calls_;
};

std::unique_ptr<ProviderProfiler> GuestProvider::CreateProfiler() {
  calls_.emplace_back("profiler");
  return std::make_unique<GuestProfiler>(calls_);
}

// PL-4: the order of actions when a provider joins a session, and their log.
TEST_F(LifecycleTest, AProviderIsRegisteredInOrder) {
  std::vector<Message> messages;
  Environment environment{
      {.severity = Severity::kInfo, .sink = SinkInto(messages), .threads = {.threads = 1}}};
  ModelBuilder b;
  b.Input("x", {2}).Node("Twice", {"x"}, {"y"}).Output("y");
  Calls calls;
  SessionParts parts;
  parts.providers.push_back(std::make_unique<GuestProvider>(calls));
  parts.providers.push_back(MakeTestProvider());
  parts.shape_functions = &TestShapeFunctions();
  parts.profiler = Profiler::ToSink([](const TraceEvent&) {}, environment.logger());
  SessionOptions options;
  options.config = {{"tenon.guest", "out"}, {"tenon.host", "1"}};
  auto session = Session::Create(environment, b.Build(), options, std::move(parts));
  ASSERT_TRUE(session) << session.error().message();
  ASSERT_GE(calls.size(), 8u);
  EXPECT_EQ(Calls(calls.begin(), calls.begin() + 8),
            (Calls{"config", "operators", "concurrency", "transfer", "logger", "profiler",
                   "profiler start", "capability"}));
  ASSERT_GE(messages.size(), 3u);
  EXPECT_EQ(messages[0].text, "Guest sets 'tenon.guest' to 'in', which was 'out'");
  EXPECT_EQ(messages[1].text, "Guest sets 'tenon.seen' to '2', which was not set");
  EXPECT_EQ(messages[2].text, "hello from Guest");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(messages[i].severity, Severity::kInfo);
  EXPECT_EQ((*session)->options().config.at("tenon.guest"), "in");
  EXPECT_TRUE(Run(**session).ok());
}

// PL-26: a provider without the hook for the end of its session sees no difference.
TEST_F(LifecycleTest, TheEndNeedNotBeHeard) {
  std::vector<Message> messages;
  Environment environment{
      {.severity = Severity::kInfo, .sink = SinkInto(messages), .threads = {.threads = 1}}};
  Calls calls;
  GuestProvider alone(calls);
  EXPECT_TRUE(alone.OnSessionEnd({}).ok());
  EXPECT_EQ(calls, Calls());
  ModelBuilder b;
  b.Input("x", {2}).Node("Twice", {"x"}, {"y"}).Output("y");
  SessionParts parts;
  parts.providers.push_back(std::make_unique<GuestProvider>(calls));
  parts.providers.push_back(MakeTestProvider());
  parts.shape_functions = &TestShapeFunctions();
  auto session = Session::Create(environment, b.Build(), {}, std::move(parts));
  ASSERT_TRUE(session) << session.error().message();
  ASSERT_TRUE(Run(**session).ok());
  calls.clear();
  messages.clear();
  session->reset();
  EXPECT_EQ(calls, Calls());
  EXPECT_TRUE(messages.empty()) << messages[0].text;
}

// A null among the providers: PL-1 with access to the library's own code.
TEST_F(LifecycleTest, ANullProviderIsRefused) {
  ModelBuilder b;
  b.Input("x", {2}).Node("Scale", {"x"}, {"y"}).Output("y");
  std::vector<std::unique_ptr<ExecutionProvider>> providers;
  providers.push_back(std::make_unique<ProbeProvider>("A", probe_, ends_));
  providers.push_back(nullptr);
  const auto session = MakeSession(environment_, b.Build(), {}, std::move(providers));
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code(), StatusCode::kFail);
  ASSERT_EQ(ends_.size(), 1u);
  EXPECT_EQ(ends_[0].reason, SessionEndReason::kInitFailed);
}

// While it lives, files cannot grow.
class NoRoomInFiles {
 public:
  NoRoomInFiles() : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none = {0, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &none);
  }
  ~NoRoomInFiles() {
    setrlimit(RLIMIT_FSIZE, &before_);
    (void)std::signal(SIGXFSZ, handler_);
  }
  NoRoomInFiles(const NoRoomInFiles&) = delete;
  NoRoomInFiles& operator=(const NoRoomInFiles&) = delete;

 private:
  void (*const handler_)(int);
  rlimit before_ = {};
};

// PL-40
TEST_F(LifecycleTest, SessionsEndThoughATraceCannotBeWritten) {
  std::vector<Message> messages;
  Environment environment{{.sink = SinkInto(messages), .threads = {.threads = 1}}};
  const TemporaryFolder folder;
  ModelBuilder b;
  b.Input("x", {2}).Node("Scale", {"x"}, {"y"}).Output("y");
  SessionParts parts;
  parts.providers.push_back(std::make_unique<ProbeProvider>("A", probe_, ends_));
  parts.providers.push_back(MakeTestProvider());
  parts.shape_functions = &TestShapeFunctions();
  auto profiler = Profiler::Open(folder / "trace", {}, environment.logger());
  ASSERT_TRUE(profiler && *profiler);
  parts.profiler = std::move(*profiler);
  auto session = Session::Create(environment, b.Build(), {}, std::move(parts));
  ASSERT_TRUE(session) << session.error().message();
  ASSERT_TRUE(Run(**session).ok());
  {
    const NoRoomInFiles no_room;
    session->reset();
  }
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].severity, Severity::kError);
  EXPECT_NE(messages[0].text.find("profiling"), std::string::npos) << messages[0].text;
  EXPECT_EQ(ends_.size(), 1u);
  EXPECT_EQ(probe_.calls.back(), "A.gone");
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
