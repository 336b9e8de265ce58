#include "base/function_ref.h"

#include <gtest/gtest.h>

#include <memory>

namespace tenon {
namespace {

int Twice(int x) { return 2 * x; }
int Apply(FunctionRef<int(int)> function, int x) { return function(x); }

struct Counter {
  int count = 0;
  int operator()(int x) { return count += x; }
};

TEST(FunctionRefTest, IsTwoPointers) {
  EXPECT_EQ(sizeof(FunctionRef<int(int)>), 2 * sizeof(void*));
  EXPECT_TRUE(std::is_trivially_copyable_v<FunctionRef<int(int)>>);
}

TEST(FunctionRefTest, CallsEveryKindOfCallable) {
  const int offset = 10;
  const auto add = [&](int x) { return x + offset; };
  Counter counter;
  EXPECT_EQ(Apply(Twice, 3), 6);
  EXPECT_EQ(Apply(&Twice, 3), 6);
  EXPECT_EQ(Apply(add, 3), 13);
  EXPECT_EQ(Apply([](int x) { return -x; }, 3), -3);
  EXPECT_EQ(Apply(counter, 3), 3);
  EXPECT_EQ(Apply(counter, 4), 7) << "the callable itself is called, not a copy";
}

TEST(FunctionRefTest, HoldsFunctionPointersByValue) {
  int (*pointer)(int) = &Twice;
  const FunctionRef<int(int)> function = pointer;
  pointer = nullptr;
  EXPECT_EQ(function(4), 8);
}

TEST(FunctionRefTest, ForwardsMoveOnlyArgumentsAndReferences) {
  int seen = 0;
  const auto take = [&](std::unique_ptr<int> value, int& out) { out = *value; };
  FunctionRef<void(std::unique_ptr<int>, int&)>{take}(std::make_unique<int>(5), seen);
  EXPECT_EQ(seen, 5);
}

}  // namespace
}  // namespace tenon
