// Counts what one run does, for its report.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/placement.h"
#include "tensor/memory_info.h"

namespace tenon {

// Used by the thread that runs. One meter serves one attempt.
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
    uint64_t static_bytes = 0;   // most held at once by memory plans
    uint64_t dynamic_bytes = 0;  // sum of all blocks taken during the run
    uint64_t peak_bytes = 0;     // most held at once of both
  };

  // Records a node from its construction to its destruction, if `meter` is not null.
  class NodeScope {
   public:
    NodeScope(RunMeter* meter, const std::string& provider);
    ~NodeScope();
    NodeScope(const NodeScope&) = delete;
    NodeScope& operator=(const NodeScope&) = delete;
    // Does not count the node, since it failed.
    void Drop() { is_dropped_ = true; }

   private:
    RunMeter* const meter_;
    const std::string& provider_;
    std::chrono::steady_clock::time_point start_;
    std::chrono::nanoseconds outer_inner_{0};
    bool is_dropped_ = false;
  };

  // A memory plan holds `bytes` in `memory` from here on, or no longer holds them.
  void HoldPlanned(const MemoryInfo& memory, size_t bytes);
  void ReleasePlanned(const MemoryInfo& memory, size_t bytes);
  // An allocator of `memory` gave out a block, or took it back. Ignores blocks that it does not
  // know, and all blocks while paused.
  void Take(const MemoryInfo& memory, const void* block, size_t bytes);
  void Give(const MemoryInfo& memory, const void* block);
  // Set while memory for plans is allocated, since HoldPlanned counts that.
  void set_paused(bool is_paused) { is_paused_ = is_paused; }

  // Collects where the nodes of the main graph put their outputs, if this is set.
  void set_placements(std::vector<Placement>* placements) { placements_ = placements; }
  std::vector<Placement>* placements() const { return placements_; }

  uint64_t nodes() const;
  std::vector<Provider> providers() const;
  std::vector<Location> locations() const;
  void Clear() { *this = RunMeter(); }

 private:
  struct Place {
    Location total;
    uint64_t planned = 0, taken = 0;  // held now
    void NotePeak();
  };
  Place& PlaceOf(const MemoryInfo& memory);

  std::vector<Provider> providers_;
  std::map<std::pair<std::string, int32_t>, Place> places_;
  std::unordered_map<const void*, size_t> blocks_;
  std::chrono::nanoseconds inner_{0};  // time of nodes within the current one
  bool is_paused_ = false;
  std::vector<Placement>* placements_ = nullptr;
};

}  // namespace tenon
