// The pool without threads divides loops as the one with threads does (WB-115).
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "base/thread_pool.h"

namespace tenon {
namespace {

TEST(ThreadPoolInlineTest, TheCallerDoesEveryChunk) {
  ThreadPool pool({.threads = 4});
  EXPECT_EQ(pool.threads(), 1);
  EXPECT_TRUE(pool.Start().ok());
  std::vector<std::pair<size_t, size_t>> chunks;
  pool.ParallelFor(7, 3, [&](size_t begin, size_t end) {
    chunks.emplace_back(begin, end);
    pool.ParallelFor(2, 1, [&](size_t, size_t) { chunks.emplace_back(0, 0); });
  });
  const std::vector<std::pair<size_t, size_t>> expected = {{0, 3}, {0, 0}, {0, 0}, {3, 6}, {0, 0},
                                                           {0, 0}, {6, 7}, {0, 0}, {0, 0}};
  EXPECT_EQ(chunks, expected);
}

}  // namespace
}  // namespace tenon
