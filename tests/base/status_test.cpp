#include "base/status.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

Result<int> Half(int n) {
  if (n % 2 != 0) return InvalidArgument("expected an even number, got {}", n);
  return n / 2;
}

Result<std::string> QuarterText(int n) {
  TENON_ASSIGN_OR_RETURN(const int half, Half(n));
  TENON_ASSIGN_OR_RETURN(const int quarter, Half(half));
  return Format("{}", quarter);
}

Status CheckEven(int n) {
  TENON_RETURN_IF_ERROR(Half(n));
  return OkStatus();
}

TEST(StatusTest, OkHasNoMessage) {
  EXPECT_TRUE(OkStatus().ok());
  EXPECT_EQ(OkStatus().message(), "");
  EXPECT_EQ(OkStatus().code(), StatusCode::kOk);
}

TEST(StatusTest, MacrosPassValuesAndFailuresOn) {
  EXPECT_EQ(QuarterText(8).value(), "2");
  EXPECT_EQ(QuarterText(6).error().message(), "expected an even number, got 3");
  EXPECT_TRUE(CheckEven(2).ok());
  EXPECT_EQ(CheckEven(3).code(), StatusCode::kInvalidArgument);
}

TEST(StatusTest, ContextIsPrepended) {
  EXPECT_EQ(CheckEven(3).WithContext("input 1").message(),
            "input 1: expected an even number, got 3");
  EXPECT_TRUE(OkStatus().WithContext("input 1").ok());
}

}  // namespace
}  // namespace tenon
