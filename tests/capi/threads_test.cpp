// Threads that share a session, threads that a client makes, and callbacks about threads' work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "capi/client.h"
#include "capi/model_builder.h"
#include "capi/run_fixture.h"

namespace tenon::test {
namespace {

TEST_F(RunTest, ThreadsShareASession) {
  constexpr int kThreads = 4, kRuns = 200;
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int run = 0; run < kRuns; ++run) {
        const int64_t rows = 1 + (t + run) % 5;
        std::vector<float> x(static_cast<size_t>(rows) * 3, static_cast<float>(t));
        const Ort::Value feeds[] = {TensorOver(x, {rows, 3}), TensorOver(y_, {3})};
        const auto outputs = session_.Run({}, inputs_, feeds, 2, &output_, 1);
        const std::vector<float> z = ElementsOf<float>(outputs[0]);
        if (z.size() != x.size() || z[0] != t + 10.0f || z[1] != t + 1.0f || z[2] != 0) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(SessionOptionsTest, ClientsThreadsDoTheWork) {
  struct Threads {
    static OrtCustomThreadHandle Create(void* options, OrtThreadWorkerFn worker, void* param) {
      ++*static_cast<int*>(options);
      return reinterpret_cast<OrtCustomThreadHandle>(new std::thread(worker, param));
    }
    static void Join(OrtCustomThreadHandle handle) {
      auto* const thread =
          reinterpret_cast<std::thread*>(const_cast<void*>(static_cast<const void*>(handle)));
      thread->join();
      delete thread;
    }
  };
  int created = 0;
  Ort::SessionOptions options;
  options.SetIntraOpNumThreads(3);
  options.SetCustomCreateThreadFn(Threads::Create);
  options.SetCustomThreadCreationOptions(&created);
  options.SetCustomJoinThreadFn(Threads::Join);
  {
    Ort::Session session = Open(AddReluModel(), options);
    constexpr int64_t kRows = 200000;
    std::vector<float> x(kRows * 3, 1), y = {0, 0, 0};
    const Ort::Value feeds[] = {TensorOver(x, {kRows, 3}), TensorOver(y, {3})};
    const char* const inputs[] = {"x", "y"};
    const char* const output = "z";
    const auto outputs = session.Run({}, inputs, feeds, 2, &output, 1);
    EXPECT_THAT(ElementsOf<float>(outputs[0]), testing::Each(1));
  }
  EXPECT_EQ(created, 2);
}

struct WorkCounts {
  std::atomic<int> enqueued = 0, started = 0, stopped = 0, abandoned = 0;

  static void* Enqueue(void* context) {
    ++static_cast<WorkCounts*>(context)->enqueued;
    return context;
  }
  template <std::atomic<int> WorkCounts::*kCount>
  static void Count(void* context, void* data) {
    EXPECT_EQ(data, context);
    ++(static_cast<WorkCounts*>(context)->*kCount);
  }
  OrtThreadPoolCallbacksConfig Config() {
    return {ORT_API_VERSION,
            &Enqueue,
            &Count<&WorkCounts::started>,
            &Count<&WorkCounts::stopped>,
            &Count<&WorkCounts::abandoned>,
            this};
  }
};

void RunLarge(Ort::Session& session) {
  constexpr int64_t kRows = 200000;
  std::vector<float> x(kRows * 3, 1), y = {0, 0, 0};
  const Ort::Value feeds[] = {TensorOver(x, {kRows, 3}), TensorOver(y, {3})};
  const char* const inputs[] = {"x", "y"};
  const char* const output = "z";
  session.Run({}, inputs, feeds, 2, &output, 1);
}

TEST(SessionOptionsTest, ThreadsOfSessionsTellOfTheirWork) {
  WorkCounts counts;
  Ort::SessionOptions three;
  three.SetIntraOpNumThreads(3);
  Ort::Session before = Open(AddReluModel(), three);
  Env().SetPerSessionThreadPoolCallbacks(counts.Config());
  {
    Ort::SessionOptions shared;
    shared.DisablePerSessionThreads();
    Ort::Session of_environment = Open(AddReluModel(), shared);
    RunLarge(before);
    RunLarge(of_environment);
    EXPECT_EQ(counts.enqueued, 0);
    Ort::Session session = Open(AddReluModel(), three);
    RunLarge(session);
    RunLarge(session);
    EXPECT_GE(counts.enqueued, 2);
    EXPECT_EQ(counts.enqueued, counts.started + counts.abandoned);
    EXPECT_EQ(counts.started, counts.stopped);
  }
  const int told = counts.enqueued;
  Env().SetPerSessionThreadPoolCallbacks({ORT_API_VERSION, nullptr, nullptr, nullptr, nullptr, {}});
  Ort::Session after = Open(AddReluModel(), three);
  RunLarge(after);
  EXPECT_EQ(counts.enqueued, told);
}

TEST(SessionOptionsTest, AsynchronousRunsAreWorkOfTheSessionsThreads) {
  WorkCounts counts;
  Env().SetPerSessionThreadPoolCallbacks(counts.Config());
  std::vector<float> x = {1, 2, 3}, y = {0, 0, 0};
  const Ort::Value feeds[] = {TensorOver(x, {1, 3}), TensorOver(y, {3})};
  const char* const inputs[] = {"x", "y"};
  const char* const output = "z";
  Ort::Value fetched{nullptr};
  {
    Ort::SessionOptions one;
    one.SetIntraOpNumThreads(1);
    Ort::Session session = Open(AddReluModel(), one);
    Env().SetPerSessionThreadPoolCallbacks(
        {ORT_API_VERSION, nullptr, nullptr, nullptr, nullptr, {}});
    const auto done = [](void*, OrtValue**, size_t, OrtStatusPtr status) { Ort::Status{status}; };
    session.RunAsync(Ort::RunOptions{nullptr}, inputs, feeds, 2, &output, &fetched, 1, done,
                     nullptr);
    EXPECT_EQ(counts.enqueued, 1);
    // The end of the session awaits the run.
  }
  EXPECT_EQ(counts.started, 1);
  EXPECT_EQ(counts.stopped, 1);
  EXPECT_EQ(counts.abandoned, 0);
}

}  // namespace
}  // namespace tenon::test
