// The memory plans of one region, by the shapes of the values that go into it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "runtime/memory_plan.h"
#include "runtime/region.h"

namespace tenon {

class Frame;

// Kinds and shapes of the values that go into a region, and the plan for them.
class MemoryPlanEntry {
 public:
  // Null until the plan is made.
  const std::shared_ptr<const MemoryPlan>& memory() const { return memory_; }

 private:
  friend class MemoryPlanCache;

  struct Known {
    Value::Kind kind = Value::Kind::kNone;
    Shape shape;

    bool Matches(const Value& value) const;
  };

  std::vector<Known> feeds_;
  std::vector<Known> live_in_;
  std::shared_ptr<const MemoryPlan> memory_;
};

// Keeps the plans that were used last, and of their fixed values 2 MiB besides those of the last
// one: a value that grows with the square of a length, such as a mask, is not kept for each length.
// Different lists of shapes never share a plan. Thread-safe.
class MemoryPlanCache {
 public:
  // Keeps up to `most_plans`; 0: none.
  MemoryPlanCache(Region region, size_t most_plans)
      : region_(std::move(region)), most_plans_(most_plans) {}

  const Region& region() const { return region_; }
  // The entry for the kinds and shapes of `feeds` and of the live values in `frame`.
  std::shared_ptr<MemoryPlanEntry> Find(std::span<const Value> feeds, const Frame& frame);
  // Like Find, for a caller that often repeats the same shapes. `last` is the entry that it found
  // last, or null; no lock is taken if it still fits.
  std::shared_ptr<MemoryPlanEntry> FindAgain(std::span<const Value> feeds, const Frame& frame,
                                             std::shared_ptr<MemoryPlanEntry> last);
  // Adds the plan to an entry that has none.
  void Keep(const std::shared_ptr<MemoryPlanEntry>& entry,
            std::shared_ptr<const MemoryPlan> memory);

 private:
  bool Matches(const MemoryPlanEntry& entry, std::span<const Value> feeds,
               const Frame& frame) const;

  const Region region_;
  const size_t most_plans_;
  Mutex mutex_;
  std::vector<std::shared_ptr<MemoryPlanEntry>> entries_;  // most recent first
};

}  // namespace tenon
