// Traces of sessions and runs with a plugin provider. Requirements: profiling.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/temporary_folder.h"
#include "plugin/mock.h"

namespace tenon::test {
namespace {

using Json = nlohmann::json;

Json ReadTrace(const std::filesystem::path& path) {
  std::ifstream file(path);
  return Json::parse(file);
}

std::vector<Json> Named(const Json& trace, const std::string& name) {
  std::vector<Json> events;
  std::copy_if(trace.begin(), trace.end(), std::back_inserter(events),
               [&](const Json& event) { return event["name"] == name; });
  return events;
}

class PluginProfilingTest : public MockTest {
 protected:
  void SetUp() override { ASSERT_EQ(Register(), ""); }

  // The trace of a session from its beginning to its end.
  Json TraceOfSession(Ort::SessionOptions& options) {
    options.EnableProfiling((folder_ / "session").c_str());
    {
      Ort::Session session = Open(SquareModel(), options);
      Run(session, {1, 2});
    }
    return OnlyTrace();
  }

  void RunProfiled(Ort::Session& session, const char* memory_events = "1") {
    Ort::RunOptions options;
    options.AddConfigEntry("tenon.profiling.memory_events", memory_events);
    ASSERT_EQ(Outcome(Api().RunOptionsEnableProfiling(options, (folder_ / "run").c_str())), "");
    std::vector<float> x = {3};
    const char* const input = "x";
    const char* const output = "y";
    const Ort::Value feed = TensorOver(x, {1});
    session.Run(options, &input, &feed, 1, &output, 1);
  }

  Json OnlyTrace() const {
    const std::filesystem::directory_iterator files(folder_.path());
    EXPECT_EQ(std::distance(begin(files), end(files)), 1);
    return ReadTrace(std::filesystem::directory_iterator(folder_.path())->path());
  }

  TemporaryFolder folder_;
};

// PR-14: each profiled run has a profiler of the provider, which is released after the run.
TEST_F(PluginProfilingTest, ARunHasAProfilerForItsTime) {
  Ort::Session session = Open(SquareModel(), OptionsForMock());
  EXPECT_EQ(Mock().Count("CreateProfiler"), 0);
  for (int runs = 1; runs <= 3; ++runs) {
    Mock().calls.clear();
    RunProfiled(session);
    std::vector<std::string> life;
    for (const std::string& call : Mock().calls) {
      const bool is_life = call == "CreateProfiler" || call == "StartProfiling" ||
                           call == "Compute" || call == "EndProfiling" || call == "ReleaseProfiler";
      if (is_life) life.push_back(call);
    }
    EXPECT_THAT(life, testing::ElementsAre("CreateProfiler", "StartProfiling", "Compute",
                                           "EndProfiling", "ReleaseProfiler"));
  }
  Mock().calls.clear();
  Run(session, {1});
  EXPECT_EQ(Mock().Count("CreateProfiler"), 0) << "this run is not profiled";
}

// PR-15
TEST_F(PluginProfilingTest, ARunsFileHoldsAllOfTheRun) {
  Ort::Session session = Open(SquareModel(), OptionsForMock());
  RunProfiled(session, "2");
  const Json trace = OnlyTrace();
  EXPECT_EQ(Named(trace, "model_run").size(), 1u);
  EXPECT_EQ(Named(trace, "SequentialExecutor::Execute").size(), 1u);
  EXPECT_EQ(Named(trace, "mock_kernel").size(), 1u);
  EXPECT_EQ(Named(trace, "mock_launch").size(), 1u);
  std::set<std::string> providers, memory;
  for (const Json& event : trace) {
    const Json& args = event["args"];
    if (event["cat"] == "Node" && args.contains("provider")) providers.insert(args["provider"]);
    if (event["cat"] != "Memory") continue;
    memory.insert(args["provider"]);
    EXPECT_EQ(args["phase"], "run");
    EXPECT_EQ(args["run_id"], "1");
  }
  EXPECT_THAT(providers, testing::ElementsAre("CPUExecutionProvider", kMock));
  EXPECT_THAT(memory, testing::ElementsAre("CPUExecutionProvider", kMock));
  RunProfiled(session, "0");
  for (const auto& file : std::filesystem::directory_iterator(folder_.path())) {
    int events = 0;
    const Json other = ReadTrace(file.path());
    for (const Json& event : other) events += event["cat"] == "Memory";
    EXPECT_EQ(events == 0, other != trace);
  }
}

// PR-23
TEST_F(PluginProfilingTest, EventsAreOfFiveCategories) {
  Ort::SessionOptions options = OptionsForMock();
  options.AddConfigEntry("tenon.profiling.memory_events", "2");
  std::set<std::string> categories;
  for (const Json& event : TraceOfSession(options)) categories.insert(event["cat"]);
  EXPECT_THAT(categories, testing::ElementsAre("Api", "Kernel", "Memory", "Node", "Session"));
}

// PR-31, PR-32: events of the provider's driver, and the nodes to which its kernels belong.
TEST_F(PluginProfilingTest, EventsOfTheProviderNameTheirNodes) {
  Ort::SessionOptions options = OptionsForMock();
  const Json trace = TraceOfSession(options);
  const auto launches = Named(trace, "mock_launch"), kernels = Named(trace, "mock_kernel");
  ASSERT_EQ(launches.size(), 1u);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(launches[0]["cat"], "Api");
  EXPECT_EQ(kernels[0]["cat"], "Kernel");
  EXPECT_EQ(kernels[0]["args"]["provider"], kMock);
  for (const Json& event : {launches[0], kernels[0]}) {
    const auto parents = Named(trace, event["args"]["parent"]);
    ASSERT_EQ(parents.size(), 1u);
    EXPECT_EQ(parents[0]["args"]["provider"], kMock);
    EXPECT_EQ(parents[0]["cat"], "Node");
  }
}

// PR-39
TEST_F(PluginProfilingTest, ASessionHasOneProfilerAndEachRunItsOwn) {
  const auto run_at_once = [](const auto& run) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(run);
    for (std::thread& thread : threads) thread.join();
  };
  {
    Ort::SessionOptions options = OptionsForMock();
    options.EnableProfiling((folder_ / "session").c_str());
    Ort::Session session = Open(SquareModel(), options);
    run_at_once([&] { Run(session, {1}); });
  }
  EXPECT_EQ(Mock().Count("StartProfiling"), 1);
  EXPECT_EQ(Mock().Count("StartEvent"), Mock().Count("StopEvent"));
  EXPECT_EQ(Mock().Count("EndProfiling"), 1);
  Mock().calls.clear();
  Ort::Session session = Open(SquareModel(), OptionsForMock());
  run_at_once([&] { RunProfiled(session); });
  for (const char* const call :
       {"CreateProfiler", "StartProfiling", "EndProfiling", "ReleaseProfiler"}) {
    EXPECT_EQ(Mock().Count(call), 4) << call;
  }
}

// PR-45: the plugin's allocations appear without any work of the plugin; memory that it manages
// itself appears as its events say (mock_launch).
TEST_F(PluginProfilingTest, ThePluginsMemoryIsRecordedByTheHost) {
  for (const bool allocates : {false, true}) {
    Mock().provider_allocates = allocates;
    TemporaryFolder folder;
    Mock().allocations = 0;
    Ort::SessionOptions options = OptionsForMock();
    options.EnableProfiling((folder / "session").c_str());
    {
      Ort::Session session = Open(SquareModel(), options);
      Run(session, {1, 2});
    }
    const Json trace = ReadTrace(std::filesystem::directory_iterator(folder.path())->path());
    std::map<std::string, int> blocks;
    int allocations = 0;
    for (const Json& event : trace) {
      if (event["cat"] != "Memory" || event["args"]["provider"] != kMock) continue;
      const Json& args = event["args"];
      const bool takes = event["name"] == "alloc";
      EXPECT_TRUE(takes || event["name"] == "free") << event["name"];
      EXPECT_EQ(args["device"], "GPU:0");
      EXPECT_GE(std::stoull(args["bytes"].get<std::string>()), 8u);
      blocks[args["ptr"]] += takes ? 1 : -1;
      allocations += takes;
    }
    EXPECT_GT(allocations, 0);
    EXPECT_EQ(allocations, Mock().allocations) << "each is there";
    for (const auto& [block, balance] : blocks) EXPECT_EQ(balance, 0) << block;
    EXPECT_EQ(Named(trace, "mock_launch").at(0)["cat"], "Api");
  }
}

}  // namespace
}  // namespace tenon::test
