// Sessions whose runs take their memory from one arena.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "runtime/session_fixture.h"

namespace tenon {
namespace {

constexpr int64_t kSize = int64_t{64} << 10;  // 256 KiB
constexpr size_t kBytes = kSize * sizeof(float);

// y = 2 * (4 * (2 * x) + 2 * x). Two values of it are in memory at once.
ModelBuilder SomeSteps() {
  ModelBuilder b;
  b.Input("x", {n}).Node("Scale", {"x"}, {"a"}).Node("Scale", {"a"}, {"b"});
  b.Node("Scale", {"b"}, {"c"}).Node("Add", {"c", "a"}, {"d"}).Node("Scale", {"d"}, {"y"});
  b.Output("y");
  return b;
}

class SharedMemoryTest : public SessionTest {
 protected:
  std::unique_ptr<Session> OpenSharing() {
    SessionOptions options;
    options.config["tenon.shares_memory"] = "1";
    auto session = MakeSession(environment_, SomeSteps().Build(), options);
    EXPECT_TRUE(session) << session.error().message();
    return session ? std::move(*session) : nullptr;
  }

  // Runs `session`, and checks the result.
  static void RunOn(Session& session, int64_t size, float first) {
    Floats x(static_cast<size_t>(size));
    std::iota(x.begin(), x.end(), first);
    const std::vector<Value> feeds = {Row(x)};
    std::vector<Value> fetches(1);
    const std::string_view names[] = {"x"}, outputs[] = {"y"};
    const Status status = session.Run({}, names, feeds, outputs, fetches);
    ASSERT_TRUE(status.ok()) << status.message();
    const Floats y = ValuesOf(fetches[0]);
    ASSERT_EQ(y.size(), x.size());
    for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], 20 * x[i]) << i;
  }

  // Of the memory of values and of slabs.
  AllocatorStats Stats() const {
    AllocatorStats sum = environment_.shared_memory()->Stats();
    const AllocatorStats work = environment_.shared_work_memory()->Stats();
    sum.bytes_reserved += work.bytes_reserved;
    sum.bytes_in_use += work.bytes_in_use;
    return sum;
  }
};

TEST_F(SharedMemoryTest, IsThatOfOneSessionWhereTheyRunInTurns) {
  const auto first = OpenSharing(), second = OpenSharing();
  ASSERT_TRUE(first && second);
  for (int run = 0; run < 4; ++run) RunOn(*first, kSize, 1);
  const size_t of_one = Stats().bytes_reserved;
  EXPECT_GE(of_one, 2 * kBytes);
  for (int run = 0; run < 4; ++run) {
    RunOn(*second, kSize, 2);
    RunOn(*first, kSize, 3);
  }
  EXPECT_EQ(Stats().bytes_reserved, of_one);
  EXPECT_EQ(Stats().bytes_in_use, 0u);  // no frame keeps its slab
}

TEST_F(SharedMemoryTest, IsAskedForScratchOnceInARun) {
  ModelBuilder b;
  b.Input("x", {n}).Constant("two", Tensor::Of<int64_t>({}, {2}));
  b.Node("Borrow", {"x"}, {"a"}).Node("Repeat", {"a", "two"}, {"b"}).Node("Borrow", {"b"}, {"c"});
  b.Node("Repeat", {"c", "two"}, {"d"}).Node("Borrow", {"d"}, {"y"}).Output("y");
  SessionOptions options;
  options.config["tenon.shares_memory"] = "1";
  auto session = MakeSession(environment_, b.Build(), options);
  ASSERT_TRUE(session) << session.error().message();
  session_ = std::move(*session);
  const Allocator& memory = *environment_.shared_work_memory();
  for (int run = 0; run < 3; ++run) RunRow(Floats(kSize, 1));
  const uint64_t before = memory.Stats().allocations;
  EXPECT_EQ(RunRow(Floats(kSize, 1)), Floats(4 * kSize, 8));
  EXPECT_LE(memory.Stats().allocations - before, 2u);  // the other is the slab
}

TEST_F(SharedMemoryTest, MayMoveBetweenRuns) {
  const auto session = OpenSharing();
  ASSERT_TRUE(session);
  Allocator& memory = *environment_.shared_work_memory();
  for (int run = 0; run < 3; ++run) RunOn(*session, kSize, 1);
  // What others hold lies where the slab was.
  std::vector<void*> blocks;
  for (int run = 0; run < 4; ++run) {
    blocks.push_back(memory.Allocate((run + 1) * kBytes));
    std::fill_n(static_cast<std::byte*>(blocks.back()), (run + 1) * kBytes, std::byte{0xFF});
    RunOn(*session, kSize, static_cast<float>(run));
    RunOn(*session, kSize / 2, static_cast<float>(run));
    const auto* const held = static_cast<const std::byte*>(blocks.back());
    EXPECT_TRUE(std::all_of(held, held + (run + 1) * kBytes,
                            [](std::byte each) { return each == std::byte{0xFF}; }));
  }
  for (void* const block : blocks) memory.Free(block);
}

TEST_F(SharedMemoryTest, ServesRunsAtTheSameTime) {
  const auto first = OpenSharing(), second = OpenSharing();
  ASSERT_TRUE(first && second);
  std::vector<std::thread> threads;
  for (Session* const session : {first.get(), second.get(), first.get()}) {
    threads.emplace_back([=] {
      for (int run = 0; run < 20; ++run) RunOn(*session, kSize / (1 + run % 3), 1.0F + run);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Stats().bytes_in_use, 0u);
}

TEST_F(SharedMemoryTest, IsNotUsedByOtherSessions) {
  ModelBuilder steps = SomeSteps();
  Open(steps);
  for (int run = 0; run < 3; ++run) EXPECT_EQ(RunRow({1, 2}), (Floats{20, 40}));
  EXPECT_EQ(Stats().bytes_reserved, 0u);
}

// Memory of a client that has no blocks of more than `most` bytes.
class ScarceMemory final : public Allocator {
 public:
  void* Allocate(size_t bytes) override {
    if (bytes <= most) return CpuAllocator().Allocate(bytes);
    ++refused;
    return nullptr;
  }
  void Free(void* block) override { CpuAllocator().Free(block); }
  const MemoryInfo& info() const override { return CpuMemory(); }

  size_t most = SIZE_MAX;
  int refused = 0;
};

TEST_F(SharedMemoryTest, OfAClientMayHaveNoRoomForTheSlabThatItHadBefore) {
  // y = 2 * (a + b + c + a) + a + c, where each is 2 * x. The slab has a and c.
  ModelBuilder b;
  b.Input("x", {n});
  for (const char* const value : {"a", "b", "c"}) b.Node("Scale", {"x"}, {value});
  b.Node("Add", {"a", "b"}, {"d"}).Node("Add", {"d", "c"}, {"e"}).Node("Add", {"e", "a"}, {"f"});
  b.Node("Scale", {"f"}, {"g"}).Node("Add", {"g", "a"}, {"h"}).Node("Add", {"h", "c"}, {"y"});
  b.Output("y");
  const auto memory = std::make_shared<ScarceMemory>();
  SessionParts parts;
  parts.providers.push_back(MakeTestProvider());
  parts.shape_functions = &TestShapeFunctions();
  parts.memory = memory;
  const auto session = Session::Create(environment_, b.Build(), {}, std::move(parts)).value();
  for (const bool is_scarce : {false, false, true, true, false}) {
    memory->most = is_scarce ? kBytes + kBytes / 2 : SIZE_MAX;
    memory->refused = 0;
    RunOn(*session, kSize, 1);
    EXPECT_EQ(memory->refused, is_scarce ? 1 : 0);
  }
}

}  // namespace
}  // namespace tenon
