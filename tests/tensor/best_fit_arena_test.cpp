// Requirements: plugin-ep, section 7.
#include "tensor/best_fit_arena.h"

#include <gtest/gtest.h>

#include <map>

namespace tenon {
namespace {

// A device with so many bytes that records its blocks.
class Device final : public Allocator {
 public:
  explicit Device(size_t room = SIZE_MAX) : room_(room) {}
  ~Device() override { EXPECT_TRUE(blocks_.empty()); }

  void* Allocate(size_t bytes) override {
    if (bytes > room_ - used_) return nullptr;
    used_ += bytes;
    sizes.push_back(bytes);
    void* block = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    blocks_[block] = bytes;
    return block;
  }
  void Free(void* block) override {
    used_ -= blocks_.at(block);
    blocks_.erase(block);
    std::free(block);
  }
  const MemoryInfo& info() const override { return CpuMemory(); }
  size_t live() const { return blocks_.size(); }

  std::vector<size_t> sizes;  // of all requests that were granted

 private:
  const size_t room_;
  size_t used_ = 0;
  std::map<void*, size_t> blocks_;
};

constexpr size_t kKiB = 1024, kMiB = kKiB * kKiB;

class BestFitArenaTest : public ::testing::Test {
 protected:
  BestFitArena& Make(ArenaConfig config = {}, size_t room = SIZE_MAX) {
    device_ = std::make_shared<Device>(room);
    arena_ = std::make_unique<BestFitArena>(device_, config);
    return *arena_;
  }
  std::byte* Take(size_t bytes, const StreamOrder* stream = nullptr) {
    Result<void*> block = arena_->TryAllocate(bytes, stream);
    EXPECT_TRUE(block) << block.error().message();
    return block ? static_cast<std::byte*>(*block) : nullptr;
  }

  std::shared_ptr<Device> device_;
  std::unique_ptr<BestFitArena> arena_;
};

// PE-84
TEST_F(BestFitArenaTest, TakesNothingBeforeTheFirstRequest) {
  BestFitArena& arena = Make();
  EXPECT_EQ(device_->live(), 0u);
  EXPECT_EQ(Take(0), nullptr);
  arena.Free(nullptr);  // PE-90
  EXPECT_EQ(device_->live(), 0u);
}

// PE-83: sizes are rounded to 256; the smallest chunk that fits is used, the lowest address first.
TEST_F(BestFitArenaTest, TheBestFitServes) {
  BestFitArena& arena = Make({.max_dead_bytes = 0});
  std::byte* a = Take(1000);
  std::byte* b = Take(256);
  std::byte* c = Take(512);
  std::byte* d = Take(1);
  std::byte* e = Take(300);
  std::byte* f = Take(256);
  EXPECT_EQ(b - a, 1024);
  EXPECT_EQ(e - d, 256);
  EXPECT_EQ(f - e, 512);
  arena.Free(a);
  arena.Free(c);
  arena.Free(e);
  EXPECT_EQ(Take(400), c);  // 512 fits better than 1024; c lies before e
  EXPECT_EQ(Take(512), e);
  EXPECT_EQ(Take(600), a);
  for (std::byte* block : {a, b, c, d, e, f}) arena.Free(block);
}

// PE-85
TEST_F(BestFitArenaTest, SplitsWhatIsTwiceAsLargeOrLeavesEnough) {
  BestFitArena& arena =
      Make({.extend = ArenaConfig::Extend::kSameAsRequested, .max_dead_bytes = 64 * kKiB});
  std::byte* large = Take(100 * kKiB);
  arena.Free(large);
  std::byte* most = Take(60 * kKiB);  // the rest is neither half nor 64 KiB: given whole
  EXPECT_EQ(arena.arena_stats().in_use, 100 * kKiB);
  arena.Free(most);
  std::byte* half = Take(50 * kKiB);
  EXPECT_EQ(arena.arena_stats().in_use, 50 * kKiB);
  arena.Free(half);
  std::byte* few = Take(30 * kKiB);
  EXPECT_EQ(arena.arena_stats().in_use, 30 * kKiB);
  arena.Free(few);
}

// PE-90
TEST_F(BestFitArenaTest, FreeNeighboursJoin) {
  BestFitArena& arena = Make({.max_dead_bytes = 0});
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(Take(256 * kKiB));  // the whole first region
  EXPECT_EQ(device_->sizes, (std::vector<size_t>{kMiB}));
  for (const int i : {1, 3, 0, 2}) arena.Free(blocks[i]);
  EXPECT_EQ(Take(kMiB), blocks[0]);
  EXPECT_EQ(device_->sizes.size(), 1u);
  arena.Free(blocks[0]);
}

// PE-86
TEST_F(BestFitArenaTest, RegionsDoubleUpToALimit) {
  BestFitArena& arena = Make({.initial_chunk = kMiB, .max_extend = 4 * kMiB});
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 5; ++i) {
    blocks.push_back(Take(kMiB));  // 1 MiB, then in 2 MiB, twice, then 4 MiB ...
  }
  blocks.push_back(Take(9 * kMiB));  // larger than the limit: exactly
  blocks.push_back(Take(9 * kMiB + 1));
  EXPECT_EQ(device_->sizes,
            (std::vector<size_t>{kMiB, 2 * kMiB, 4 * kMiB, 9 * kMiB, 9 * kMiB + 256}));
  for (std::byte* block : blocks) arena.Free(block);
  Make({.initial_chunk = kMiB});
  blocks = {Take(5 * kMiB), Take(9 * kMiB)};  // doubles until it fits, then once
  EXPECT_EQ(device_->sizes, (std::vector<size_t>{8 * kMiB, 16 * kMiB}));
  for (std::byte* block : blocks) arena_->Free(block);
  Make({.extend = ArenaConfig::Extend::kSameAsRequested});
  blocks = {Take(1000), Take(5 * kMiB)};
  EXPECT_EQ(device_->sizes, (std::vector<size_t>{1024, 5 * kMiB}));
  for (std::byte* block : blocks) arena_->Free(block);
}

TEST_F(BestFitArenaTest, RegionsOfHalfOfAllMemoryDoNotDouble) {
  BestFitArena& arena = Make({.max_extend = SIZE_MAX}, kMiB);
  constexpr size_t kMoreThanHalf = SIZE_MAX / 2 + kKiB;
  const auto refused = arena.TryAllocate(kMoreThanHalf);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message().starts_with("the device has no room for"));
}

// PE-87
TEST_F(BestFitArenaTest, AsksForLessWhereTheDeviceRefuses) {
  BestFitArena& arena = Make({.initial_chunk = kMiB}, 700 * kKiB);
  std::byte* block = Take(100 * kKiB);
  ASSERT_EQ(device_->sizes.size(), 1u);
  EXPECT_LE(device_->sizes[0], 700 * kKiB);
  EXPECT_GT(device_->sizes[0], 600 * kKiB);
  EXPECT_EQ(device_->sizes[0] % 256, 0u);
  const auto refused = arena.TryAllocate(800 * kKiB);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "the device has no room for 819200 bytes");
  arena.Free(block);
}

// PE-88
TEST_F(BestFitArenaTest, KeepsToItsLimit) {
  BestFitArena& arena = Make({.max_bytes = 10 * kKiB});
  std::byte* block = Take(8 * kKiB);
  const auto refused = arena.TryAllocate(4 * kKiB);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "the arena has no room for 4096 bytes: 0 of 10240 are left");
  EXPECT_EQ(arena.Allocate(4 * kKiB), nullptr);
  EXPECT_FALSE(arena.TryAllocate(SIZE_MAX));
  EXPECT_EQ(device_->live(), 1u);
  arena.Free(block);
}

// PE-89
TEST_F(BestFitArenaTest, ReservedBlocksBypassTheBins) {
  BestFitArena& arena = Make();
  void* block = arena.Reserve(1000).value();
  EXPECT_EQ(device_->sizes, (std::vector<size_t>{1000}));
  const ArenaStats stats = arena.arena_stats();
  EXPECT_EQ(stats.reserves, 1u);
  EXPECT_EQ(stats.allocs, 1u);
  EXPECT_EQ(stats.in_use, 1000u);
  EXPECT_EQ(stats.total_allocated, 1000u);
  EXPECT_TRUE(arena.Shrink().ok());
  EXPECT_EQ(device_->live(), 1u);
  arena.Free(block);
  EXPECT_EQ(device_->live(), 0u);
  EXPECT_EQ(arena.arena_stats().total_allocated, 0u);
}

// PE-91, PE-92
TEST_F(BestFitArenaTest, ShrinkGivesUnusedRegionsBack) {
  BestFitArena& arena = Make({.initial_chunk = kMiB, .initial_growth_chunk = 3 * kMiB});
  std::byte* first = Take(kMiB);
  std::byte* second = Take(2 * kMiB);
  std::byte* third = Take(4 * kMiB);
  EXPECT_EQ(arena.arena_stats().extensions, 3);
  arena.Free(first);
  arena.Free(third);
  EXPECT_TRUE(arena.Shrink().ok());  // the first region stays, the second is in use
  EXPECT_EQ(device_->live(), 2u);
  ArenaStats stats = arena.arena_stats();
  EXPECT_EQ(stats.extensions, 2);
  EXPECT_EQ(stats.shrinkages, 1u);
  EXPECT_EQ(stats.total_allocated, 3 * kMiB);
  EXPECT_EQ(stats.in_use, 2 * kMiB);
  EXPECT_EQ(stats.max_in_use, 7 * kMiB);
  EXPECT_EQ(stats.max_alloc_size, 4 * kMiB);
  std::byte* next = Take(2 * kMiB);  // growth begins anew
  EXPECT_EQ(device_->sizes.back(), 3 * kMiB);
  arena.Free(second);
  arena.Free(next);
  EXPECT_TRUE(arena.Shrink().ok());
  EXPECT_EQ(device_->live(), 1u);
  Make({.extend = ArenaConfig::Extend::kSameAsRequested});
  arena_->Free(Take(kMiB));
  EXPECT_TRUE(arena_->Shrink().ok());
  EXPECT_EQ(device_->live(), 0u);
}

TEST_F(BestFitArenaTest, MayShrinkBeforeItGrows) {
  BestFitArena& arena = Make({.extend = ArenaConfig::Extend::kSameAsRequested,
                              .max_dead_bytes = 0,
                              .shrinks_first = true});
  std::byte* const kept = Take(kMiB);
  std::byte* const small = Take(2 * kMiB);
  arena.Free(small);
  std::byte* const large = Take(3 * kMiB);
  EXPECT_EQ(device_->live(), 2u);  // the region of 2 MiB went back
  EXPECT_EQ(arena.arena_stats().total_allocated, 4 * kMiB);
  arena.Free(large);
  EXPECT_EQ(Take(2 * kMiB), large);  // what fits does not shrink it
  EXPECT_EQ(arena.arena_stats().total_allocated, 4 * kMiB);
  arena.Free(large);
  arena.Free(kept);
}

class FakeStream final : public StreamOrder {
 public:
  uint64_t sync_id() const override { return id; }
  uint64_t WaitedFor(const StreamOrder& producer) const override {
    const auto waited = waits.find(&producer);
    return waited == waits.end() ? 0 : waited->second;
  }
  uint64_t id = 1;
  std::map<const StreamOrder*, uint64_t> waits;
};

// PE-93
TEST_F(BestFitArenaTest, ChunksGoToStreamsThatHaveWaited) {
  BestFitArena& arena = Make({.extend = ArenaConfig::Extend::kSameAsRequested});
  FakeStream a, b;
  std::byte* block = Take(1024, &a);
  arena.Free(block);
  std::byte* others = Take(1024, &b);
  EXPECT_NE(others, block);
  EXPECT_EQ(Take(1024, &a), block);
  arena.Free(block);
  a.id = 2;  // a mark after the free, which b waits for
  b.waits[&a] = 2;
  EXPECT_EQ(Take(1024, &b), block);
  arena.Free(block);
  arena.Free(others);
  std::byte* untaken = Take(1024, nullptr);  // freed by b, for which the others have not waited
  EXPECT_TRUE(untaken != block && untaken != others);
  arena.ReleaseStream(b);
  std::byte* now = Take(1024, nullptr);
  EXPECT_TRUE(now == block || now == others);
  arena.Free(untaken);
  arena.Free(now);
}

// PE-93: neighbours of different streams join when the streams are released.
TEST_F(BestFitArenaTest, ChunksJoinWhenTheirStreamsAreReleased) {
  BestFitArena& arena = Make({.max_dead_bytes = 0});
  FakeStream a, b;
  std::byte* first = Take(512 * kKiB, &a);
  std::byte* second = Take(512 * kKiB, &b);
  arena.Free(first);
  arena.Free(second);
  arena.ReleaseStream(a);
  arena.ReleaseStream(b);
  EXPECT_EQ(Take(kMiB), first);
  EXPECT_EQ(device_->sizes.size(), 1u);
  arena.Free(first);
}

// PE-80, PE-81
TEST(ArenaConfigTest, EveryKeyIsReadAndChecked) {
  const ArenaConfig config = *ArenaConfigOf({{"arena.max_mem", "1000"},
                                             {"arena.extend_strategy", "1"},
                                             {"arena.initial_chunk_size_bytes", "1"},
                                             {"arena.max_dead_bytes_per_chunk", "2"},
                                             {"arena.initial_growth_chunk_size_bytes", "3"},
                                             {"arena.max_power_of_two_extend_bytes", "4"},
                                             {"something.else", "x"}});
  EXPECT_EQ(config.max_bytes, 1000u);
  EXPECT_EQ(config.extend, ArenaConfig::Extend::kSameAsRequested);
  EXPECT_EQ(config.initial_chunk, 1u);
  EXPECT_EQ(config.max_dead_bytes, 2u);
  EXPECT_EQ(config.initial_growth_chunk, 3u);
  EXPECT_EQ(config.max_extend, 4u);
  const ArenaConfig defaults =
      *ArenaConfigOf({{"arena.max_mem", "0"}, {"arena.initial_chunk_size_bytes", "-1"}});
  EXPECT_EQ(defaults.max_bytes, SIZE_MAX);
  EXPECT_EQ(defaults.initial_chunk, kMiB);
  for (const char* wrong : {"-2", "many", "", "1,5", "99999999999999999999", " 1"}) {
    const auto result = ArenaConfigOf({{"arena.initial_chunk_size_bytes", wrong}});
    ASSERT_FALSE(result) << wrong;
    EXPECT_EQ(result.error().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(result.error().message().find("arena.initial_chunk_size_bytes"), std::string::npos);
    EXPECT_NE(result.error().message().find(Format("'{}'", wrong)), std::string::npos);
  }
  EXPECT_FALSE(ArenaConfigOf({{"arena.extend_strategy", "2"}}));
  EXPECT_FALSE(ArenaConfigOf({{"arena.max_mem", "-1"}}));
}

}  // namespace
}  // namespace tenon
