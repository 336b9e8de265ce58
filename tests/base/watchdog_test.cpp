#include "base/watchdog.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace tenon {
namespace {

using std::chrono::milliseconds;

TEST(WatchdogTest, BarksAgainAndAgainUntilItGoes) {
  std::atomic<int> barks = 0;
  {
    const Watchdog watchdog(milliseconds(1), [&] { ++barks; });
    while (barks < 3) std::this_thread::yield();
  }
  const int at_the_end = barks;
  std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(barks, at_the_end);
}

TEST(WatchdogTest, IsQuietWhileThereIsTime) {
  std::atomic<int> barks = 0;
  {
    const Watchdog watchdog(std::chrono::hours(1), [&] { ++barks; });
  }
  EXPECT_EQ(barks, 0);
}

}  // namespace
}  // namespace tenon
