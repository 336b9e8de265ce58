#include "base/check.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(CheckTest, RunsOnlyWhereChecksAreOn) {
  bool ran = false;
  TENON_DCHECK(ran = true);
#if defined(TENON_DCHECKS)
  EXPECT_TRUE(ran);
#else
  EXPECT_FALSE(ran);
#endif
}

TEST(CheckDeathTest, NamesTheConditionAndItsPlace) {
  EXPECT_DEATH(internal::CheckFailed("x > 0", "room/file.cpp", 7),
               "room/file.cpp:7: check failed: x > 0");
}

#if defined(TENON_DCHECKS)
TEST(CheckDeathTest, EndsTheProcess) {
  const int x = 0;
  EXPECT_DEATH(TENON_DCHECK(x > 0), "check_test.cpp:[0-9]+: check failed: x > 0");
}
#endif

}  // namespace
}  // namespace tenon
