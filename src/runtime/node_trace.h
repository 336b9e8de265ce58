// What a profiler keeps about one run of one step until it becomes events.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/loop_stats.h"
#include "tensor/allocator.h"

namespace tenon {

// What is known about a step before it runs; recorded once per profiler.
struct TracedNode {
  std::string name;  // of the node, or <OpType>_<index>
  std::string op_type;
  std::string provider;
  uint32_t index = 0;    // of the node in its graph
  uint32_t counter = 0;  // of the step in its plan
  std::string threads;   // name of the thread pool; "" if there is none
};

// One run of one step. Times are in microseconds since the profiling start.
struct NodeTrace {
  const TracedNode* node = nullptr;
  int64_t fence_before = 0, kernel_start = 0, kernel_end = 0, fence_after = 0;
  int64_t thread = 0;
  int core = -1;  // of the thread
  // The loops that the kernel divided among threads; null if it divided none.
  std::unique_ptr<LoopStats::Record> loops;
  uint64_t activation_bytes = 0, parameter_bytes = 0, output_bytes = 0;
  // For each tensor: element type, rank, dimensions; first all inputs, then all outputs.
  std::vector<int64_t> shapes;
  uint32_t input_tensors = 0;
  // Of the allocator of its outputs, when the kernel began and when it ended.
  AllocatorStats memory_before, memory_after;
  bool is_cached = false;  // the output was given, and the kernel did not run
};

}  // namespace tenon
