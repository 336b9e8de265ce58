// The events of a trace, in the format that Chrome's tracing and Perfetto read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tenon {

// The first four have the numbers of OrtProfilingEventCategory.
enum class TraceCategory : uint8_t { kSession, kNode, kKernel, kApi, kMemory };

struct TraceArg {
  std::string key;
  // Text, unless it is a JSON object or array, which is embedded as such.
  std::string value;
  // Whether the value is known to be JSON on one line, of any kind.
  bool is_json = false;
};

// A span of time, or with `is_counter` the value of a curve at its start.
struct TraceEvent {
  TraceCategory category = TraceCategory::kSession;
  std::string name;
  // Microseconds since the profiling start.
  int64_t start = 0;
  int64_t duration = 0;
  int64_t process = 0;
  int64_t thread = 0;
  std::vector<TraceArg> args;
  bool is_counter = false;
};

// One JSON object on one line, without a line break: cat, pid, tid, dur, ts, ph, name, args.
std::string TraceLine(const TraceEvent& event);

}  // namespace tenon
