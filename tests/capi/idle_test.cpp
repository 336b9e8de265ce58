// The memory that runs leave: when no other run follows, and after ten thousand runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "capi/client.h"
#include "capi/model_builder.h"
#include "capi/run_fixture.h"

namespace tenon::test {
namespace {

using std::chrono::milliseconds;

constexpr size_t kMegabyte = size_t{1} << 20;

size_t ResidentBytes() {
  size_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// AddressSanitizer keeps what is freed for a while.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kFreedMemoryStays = true;
#else
constexpr bool kFreedMemoryStays = false;
#endif

// Three intermediate values as large as the input, and a scalar output.
std::string LargeActivationsModel() {
  return ModelBuilder()
      .Input("x", TensorType(kFloat, {"n"}))
      .Node("Exp", {"x"}, {"a"})
      .Node("Sin", {"a"}, {"b"})
      .Node("Mul", {"a", "b"}, {"c"})
      .Node("ReduceMax", {"c"}, {"z"})
      .Output("z", TensorTypeWithoutShape(kFloat))
      .Bytes();
}

float RunLarge(Ort::Session& session, size_t bytes) {
  std::vector<float> x(bytes / sizeof(float), 0);
  const Ort::Value feed = TensorOver(x, {static_cast<int64_t>(x.size())});
  const char* const inputs[] = {"x"};
  const char* const outputs[] = {"z"};
  return ElementsOf<float>(session.Run({}, inputs, &feed, 1, outputs, 1)[0])[0];
}

const float kResult = std::sin(1.f);

TEST(IdleTest, MemoryGoesBackAfterTwoSeconds) {
  if (kFreedMemoryStays) GTEST_SKIP() << "a sanitizer keeps freed memory";
  Ort::Session session = Open(LargeActivationsModel());
  RunLarge(session, 1024);
  const size_t before = ResidentBytes();
  for (int run = 0; run < 2; ++run) {
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(RunLarge(session, 48 * kMegabyte), kResult, 1e-6);
    EXPECT_GT(ResidentBytes(), before + 40 * kMegabyte) << "the next run finds memory";
    std::this_thread::sleep_for(milliseconds(2500));
    EXPECT_LT(ResidentBytes(), before + 16 * kMegabyte);
  }
}

TEST(IdleTest, RunsThatFollowEachOtherKeepTheirMemory) {
  Ort::Session session = Open(LargeActivationsModel());
  const size_t before = ResidentBytes();
  for (int i = 0; i < 5; ++i) {
    RunLarge(session, 48 * kMegabyte);
    std::this_thread::sleep_for(milliseconds(600));
    EXPECT_GT(ResidentBytes(), before + 40 * kMegabyte);
  }
}

TEST(IdleTest, CanBeTurnedOff) {
  Ort::SessionOptions options;
  options.AddConfigEntry("tenon.idle_trim_us", "0");
  Ort::Session session = Open(LargeActivationsModel(), options);
  const size_t before = ResidentBytes();
  RunLarge(session, 48 * kMegabyte);
  std::this_thread::sleep_for(milliseconds(2500));
  EXPECT_GT(ResidentBytes(), before + 40 * kMegabyte);
  options.AddConfigEntry("tenon.idle_trim_us", "soon");
  EXPECT_THAT(ErrorOf([&] { Open(LargeActivationsModel(), options); }),
              testing::AllOf(testing::HasSubstr("tenon.idle_trim_us"), testing::HasSubstr("soon")));
}

// Memory is given back while runs begin and sessions end.
TEST(IdleTest, DisturbsNoRun) {
  Ort::SessionOptions options;
  options.AddConfigEntry("tenon.idle_trim_us", "300");
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 6; ++k) {
        Ort::Session session = Open(LargeActivationsModel(), options);
        for (int run = 0; run < 4; ++run) {
          EXPECT_NEAR(RunLarge(session, 18 * kMegabyte), kResult, 1e-6);
          std::this_thread::sleep_for(std::chrono::microseconds(250 * (i + run)));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(IdleTest, ForkedChildrenGiveTheirMemoryBackToo) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not support threads after fork";
#endif
  if (kFreedMemoryStays) GTEST_SKIP() << "a sanitizer keeps freed memory";
  Ort::SessionOptions options;
  options.AddConfigEntry("tenon.idle_trim_us", "100000");
  options.SetIntraOpNumThreads(1);
  Ort::Session session = Open(LargeActivationsModel(), options);
  RunLarge(session, 1024);
  const size_t before = ResidentBytes();
  RunLarge(session, 48 * kMegabyte);  // its alarm is the parent's
  const pid_t child = fork();
  if (child == 0) {
    RunLarge(session, 48 * kMegabyte);
    const bool was_large = ResidentBytes() > before + 40 * kMegabyte;
    std::this_thread::sleep_for(milliseconds(600));
    _exit(was_large && ResidentBytes() < before + 16 * kMegabyte ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// By how many bytes the heap grows over 10,000 calls of run(i), after the first hundred.
template <class Run>
int64_t GrowthOfHeap(Run&& run) {
  for (int i = 0; i < 100; ++i) run(i);
  const size_t before = mallinfo2().uordblks;
  for (int i = 0; i < 10000; ++i) run(i);
  return static_cast<int64_t>(mallinfo2().uordblks - before);
}

TEST_F(RunTest, TenThousandRunsLeaveTheHeapAsItWas) {
  const auto run = [&](int i) {
    const int64_t rows = 1 + i % 3;
    std::vector<float> x(static_cast<size_t>(rows) * 3, 1.5F);
    const Ort::Value feed = TensorOver(x, {rows, 3});
    const OrtValue* const values[] = {feed, feeds_[1]};
    OrtValue* output = nullptr;
    ASSERT_EQ(Ort::GetApi().Run(session_, nullptr, inputs_, values, 2, &output_, 1, &output),
              nullptr);
    Ort::GetApi().ReleaseValue(output);
  };
  EXPECT_EQ(GrowthOfHeap(run), 0);
}

TEST(HeapTest, TenThousandRunsOfAClassifierLeaveItAsItWas) {
  Ort::Session session(Env(), TENON_DIGITS_MODEL, {});
  const auto run = [&](int i) {
    const int64_t images = 1 + i % 2;
    std::vector<float> pixels(static_cast<size_t>(images) * 64, 0.5F);
    const Ort::Value feed = TensorOver(pixels, {images, 1, 8, 8});
    const char* const input = "image";
    const char* const output = "probabilities";
    const auto y = session.Run({}, &input, &feed, 1, &output, 1);
    ASSERT_EQ(ElementsOf<float>(y[0]).size(), static_cast<size_t>(images) * 10);
  };
  EXPECT_EQ(GrowthOfHeap(run), 0);
}

// 3, 4 or 5 trips, each of which doubles a state and reports it.
TEST(HeapTest, TenThousandRunsOfALoopLeaveItAsItWas) {
  constexpr auto kInt64 = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
  ModelBuilder body;
  body.Input("trip", TensorType(kInt64, {}));
  body.Input("go", TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, {}));
  body.Input("state", TensorType(kFloat, {2}));
  body.Node("Identity", {"go"}, {"going"}).Node("Add", {"state", "state"}, {"next"});
  body.Node("Identity", {"next"}, {"seen"});
  body.Output("going", TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, {}));
  body.Output("next", TensorType(kFloat, {2})).Output("seen", TensorType(kFloat, {2}));
  ModelBuilder graph;
  graph.Input("trips", TensorType(kInt64, {})).Input("first", TensorType(kFloat, {2}));
  graph.ControlNode("Loop", {"trips", "", "first"}, {"last", "all"}, {{"body", body}});
  graph.Output("last", TensorType(kFloat, {2})).Output("all", TensorType(kFloat, {"n", 2}));
  Ort::Session session = Open(graph.Bytes());
  const auto cpu = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  const auto run = [&](int i) {
    int64_t trips = 3 + i % 3;
    std::vector<float> first = {1, 2};
    Ort::Value feeds[] = {Ort::Value::CreateTensor<int64_t>(cpu, &trips, 1, nullptr, 0),
                          TensorOver(first, {2})};
    const char* const inputs[] = {"trips", "first"};
    const char* const outputs[] = {"last", "all"};
    const auto y = session.Run({}, inputs, feeds, 2, outputs, 2);
    const auto factor = static_cast<float>(1 << trips);
    ASSERT_EQ(ElementsOf<float>(y[0]), (std::vector<float>{factor, 2 * factor}));
    ASSERT_EQ(ElementsOf<float>(y[1]).size(), static_cast<size_t>(2 * trips));
  };
  EXPECT_EQ(GrowthOfHeap(run), 0);
}

}  // namespace
}  // namespace tenon::test
