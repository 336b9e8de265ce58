// The memory plans of one region, by the shapes of what goes into it.
#pragma once

#include <memory>
#include <vector>

#include "base/mutex.h"
#include "runtime/frame.h"
#include "runtime/memory_plan.h"
#include "runtime/region.h"

namespace tenon {

// Keeps the 64 plans that were used last. Two lists of shapes never share a plan. Thread-safe.
class MemoryPlanCache {
 public:
  explicit MemoryPlanCache(Region region) : region_(std::move(region)) {}

  const Region& region() const { return region_; }
  // The plan for the kinds and shapes of `feeds` and of the live values in `frame`, or null.
  std::shared_ptr<const MemoryPlan> Find(std::span<const Value> feeds, Frame& frame);
  void Keep(std::span<const Value> feeds, Frame& frame, std::shared_ptr<const MemoryPlan> memory);

  static constexpr size_t kMostPlans = 64;

 private:
  struct Known {
    Value::Kind kind = Value::Kind::kNone;
    Shape shape;

    bool Matches(const Value& value) const;
  };
  struct Entry {
    std::vector<Known> feeds;
    std::vector<Known> live_in;
    std::shared_ptr<const MemoryPlan> memory;
  };

  bool Matches(const Entry& entry, std::span<const Value> feeds, Frame& frame) const;

  const Region region_;
  Mutex mutex_;
  std::vector<Entry> entries_;  // most recent first
};

}  // namespace tenon
