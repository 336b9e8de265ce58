// Requirements: plugin-ep, section 7.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "tensor/best_fit_arena.h"

namespace tenon {
namespace {

// PE-95: a random walk keeps blocks apart and the accounts consistent.
TEST(BestFitArenaThreadsTest, DoNotDisturbEachOther) {
  BestFitArena arena(SharedCpuAllocator(), {.initial_chunk = 64 << 10, .max_dead_bytes = 4 << 10});
  const auto walk = [&](uint32_t seed) {
    std::vector<std::pair<std::byte*, size_t>> held;
    for (int i = 0; i < 2000; ++i) {
      seed = seed * 1664525 + 1013904223;
      if (held.size() < 20 && (seed >> 16) % 3 != 0) {
        const size_t bytes = 1 + (seed >> 8) % 20000;
        auto* block = static_cast<std::byte*>(arena.Allocate(bytes));
        std::fill_n(block, bytes, static_cast<std::byte>(seed));
        held.emplace_back(block, bytes);
      } else if (!held.empty()) {
        const auto& [block, bytes] = held[(seed >> 8) % held.size()];
        ASSERT_EQ(std::count(block, block + bytes, *block), static_cast<ptrdiff_t>(bytes));
        arena.Free(block);
        held.erase(held.begin() + (seed >> 8) % held.size());
      }
    }
    for (const auto& entry : held) arena.Free(entry.first);
  };
  std::thread first(walk, 1u), second(walk, 2u);
  first.join();
  second.join();
  EXPECT_EQ(arena.arena_stats().in_use, 0u);
  EXPECT_TRUE(arena.Shrink().ok());
}

}  // namespace
}  // namespace tenon
