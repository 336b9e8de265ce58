// The life of a pool's threads: start, client callbacks, affinity, idling, fork, end.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "base/thread_pool.h"

namespace tenon {
namespace {

using namespace std::chrono_literals;

// Runs `body` on every one of the pool's threads at the same time.
void OnEveryThread(ThreadPool& pool, FunctionRef<void()> body) {
  std::atomic<int> inside = 0;
  pool.ParallelFor(static_cast<size_t>(pool.threads()), 1, [&](size_t, size_t) {
    body();
    ++inside;
    while (inside < pool.threads()) std::this_thread::yield();
  });
}

struct ClientThreads {
  int created = 0;
  int joined = 0;
  int fail_from = 100;

  static void* Create(void* options, void (*worker)(void*), void* param) {
    auto& self = *static_cast<ClientThreads*>(options);
    if (self.created == self.fail_from) return nullptr;
    ++self.created;
    return new Handle{&self, std::thread(worker, param)};
  }
  static void Join(void* handle) {
    auto* thread = static_cast<Handle*>(handle);
    thread->thread.join();
    ++thread->owner->joined;
    delete thread;
  }
  ThreadCallbacks callbacks() { return {.create = &Create, .join = &Join, .options = this}; }

  struct Handle {
    ClientThreads* owner;
    std::thread thread;
  };
};

TEST(ThreadPoolLifeTest, WorkersStartAtTheFirstLoopThatCanUseThem) {
  ClientThreads threads;
  {
    ThreadPool pool({.threads = 3, .callbacks = threads.callbacks()});
    pool.ParallelFor(5, 5, [](size_t, size_t) {});
    EXPECT_EQ(threads.created, 0);
    OnEveryThread(pool, [] {});
    EXPECT_EQ(threads.created, 2);
    EXPECT_EQ(threads.joined, 0);
  }
  EXPECT_EQ(threads.joined, 2);
}

// A client that counts its callbacks, and numbers each piece of work.
struct WorkLog {
  enum class Event { kEnqueue, kStart, kStop, kAbandon };

  static void* Enqueue(void* context) {
    auto& self = *static_cast<WorkLog*>(context);
    void* const piece = reinterpret_cast<void*>(++self.last_piece);
    self.Note(piece, Event::kEnqueue);
    return piece;
  }
  template <Event kEvent>
  static void Note(void* context, void* piece) {
    static_cast<WorkLog*>(context)->Note(piece, kEvent);
  }
  void Note(void* piece, Event event) {
    const std::lock_guard lock(mutex);
    events[piece].emplace_back(event, std::this_thread::get_id());
  }
  WorkCallbacks callbacks() {
    return {&Enqueue, &Note<Event::kStart>, &Note<Event::kStop>, &Note<Event::kAbandon>, this};
  }

  std::atomic<uintptr_t> last_piece = 0;
  std::mutex mutex;
  std::map<void*, std::vector<std::pair<Event, std::thread::id>>> events;
};

TEST(ThreadPoolLifeTest, EveryPieceOfWorkIsToldOfAndEnds) {
  using Event = WorkLog::Event;
  WorkLog log;
  ThreadPool pool({.threads = 3, .work = log.callbacks()});
  pool.ParallelFor(5, 5, [](size_t, size_t) {});
  EXPECT_TRUE(log.events.empty()) << "the caller's own work is handed to no other thread";
  OnEveryThread(pool, [] {});
  EXPECT_EQ(log.events.size(), 2u);
  // Both workers took part, and nothing was left over.
  for (const auto& [piece, events] : log.events) {
    ASSERT_EQ(events.size(), 3u);
    EXPECT_EQ(events[0], std::pair(Event::kEnqueue, std::this_thread::get_id()));
    EXPECT_EQ(events[1].first, Event::kStart);
    EXPECT_EQ(events[2].first, Event::kStop);
    EXPECT_EQ(events[1].second, events[2].second);
    EXPECT_NE(events[1].second, std::this_thread::get_id());
  }
  log.events.clear();
  constexpr size_t kLoops = 2000;
  for (size_t i = 0; i < kLoops; ++i) pool.ParallelFor(1 + i % 5, 1, [](size_t, size_t) {});
  size_t expected = 0;
  for (size_t i = 0; i < kLoops; ++i) expected += i % 5 == 0 ? 0 : 2;
  EXPECT_EQ(log.events.size(), expected);
  for (const auto& [piece, events] : log.events) {
    EXPECT_EQ(events[0].first, Event::kEnqueue);
    const bool was_abandoned = events.size() == 2 && events[1].first == Event::kAbandon;
    const bool was_done =
        events.size() == 3 && events[1].first == Event::kStart && events[2].first == Event::kStop;
    EXPECT_TRUE(was_abandoned || was_done);
  }
}

TEST(ThreadPoolLifeTest, StartIsEagerAndHappensOnce) {
  ClientThreads threads;
  ThreadPool pool({.threads = 3, .callbacks = threads.callbacks()});
  EXPECT_TRUE(pool.Start().ok());
  EXPECT_TRUE(pool.Start().ok());
  EXPECT_EQ(threads.created, 2);
}

TEST(ThreadPoolLifeTest, ThreadsThatCannotStartAreReportedAndDoneWithout) {
  ClientThreads threads{.fail_from = 1};
  {
    ThreadPool pool({.threads = 4, .callbacks = threads.callbacks(), .name = "ours"});
    const Status status = pool.Start();
    EXPECT_EQ(status.code(), StatusCode::kFail);
    EXPECT_EQ(status.message(),
              "thread pool 'ours': the custom thread creation function returned no handle for "
              "worker 1");
    std::atomic<size_t> sum = 0;
    pool.ParallelFor(100, 1, [&](size_t begin, size_t) { sum += begin; });
    EXPECT_EQ(sum, 4950u);
  }
  EXPECT_EQ(threads.joined, 1);
}

TEST(ThreadPoolLifeTest, WorkersKeepToTheirAffinity) {
  cpu_set_t usable;
  ASSERT_EQ(sched_getaffinity(0, sizeof(usable), &usable), 0);
  int cpu = CPU_SETSIZE - 1;
  while (!CPU_ISSET(cpu, &usable)) --cpu;
  ThreadPool pool({.threads = 3, .affinities = {{cpu}, {}}});
  std::atomic<int> pinned = 0;
  OnEveryThread(pool, [&] {
    cpu_set_t set;
    ASSERT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
    if (CPU_COUNT(&set) == 1 && CPU_ISSET(cpu, &set)) ++pinned;
  });
  EXPECT_EQ(pinned, CPU_COUNT(&usable) == 1 ? 3 : 1);
}

TEST(ThreadPoolLifeTest, AffinitiesThatCannotHoldAreReported) {
  EXPECT_EQ(ThreadPool({.threads = 2, .affinities = {{0}, {0}}}).Start().message(),
            "thread pool 'tenon': 2 affinity sets for 1 workers");
  EXPECT_EQ(ThreadPool({.threads = 2, .affinities = {{-1, 100000}}}).Start().message(),
            "thread pool 'tenon': affinity set 0 holds no CPU that may be used");
}

TEST(ThreadPoolLifeTest, WorkersTakeDenormalsAsZeroOnRequest) {
  for (bool flush : {false, true}) {
    ThreadPool pool({.threads = 2, .denormals_as_zero = flush});
    std::atomic<int> zeros = 0;
    OnEveryThread(pool, [&] {
      volatile float tiny = 1e-38f;
      if (tiny * 0.1f == 0.0f) ++zeros;
    });
#if defined(__SSE2__) || defined(__aarch64__)
    EXPECT_EQ(zeros, flush ? 1 : 0) << "of the worker and the caller";
#endif
  }
}

double CpuSeconds(const rusage& usage) {
  const auto seconds = [](timeval time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST(ThreadPoolLifeTest, AnIdlePoolBurnsNothing) {
  ThreadPool pool({.threads = 4, .spin = 100us});
  OnEveryThread(pool, [] {});
  std::this_thread::sleep_for(10ms);
  rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  std::this_thread::sleep_for(1s);
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(CpuSeconds(after) - CpuSeconds(before), 0.005);
  EXPECT_LE(after.ru_nvcsw - before.ru_nvcsw, 30) << "ThreadSanitizer itself wakes ten times";
}

// Runs a loop in a forked child; true if all of the pool's threads took part and the child ended.
bool LoopWorksInChild(ThreadPool& pool) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    OnEveryThread(pool, [] {});
    {
      // The child's own pools still work too.
      ThreadPool second({.threads = 2});
      OnEveryThread(second, [] {});
    }
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(ThreadPoolLifeTest, AForkedChildGetsWorkersOfItsOwn) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not support threads after fork";
#endif
  ThreadPool pool({.threads = 3, .spin = 0us});
  EXPECT_TRUE(LoopWorksInChild(pool)) << "before the first loop";
  OnEveryThread(pool, [] {});
  EXPECT_TRUE(LoopWorksInChild(pool)) << "with sleeping workers";
  OnEveryThread(pool, [] {});

  // Forks while other threads are in the middle of loops, each child then destroying its pool.
  std::atomic<bool> stop = false;
  std::thread caller([&] {
    while (!stop) pool.ParallelFor(64, 1, [](size_t, size_t) {});
  });
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(LoopWorksInChild(pool)) << "with busy workers";
  stop = true;
  caller.join();
  OnEveryThread(pool, [] {});
}

TEST(ThreadPoolLifeTest, AChildMayDestroyThePoolUnused) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not support threads after fork";
#endif
  auto pool = std::make_unique<ThreadPool>(ThreadPoolOptions{.threads = 3});
  OnEveryThread(*pool, [] {});
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    pool.reset();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(ThreadPoolLifeTest, PoolsStartAndEndQuickly) {
  for (int i = 0; i < 200; ++i) {
    ThreadPool pool({.threads = 3, .spin = std::chrono::microseconds(i % 3)});
    std::atomic<size_t> sum = 0;
    pool.ParallelFor(10, 1, [&](size_t begin, size_t) { sum += begin; });
    ASSERT_EQ(sum, 45u);
  }
}

}  // namespace
}  // namespace tenon
