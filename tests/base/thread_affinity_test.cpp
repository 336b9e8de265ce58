#include "base/thread_affinity.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

using Sets = std::vector<std::vector<int>>;

TEST(ThreadAffinityTest, CountsCpusFromOne) {
  const struct {
    const char* text;
    Sets expected;
  } kCases[] = {
      {"1", {{0}}},
      {"1,2;3,4", {{0, 1}, {2, 3}}},
      {"2-4;1", {{1, 2, 3}, {0}}},
      {"5-5,1", {{4, 0}}},
  };
  for (const auto& [text, expected] : kCases) {
    const Result<Sets> sets = ParseThreadAffinities(text);
    ASSERT_TRUE(sets.has_value()) << text;
    EXPECT_EQ(*sets, expected) << text;
  }
}

TEST(ThreadAffinityTest, QuotesWhatIsWrong) {
  for (const char* text : {"", "0", "1;", "1,,2", "a", "3-1", "1-", "-1", "1 ", "99999999999"}) {
    const Result<Sets> sets = ParseThreadAffinities(text);
    ASSERT_FALSE(sets.has_value()) << text;
    EXPECT_EQ(sets.error().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_NE(sets.error().message().find("thread affinities"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tenon
