// The cost of profiling while it is off. This file defines the program's clock, so that its reads
// are counted.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "base/allocation_count.h"
#include "base/temporary_folder.h"
#include "base/text.h"
#include "runtime/profiler.h"
#include "runtime/test_provider.h"

namespace {

std::atomic<int> looks_at_the_clock = 0;

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  ++looks_at_the_clock;
  return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
}

namespace tenon {
namespace {

constexpr int kNodes = 1000;

class ProfilingOffTest : public ::testing::Test {
 protected:
  // A chain of nodes that do almost nothing.
  std::unique_ptr<Session> Open(std::shared_ptr<Profiler> profiler) {
    ModelBuilder b;
    b.Input("x0", {Dim(1)});
    for (int i = 0; i < kNodes; ++i) {
      b.Node("Scale", {Format("x{}", i)}, {Format("x{}", i + 1)});
    }
    b.Output(Format("x{}", kNodes));
    SessionParts parts;
    parts.providers.push_back(MakeTestProvider());
    parts.shape_functions = &TestShapeFunctions();
    parts.profiler = std::move(profiler);
    auto session = Session::Create(environment_, b.Build(), {}, std::move(parts));
    EXPECT_TRUE(session);
    return std::move(*session);
  }

  struct Cost {
    int looks = 0;
    size_t allocations = 0;
  };

  // Of one run, when shapes and memory are known.
  static Cost CostOfRun(Session& session) {
    const std::string last = Format("x{}", kNodes);
    const std::string_view in = "x0", out = last;
    const Value x = Tensor::Of<float>({1}, {1});
    Value y = Tensor::Of<float>({1}, {0});
    Cost cost;
    for (int i = 0; i < 3; ++i) {
      const int looks = looks_at_the_clock;
      const size_t allocations = AllocationsOnThisThread();
      EXPECT_TRUE(session.Run({}, {&in, 1}, {&x, 1}, {&out, 1}, {&y, 1}).ok());
      cost = {looks_at_the_clock - looks, AllocationsOnThisThread() - allocations};
    }
    return cost;
  }

  TemporaryFolder folder_;
  Environment environment_{{.severity = Severity::kFatal, .threads = {.threads = 1}}};
};

// PR-10: a run without a profiler measures nothing and records nothing; only one test of a constant
// per node remains. (bench/profiling.py measures the time of a chain of as many nodes.)
TEST_F(ProfilingOffTest, RunsLookAtNoClockAndAllocateNothing) {
  auto session = Open(nullptr);
  const Cost off = CostOfRun(*session);
  EXPECT_EQ(off.looks, 0);
  EXPECT_EQ(off.allocations, 0u);

  auto profiler = Profiler::Open(folder_ / "trace", {}, environment_.logger());
  auto profiled = Open(*profiler);
  EXPECT_GE(CostOfRun(*profiled).looks, 4 * kNodes) << "else nothing is counted";
  ASSERT_TRUE(profiled->EndProfiling());
  const Cost ended = CostOfRun(*profiled);
  EXPECT_EQ(ended.looks, 0) << "it is off again";
  EXPECT_EQ(ended.allocations, 0u);
}

}  // namespace
}  // namespace tenon
