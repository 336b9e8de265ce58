// What stays of the memory of runs: when no other run follows, and after ten thousand.
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

constexpr auto kFloat = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
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

// Memory goes while runs come and sessions end.
TEST(IdleTest, DisturbsNobody) {
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
  for (int i = 0; i < 100; ++i) run(i);
  const size_t before = mallinfo2().uordblks;
  for (int i = 0; i < 10000; ++i) run(i);
  EXPECT_EQ(mallinfo2().uordblks, before);
}

}  // namespace
}  // namespace tenon::test
