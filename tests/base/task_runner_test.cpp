#include "base/task_runner.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tenon {
namespace {

TEST(TaskRunnerTest, EveryTaskHasRunAtTheEnd) {
  for (const int threads : {0, 1, 3}) {
    std::atomic<int> runs = 0;
    {
      TaskRunner runner(threads);
      for (int i = 0; i < 100; ++i) runner.Post([&] { ++runs; });
    }
    EXPECT_EQ(runs, 100) << threads;
  }
}

// A task may end its runner, once all tasks have run.
TEST(TaskRunnerTest, WhatComesAfterTheTasksMayEndTheirRunner) {
  for (const int threads : {1, 3}) {
    auto runner = std::make_unique<TaskRunner>(threads);
    EXPECT_FALSE(runner->AfterTasks([] {})) << "no task calls";
    std::atomic<int> runs = 0;
    std::promise<int> runs_before;
    std::promise<void> go;
    const std::shared_future<void> start = go.get_future().share();
    for (int i = 0; i < 20; ++i) {
      runner->Post([&, i] {
        start.wait();
        ++runs;
        if (i != 5) return;
        EXPECT_TRUE(runner->AfterTasks([&] {
          runner.reset();
          runs_before.set_value(runs);
        }));
      });
    }
    go.set_value();
    EXPECT_EQ(runs_before.get_future().get(), 20) << threads;
  }
}

TEST(TaskRunnerTest, ATaskMayEndItsRunnerBeforePostReturns) {
  for (int run = 0; run < 20; ++run) {
    auto* const runner = new TaskRunner(1);
    std::promise<void> ended;
    // ThreadSanitizer reports whatever Post does to the runner once the task may run.
    runner->Post([&] {
      runner->AfterTasks([&] {
        delete runner;
        ended.set_value();
      });
    });
    ended.get_future().wait();
  }
}

TEST(TaskRunnerTest, OneThreadKeepsTheOrder) {
  std::vector<int> order;
  {
    TaskRunner runner(1);
    for (int i = 0; i < 20; ++i) runner.Post([&order, i] { order.push_back(i); });
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(order[i], i);
}

TEST(TaskRunnerTest, TasksRunBesideTheCallerAndEachOther) {
  std::promise<std::thread::id> first, second;
  std::promise<void> both;
  const std::shared_future<void> go = both.get_future().share();
  const auto wait_for_both = [&](std::promise<std::thread::id>& promise) {
    promise.set_value(std::this_thread::get_id());
    go.wait();
  };
  TaskRunner runner(2);  // ends before what its tasks use
  runner.Post([&] { wait_for_both(first); });
  runner.Post([&] { wait_for_both(second); });
  const std::thread::id one = first.get_future().get();
  const std::thread::id other = second.get_future().get();
  both.set_value();
  EXPECT_NE(one, other);
  EXPECT_NE(one, std::this_thread::get_id());
}

TEST(TaskRunnerTest, AForkedChildHasThreadsOfItsOwn) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not support threads after fork";
#endif
  auto runner = std::make_unique<TaskRunner>(2);
  std::promise<void> ran;
  runner->Post([&] { ran.set_value(); });
  ran.get_future().wait();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    std::promise<void> ran_here;
    runner->Post([&] { ran_here.set_value(); });
    ran_here.get_future().wait();
    runner.reset();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  const pid_t idle_child = fork();
  if (idle_child == 0) {
    alarm(20);
    runner.reset();  // whose threads are not here
    _exit(0);
  }
  waitpid(idle_child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace tenon
