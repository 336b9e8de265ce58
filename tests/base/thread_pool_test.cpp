// What ParallelFor computes: every chunk once, whatever the threads, callers and nesting.
#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "base/allocation_count.h"

namespace tenon {
namespace {

using namespace std::chrono_literals;

// The chunks that a loop calls its body with, in order of their begin.
std::vector<std::pair<size_t, size_t>> Chunks(ThreadPool& pool, size_t n, size_t grain) {
  std::mutex mutex;
  std::vector<std::pair<size_t, size_t>> chunks;
  pool.ParallelFor(n, grain, [&](size_t begin, size_t end) {
    const std::lock_guard lock(mutex);
    chunks.emplace_back(begin, end);
  });
  std::sort(chunks.begin(), chunks.end());
  return chunks;
}

TEST(ThreadPoolTest, ChunksDependOnSizeAndGrainAlone) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool({.threads = threads});
    EXPECT_EQ(pool.threads(), threads);
    for (size_t n : {0, 1, 2, 7, 8, 9, 1000}) {
      for (size_t grain : {0, 1, 2, 8, 999, 1000, 1001}) {
        std::vector<std::pair<size_t, size_t>> expected;
        const size_t step = grain == 0 ? 1 : grain;
        for (size_t begin = 0; begin < n; begin += step) {
          expected.emplace_back(begin, std::min(n, begin + step));
        }
        EXPECT_EQ(Chunks(pool, n, grain), expected)
            << "threads " << threads << " n " << n << " grain " << grain;
      }
    }
  }
}

TEST(ThreadPoolTest, SizesNearTheLimitDoNotWrap) {
  ThreadPool pool({.threads = 2});
  const size_t half = SIZE_MAX / 2 + 1;
  const std::vector<std::pair<size_t, size_t>> expected = {{0, half}, {half, SIZE_MAX}};
  EXPECT_EQ(Chunks(pool, SIZE_MAX, half), expected);
}

TEST(ThreadPoolTest, DefaultUsesAtLeastTheCaller) { EXPECT_GE(ThreadPool().threads(), 1); }

TEST(ThreadPoolTest, WritesAreVisibleToTheCaller) {
  ThreadPool pool({.threads = 4});
  std::vector<int> values(1000);
  for (int round = 1; round <= 2000; ++round) {
    pool.ParallelFor(values.size(), 10, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) values[i] += static_cast<int>(i);
    });
    ASSERT_EQ(std::accumulate(values.begin(), values.end(), int64_t{0}), int64_t{499500} * round);
  }
}

TEST(ThreadPoolTest, WorkersTakePart) {
  for (auto spin : {0us, 20us}) {
    ThreadPool pool({.threads = 3, .spin = spin});
    for (int round = 0; round < 20; ++round) {
      // Three chunks that wait for one another need three threads.
      std::atomic<int> inside = 0;
      pool.ParallelFor(3, 1, [&](size_t, size_t) {
        ++inside;
        while (inside < 3) std::this_thread::yield();
      });
      EXPECT_EQ(inside, 3);
    }
  }
}

TEST(ThreadPoolTest, EachThreadBeginsWithItsPartOfTheChunks) {
  constexpr size_t kThreads = 3, kChunks = 12;
  ThreadPool pool({.threads = kThreads});
  std::mutex mutex;
  std::vector<std::thread::id> by_part[2];  // of two loops
  for (auto& threads : by_part) {
    std::atomic<size_t> arrived = 0;
    std::vector<std::pair<size_t, std::thread::id>> first;  // chunks of each thread
    pool.ParallelFor(kChunks, 1, [&](size_t begin, size_t) {
      const auto self = std::this_thread::get_id();
      {
        const std::lock_guard lock(mutex);
        const bool is_new = std::none_of(first.begin(), first.end(),
                                         [&](const auto& one) { return one.second == self; });
        if (!is_new) return;
        first.emplace_back(begin, self);
      }
      ++arrived;
      while (arrived < kThreads) std::this_thread::yield();
    });
    std::sort(first.begin(), first.end());
    ASSERT_EQ(first.size(), kThreads);
    for (size_t i = 0; i < kThreads; ++i) {
      EXPECT_EQ(first[i].first, i * kChunks / kThreads);
      threads.push_back(first[i].second);
    }
    EXPECT_EQ(threads[0], std::this_thread::get_id());
  }
  EXPECT_EQ(by_part[0], by_part[1]) << "a thread has the same part in each loop";
}

TEST(ThreadPoolTest, EveryOneOfManySleepersIsWoken) {
  constexpr size_t kThreads = 24;
  ThreadPool pool({.threads = kThreads, .spin = 0us});
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(2ms);
    std::atomic<size_t> inside = 0;
    pool.ParallelFor(kThreads, 1, [&](size_t, size_t) {
      ++inside;
      while (inside < kThreads) std::this_thread::yield();
    });
    EXPECT_EQ(inside, kThreads);
  }
}

TEST(ThreadPoolTest, NestedLoopsRunOnTheThreadOfTheirBody) {
  ThreadPool pool({.threads = 4});
  ThreadPool other({.threads = 4});
  std::atomic<size_t> calls = 0;
  std::atomic<size_t> strays = 0;
  pool.ParallelFor(16, 1, [&](size_t, size_t) {
    const auto outer = std::this_thread::get_id();
    for (ThreadPool* inner : {&pool, &other}) {
      inner->ParallelFor(8, 2, [&](size_t, size_t) {
        ++calls;
        if (std::this_thread::get_id() != outer) ++strays;
      });
    }
  });
  EXPECT_EQ(calls, 16u * 2 * 4);
  EXPECT_EQ(strays, 0u);
}

TEST(ThreadPoolTest, ALoopWithOneChunkDoesNotSerialiseItsInnerLoops) {
  ThreadPool pool({.threads = 2});
  std::atomic<int> inside = 0;
  pool.ParallelFor(1, 1, [&](size_t, size_t) {
    pool.ParallelFor(2, 1, [&](size_t, size_t) {
      ++inside;
      while (inside < 2) std::this_thread::yield();
    });
  });
  EXPECT_EQ(inside, 2);
}

TEST(ThreadPoolTest, ManyCallersShareOnePool) {
  constexpr int kCallers = 24;  // more than the pool runs divided at once
  ThreadPool pool({.threads = 4, .spin = 5us});
  std::vector<std::thread> callers;
  std::atomic<int> wrong = 0;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      for (size_t round = 0; round < 200; ++round) {
        const size_t n = 1 + (round * 7 + static_cast<size_t>(caller)) % 97;
        std::atomic<size_t> sum = 0;
        pool.ParallelFor(n, 3, [&](size_t begin, size_t end) {
          for (size_t i = begin; i < end; ++i) sum += i + 1;
        });
        if (sum != n * (n + 1) / 2) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPoolTest, ACallerDoesNotWaitForWorkersThatAreBusyElsewhere) {
  ThreadPool pool({.threads = 2});
  std::atomic<bool> release = false;
  std::atomic<int> entered = 0;
  std::thread hog([&] {
    pool.ParallelFor(2, 1, [&](size_t, size_t) {
      ++entered;
      while (!release) std::this_thread::sleep_for(1ms);
    });
  });
  while (entered < 2) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(Chunks(pool, 100, 10).size(), 10u);  // hangs if it waited for the only worker
  release = true;
  hog.join();
}

// The number of calls of a loop with 1000 chunks whose 100th call ends the run.
int CallsUntilStopped(ThreadPool& pool, bool is_nested) {
  std::atomic<bool> terminate = false;
  const StopSignal stop(&terminate, std::nullopt);
  const StopScope scope(&stop);
  std::atomic<int> calls = 0;
  const auto loop = [&](size_t n) {
    pool.ParallelFor(n, 1, [&](size_t, size_t) {
      const int call = ++calls;
      if (call == 100) terminate = true;
      while (call > 100 && !terminate) std::this_thread::yield();  // begun before the end
    });
  };
  if (is_nested) {
    pool.ParallelFor(10, 1, [&](size_t, size_t) { loop(100); });
  } else {
    loop(1000);
  }
  EXPECT_TRUE(stop.has_cut());
  return calls;
}

TEST(ThreadPoolTest, AStoppedLoopLeavesOutItsRemainingCalls) {
  for (const int threads : {1, 4}) {
    ThreadPool pool({.threads = threads});
    for (const bool is_nested : {false, true}) {
      const int calls = CallsUntilStopped(pool, is_nested);
      EXPECT_GE(calls, 100);
      EXPECT_LT(calls, 100 + threads);
    }
  }
}

TEST(ThreadPoolTest, ALoopWithASingleCallIsLeftOutOnceStopped) {
  ThreadPool pool({.threads = 2});
  const StopSignal stop(nullptr, -1ns);
  const StopScope scope(&stop);
  pool.ParallelFor(5, 10, [](size_t, size_t) { ADD_FAILURE() << "called"; });
  EXPECT_TRUE(stop.has_cut());
}

TEST(ThreadPoolTest, ATimeoutPastTheEndOfTheClockNeverPasses) {
  for (const auto timeout : {std::chrono::nanoseconds::max(), std::chrono::nanoseconds::max() - 1ns,
                             std::chrono::nanoseconds::max() - 1h}) {
    EXPECT_FALSE(StopSignal(nullptr, timeout).is_late()) << timeout.count();
  }
}

TEST(ThreadPoolTest, LoopsThatHeedNoSignalAreWhole) {
  ThreadPool pool({.threads = 2});
  const std::atomic<bool> terminate = true;
  const StopSignal stop(&terminate, std::nullopt);
  const StopScope outer(&stop);
  {
    const StopScope whole(nullptr);
    EXPECT_EQ(Chunks(pool, 100, 10).size(), 10u);
  }
  EXPECT_FALSE(stop.has_cut());
  EXPECT_EQ(Chunks(pool, 100, 10).size(), 0u);
  EXPECT_TRUE(stop.has_cut());
}

TEST(ThreadPoolTest, LoopsAllocateNothingOnceStarted) {
  ThreadPool pool({.threads = 3});
  ASSERT_TRUE(pool.Start().ok());
  const size_t before = AllocationsOnThisThread();
  std::atomic<size_t> sum = 0;
  for (int round = 0; round < 100; ++round) {
    pool.ParallelFor(100, 7, [&](size_t begin, size_t end) { sum += end - begin; });
  }
  EXPECT_EQ(AllocationsOnThisThread(), before);
  EXPECT_EQ(sum, 100u * 100);
}

}  // namespace
}  // namespace tenon
