#include "runtime/uniform_constants.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tenon {
namespace {

// Makes a constant of `type` and `count` elements whose every byte is `byte`.
Tensor Make(UniformConstants& constants, DataType type, int64_t count, uint8_t byte) {
  const auto fill = [&](Tensor tensor) {
    auto* const bytes = static_cast<uint8_t*>(tensor.raw());
    std::fill_n(bytes, tensor.bytes(), byte);
    return OkStatus();
  };
  Result<Tensor> made = constants.Make(type, Shape({count}), SharedCpuAllocator(), fill);
  if (!made) {
    ADD_FAILURE() << made.error().message();
    return {};
  }
  EXPECT_EQ(made->shape(), Shape({count}));
  EXPECT_EQ(made->type(), type);
  const auto* const bytes = static_cast<const uint8_t*>(std::as_const(*made).raw());
  EXPECT_EQ(std::count(bytes, bytes + made->bytes(), byte), made->bytes());
  return *std::move(made);
}

const void* At(const Tensor& tensor) { return tensor.raw(); }

TEST(UniformConstantsTest, ShareMemoryWhereTheyHaveTheSameBytes) {
  UniformConstants constants;
  const Tensor large = Make(constants, DataType::kFloat, 5000, 7);
  EXPECT_EQ(At(Make(constants, DataType::kFloat, 300, 7)), At(large));
  EXPECT_EQ(At(Make(constants, DataType::kInt64, 2500, 7)), At(large));
  EXPECT_NE(At(Make(constants, DataType::kFloat, 5000, 8)), At(large));
}

TEST(UniformConstantsTest, GrowWithTheLargestOfAValue) {
  UniformConstants constants;
  const Tensor small = Make(constants, DataType::kUint8, 2000, 7);
  const Tensor large = Make(constants, DataType::kUint8, 4000, 7);
  EXPECT_NE(At(large), At(small));
  EXPECT_EQ(At(Make(constants, DataType::kUint8, 3000, 7)), At(large));
}

// Each of these has addresses, but the system may use the same few pages for all.
TEST(UniformConstantsTest, OfManyMegabytesHoldTheValueToo) {
  UniformConstants constants;
  for (const int64_t bytes : {(3 << 20) + 5, 2 << 20, 64 << 20, 3 << 20}) {
    Make(constants, DataType::kUint8, bytes, 7);
    Make(constants, DataType::kUint8, bytes, 8);
  }
}

TEST(UniformConstantsTest, LiveLongerThanTheirMaker) {
  Tensor kept;
  {
    UniformConstants constants;
    Make(constants, DataType::kFloat, 5000, 7);
    kept = Make(constants, DataType::kFloat, 4000, 7);
  }
  EXPECT_EQ(static_cast<const uint8_t*>(std::as_const(kept).raw())[15999], 7);
}

TEST(UniformConstantsTest, LieAloneWhereTheyAreSmall) {
  UniformConstants constants;
  const Tensor first = Make(constants, DataType::kUint8, 100, 7);
  EXPECT_NE(At(Make(constants, DataType::kUint8, 100, 7)), At(first));
  EXPECT_EQ(Make(constants, DataType::kUint8, 0, 7).size(), 0);
}

TEST(UniformConstantsTest, KnowManyValues) {
  UniformConstants constants;
  for (int round = 0; round < 2; ++round) {
    for (int value = 0; value < 100; ++value) {
      Make(constants, DataType::kUint8, 2000, static_cast<uint8_t>(value));
    }
  }
}

TEST(UniformConstantsTest, SayWhatFailed) {
  UniformConstants constants;
  const auto fail = [](Tensor) { return Fail("no luck"); };
  for (const int64_t count : {10, 2000, 2 << 20}) {
    const Result<Tensor> made =
        constants.Make(DataType::kUint8, Shape({count}), SharedCpuAllocator(), fail);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().message(), "no luck");
  }
}

}  // namespace
}  // namespace tenon
