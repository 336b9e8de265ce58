// Sessions that several threads use at once.
#include <atomic>
#include <chrono>
#include <thread>

#include "runtime/session_fixture.h"

namespace tenon {
namespace {

TEST_F(SessionTest, ARunEndsWhenItIsTold) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Wait", {"x"}, {"w"}).Node("Scale", {"w"}, {"y"}).Output("y");
  Open(b);
  std::atomic<bool> terminate = false;
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    terminate = true;
  });
  std::vector<Value> y;
  RunOptions options;
  options.terminate = &terminate;
  EXPECT_EQ(Run({"x"}, {Row({1})}, {"y"}, y, options).message(),
            "Exiting due to terminate flag being set to true.");
  stopper.join();
}

TEST_F(SessionTest, RunsOverlap) {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"a"}).Node("Scale", {"a"}, {"c"});
  b.Node("Add", {"a", "c"}, {"y"}).Output("y");
  Open(b);
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t) {
    threads.emplace_back([this, t] {
      for (int run = 0; run < 200; ++run) {
        const auto size = static_cast<size_t>(t + run % 3);
        EXPECT_EQ(RunRow(Floats(size, static_cast<float>(t))),
                  Floats(size, static_cast<float>(6 * t)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tenon
