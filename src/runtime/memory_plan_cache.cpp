#include "runtime/memory_plan_cache.h"

#include <algorithm>

#include "runtime/frame.h"

namespace tenon {
namespace {

constexpr size_t kMostFixedBytes = size_t{2} << 20;

}  // namespace

bool MemoryPlanEntry::Known::Matches(const Value& value) const {
  return value.kind() == kind && (!value.is_tensor() || value.tensor().shape() == shape);
}

bool MemoryPlanCache::Matches(const MemoryPlanEntry& entry, std::span<const Value> feeds,
                              const Frame& frame) const {
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (!entry.feeds_[i].Matches(feeds[i])) return false;
  }
  for (size_t i = 0; i < region_.live_in.size(); ++i) {
    if (!entry.live_in_[i].Matches(frame.ValueOf(region_.live_in[i]))) return false;
  }
  return true;
}

std::shared_ptr<MemoryPlanEntry> MemoryPlanCache::Find(std::span<const Value> feeds,
                                                       const Frame& frame) {
  {
    const MutexLock lock(mutex_);
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (!Matches(**entry, feeds, frame)) continue;
      std::rotate(entries_.begin(), entry, entry + 1);
      return entries_.front();
    }
  }
  const auto known = [](const Value& value) {
    return MemoryPlanEntry::Known{value.kind(),
                                  value.is_tensor() ? value.tensor().shape() : Shape()};
  };
  auto entry = std::make_shared<MemoryPlanEntry>();
  for (const Value& feed : feeds) entry->feeds_.push_back(known(feed));
  for (const Slot slot : region_.live_in) entry->live_in_.push_back(known(frame.ValueOf(slot)));
  return entry;
}

std::shared_ptr<MemoryPlanEntry> MemoryPlanCache::FindAgain(std::span<const Value> feeds,
                                                            const Frame& frame,
                                                            std::shared_ptr<MemoryPlanEntry> last) {
  if (last != nullptr && Matches(*last, feeds, frame)) return last;
  return Find(feeds, frame);
}

void MemoryPlanCache::Keep(const std::shared_ptr<MemoryPlanEntry>& entry,
                           std::shared_ptr<const MemoryPlan> memory) {
  entry->memory_ = std::move(memory);
  const MutexLock lock(mutex_);
  size_t fixed_bytes = 0;
  for (const auto& each : entries_) fixed_bytes += each->memory_->fixed_bytes;
  while (fixed_bytes > kMostFixedBytes || entries_.size() == most_plans_) {
    fixed_bytes -= entries_.back()->memory_->fixed_bytes;
    entries_.pop_back();
  }
  entries_.insert(entries_.begin(), entry);
}

}  // namespace tenon
