#include "memory_curve.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "text.h"

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostPoints = 1500;
constexpr size_t kMostBlocks = 200;

double Milliseconds(int64_t microseconds) { return static_cast<double>(microseconds) / 1e3; }

struct Point {
  int64_t time;
  int64_t bytes;
};

// Of each of kMostPoints equal intervals, the highest point and the last.
Json Thinned(const std::vector<Point>& points) {
  Json json = Json::array();
  const auto add = [&](const Point& point) {
    json.push_back({Milliseconds(point.time), point.bytes});
  };
  if (points.size() <= kMostPoints) {
    for (const Point& point : points) add(point);
    return json;
  }
  const int64_t first = points.front().time;
  const int64_t span = std::max<int64_t>(points.back().time - first, 1);
  const auto bucket = [&](const Point& point) {
    return (point.time - first) * static_cast<int64_t>(kMostPoints) / span;
  };
  for (size_t i = 0; i < points.size();) {
    size_t highest = i, next = i + 1;
    for (; next < points.size() && bucket(points[next]) == bucket(points[i]); ++next) {
      if (points[next].bytes > points[highest].bytes) highest = next;
    }
    add(points[highest]);
    if (highest != next - 1) add(points[next - 1]);
    i = next;
  }
  return json;
}

// The memory of one device.
class Device {
 public:
  Device(const Trace& trace, std::string name) : trace_(trace), name_(std::move(name)) {}

  void Add(const MemoryEvent& event) {
    if (event.is_arena) {
      reserved_bytes_ += event.takes ? event.bytes : -event.bytes;
      reserved_.push_back({event.time, reserved_bytes_});
      return;
    }
    if (event.takes) {
      alive_[event.block] = &event;
      bytes_ += event.bytes;
    } else if (alive_.erase(event.block) > 0) {
      bytes_ -= event.bytes;
    }
    curve_.push_back({event.time, bytes_});
    if (bytes_ > peak_.bytes) Note(peak_, event);
    if (event.run == FirstRun() && bytes_ > first_run_.bytes) Note(first_run_, event);
  }

  Json ToJson() const {
    const bool is_same = first_run_.blocks.empty() || first_run_.time == peak_.time;
    return {{"device", name_},
            {"curve", Thinned(curve_)},
            {"reserved", Thinned(reserved_)},
            {"peak", Describe(peak_)},
            {"first_run", is_same ? Json() : Describe(first_run_)}};
  }

 private:
  struct Peak {
    int64_t bytes = 0;
    int64_t time = 0;
    const MemoryEvent* last = nullptr;
    std::vector<const MemoryEvent*> blocks;
  };

  int64_t FirstRun() const { return trace_.runs.empty() ? -1 : trace_.runs.front().id; }

  void Note(Peak& peak, const MemoryEvent& event) const {
    peak = {bytes_, event.time, &event, {}};
    for (const auto& [block, taken] : alive_) peak.blocks.push_back(taken);
  }

  Json Describe(const Peak& peak) const {
    if (peak.last == nullptr) return {{"bytes", 0}, {"ms", 0}, {"blocks", Json::array()}};
    std::vector<const MemoryEvent*> blocks = peak.blocks;
    std::stable_sort(blocks.begin(), blocks.end(), [](const MemoryEvent* a, const MemoryEvent* b) {
      return a->bytes > b->bytes;
    });
    Json described = Json::array();
    for (size_t i = 0; i < std::min(blocks.size(), kMostBlocks); ++i) {
      described.push_back(Describe(*blocks[i], peak.last->run));
    }
    return {{"bytes", peak.bytes},   {"ms", Milliseconds(peak.time)}, {"phase", peak.last->phase},
            {"run", peak.last->run}, {"count", blocks.size()},        {"blocks", described}};
  }

  Json Describe(const MemoryEvent& block, int64_t run) const {
    const NodeSpan* const node = NodeOf(block);
    std::string what = "working memory", tensor;
    if (block.run != run || block.phase != "run") {
      what = "kept";
    } else if (block.node.empty()) {
      what = "plan or model output";
    } else if (node == nullptr || block.time <= node->start) {
      what = "output";
      if (node != nullptr && node->outputs.size() == 1) {
        tensor = Format("{} {}", node->outputs[0].type, ShapeText(node->outputs[0].dims));
      }
    }
    return {{"bytes", block.bytes},
            {"node", block.node},
            {"op_type", node == nullptr ? "" : node->op_type},
            {"tensor", tensor},
            {"what", what},
            {"phase", block.phase}};
  }

  // The run of the node that the block was taken for.
  const NodeSpan* NodeOf(const MemoryEvent& block) const {
    if (block.node.empty()) return nullptr;
    for (const NodeSpan& node : trace_.nodes) {
      if (node.name == block.node && node.run == block.run && block.time <= node.end()) {
        return &node;
      }
    }
    return nullptr;
  }

  const Trace& trace_;
  const std::string name_;
  std::map<std::string, const MemoryEvent*> alive_;  // by address
  int64_t bytes_ = 0, reserved_bytes_ = 0;
  std::vector<Point> curve_, reserved_;
  Peak peak_, first_run_;
};

}  // namespace

Json MemoryOverTime(const Trace& trace) {
  std::map<std::string, Device> devices;
  for (const MemoryEvent& event : trace.memory) {
    devices.try_emplace(event.device, trace, event.device).first->second.Add(event);
  }
  Json json = Json::array();
  for (const auto& [name, device] : devices) json.push_back(device.ToJson());
  return json;
}

}  // namespace tenon::cli
