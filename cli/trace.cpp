#include "trace.h"

#include <algorithm>
#include <map>
#include <utility>

#include "file.h"
#include "flops.h"
#include "text.h"

namespace tenon::cli {
namespace {

// Numbers are strings in the arguments of a trace.
int64_t NumberIn(const nlohmann::json& args, const char* key) {
  const auto found = args.find(key);
  if (found == args.end()) return 0;
  if (found->is_number()) return found->get<int64_t>();
  return found->is_string() ? std::strtoll(found->get<std::string>().c_str(), nullptr, 10) : 0;
}

std::string TextIn(const nlohmann::json& args, const char* key) {
  const auto found = args.find(key);
  return found != args.end() && found->is_string() ? found->get<std::string>() : "";
}

// [{"float":[1,2]},...]
std::vector<TensorShape> ShapesIn(const nlohmann::json& args, const char* key) {
  std::vector<TensorShape> shapes;
  const auto found = args.find(key);
  if (found == args.end() || !found->is_array()) return shapes;
  for (const nlohmann::json& tensor : *found) {
    for (const auto& [type, dims] : tensor.items()) {
      shapes.push_back({type, dims.get<std::vector<int64_t>>()});
    }
  }
  return shapes;
}

void ReadThreads(const nlohmann::json& args, NodeSpan& node) {
  const auto stats = args.find("thread_scheduling_stats");
  if (stats == args.end() || !stats->contains("main_thread")) return;
  const nlohmann::json& main = (*stats)["main_thread"];
  node.main_thread = TextIn(main, "thread_id");
  node.loop_start = NumberIn(main, "Distribution") + NumberIn(main, "DistributionEnqueue") +
                    NumberIn(main, "WaitRevoke");
  node.loop_run = NumberIn(main, "Run");
  node.loop_wait = NumberIn(main, "Wait");
  for (const auto& [thread, help] : (*stats)["sub_threads"].items()) {
    node.help.push_back({thread, NumberIn(help, "num_run"), NumberIn(help, "core")});
  }
}

class Reader {
 public:
  void Add(const nlohmann::json& event) {
    const std::string category = event.at("cat"), name = event.at("name");
    const TraceSpan span{name, event.at("ts"), event.at("dur")};
    const nlohmann::json& args = event.at("args");
    if (event.at("ph") != "X") return;
    trace_.end = std::max(trace_.end, span.end());
    if (category == "Node") return AddNode(span, args);
    if (category == "Memory") return AddMemory(span, args);
    if (category == "Session") return AddSession(span, args);
    trace_.device.push_back({span, category, TextIn(args, "provider"), TextIn(args, "parent")});
  }

  Trace Take() {
    const auto earlier = [](const TraceSpan& a, const TraceSpan& b) { return a.start < b.start; };
    std::stable_sort(trace_.nodes.begin(), trace_.nodes.end(), earlier);
    std::stable_sort(trace_.memory.begin(), trace_.memory.end(),
                     [](const MemoryEvent& a, const MemoryEvent& b) { return a.time < b.time; });
    Nest();
    return std::move(trace_);
  }

 private:
  void AddSession(const TraceSpan& span, const nlohmann::json& args) {
    if (span.name == "model_run") {
      trace_.runs.push_back({span, NumberIn(args, "run_id"), TextIn(args, "status")});
    } else if (span.name != "SequentialExecutor::Execute") {
      trace_.session.push_back(span);
    }
  }

  void AddNode(const TraceSpan& span, const nlohmann::json& args) {
    constexpr std::string_view kBefore = "_fence_before", kKernel = "_kernel_time";
    if (span.name.ends_with(kBefore)) {
      const std::string node = span.name.substr(0, span.name.size() - kBefore.size());
      fences_[{node, span.end()}] = span.start;
    }
    if (!span.name.ends_with(kKernel)) return;
    NodeSpan node{span};
    node.name.resize(node.name.size() - kKernel.size());
    node.op_type = TextIn(args, "op_name");
    node.provider = TextIn(args, "provider");
    node.inputs = ShapesIn(args, "input_type_shape");
    node.outputs = ShapesIn(args, "output_type_shape");
    node.bytes = BytesMoved(
        node.op_type,
        static_cast<double>(NumberIn(args, "activation_size") + NumberIn(args, "parameter_size")),
        static_cast<double>(NumberIn(args, "output_size")));
    ReadThreads(args, node);
    trace_.nodes.push_back(std::move(node));
  }

  void AddMemory(const TraceSpan& span, const nlohmann::json& args) {
    const bool takes =
        span.name == "alloc" || span.name == "arena_extend" || span.name == "reserve";
    const bool gives = span.name == "free" || span.name == "arena_shrink";
    if (!takes && !gives) return;
    trace_.memory.push_back({.time = span.end(),
                             .takes = takes,
                             .is_arena = span.name.starts_with("arena"),
                             .device = TextIn(args, "device"),
                             .block = TextIn(args, "ptr"),
                             .provider = TextIn(args, "provider"),
                             .phase = TextIn(args, "phase"),
                             .node = TextIn(args, "node"),
                             .bytes = NumberIn(args, "bytes"),
                             .run = NumberIn(args, "run_id")});
  }

  // Finds the run and the enclosing node of each node.
  void Nest() {
    std::vector<NodeSpan*> around;
    for (NodeSpan& node : trace_.nodes) {
      while (!around.empty() && around.back()->end() <= node.start) around.pop_back();
      // A node of no duration may have the same start as one that does not enclose it.
      while (!around.empty() && around.back()->end() < node.end()) around.pop_back();
      node.depth = static_cast<int>(around.size());
      node.self = node.duration;
      if (!around.empty()) around.back()->self -= node.duration;
      if (node.duration > 0) around.push_back(&node);
      const auto fence = fences_.find({node.name, node.start});
      node.fence_start = fence == fences_.end() ? node.start : fence->second;
      for (const RunSpan& run : trace_.runs) {
        if (run.start <= node.start && node.end() <= run.end()) node.run = run.id;
      }
    }
  }

  Trace trace_;
  std::map<std::pair<std::string, int64_t>, int64_t> fences_;  // node and end -> start
};

}  // namespace

Trace ReadTrace(const std::string& path) {
  const std::vector<std::byte> bytes = ReadFile(path);
  try {
    Reader reader;
    const nlohmann::json events = nlohmann::json::parse(AsText(bytes));
    for (const nlohmann::json& event : events) reader.Add(event);
    return reader.Take();
  } catch (const nlohmann::json::exception& error) {
    Fail("'{}' is no trace: {}", path, error.what());
  }
}

}  // namespace tenon::cli
