// The results at the ABI if the body of a slot succeeds, fails or throws.
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"

namespace tenon::capi {
namespace {

TEST(BoundaryTest, OkIsNull) {
  EXPECT_EQ(AtBoundary([] { return OkStatus(); }), nullptr);
  EXPECT_TRUE(TakeOrtStatus(nullptr).ok());
}

TEST(BoundaryTest, FailureGoesThereAndBack) {
  OrtStatus* status = AtBoundary([]() -> Status { return NoSuchFile("no file '{}'", "a.onnx"); });
  ASSERT_NE(status, nullptr);
  EXPECT_EQ(GetErrorCode(status), ORT_NO_SUCHFILE);
  const Status back = TakeOrtStatus(status);
  EXPECT_EQ(back.code(), StatusCode::kNoSuchFile);
  EXPECT_EQ(back.message(), "no file 'a.onnx'");
}

TEST(BoundaryTest, ExceptionsBecomeStatuses) {
  const Status known = TakeOrtStatus(
      AtBoundary([]() -> Status { throw std::runtime_error("from a custom operator"); }));
  EXPECT_EQ(known.code(), StatusCode::kRuntimeException);
  EXPECT_EQ(known.message(), "from a custom operator");
  const Status unknown = TakeOrtStatus(AtBoundary([]() -> Status { throw 7; }));
  EXPECT_EQ(unknown.code(), StatusCode::kRuntimeException);
}

TEST(BoundaryTest, OutOfMemoryNeedsNoMemoryAndIsShared) {
  const auto exhausted = []() -> Status { throw std::bad_alloc(); };
  OrtStatus* first = AtBoundary(exhausted);
  OrtStatus* second = AtBoundary(exhausted);
  EXPECT_EQ(first, second);
  ReleaseStatus(first);
  EXPECT_STREQ(GetErrorMessage(second), "out of memory");
  ReleaseStatus(second);
}

}  // namespace
}  // namespace tenon::capi
