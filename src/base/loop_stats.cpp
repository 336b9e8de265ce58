#include "base/loop_stats.h"

#include <algorithm>
#include <utility>

#include "base/exception_barrier.h"
#include "base/thread_id.h"

namespace tenon {

LoopStats*& LoopStats::OfThread() {
  thread_local LoopStats* current = nullptr;
  return current;
}

LoopStats* LoopStats::Current() { return OfThread(); }

void LoopStats::AddBlockSize(size_t size) {
  std::vector<size_t>& sizes = record_.block_sizes;
  const bool is_known = std::find(sizes.begin(), sizes.end(), size) != sizes.end();
  if (is_known || sizes.size() == kMostBlockSizes) return;
  (void)HasMemoryFor([&] { sizes.push_back(size); });
}

void LoopStats::ExpectHelpers(size_t workers) {
  std::vector<Helper>& helpers = record_.helpers;
  (void)HasMemoryFor([&] { helpers.reserve(helpers.size() + workers); });
}

void LoopStats::AddHelp(uint32_t blocks) {
  const int64_t thread = ThreadId();
  const int core = CurrentCpu();
  const MutexLock lock(mutex_);
  std::vector<Helper>& helpers = record_.helpers;
  auto helper = std::find_if(helpers.begin(), helpers.end(),
                             [&](const Helper& known) { return known.thread == thread; });
  if (helper == helpers.end()) {
    if (helpers.size() == helpers.capacity()) return;  // there was no memory for it
    helper = helpers.insert(helper, {.thread = thread});
  }
  helper->core = core;
  helper->blocks += blocks;
}

LoopStatsScope::LoopStatsScope(LoopStats* stats)
    : previous_(std::exchange(LoopStats::OfThread(), stats ? stats : LoopStats::OfThread())) {}

LoopStatsScope::~LoopStatsScope() { LoopStats::OfThread() = previous_; }

}  // namespace tenon
