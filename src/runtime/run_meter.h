// Counts what one run does, for its report.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tensor/memory_info.h"

namespace tenon {

// Used by the thread that runs. A meter serves one attempt.
class RunMeter {
 public:
  struct Provider {
    std::string name;
    uint64_t nodes = 0;
    std::chrono::nanoseconds time{0};  // of its nodes, without those of their inner graphs
  };
  struct Location {
    std::string name;  // of the memory info
    int32_t device_id = 0;
    uint64_t static_bytes = 0;   // most at once of what memory plans had given out ahead
    uint64_t dynamic_bytes = 0;  // all that was taken during the run
    uint64_t peak_bytes = 0;     // most at once of both
  };

  // Records a node from its construction to its destruction, if `meter` is not null.
  class NodeScope {
   public:
    NodeScope(RunMeter* meter, const std::string& provider);
    ~NodeScope();
    NodeScope(const NodeScope&) = delete;
    NodeScope& operator=(const NodeScope&) = delete;
    // The node failed: it does not count.
    void Drop() { is_dropped_ = true; }

   private:
    RunMeter* const meter_;
    const std::string& provider_;
    std::chrono::steady_clock::time_point start_;
    std::chrono::nanoseconds outer_inner_{0};
    bool is_dropped_ = false;
  };

  // A memory plan's `bytes` are held in `memory` from here on, or no more.
  void HoldPlanned(const MemoryInfo& memory, size_t bytes);
  void ReleasePlanned(const MemoryInfo& memory, size_t bytes);
  // An allocator of `memory` gave out a block, or took it back. Blocks that it does not know are
  // not the run's. Does nothing while paused.
  void Take(const MemoryInfo& memory, const void* block, size_t bytes);
  void Give(const MemoryInfo& memory, const void* block);
  // For memory that plans hold, which is counted as such.
  void set_paused(bool is_paused) { is_paused_ = is_paused; }

  uint64_t nodes() const;
  std::vector<Provider> providers() const;
  std::vector<Location> locations() const;
  void Clear() { *this = RunMeter(); }

 private:
  struct Place {
    Location total;
    uint64_t planned = 0, taken = 0;  // now
    void NotePeak();
  };
  Place& PlaceOf(const MemoryInfo& memory);

  std::vector<Provider> providers_;
  std::map<std::pair<std::string, int32_t>, Place> places_;
  std::unordered_map<const void*, size_t> blocks_;
  std::chrono::nanoseconds inner_{0};  // time of nodes within the current one
  bool is_paused_ = false;
};

}  // namespace tenon
