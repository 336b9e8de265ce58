// Traces of sessions and runs. Requirements: profiling.
#include "runtime/profiler.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "base/loop_stats.h"
#include "base/temporary_folder.h"
#include "runtime/test_provider.h"

namespace tenon {
namespace {

using Json = nlohmann::json;

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Json ReadTrace(const std::string& path) {
  std::ifstream file(path);
  return Json::parse(file);
}

std::vector<Json> Named(const Json& trace, const std::string& name) {
  std::vector<Json> events;
  std::copy_if(trace.begin(), trace.end(), std::back_inserter(events),
               [&](const Json& event) { return event["name"] == name; });
  return events;
}

class ProfilerTest : public ::testing::Test {
 protected:
  std::shared_ptr<Profiler> OpenProfiler(const StringMap& config = {}) {
    auto profiler = Profiler::Open(folder_ / "trace", config, environment_.logger());
    EXPECT_TRUE(profiler) << profiler.error().message();
    return profiler ? *profiler : nullptr;
  }

  std::unique_ptr<Session> Open(std::shared_ptr<Profiler> profiler,
                                const std::string& last_op = "Scale",
                                const std::string& last_name = "node_y",
                                SessionOptions options = {}) {
    ModelBuilder b;
    b.Input("x", {Dim::Symbol("n")}).Constant("c", Tensor::Of<float>({2}, {1, 1}));
    b.Node("Add", {"x", "c"}, {"a"}).Node(last_op, {"a"}, {"y"}).Output("y");
    for (size_t i = 0; i < b.graph().node_capacity(); ++i) {
      Node* const node = b.graph().FindNode(static_cast<NodeId>(i));
      if (node->op_type == last_op) node->name = last_name;
    }
    SessionParts parts;
    parts.providers.push_back(MakeTestProvider());
    parts.shape_functions = &TestShapeFunctions();
    parts.profiler = std::move(profiler);
    auto session = Session::Create(environment_, b.Build(), std::move(options), std::move(parts));
    EXPECT_TRUE(session) << session.error().message();
    return std::move(*session);
  }

  Status Run(Session& session, const RunOptions& options = {}) {
    const std::string_view in = "x", out = "y";
    const Value x = Tensor::Of<float>({2}, {1, 2});
    Value y;
    return session.Run(options, {&in, 1}, {&x, 1}, {&out, 1}, {&y, 1});
  }

  TemporaryFolder folder_;
  Environment environment_{{.severity = Severity::kFatal, .threads = {.threads = 1}}};
};

// PR-2: <prefix>_<date>_<time>.json, and a number where that exists.
TEST_F(ProfilerTest, FilesOfOneSecondDoNotDestroyEachOther) {
  std::vector<std::shared_ptr<Profiler>> profilers;
  for (int i = 0; i < 5; ++i) profilers.push_back(OpenProfiler());
  const std::vector<std::string> files = FilesIn(folder_.path());
  ASSERT_EQ(files.size(), 5u);
  for (const std::string& file : files) {
    EXPECT_TRUE(
        std::regex_match(std::filesystem::path(file).filename().string(),
                         std::regex(R"(trace_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d(_\d+)?\.json)")))
        << file;
  }
}

// PR-3
TEST_F(ProfilerTest, WithoutAFolderThereIsNoProfiler) {
  const auto profiler = Profiler::Open(folder_ / "no/such/trace", {}, environment_.logger());
  ASSERT_TRUE(profiler);
  EXPECT_EQ(*profiler, nullptr);
}

TEST_F(ProfilerTest, BadSettingsAreNamed) {
  const auto wrong = Profiler::Open(folder_ / "t", {{"tenon.profiling.memory_events", "3"}},
                                    environment_.logger());
  EXPECT_EQ(wrong.error().message(),
            "config entry 'tenon.profiling.memory_events': expected 0, 1 or 2, got '3'");
  const auto text = Profiler::Open(folder_ / "t", {{"tenon.profiling.max_events", "many"}},
                                   environment_.logger());
  EXPECT_EQ(text.error().code(), StatusCode::kInvalidArgument);
}

// PR-19 to PR-24: the format
TEST_F(ProfilerTest, WritesEscapedSortedEventsInOneArray) {
  const auto profiler = OpenProfiler();
  TraceEvent late;
  late.name = "quote \" backslash \\ line\nbreak \xc3\xa4 \xff";
  late.start = 50;
  late.args = {{"object", R"({"a":[1]})", true}, {"text", "{not json"}};
  profiler->Add(late);
  TraceEvent early;
  early.category = TraceCategory::kKernel;
  early.name = "early";
  early.start = 10;
  early.duration = -3;
  early.process = early.thread = -1;
  profiler->Add(early);
  const std::string path = profiler->End().value();
  const Json trace = ReadTrace(path);
  ASSERT_EQ(trace.size(), 2u);
  EXPECT_EQ(trace[0]["name"], "early");
  EXPECT_EQ(trace[0]["cat"], "Kernel");
  EXPECT_EQ(trace[0]["dur"], 0);
  EXPECT_EQ(trace[0]["pid"], -1);
  EXPECT_EQ(trace[1]["name"], "quote \" backslash \\ line\nbreak \xc3\xa4 \xef\xbf\xbd");
  EXPECT_EQ(trace[1]["args"]["object"]["a"][0], 1);
  EXPECT_EQ(trace[1]["args"]["text"], "{not json");
  EXPECT_EQ(trace[1]["ph"], "X");
  EXPECT_GT(trace[1]["pid"], 0);
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  std::getline(file, line);
  EXPECT_EQ(line.substr(0, 7), R"({"cat":)");
  const std::vector<std::string> keys = {"cat", "pid", "tid", "dur", "ts", "ph", "name", "args"};
  size_t at = 0;
  for (const std::string& key : keys) {
    const size_t next = line.find("\"" + key + "\":");
    ASSERT_NE(next, std::string::npos) << key;
    EXPECT_GE(next, at);
    at = next;
  }
}

// PR-20, PR-21: valid JSON is embedded, on one line; a text that only looks like it is a string.
TEST_F(ProfilerTest, ArgumentsThatAreJsonAreEmbedded) {
  const auto profiler = OpenProfiler();
  const std::vector<std::pair<std::string, Json>> cases = {
      {R"({"a" : [1, {"b": null}]})", Json::parse(R"({"a":[1,{"b":null}]})")},
      {"[ 1,\n 2 ]", Json::parse("[1,2]")},
      {"{}", Json::object()},
      {"7", "7"},
      {"true", "true"},
      {"\"text\"", "\"text\""},
      {"{not json}", "{not json}"},
      {"[1,]", "[1,]"},
      {"[1", "[1"},
      {"{\"a\": \"\\ud800\"}", "{\"a\": \"\\ud800\"}"},
      {"", ""},
  };
  for (const auto& [text, expected] : cases) {
    TraceEvent event;
    event.name = text;
    event.args = {{"value", text}, {"quote \" in a key\n", "x"}};
    profiler->Add(event);
  }
  const std::string path = profiler->End().value();
  const Json trace = ReadTrace(path);
  ASSERT_EQ(trace.size(), cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(trace[i]["name"], cases[i].first);
    EXPECT_EQ(trace[i]["args"]["value"], cases[i].second) << cases[i].first;
    EXPECT_EQ(trace[i]["args"]["quote \" in a key\n"], "x");
  }
  std::ifstream file(path);
  std::string line;
  size_t objects = 0;
  while (std::getline(file, line)) objects += line.starts_with("{\"cat\"");
  EXPECT_EQ(objects, cases.size()) << "one on each line";
}

// PR-21: names of nodes may be anything.
TEST_F(ProfilerTest, NodesOfAnyNameLeaveAValidTrace) {
  const std::string name = "a\"b\\c\n\t\x01 {} [] \xc3\xa9 \xe6\xbc\xa2";
  auto session = Open(OpenProfiler(), "Scale", name);
  ASSERT_TRUE(Run(*session).ok());
  const Json trace = ReadTrace(session->EndProfiling().value());
  EXPECT_EQ(Named(trace, name + "_kernel_time").size(), 1u);
}

// PR-22: by time of their start; those of one time stay in the order of their recording.
TEST_F(ProfilerTest, EventsAreSortedAndThoseOfProvidersToo) {
  class Late final : public ProviderProfiler {
   public:
    Status Start(std::chrono::nanoseconds) override { return OkStatus(); }
    Status End(std::vector<TraceEvent>& events) override {
      for (const int64_t start : {30, 10, 20, 10}) {
        TraceEvent& event = events.emplace_back();
        event.category = TraceCategory::kKernel;
        event.name = "device " + std::to_string(events.size());
        event.start = start;
        event.duration = -5;
      }
      return OkStatus();
    }
  };
  const auto profiler = OpenProfiler();
  profiler->AddProvider("Late", std::make_unique<Late>());
  for (const int64_t start : {25, 10, 5, 10}) {
    TraceEvent event;
    event.name = "host at " + std::to_string(start);
    event.start = start;
    profiler->Add(event);
  }
  std::vector<std::string> names;
  for (const Json& event : ReadTrace(profiler->End().value())) {
    names.push_back(event["name"]);
    EXPECT_GE(event["dur"], 0);
  }
  const std::vector<std::string> expected = {"host at 5", "host at 10", "host at 10", "device 2",
                                             "device 4",  "device 3",   "host at 25", "device 1"};
  EXPECT_EQ(names, expected);
}

// PR-9: a session is profiled once; runs of it may be afterwards.
TEST_F(ProfilerTest, ASecondFileIsARunsOwn) {
  auto session = Open(OpenProfiler());
  const int64_t start = session->profiler()->start_ns();
  const std::string path = session->EndProfiling().value();
  const auto size = std::filesystem::file_size(path);
  ASSERT_TRUE(Run(*session).ok());
  EXPECT_EQ(session->EndProfiling().value(), "");
  EXPECT_EQ(session->profiler()->start_ns(), start);
  EXPECT_EQ(FilesIn(folder_.path()).size(), 1u);
  RunOptions options;
  options.profile_prefix = folder_ / "run";
  ASSERT_TRUE(Run(*session, options).ok());
  const auto files = FilesIn(folder_.path());
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(Named(ReadTrace(files[0]), "node_y_kernel_time").size(), 1u);
  session.reset();
  EXPECT_EQ(std::filesystem::file_size(path), size);
}

// PR-6, PR-8
TEST_F(ProfilerTest, WhatComesAfterTheEndIsDropped) {
  const auto profiler = OpenProfiler();
  EXPECT_NE(profiler->End().value(), "");
  profiler->Add(TraceEvent{});
  EXPECT_EQ(profiler->End().value(), "");
}

// PR-18, PR-48
TEST_F(ProfilerTest, KeepsToItsNumberOfEvents) {
  const auto profiler = OpenProfiler({{"tenon.profiling.max_events", "3"}});
  for (int i = 0; i < 10; ++i) profiler->Add(TraceEvent{});
  const Json trace = ReadTrace(profiler->End().value());
  EXPECT_EQ(trace.size(), 4u);
  EXPECT_EQ(trace[3]["name"], "events_dropped");
  EXPECT_EQ(trace[3]["args"]["count"], "7");
}

// PR-16
TEST_F(ProfilerTest, ASinkGetsEachEventAsItEnds) {
  std::vector<std::string> names;
  auto session = Open(Profiler::ToSink(
      [&](const TraceEvent& event) { names.push_back(event.name); }, environment_.logger()));
  EXPECT_EQ(names.back(), "session_initialization");
  ASSERT_TRUE(Run(*session).ok());
  EXPECT_EQ(names.back(), "model_run");
  session.reset();
  EXPECT_EQ(names.back(), "session_teardown");
  EXPECT_TRUE(FilesIn(folder_.path()).empty());
}

// PR-25 to PR-28; TX-27, TX-63 to TX-65
TEST_F(ProfilerTest, EveryNodeOfEveryRunIsThere) {
  auto session = Open(OpenProfiler());
  RunOptions tagged;
  tagged.tag = "first";
  ASSERT_TRUE(Run(*session, tagged).ok());
  ASSERT_TRUE(Run(*session).ok());
  ASSERT_TRUE(Run(*session).ok());
  const Json trace = ReadTrace(session->EndProfiling().value());
  const auto runs = Named(trace, "model_run");
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0]["args"]["run_tag"], "first");
  EXPECT_EQ(runs[0]["args"]["run_id"], "1");
  EXPECT_EQ(runs[2]["args"]["run_id"], "3");
  EXPECT_EQ(runs[2]["args"]["status"], "ok");
  EXPECT_EQ(Named(trace, "SequentialExecutor::Execute").size(), 3u);
  EXPECT_EQ(Named(trace, "node_a_fence_before").size(), 3u);
  EXPECT_EQ(Named(trace, "node_a_fence_after").size(), 3u);
  const auto kernels = Named(trace, "node_a_kernel_time");
  ASSERT_EQ(kernels.size(), 3u);
  for (const Json& kernel : kernels) {
    const Json& args = kernel["args"];
    EXPECT_EQ(kernel["cat"], "Node");
    EXPECT_EQ(args["op_name"], "Add");
    EXPECT_EQ(args["provider"], "TestExecutionProvider");
    EXPECT_EQ(args["node_index"], args["exec_plan_index"]);
    EXPECT_EQ(args["program_counter"], "0");
    EXPECT_EQ(args["activation_size"], "8");
    EXPECT_EQ(args["parameter_size"], "8");
    EXPECT_EQ(args["output_size"], "8");
    EXPECT_EQ(args["input_type_shape"], Json::parse(R"([{"float":[2]},{"float":[2]}])"));
    EXPECT_EQ(args["output_type_shape"], Json::parse(R"([{"float":[2]}])"));
  }
}

// PR-27: a node that failed has no events, the run has its own.
TEST_F(ProfilerTest, AFailedNodeLeavesNoEvents) {
  auto session = Open(OpenProfiler(), "Fail");
  ASSERT_FALSE(Run(*session).ok());
  const Json trace = ReadTrace(session->EndProfiling().value());
  EXPECT_EQ(Named(trace, "node_a_kernel_time").size(), 1u);
  EXPECT_TRUE(Named(trace, "node_y_kernel_time").empty());
  EXPECT_TRUE(Named(trace, "node_y_fence_after").empty());
  EXPECT_EQ(Named(trace, "model_run")[0]["args"]["status"], "2");
}

// PR-11 to PR-13: a run's own file
TEST_F(ProfilerTest, ARunMayHaveAFileOfItsOwn) {
  auto session = Open(nullptr);
  RunOptions options;
  options.profile_prefix = folder_ / "run";
  ASSERT_TRUE(Run(*session).ok());
  EXPECT_TRUE(FilesIn(folder_.path()).empty());
  ASSERT_TRUE(Run(*session, options).ok());
  ASSERT_TRUE(Run(*session, options).ok());
  const auto files = FilesIn(folder_.path());
  ASSERT_EQ(files.size(), 2u);
  for (const std::string& file : files) {
    const Json trace = ReadTrace(file);
    EXPECT_EQ(Named(trace, "model_run").size(), 1u);
    EXPECT_EQ(Named(trace, "node_y_kernel_time").size(), 1u);
  }
}

// PR-11: written also when the run fails. PR-12: ignored while the session has its own.
TEST_F(ProfilerTest, ARunsFileIsWrittenWhenItFailsAndOnlyIfTheSessionHasNone) {
  auto failing = Open(nullptr, "Fail");
  RunOptions options;
  options.profile_prefix = folder_ / "run";
  EXPECT_FALSE(Run(*failing, options).ok());
  EXPECT_EQ(FilesIn(folder_.path()).size(), 1u);
  auto profiled = Open(OpenProfiler());
  EXPECT_TRUE(Run(*profiled, options).ok());
  EXPECT_EQ(FilesIn(folder_.path()).size(), 2u);
}

// PR-7, PL-33, PL-35, PL-36: the trace covers the teardown.
TEST_F(ProfilerTest, TheTeardownIsInTheTrace) {
  auto session = Open(OpenProfiler({{"tenon.profiling.memory_events", "2"}}));
  ASSERT_TRUE(Run(*session).ok());
  session.reset();
  const Json trace = ReadTrace(FilesIn(folder_.path()).at(0));
  const auto ends = Named(trace, "ep_session_end");
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0]["args"]["provider"], "TestExecutionProvider");
  EXPECT_EQ(ends[0]["args"]["reason"], "RELEASED");
  EXPECT_EQ(ends[0]["args"]["status"], "ok");
  EXPECT_EQ(Named(trace, "session_state_release").size(), 1u);
  EXPECT_EQ(Named(trace, "provider_release").size(), 1u);
  const Json teardown = Named(trace, "session_teardown").at(0);
  int freed = 0;
  for (const Json& event : trace) {
    if (event["cat"] != "Memory" || event["args"]["phase"] != "teardown") continue;
    ++freed;
    EXPECT_GE(event["ts"], teardown["ts"]);
  }
  EXPECT_GT(freed, 0);
}

// PR-43, PR-44, PR-46: level 1 records allocations that reach the device, level 2 all, and they are
// balanced.
TEST_F(ProfilerTest, MemoryEventsBalance) {
  for (const char* level : {"0", "1", "2"}) {
    TemporaryFolder folder;
    auto profiler = Profiler::Open(folder / "m", {{"tenon.profiling.memory_events", level}},
                                   environment_.logger());
    auto session = Open(std::move(*profiler));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(Run(*session).ok());
    session.reset();
    const Json trace = ReadTrace(FilesIn(folder.path()).at(0));
    std::map<std::string, int> balance;
    int actions = 0;
    for (const Json& event : trace) {
      if (event["cat"] != "Memory") continue;
      const Json& args = event["args"];
      ++actions;
      const bool takes = event["name"] == "alloc" || event["name"] == "arena_extend";
      const std::string block = args["ptr"].get<std::string>() +
                                (event["name"].get<std::string>().starts_with("arena") ? "a" : "");
      balance[block] += takes ? 1 : -1;
      EXPECT_EQ(args["device"], "CPU:0");
      EXPECT_EQ(args["memory_type"], "default");
    }
    EXPECT_EQ(actions > 0, *level != '0');
    EXPECT_EQ(!Named(trace, "alloc").empty(), *level == '2');
    for (const auto& [block, count] : balance) EXPECT_EQ(count, 0) << block;
  }
}

// PR-44: memory belongs to the node that requested it. Without memory plans, all do.
TEST_F(ProfilerTest, OutputsAreAllocatedForTheirNodes) {
  SessionOptions options;
  options.plans_memory = false;
  auto session = Open(OpenProfiler({{"tenon.profiling.memory_events", "2"}}), "Positive", "node_y",
                      std::move(options));
  ASSERT_TRUE(Run(*session).ok());
  const Json trace = ReadTrace(session->EndProfiling().value());
  std::set<std::string> nodes;
  for (const Json& event : Named(trace, "alloc")) {
    EXPECT_EQ(event["args"]["phase"], "run");
    if (event["args"].contains("node")) nodes.insert(event["args"]["node"]);
  }
  EXPECT_EQ(nodes, (std::set<std::string>{"node_a", "node_y"}));
}

// PR-47
TEST_F(ProfilerTest, CountersDrawCurves) {
  auto session = Open(OpenProfiler({{"tenon.profiling.memory_counters", "1"}}));
  ASSERT_TRUE(Run(*session).ok());
  const Json trace = ReadTrace(session->EndProfiling().value());
  const auto counters = Named(trace, "Cpu bytes");
  ASSERT_FALSE(counters.empty());
  EXPECT_EQ(counters[0]["ph"], "C");
  EXPECT_TRUE(counters[0]["args"]["in_use"].is_number());
}

// PR-49, PR-50: finished events are in the file before the end, and only the closing bracket is
// missing.
TEST_F(ProfilerTest, StreamingWritesAsEventsEnd) {
  auto session = Open(OpenProfiler({{"tenon.profiling.streaming", "1"}}));
  ASSERT_TRUE(Run(*session).ok());
  std::ifstream file(FilesIn(folder_.path()).at(0));
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const Json trace = Json::parse(text + "]");
  EXPECT_EQ(Named(trace, "model_run").size(), 1u);
  EXPECT_EQ(Named(trace, "node_y_kernel_time").size(), 1u);
  session.reset();
  EXPECT_EQ(Named(ReadTrace(FilesIn(folder_.path()).at(0)), "session_teardown").size(), 1u);
}

// Records its events.
class ProbeProfiler final : public ProviderProfiler {
 public:
  explicit ProbeProfiler(std::vector<std::string>& calls) : calls_(calls) {}
  ~ProbeProfiler() override { calls_.push_back("release"); }
  Status Start(std::chrono::nanoseconds offset) override {
    EXPECT_GE(offset.count(), 0);
    calls_.push_back("start");
    return OkStatus();
  }
  Status StartEvent(uint64_t id) override {
    open_.push_back(id);
    return OkStatus();
  }
  Status StopEvent(uint64_t id, const TraceEvent& event) override {
    EXPECT_EQ(open_.back(), id);  // nested
    open_.pop_back();
    calls_.push_back(event.name);
    return OkStatus();
  }
  Status End(std::vector<TraceEvent>& events) override {
    EXPECT_TRUE(open_.size() <= 1);  // the teardown's own
    calls_.push_back("end");
    TraceEvent kernel;
    kernel.category = TraceCategory::kKernel;
    kernel.name = "device kernel";
    events.push_back(kernel);
    return OkStatus();
  }

 private:
  std::vector<std::string>& calls_;
  std::vector<uint64_t> open_;
};

// PR-33 to PR-35, PR-38
TEST_F(ProfilerTest, ProvidersAreToldOfEventsAndAddTheirOwn) {
  std::vector<std::string> calls;
  auto profiler = OpenProfiler();
  profiler->AddProvider("Probe", std::make_unique<ProbeProfiler>(calls));
  auto session = Open(std::move(profiler));
  ASSERT_TRUE(Run(*session).ok());
  session.reset();
  // Of the phases of the load, too.
  const auto loaded = std::find(calls.begin(), calls.end(), "session_initialization");
  ASSERT_GT(loaded - calls.begin(), 1);
  EXPECT_EQ(*(loaded - 1), "planning");
  calls.erase(calls.begin() + 1, loaded);
  const std::vector<std::string> expected = {"start",
                                             "session_initialization",
                                             "node_a_kernel_time",
                                             "node_y_kernel_time",
                                             "SequentialExecutor::Execute",
                                             "model_run",
                                             "ep_session_end",
                                             "session_state_release",
                                             "end",
                                             "release"};
  EXPECT_EQ(calls, expected);
  EXPECT_EQ(Named(ReadTrace(FilesIn(folder_.path()).at(0)), "device kernel").size(), 1u);
}

// A session of two threads over y = <op>(2x).
class ThreadStatsTest : public ProfilerTest {
 protected:
  Json Trace(const std::string& op, int threads, int runs = 1) {
    Environment environment{{.severity = Severity::kFatal, .threads = {.threads = threads}}};
    auto profiler = Profiler::Open(folder_ / "trace", {}, environment.logger());
    ModelBuilder b;
    b.Input("x", {Dim::Symbol("n")}).Node("Scale", {"x"}, {"a"}).Node(op, {"a"}, {"y"});
    b.Node("Scale", {"y"}, {"z"}).Output("z");
    SessionParts parts;
    parts.providers.push_back(MakeTestProvider());
    parts.shape_functions = &TestShapeFunctions();
    parts.profiler = *profiler;
    auto session = Session::Create(environment, b.Build(), {}, std::move(parts));
    EXPECT_TRUE(session);
    const std::string_view in = "x", out = "z";
    const Value x = Tensor::Of<float>({4}, {1, 2, 3, 4});
    for (int i = 0; i < runs; ++i) {
      Value z;
      (void)(*session)->Run({}, {&in, 1}, {&x, 1}, {&out, 1}, {&z, 1});
      if (z.has_value()) last_ = z.tensor().data<float>()[0];
    }
    EXPECT_EQ(LoopStats::Current(), nullptr);
    return ReadTrace((*session)->EndProfiling().value());
  }

  float last_ = -1;  // of the last run's output
};

// PR-40, TX-66
TEST_F(ThreadStatsTest, SayWhatEachThreadDid) {
  const Json trace = Trace("Spread", 2);
  const Json kernel = Named(trace, "node_y_kernel_time").at(0);
  const Json& stats = kernel["args"]["thread_scheduling_stats"];
  const Json& main = stats["main_thread"];
  EXPECT_TRUE(std::regex_match(main["thread_pool_name"].get<std::string>(),
                               std::regex(R"(session-\d+-intra-op)")));
  EXPECT_EQ(main["thread_id"], std::to_string(kernel["tid"].get<int64_t>()));
  EXPECT_EQ(main["block_size"], Json::parse("[1]"));
  EXPECT_GE(main["core"], 0);
  for (const char* const time :
       {"Distribution", "DistributionEnqueue", "Run", "Wait", "WaitRevoke"}) {
    EXPECT_GE(main.at(time).get<int64_t>(), 0) << time;
    EXPECT_LE(main.at(time), kernel["dur"].get<int64_t>() + 1) << time;
  }
  EXPECT_EQ(main.size(), 9u);
  ASSERT_EQ(stats["sub_threads"].size(), 1u);
  const auto helpers = stats["sub_threads"];
  const auto& helper = helpers.begin().value();
  EXPECT_NE(helpers.begin().key(), main["thread_id"].get<std::string>());
  EXPECT_GE(helper["num_run"], 1);
  EXPECT_LE(helper["num_run"], 3);
  EXPECT_GE(helper["core"], 0);
  EXPECT_EQ(helper.size(), 2u);
  EXPECT_EQ(stats.size(), 2u);
}

// PR-41: each node starts again from zero.
TEST_F(ThreadStatsTest, ANodeWithoutLoopsHasNone) {
  const Json trace = Trace("Spread", 2, 2);
  for (const char* const name : {"node_a_kernel_time", "node_z_kernel_time"}) {
    for (const Json& kernel : Named(trace, name)) {
      const Json& stats = kernel["args"]["thread_scheduling_stats"];
      EXPECT_EQ(stats["main_thread"]["block_size"], Json::array());
      for (const char* const time :
           {"Distribution", "DistributionEnqueue", "Run", "Wait", "WaitRevoke"}) {
        EXPECT_EQ(stats["main_thread"][time], 0);
      }
      EXPECT_EQ(stats["sub_threads"], Json::object());
    }
  }
  for (const Json& kernel : Named(trace, "node_y_kernel_time")) {
    const Json& stats = kernel["args"]["thread_scheduling_stats"];
    EXPECT_EQ(stats["main_thread"]["block_size"].size(), 1u) << "of this run alone";
  }
}

// PR-41
TEST_F(ThreadStatsTest, WithoutAPoolThereAreNone) {
  for (const Json& kernel : Named(Trace("Spread", 1), "node_y_kernel_time")) {
    EXPECT_EQ(kernel["args"]["thread_scheduling_stats"], Json::object());
  }
}

// PR-42: (Trace checks every run, including failing ones.)
TEST_F(ThreadStatsTest, LoopsAreCollectedOnlyWhileANodeIsProfiled) {
  Trace("Watch", 2);
  EXPECT_EQ(last_, 2) << "collected";
  for (const char* const op : {"Fail", "Throw"}) Trace(op, 2, 2);
  Environment environment{{.severity = Severity::kFatal, .threads = {.threads = 2}}};
  auto profiler = Profiler::Open(folder_ / "trace", {}, environment.logger());
  auto session = Open(*profiler, "Watch");
  const std::string_view in = "x", out = "y";
  const Value x = Tensor::Of<float>({2}, {1, 2});
  for (const float expected : {1.0f, 0.0f}) {
    Value y;
    ASSERT_TRUE(session->Run({}, {&in, 1}, {&x, 1}, {&out, 1}, {&y, 1}).ok());
    EXPECT_EQ(y.tensor().data<float>()[0], expected);
    EXPECT_NE(session->EndProfiling().value() == "", expected == 1.0f);
  }
}

// PR-13: events of concurrent runs stay apart.
TEST_F(ProfilerTest, ConcurrentRunsHaveFilesOfTheirOwn) {
  auto session = Open(nullptr);
  const auto work = [&](const std::string& prefix) {
    RunOptions options;
    options.profile_prefix = folder_ / prefix;
    options.tag = prefix;
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(Run(*session, options).ok());
  };
  std::thread first(work, "a"), second(work, "b");
  first.join();
  second.join();
  const auto files = FilesIn(folder_.path());
  ASSERT_EQ(files.size(), 40u);
  for (const std::string& file : files) {
    const Json trace = ReadTrace(file);
    const auto runs = Named(trace, "model_run");
    ASSERT_EQ(runs.size(), 1u);
    const std::string prefix = std::filesystem::path(file).filename().string().substr(0, 1);
    EXPECT_EQ(runs[0]["args"]["run_tag"], prefix);
    EXPECT_EQ(Named(trace, "node_a_kernel_time").size(), 1u);
  }
}

}  // namespace
}  // namespace tenon
