#include "profile_summary.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "flops.h"
#include "memory_curve.h"
#include "text.h"

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

double Milliseconds(int64_t microseconds) { return static_cast<double>(microseconds) / 1e3; }

// The runs over which averages are taken.
std::set<int64_t> CountedRuns(const Trace& trace) {
  std::set<int64_t> runs;
  for (const RunSpan& run : trace.runs) runs.insert(run.id);
  if (runs.size() > 1) runs.erase(runs.begin());
  return runs;
}

// Work that was done in some time.
struct Work {
  int64_t self_us = 0;
  double flops = 0, bytes = 0;
  std::set<std::string> nodes;

  void Add(const NodeSpan& node) {
    self_us += node.self;
    flops += FlopsOf(node.op_type, node.inputs, node.outputs);
    bytes += node.bytes;
    nodes.insert(node.name);
  }
  // Adds ms, share, gflops and gbytes, of one of `runs` runs that take `run_ms` each.
  void AddTo(Json& json, double runs, double run_ms) const {
    const double ms = Milliseconds(self_us) / runs;
    const auto rate = [&](double amount) {
      return amount > 0 && self_us > 0 ? Json(amount / static_cast<double>(self_us) / 1e3) : Json();
    };
    json["ms"] = ms;
    json["share"] = run_ms > 0 ? ms / run_ms : 0;
    json["gflops"] = rate(flops);
    json["gbytes"] = rate(bytes);
  }
};

bool IsMoreExpensive(const Json& a, const Json& b) {
  return a["ms"].get<double>() > b["ms"].get<double>();
}

Json TensorTexts(const std::vector<TensorShape>& tensors) {
  Json texts = Json::array();
  for (const TensorShape& tensor : tensors) {
    texts.push_back(Format("{} {}", tensor.type, ShapeText(tensor.dims)));
  }
  return texts;
}

Json Operators(const Trace& trace, const std::set<int64_t>& runs, double run_ms) {
  std::map<std::pair<std::string, std::string>, Work> works;
  for (const NodeSpan& node : trace.nodes) {
    if (runs.contains(node.run)) works[{node.op_type, node.provider}].Add(node);
  }
  std::vector<Json> operators;
  for (const auto& [key, work] : works) {
    Json& json = operators.emplace_back();
    json = {{"op_type", key.first}, {"provider", key.second}, {"nodes", work.nodes.size()}};
    work.AddTo(json, static_cast<double>(runs.size()), run_ms);
  }
  std::stable_sort(operators.begin(), operators.end(), IsMoreExpensive);
  return operators;
}

// Over all runs, so that nodes that only the first run has are included.
Json Nodes(const Trace& trace, const std::set<int64_t>& runs, double run_ms) {
  std::map<std::pair<std::string, std::string>, std::pair<Work, const NodeSpan*>> works;
  for (const NodeSpan& node : trace.nodes) {
    auto& [work, last] = works[{node.name, node.op_type}];
    if (runs.contains(node.run)) work.Add(node);
    last = &node;
  }
  std::vector<Json> nodes;
  for (const auto& [key, value] : works) {
    const auto& [work, node] = value;
    Json& json = nodes.emplace_back();
    json = {{"name", node->name}, {"op_type", node->op_type}, {"provider", node->provider}};
    work.AddTo(json, static_cast<double>(runs.size()), run_ms);
    json["inputs"] = TensorTexts(node->inputs);
    json["outputs"] = TensorTexts(node->outputs);
  }
  std::stable_sort(nodes.begin(), nodes.end(), IsMoreExpensive);
  return nodes;
}

Json ThreadUse(const Trace& trace, const std::set<int64_t>& runs) {
  struct Helper {
    int64_t blocks = 0, spans = 0;
    std::set<int64_t> cores;
  };
  std::map<std::string, Helper> helpers;
  int64_t node = 0, run = 0, wait = 0, start = 0;
  for (const NodeSpan& span : trace.nodes) {
    for (const ThreadHelp& help : span.help) {
      Helper& helper = helpers[help.thread];
      helper.blocks += help.blocks;
      ++helper.spans;
      helper.cores.insert(help.core);
    }
    if (!runs.contains(span.run)) continue;
    node += span.self;
    run += span.loop_run;
    wait += span.loop_wait;
    start += span.loop_start;
  }
  const double count = static_cast<double>(std::max<size_t>(runs.size(), 1));
  Json json = {{"node_ms", Milliseconds(node) / count},
               {"alone_ms", Milliseconds(std::max<int64_t>(node - run - wait - start, 0)) / count},
               {"loop_run_ms", Milliseconds(run) / count},
               {"loop_wait_ms", Milliseconds(wait) / count},
               {"loop_start_ms", Milliseconds(start) / count},
               {"helpers", Json::array()}};
  for (const auto& [thread, helper] : helpers) {
    json["helpers"].push_back({{"thread", thread},
                               {"blocks", helper.blocks},
                               {"nodes", helper.spans},
                               {"cores", helper.cores}});
  }
  return json;
}

}  // namespace

Json Summarize(const Trace& trace) {
  const std::set<int64_t> counted = CountedRuns(trace);
  Json runs = Json::array(), session = Json::array();
  std::vector<double> times;
  double total = 0;
  for (const RunSpan& run : trace.runs) {
    runs.push_back({{"id", run.id},
                    {"start_ms", Milliseconds(run.start)},
                    {"ms", Milliseconds(run.duration)},
                    {"status", run.status}});
    if (!counted.contains(run.id)) continue;
    times.push_back(Milliseconds(run.duration));
    total += times.back();
  }
  for (const TraceSpan& span : trace.session) {
    session.push_back({{"name", span.name},
                       {"start_ms", Milliseconds(span.start)},
                       {"ms", Milliseconds(span.duration)}});
  }
  if (times.empty()) Fail("the trace has no run");
  std::sort(times.begin(), times.end());
  const double run_ms = total / static_cast<double>(times.size());
  Json threads = ThreadUse(trace, counted);
  const double outside = std::max(run_ms - threads["node_ms"].get<double>(), 0.0);
  return {{"runs", runs},
          {"run_ms",
           {{"first", Milliseconds(trace.runs.front().duration)},
            {"min", times.front()},
            {"median", times[times.size() / 2]},
            {"max", times.back()}}},
          {"session", session},
          {"operators", Operators(trace, counted, run_ms)},
          {"nodes", Nodes(trace, counted, run_ms)},
          {"outside_ms", outside},
          {"memory", MemoryOverTime(trace)},
          {"threads", threads}};
}

Json Timeline(const Trace& trace, const Json& summary, size_t most) {
  std::map<std::pair<std::string, std::string>, size_t> index;
  for (const Json& node : summary["nodes"]) {
    index.emplace(std::pair(node["name"].get<std::string>(), node["op_type"].get<std::string>()),
                  index.size());
  }
  Json nodes = Json::array(), device = Json::array(), tracks = Json::array();
  for (size_t i = 0; i < std::min(trace.nodes.size(), most); ++i) {
    const NodeSpan& node = trace.nodes[i];
    nodes.push_back({node.start, node.duration, index.at({node.name, node.op_type}), node.depth,
                     node.help.size()});
  }
  std::map<std::string, size_t> track_of;
  for (const DeviceSpan& span : trace.device) {
    const std::string track = span.provider + (span.category == "Api" ? " calls" : " device");
    const auto [found, is_new] = track_of.emplace(track, track_of.size());
    if (is_new) tracks.push_back(track);
    device.push_back({span.start, span.duration, span.name, found->second});
  }
  return {{"nodes", nodes}, {"device", device}, {"tracks", tracks}, {"end_us", trace.end}};
}

}  // namespace tenon::cli
