#include "tensor/data_type.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace tenon {
namespace {

TEST(DataTypeTest, NamesRoundTrip) {
  for (int i = 1; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    EXPECT_EQ(DataTypeFromName(DataTypeName(type)), type);
    EXPECT_GT(DataTypeBits(type), 0u);
  }
  EXPECT_EQ(DataTypeFromName("float31"), DataType::kUndefined);
  EXPECT_FALSE(IsDataType(0));
  EXPECT_FALSE(IsDataType(kDataTypeCount));
}

TEST(DataTypeTest, PacksSubByteTypes) {
  EXPECT_EQ(DataTypeBytes(DataType::kInt4, 5).value(), 3u);
  EXPECT_EQ(DataTypeBytes(DataType::kUint2, 5).value(), 2u);
  EXPECT_EQ(DataTypeBytes(DataType::kFloat4e2m1, 0).value(), 0u);
  EXPECT_EQ(DataTypeBytes(DataType::kFloat6e3m2, 5).value(), 4u);
  EXPECT_EQ(DataTypeBytes(DataType::kComplex128, 3).value(), 48u);
}

TEST(DataTypeTest, RejectsSizesThatOverflow) {
  EXPECT_FALSE(DataTypeBytes(DataType::kDouble, INT64_MAX / 4));
  EXPECT_FALSE(DataTypeBytes(DataType::kUint8, -1));
  // A size that fits size_t on a 32-bit machine, but is larger than any object there.
  constexpr int64_t kLargestObject = std::numeric_limits<ptrdiff_t>::max();
  EXPECT_FALSE(DataTypeBytes(DataType::kDouble, kLargestObject / 8 + 1));
}

}  // namespace
}  // namespace tenon
