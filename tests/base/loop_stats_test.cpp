// The statistics of one thread's loops.
#include "base/loop_stats.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "base/thread_id.h"
#include "base/thread_pool.h"

namespace tenon {
namespace {

using namespace std::chrono_literals;

// A loop whose blocks are done by both threads of the pool.
void RunShared(ThreadPool& pool, size_t grain) {
  std::atomic<int> here = 0;
  pool.ParallelFor(2 * grain, grain, [&](size_t, size_t) {
    ++here;
    const auto end = std::chrono::steady_clock::now() + 10s;
    while (here < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  });
}

TEST(LoopStatsTest, CollectsTheLoopsOfItsThread) {
  ThreadPool pool({.threads = 2});
  LoopStats stats;
  {
    const LoopStatsScope scope(&stats);
    ASSERT_EQ(LoopStats::Current(), &stats);
    RunShared(pool, 8);
    RunShared(pool, 3);
    RunShared(pool, 8);
    std::thread([&] { RunShared(pool, 5); }).join();  // not this thread's
  }
  EXPECT_EQ(LoopStats::Current(), nullptr);
  RunShared(pool, 7);
  ASSERT_TRUE(stats.has_loops());
  const LoopStats::Record record = stats.Take();
  EXPECT_EQ(record.block_sizes, (std::vector<size_t>{8, 3}));
  ASSERT_EQ(record.helpers.size(), 1u);
  EXPECT_EQ(record.helpers[0].blocks, 3u);
  EXPECT_NE(record.helpers[0].thread, ThreadId());
  EXPECT_GE(record.helpers[0].core, 0);
  EXPECT_GT(record.times.run, 0ns);
  EXPECT_GT(record.times.distribution, 0ns);
  EXPECT_GT(record.times.enqueue, 0ns);
}

TEST(LoopStatsTest, LoopsThatAreNotDividedAreNotSeen) {
  ThreadPool pool({.threads = 2}), alone({.threads = 1});
  LoopStats stats;
  const LoopStatsScope scope(&stats);
  pool.ParallelFor(4, 8, [](size_t, size_t) {});
  alone.ParallelFor(64, 8, [](size_t, size_t) {});
  EXPECT_FALSE(stats.has_loops());
}

TEST(LoopStatsTest, TheInnermostScopeCollects) {
  ThreadPool pool({.threads = 2});
  LoopStats outer, inner;
  const LoopStatsScope outer_scope(&outer);
  {
    const LoopStatsScope inner_scope(&inner);
    const LoopStatsScope none(nullptr);
    RunShared(pool, 2);
  }
  RunShared(pool, 3);
  EXPECT_EQ(inner.Take().block_sizes, std::vector<size_t>{2});
  EXPECT_EQ(outer.Take().block_sizes, std::vector<size_t>{3});
}

TEST(LoopStatsTest, KeepsFewBlockSizes) {
  ThreadPool pool({.threads = 2});
  LoopStats stats;
  const LoopStatsScope scope(&stats);
  for (size_t grain = 1; grain <= 2 * LoopStats::kMostBlockSizes; ++grain) {
    pool.ParallelFor(2 * grain, grain, [](size_t, size_t) {});
  }
  EXPECT_EQ(stats.Take().block_sizes.size(), LoopStats::kMostBlockSizes);
}

}  // namespace
}  // namespace tenon
