// The creation of a plan's kernels as one event of the session's trace.
#pragma once

#include <chrono>
#include <vector>

#include "ir/node.h"
#include "runtime/profiler.h"

namespace tenon {

// Event `kernel_creation`, from the construction to the destruction: args `kernels`, how many were
// made, and `slowest`, the nodes whose kernels took longest, most of them to pack weights.
class KernelCreation {
 public:
  explicit KernelCreation(Profiler* profiler)
      : is_on_(profiler != nullptr), span_(profiler, TraceCategory::kSession, "kernel_creation") {}
  ~KernelCreation();
  KernelCreation(const KernelCreation&) = delete;
  KernelCreation& operator=(const KernelCreation&) = delete;

  // Called before and after the kernel of each node.
  void Begin() {
    if (is_on_) begin_ = std::chrono::steady_clock::now();
  }
  void End(const Node& node);

 private:
  struct Entry {
    std::chrono::microseconds time;
    const Node* node;
  };

  void Describe();

  const bool is_on_;
  TraceSpan span_;
  std::chrono::steady_clock::time_point begin_;
  std::vector<Entry> slowest_;  // in descending order
  size_t kernels_ = 0;
};

}  // namespace tenon
