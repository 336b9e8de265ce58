// The pool whose threads come from the host, as in WebAssembly. Here the host is std::thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/hosted_threads.h"
#include "base/thread_pool.h"

namespace tenon {
namespace {

// The workers of a host, which come when Come() is called.
class Host {
 public:
  explicit Host(uint32_t count) : count_(count) { ExpectHostedWorkers(count); }
  ~Host() {
    StopHostedWorkers();
    for (std::thread& thread : threads_) thread.join();
  }

  void Come() {
    for (uint32_t i = 0; i < count_; ++i) threads_.emplace_back(RunHostedWorker, i);
  }

 private:
  const uint32_t count_;
  std::vector<std::thread> threads_;
};

// The threads that work on loops of `pool`, each of which waits until `wanted` have come.
size_t ThreadsOfLoop(ThreadPool& pool, size_t wanted) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto are_there = [&] {
    const std::lock_guard lock(mutex);
    return threads.size() >= wanted;
  };
  while (!are_there() && std::chrono::steady_clock::now() < end) {
    pool.ParallelFor(64, 1, [&](size_t, size_t) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    });
  }
  return threads.size();
}

TEST(ThreadPoolHostedTest, TheCallerDoesEveryChunkOfAHostWithoutWorkers) {  // WB-39
  const Host host(0);
  ThreadPool pool({.threads = 4});
  EXPECT_EQ(pool.threads(), 1);
  EXPECT_TRUE(pool.Start().ok());
  std::vector<std::pair<size_t, size_t>> chunks;
  pool.ParallelFor(7, 3, [&](size_t begin, size_t end) {
    chunks.emplace_back(begin, end);
    pool.ParallelFor(2, 1, [&](size_t, size_t) { chunks.emplace_back(0, 0); });
  });
  const std::vector<std::pair<size_t, size_t>> expected = {{0, 3}, {0, 0}, {0, 0}, {3, 6}, {0, 0},
                                                           {0, 0}, {6, 7}, {0, 0}, {0, 0}};
  EXPECT_EQ(chunks, expected);
}

TEST(ThreadPoolHostedTest, ALoopDoesNotWaitForWorkersThatHaveNotCome) {
  const Host host(3);
  ThreadPool pool;
  EXPECT_EQ(pool.threads(), 4);
  size_t sum = 0;  // of one thread
  pool.ParallelFor(100, 1, [&](size_t begin, size_t) { sum += begin; });
  EXPECT_EQ(sum, 4950u);
}

TEST(ThreadPoolHostedTest, WorkersOfTheHostHelpAllPools) {  // WB-40, WB-115
  Host host(3);
  host.Come();
  for (int i = 0; i < 3; ++i) {
    ThreadPool pool;
    EXPECT_EQ(ThreadsOfLoop(pool, 4), 4u);
  }
}

TEST(ThreadPoolHostedTest, APoolUsesAsManyThreadsAsItsOptionsSay) {
  Host host(3);
  host.Come();
  ThreadPool pool({.threads = 2});
  EXPECT_EQ(pool.threads(), 2);
  for (int i = 0; i < 20; ++i) EXPECT_LE(ThreadsOfLoop(pool, 2), 2u);
}

TEST(ThreadPoolHostedTest, EveryChunkRunsOnceAndItsEffectsAreSeen) {
  Host host(3);
  host.Come();
  ThreadPool pool;
  for (size_t n = 0; n < 2000; ++n) {
    std::vector<uint32_t> counts(n);
    pool.ParallelFor(n, 7, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) ++counts[i];
    });
    ASSERT_EQ(std::count(counts.begin(), counts.end(), 1u), static_cast<ptrdiff_t>(n));
    // So that workers also fall asleep between loops.
    if (n % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(ThreadPoolHostedTest, ALoopInsideALoopRunsInItsThread) {
  Host host(3);
  host.Come();
  ThreadPool pool;
  std::atomic<int> others = 0;
  pool.ParallelFor(64, 1, [&](size_t, size_t) {
    const std::thread::id mine = std::this_thread::get_id();
    pool.ParallelFor(8, 1, [&](size_t, size_t) { others += std::this_thread::get_id() != mine; });
  });
  EXPECT_EQ(others, 0);
}

}  // namespace
}  // namespace tenon
