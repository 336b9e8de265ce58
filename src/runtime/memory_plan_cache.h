// The memory plans of one region, by the shapes of what goes into it.
#pragma once

#include <memory>
#include <vector>

#include "base/mutex.h"
#include "runtime/frame.h"
#include "runtime/memory_plan.h"
#include "runtime/region.h"

namespace tenon {

// Keeps the plans that were used last. Two lists of shapes never share a plan. Thread-safe.
class MemoryPlanCache {
 public:
  // Keeps up to `most_plans`; 0: every run is recorded.
  MemoryPlanCache(Region region, size_t most_plans)
      : region_(std::move(region)), most_plans_(most_plans) {}

  const Region& region() const { return region_; }
  // What is known of the kinds and shapes of `feeds` and of the live values in `frame`.
  class Entry;
  std::shared_ptr<Entry> Find(std::span<const Value> feeds, Frame& frame);
  // The same for a caller that often asks again for the same shapes: `last`, or null, is what it
  // found last, and takes no lock if it fits.
  std::shared_ptr<Entry> FindAgain(std::span<const Value> feeds, Frame& frame,
                                   std::shared_ptr<Entry> last);
  // Adds the plan to an entry that has none.
  void Keep(const std::shared_ptr<Entry>& entry, std::shared_ptr<const MemoryPlan> memory);

 private:
  struct Known {
    Value::Kind kind = Value::Kind::kNone;
    Shape shape;

    bool Matches(const Value& value) const;
  };
  bool Matches(const Entry& entry, std::span<const Value> feeds, Frame& frame) const;

  const Region region_;
  const size_t most_plans_;
  Mutex mutex_;
  std::vector<std::shared_ptr<Entry>> entries_;  // most recent first
};

// Shapes and the plan for them.
class MemoryPlanCache::Entry {
 public:
  // Null until there is one.
  const std::shared_ptr<const MemoryPlan>& memory() const { return memory_; }

 private:
  friend class MemoryPlanCache;

  std::vector<Known> feeds_;
  std::vector<Known> live_in_;
  std::shared_ptr<const MemoryPlan> memory_;
};

}  // namespace tenon
