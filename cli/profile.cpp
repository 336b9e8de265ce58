// tenon profile: shows where a model's time and memory go.
#include <tenon_c_api.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "file.h"
#include "profile_summary.h"
#include "progress.h"
#include "report.h"
#include "text.h"
#include "trace.h"

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr size_t kMostDrawnNodes = 100'000;

// A folder that is deleted with this object.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (fs::temp_directory_path() / "tenon-profile-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) Fail("cannot create the folder '{}'", name);
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// Runs the model and ends the session, so that the trace is complete. Returns what was run.
Json RunProfiled(const ProfileCommand& command, const std::string& prefix) {
  SessionSettings settings = command.session;
  settings.config = {{"tenon.profiling.memory_events", "2"}, {"tenon.profiling.max_events", "0"}};
  settings.profile_prefix = prefix;
  Model model(settings);
  std::vector<Array> feeds = MakeFeeds(model, command.feeds, "random");
  const std::vector<Ort::Value> inputs = ToValues(feeds);
  const Ort::RunOptions planned(nullptr);
  Ort::RunOptions unplanned;  // the first run: it shows which values hold the memory
  unplanned.AddConfigEntry("tenon.plans_memory", "0");
  Progress progress("profiling " + model.path);
  for (int i = 0; i < command.runs; ++i) {
    RunOnce(model, inputs, i == 0 ? unplanned : planned);
    progress.Set(static_cast<double>(i + 1) / command.runs);
  }
  return {{"model", model.path},
          {"version", TenonGetApi(TENON_API_VERSION)->GetVersionString()},
          {"thread_count", command.session.threads},
          {"inputs", DescribeFeeds(model, feeds)}};
}

// Moves the only file of a folder to its destination, if there is one.
void MoveOnlyFile(const fs::path& folder, const std::string& target) {
  const fs::directory_iterator files(folder);
  if (files == end(files)) Fail("the trace could not be written to '{}'", folder.string());
  std::error_code error;
  fs::copy_file(files->path(), target, fs::copy_options::overwrite_existing, error);
  if (error) Fail("cannot write '{}': {}", target, error.message());
}

std::string RateText(const Json& rate, const char* unit) {
  return rate.is_null() ? "" : Format("{:.1f} {}", rate.get<double>(), unit);
}

void PrintText(const Json& profile) {
  constexpr size_t kMostRows = 10;
  const Json& run = profile["run_ms"];
  Print("{} runs, {} each (median); the first took {}\n", profile["runs"].size(),
        DurationText(run["median"]), DurationText(run["first"]));
  for (const Json& memory : profile["memory"]) {
    Print("peak memory of {}: {}\n", memory["device"].get<std::string>(),
          BytesText(memory["peak"]["bytes"]));
  }
  std::vector<std::vector<std::string>> rows = {
      {"operator", "nodes", "time per run", "share", "GFLOP/s", "GB/s"}};
  for (const Json& one : profile["operators"]) {
    if (rows.size() > kMostRows) break;
    rows.push_back({one["op_type"], std::to_string(one["nodes"].get<size_t>()),
                    DurationText(one["ms"]), Format("{:.1f} %", 100 * one["share"].get<double>()),
                    RateText(one["gflops"], ""), RateText(one["gbytes"], "")});
  }
  Print("{}", TableText(rows, ""));
  Print("trace:  {}\nreport: {}\n", profile["trace"].get<std::string>(),
        profile["report"].get<std::string>());
}

}  // namespace

int Profile(const ProfileCommand& command) {
  const std::string stem = fs::path(command.session.model).stem().string();
  const std::string trace = command.trace.empty() ? stem + ".trace.json" : command.trace;
  const std::string report = command.report.empty() ? stem + ".profile.html" : command.report;
  const ScratchFolder scratch;
  Json profile = RunProfiled(command, (scratch.path() / "trace").string());
  MoveOnlyFile(scratch.path(), trace);
  profile["trace"] = trace;
  profile["report"] = report;
  const Trace events = ReadTrace(trace);
  profile.update(Summarize(events));
  Json page = profile;
  page["timeline"] = Timeline(events, profile, kMostDrawnNodes);
  WriteFile(report, AsBytes(ReportPage(page)));
  if (command.json) {
    Print("{}\n", profile.dump(2, ' ', false, Json::error_handler_t::replace));
  } else {
    PrintText(profile);
  }
  return 0;
}

}  // namespace tenon::cli
