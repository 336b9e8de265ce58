#include "runtime/memory_plan_cache.h"

#include <algorithm>

namespace tenon {

bool MemoryPlanCache::Known::Matches(const Value& value) const {
  return value.kind() == kind && (!value.is_tensor() || value.tensor().shape() == shape);
}

bool MemoryPlanCache::Matches(const Entry& entry, std::span<const Value> feeds,
                              Frame& frame) const {
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (!entry.feeds[i].Matches(feeds[i])) return false;
  }
  for (size_t i = 0; i < region_.live_in.size(); ++i) {
    if (!entry.live_in[i].Matches(frame.value(region_.live_in[i]))) return false;
  }
  return true;
}

std::shared_ptr<const MemoryPlan> MemoryPlanCache::Find(std::span<const Value> feeds,
                                                        Frame& frame) {
  const MutexLock lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (!Matches(*entry, feeds, frame)) continue;
    std::rotate(entries_.begin(), entry, entry + 1);
    return entries_.front().memory;
  }
  return nullptr;
}

void MemoryPlanCache::Keep(std::span<const Value> feeds, Frame& frame,
                           std::shared_ptr<const MemoryPlan> memory) {
  const auto known = [](const Value& value) {
    return Known{value.kind(), value.is_tensor() ? value.tensor().shape() : Shape()};
  };
  Entry entry;
  for (const Value& feed : feeds) entry.feeds.push_back(known(feed));
  for (const Slot slot : region_.live_in) entry.live_in.push_back(known(frame.value(slot)));
  entry.memory = std::move(memory);
  const MutexLock lock(mutex_);
  if (entries_.size() == kMostPlans) entries_.pop_back();
  entries_.insert(entries_.begin(), std::move(entry));
}

}  // namespace tenon
