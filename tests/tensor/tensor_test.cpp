#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <utility>

#include "tensor/value.h"

namespace tenon {
namespace {

TEST(TensorTest, AllocatesAlignedMemoryAndSharesIt) {
  Tensor a = Tensor::Allocate(DataType::kFloat, {2, 3}).value();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.raw()) % Allocator::kAlignment, 0u);
  EXPECT_EQ(a.bytes(), 24u);
  Tensor b = a;
  b.data<float>()[5] = 7;
  EXPECT_EQ(a.data<float>()[5], 7);
  EXPECT_EQ(a.Reshaped({3, 2}).raw(), a.raw());
}

TEST(TensorTest, StringsAreConstructedAndCloned) {
  Tensor text = Tensor::Allocate(DataType::kString, {2}).value();
  text.data<std::string>()[1] = "a string that is too long for the small buffer";
  Tensor copy = text.Clone().value();
  text.data<std::string>()[1] = "other";
  EXPECT_EQ(copy.values<std::string>()[0], "");
  EXPECT_EQ(copy.values<std::string>()[1], "a string that is too long for the small buffer");
}

TEST(TensorTest, RefusesShapesThatCannotBe) {
  EXPECT_FALSE(Tensor::Allocate(DataType::kFloat, {-1}));
  EXPECT_FALSE(Tensor::Allocate(DataType::kFloat, {INT64_MAX / 2}));
  const auto huge = Tensor::Allocate(DataType::kUint8, {int64_t{1} << 52});
  ASSERT_FALSE(huge);
  EXPECT_NE(huge.error().message().find("memory"), std::string::npos);
}

TEST(TensorTest, ReadsIntegersOfBothWidths) {
  EXPECT_EQ(IntegersOf(Tensor::Of<int32_t>({2}, {3, -1})).value(), Shape({3, -1}));
  EXPECT_EQ(IntegersOf(Tensor::Of<int64_t>({}, {9})).value(), Shape({9}));
  EXPECT_FALSE(IntegersOf(Tensor::Of<float>({1}, {1.0f})));
}

// Which C++ types the elements of a type may be read as.
TEST(TensorTest, ElementsAreReadAsTheirOwnTypeOrMovedAsUnsignedIntegers) {
  EXPECT_TRUE(IsStorageOf<float>(DataType::kFloat));
  EXPECT_TRUE(IsStorageOf<uint32_t>(DataType::kFloat));
  EXPECT_FALSE(IsStorageOf<int32_t>(DataType::kFloat));
  EXPECT_FALSE(IsStorageOf<float>(DataType::kInt32));
  EXPECT_FALSE(IsStorageOf<uint64_t>(DataType::kFloat));
  EXPECT_FALSE(IsStorageOf<float>(DataType::kUndefined));
  EXPECT_TRUE(IsStorageOf<uint8_t>(DataType::kInt4));
  EXPECT_FALSE(IsStorageOf<int8_t>(DataType::kInt4));
  EXPECT_TRUE(IsStorageOf<std::string>(DataType::kString));
  EXPECT_FALSE(IsStorageOf<uint64_t>(DataType::kString));
  struct TwoFloats {
    float parts[2];
  };
  EXPECT_TRUE(IsStorageOf<TwoFloats>(DataType::kComplex64));
  EXPECT_FALSE(IsStorageOf<TwoFloats>(DataType::kFloat));
}

#if defined(TENON_DCHECKS)
TEST(TensorDeathTest, ReadingAnotherTypeEndsTheProcess) {
  Tensor tensor = Tensor::Of<float>({1}, {1.0f});
  EXPECT_DEATH(tensor.data<int32_t>(), "check failed: IsStorageOf");
  EXPECT_DEATH(std::as_const(tensor).data<double>(), "check failed: IsStorageOf");
}

TEST(ValueDeathTest, ReadingAnotherKindEndsTheProcess) {
  Value value(std::make_shared<Map>());
  EXPECT_DEATH(value.tensor(), "check failed");
  EXPECT_DEATH(value.sequence(), "check failed");
  EXPECT_DEATH(value.TakeSequence(), "check failed");
}
#endif

TEST(ValueTest, KindsFollowWhatIsHeld) {
  EXPECT_FALSE(Value().has_value());
  EXPECT_TRUE(Value(Tensor::Of<float>({}, {1})).is_tensor());
  auto sequence = std::make_shared<Sequence>();
  sequence->elements.push_back(Tensor::Of<float>({}, {1}));
  const Value value(sequence);
  EXPECT_EQ(value.kind(), Value::Kind::kSequence);
  EXPECT_EQ(value.sequence().elements.size(), 1u);
  EXPECT_EQ(ValueKindName(Value(std::make_shared<Map>()).kind()), "map");
}

}  // namespace
}  // namespace tenon
