// A trace of a session (profiling.md names its events), as `tenon profile` reads it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tenon::cli {

// Times are in microseconds since the profiling start.
struct TraceSpan {
  std::string name;
  int64_t start = 0;
  int64_t duration = 0;
  int64_t end() const { return start + duration; }
};

struct RunSpan : TraceSpan {
  int64_t id = 0;
  std::string status;
};

struct TensorShape {
  std::string type;
  std::vector<int64_t> dims;
};

// A worker thread that helped with a node, and the number of blocks that it did.
struct ThreadHelp {
  std::string thread;
  int64_t blocks = 0;
  int64_t core = -1;
};

// One run of one node; `name` is the node's.
struct NodeSpan : TraceSpan {
  std::string op_type, provider;
  int64_t fence_start = 0;  // when it began to allocate its outputs and to wait for its inputs
  int64_t run = 0;          // id of the run
  int depth = 0;            // of control flow around it
  int64_t self = 0;         // duration without the nodes of its subgraphs
  std::vector<TensorShape> inputs, outputs;
  double bytes = 0;  // that it read and wrote
  std::string main_thread;
  // Of the loops that it divided among threads.
  int64_t loop_start = 0, loop_run = 0, loop_wait = 0;
  std::vector<ThreadHelp> help;
};

// An event of an execution provider's device or driver.
struct DeviceSpan : TraceSpan {
  std::string category, provider, parent;
};

// A block that is allocated or freed.
struct MemoryEvent {
  int64_t time = 0;
  bool takes = true;
  bool is_arena = false;  // a region of an arena, not a block of it
  std::string device, block, provider, phase, node;
  int64_t bytes = 0;
  int64_t run = 0;  // 0: outside runs
};

struct Trace {
  std::vector<TraceSpan> session;  // the session's work except runs
  std::vector<RunSpan> runs;
  std::vector<NodeSpan> nodes;  // by start
  std::vector<DeviceSpan> device;
  std::vector<MemoryEvent> memory;  // by time
  int64_t end = 0;                  // of the last event
};

// Throws Error for a file that is no trace.
Trace ReadTrace(const std::string& path);

}  // namespace tenon::cli
