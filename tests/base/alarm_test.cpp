#include "base/alarm.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace tenon {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

int ThreadCount() {
  std::ifstream status("/proc/self/status");
  std::string word;
  int count = 0;
  while (status >> word && word != "Threads:") continue;
  status >> count;
  return count;
}

void WaitUntil(const std::function<bool()>& condition) {
  const auto patience = Clock::now() + std::chrono::seconds(20);
  while (!condition() && Clock::now() < patience) std::this_thread::yield();
}

TEST(AlarmTest, IsCalledOnceAtItsTimeAndTheThreadGoes) {
  std::thread([] {}).join();  // with the first one, a sanitizer starts its own thread
  const int threads_before = ThreadCount();
  std::atomic<int> calls = 0;
  std::atomic<Clock::time_point> called_at{};
  const Clock::time_point time = Clock::now() + milliseconds(20);
  SetAlarm(&calls, time, [&]() -> std::optional<AlarmTime> {
    called_at = Clock::now();
    ++calls;
    return std::nullopt;
  });
  // Fewer if a thread of an earlier test was ending when they were counted.
  WaitUntil([&] { return calls > 0 && ThreadCount() <= threads_before; });
  EXPECT_GE(called_at.load(), time);
  EXPECT_LE(ThreadCount(), threads_before);
  EXPECT_EQ(calls, 1);
}

TEST(AlarmTest, IsCalledAgainWhenItSaysSo) {
  std::atomic<int> calls = 0;
  SetAlarm(&calls, Clock::now(), [&]() -> std::optional<AlarmTime> {
    if (++calls == 3) return std::nullopt;
    return Clock::now() + milliseconds(1);
  });
  WaitUntil([&] { return calls == 3; });
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(calls, 3);
}

TEST(AlarmTest, ClearedAlarmsAreNotCalled) {
  std::atomic<int> calls = 0;
  const auto count = [&]() -> std::optional<AlarmTime> {
    ++calls;
    return std::nullopt;
  };
  SetAlarm(&calls, Clock::now() + milliseconds(10), count);
  ClearAlarm(&calls);
  ClearAlarm(&calls);
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_EQ(calls, 0);
}

TEST(AlarmTest, ClearingWaitsForTheCallInProgress) {
  std::atomic<bool> has_begun = false, has_ended = false;
  SetAlarm(&has_begun, Clock::now(), [&]() -> std::optional<AlarmTime> {
    has_begun = true;
    std::this_thread::sleep_for(milliseconds(30));
    has_ended = true;
    return Clock::now();
  });
  WaitUntil([&] { return has_begun.load(); });
  ClearAlarm(&has_begun);
  EXPECT_TRUE(has_ended);
}

TEST(AlarmTest, AnAlarmThatIsSetDuringItsCallIsCalled) {
  std::atomic<int> calls = 0;
  std::atomic<bool> is_set_again = false;
  const auto count = [&]() -> std::optional<AlarmTime> {
    ++calls;
    return std::nullopt;
  };
  SetAlarm(&calls, Clock::now(), [&]() -> std::optional<AlarmTime> {
    ++calls;
    while (!is_set_again) std::this_thread::yield();
    return std::nullopt;
  });
  WaitUntil([&] { return calls == 1; });
  SetAlarm(&calls, Clock::now(), count);
  is_set_again = true;
  WaitUntil([&] { return calls == 2; });
  EXPECT_EQ(calls, 2);
}

TEST(AlarmTest, ManyOwnersSetAndClearAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int k = 0; k < 200; ++k) {
        // Destroyed after ClearAlarm: a sanitizer would report a later call.
        const auto calls = std::make_unique<std::atomic<int>>(0);
        SetAlarm(calls.get(), Clock::now() + std::chrono::microseconds(k % 50),
                 [&]() -> std::optional<AlarmTime> {
                   ++*calls;
                   return Clock::now();
                 });
        if (k % 3 == 0) std::this_thread::yield();
        ClearAlarm(calls.get());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(AlarmTest, ForkedChildrenHaveAlarmsOfTheirOwn) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not support threads after fork";
#endif
  std::atomic<int> calls = 0;
  const auto count = [&]() -> std::optional<AlarmTime> {
    ++calls;
    return std::nullopt;
  };
  const int other = 0;
  SetAlarm(&other, Clock::now() + std::chrono::hours(1), count);
  // A sanitizer cannot fork while a thread starts.
  SetAlarm(&calls, Clock::now(), count);
  WaitUntil([&] { return calls == 1; });
  const pid_t child = fork();
  if (child == 0) {
    ClearAlarm(&other);
    SetAlarm(&calls, Clock::now(), count);
    WaitUntil([&] { return calls == 2; });
    _exit(calls == 2 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  ClearAlarm(&other);
}

}  // namespace
}  // namespace tenon
