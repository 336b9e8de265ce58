#include "base/text.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(TextTest, FormatsEveryArgumentKind) {
  EXPECT_EQ(Format("{} {:.3f} {:>4} {}", 7, 0.5, "ab", std::string("c")), "7 0.500   ab c");
}

TEST(TextTest, JoinsUpToALimit) {
  EXPECT_EQ(JoinNames({"a", "b"}), "a, b");
  EXPECT_EQ(JoinNames({"a", "b", "c"}, 1), "a, ... (2 more)");
}

TEST(TextTest, SuggestsOnlyNearNames) {
  EXPECT_EQ(DidYouMean("Sofmax", {"Softmax", "Gemm"}), " (did you mean 'Softmax'?)");
  EXPECT_EQ(DidYouMean("Quux", {"Softmax", "Gemm"}), "");
}

}  // namespace
}  // namespace tenon
