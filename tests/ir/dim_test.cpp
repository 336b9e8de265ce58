#include "ir/dim.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tenon {
namespace {

const Dim n = Dim::Symbol("n");
const Dim m = Dim::Symbol("m");

TEST(DimTest, NumbersBehaveLikeIntegersUntilTheyOverflow) {
  EXPECT_EQ(Dim(3) + Dim(4), Dim(7));
  EXPECT_EQ(FloorDiv(Dim(-7), Dim(2)), Dim(-4));
  EXPECT_EQ(CeilDiv(Dim(7), Dim(2)), Dim(4));
  EXPECT_TRUE((Dim(INT64_MAX) + Dim(1)).is_unknown());
  EXPECT_TRUE((Dim(INT64_MAX) * Dim(2)).is_unknown());
  EXPECT_TRUE(FloorDiv(Dim(1), Dim(0)).is_unknown());
  EXPECT_TRUE(FloorDiv(Dim(INT64_MIN), Dim(-1)).is_unknown());
}

TEST(DimTest, EqualExpressionsAreEqual) {
  EXPECT_EQ(n + m, m + n);
  EXPECT_EQ((n + Dim(1)) * (n - Dim(1)), n * n - Dim(1));
  EXPECT_EQ(n - n, Dim(0));
  EXPECT_FALSE(n == m);
  EXPECT_FALSE(Dim::Unknown() == Dim::Unknown());
  EXPECT_EQ(n * Dim(0), Dim(0));
}

TEST(DimTest, DividesWhereTheQuotientIsExact) {
  EXPECT_EQ(FloorDiv(n * Dim(4) * m, n * Dim(2)), m * Dim(2));
  EXPECT_EQ(FloorDiv(n, n), Dim(1));
  EXPECT_EQ(FloorDiv(n, Dim(2)), FloorDiv(n, Dim(2)));
  EXPECT_FALSE(FloorDiv(n, Dim(2)) == FloorDiv(n, Dim(3)));
}

TEST(DimTest, BroadcastsToWhatBothSidesAllow) {
  EXPECT_EQ(Broadcast(Dim(1), n), n);
  EXPECT_EQ(Broadcast(n, Dim(1)), n);
  EXPECT_EQ(Broadcast(n, n), n);
  EXPECT_EQ(Broadcast(n, Dim(7)), Dim(7));
  EXPECT_EQ(Broadcast(Dim(0), n), Dim(0));
  EXPECT_EQ(Broadcast(n, m), Broadcast(m, n));
  EXPECT_FALSE(Broadcast(n, m) == n);
  // Positions [0, min(512, n)) added to n tokens.
  EXPECT_EQ(Broadcast(n, Min(n, Dim(512))), n);
  EXPECT_EQ(Broadcast(Min(Dim(512), n), n), n);
  EXPECT_FALSE(Broadcast(n, Min(Dim(0), n)) == n);
  EXPECT_FALSE(Broadcast(m, Min(Dim(512), n)) == m);
  EXPECT_TRUE(Broadcast(n, Dim::Unknown()).is_unknown());
}

TEST(DimTest, PrintsAsAReaderWouldWriteIt) {
  EXPECT_EQ((n * Dim(2) + Dim(1)).ToString(), "2*n + 1");
  EXPECT_EQ((n * m - Dim(3)).ToString(), "m*n - 3");
  EXPECT_EQ(Dim::Unknown().ToString(), "?");
  EXPECT_EQ(SymbolicShape({n, Dim(3)}).ToString(), "[n, 3]");
  EXPECT_EQ(n.symbol_name(), "n");
  EXPECT_EQ((n + Dim(1)).symbol_name(), "");
}

TEST(DimTest, SubstitutesSymbols) {
  const Dim expression = n * Dim(2) + m;
  const Dim result = expression.Substitute([](std::string_view name) -> std::optional<int64_t> {
    if (name == "n") return 5;
    return std::nullopt;
  });
  EXPECT_EQ(result, m + Dim(10));
}

}  // namespace
}  // namespace tenon
