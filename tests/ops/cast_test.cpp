#include <cmath>
#include <limits>

#include "ops/framework/element_conversion.h"
#include "ops/op_cases.h"

namespace tenon {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

OpCall CastCall(Tensor x, DataType to) {
  return {"Cast", 28, {std::move(x)}, MakeAttributes(Attr("to", static_cast<int64_t>(to)))};
}

template <class To, class From>
std::vector<To> CastTo(std::initializer_list<From> values) {
  const Tensor x = Tensor::Of<From>({static_cast<int64_t>(values.size())}, values);
  return ElementsOf<To>(RunTensorOp(CastCall(x, DataTypeOf<To>())));
}

std::vector<uint16_t> BitsOf(const Tensor& x) {
  const auto* bits = static_cast<const uint16_t*>(x.raw());
  return {bits, bits + x.size()};
}

TEST(CastTest, TruncatesFloatsTowardsZero) {
  EXPECT_EQ((CastTo<int32_t, float>({1.9f, -1.9f, 2147483520.0f})),
            (std::vector<int32_t>{1, -1, 2147483520}));
  EXPECT_EQ((CastTo<int64_t, double>({-0.5, -9223372036854775808.0})),
            (std::vector<int64_t>{0, INT64_MIN}));
  EXPECT_EQ((CastTo<uint8_t, float>({300.0f, -5.0f, 255.5f})),
            (std::vector<uint8_t>{44, 251, 255}));
  EXPECT_EQ((CastTo<uint32_t, float>({3e9f, -1.0f})),
            (std::vector<uint32_t>{3000000000u, 4294967295u}));
  EXPECT_EQ((CastTo<uint64_t, double>({1.5e19, 7.0})),
            (std::vector<uint64_t>{15000000000000000000u, 7}));
  EXPECT_EQ((CastTo<int32_t, double>({-2147483648.5})), (std::vector<int32_t>{INT32_MIN}));
}

// Other processors convert values out of range differently.
#if defined(__x86_64__)
TEST(CastTest, WhatDoesNotFitBecomesTheSmallestInteger) {
  EXPECT_EQ((CastTo<int32_t, float>({3e9f, -kInf, kNaN})),
            (std::vector<int32_t>{INT32_MIN, INT32_MIN, INT32_MIN}));
  EXPECT_EQ((CastTo<int64_t, double>({9.3e18, kNaN})),
            (std::vector<int64_t>{INT64_MIN, INT64_MIN}));
}
#endif

TEST(CastTest, KeepsLargeIntegersExact) {
  EXPECT_EQ((CastTo<uint64_t, int64_t>({-1, INT64_MAX})),
            (std::vector<uint64_t>{UINT64_MAX, INT64_MAX}));
  EXPECT_EQ((CastTo<int64_t, uint64_t>({UINT64_MAX, 9007199254740993u})),
            (std::vector<int64_t>{-1, 9007199254740993}));
  EXPECT_EQ((CastTo<int8_t, int64_t>({257, -129})), (std::vector<int8_t>{1, 127}));
  // One rounding, not two: through double this would round to 2^60.
  EXPECT_EQ((CastTo<float, int64_t>({(int64_t{1} << 60) + (int64_t{1} << 36) + 1})),
            (std::vector<float>{1152921642045800448.0f}));
}

TEST(CastTest, MakesBooleansOfWhatIsNotZero) {
  EXPECT_EQ((CastTo<bool, float>({0.0f, -0.0f, 0.1f, kNaN})),
            (std::vector<bool>{false, false, true, true}));
  EXPECT_EQ((CastTo<bool, int64_t>({0, 256})), (std::vector<bool>{false, true}));
  EXPECT_EQ((CastTo<float, bool>({true, false})), (std::vector<float>{1, 0}));
}

TEST(CastTest, RoundsToHalfPrecisionOnce) {
  // 1 + 2^-11 + 2^-40 lies above the middle of two neighbours; through float it would be the
  // middle.
  const Tensor x = Tensor::Of<double>({3}, {1 + 0x1p-11 + 0x1p-40, 65519.99, 65520});
  EXPECT_EQ(BitsOf(RunTensorOp(CastCall(x, DataType::kFloat16))),
            (std::vector<uint16_t>{0x3c01, 0x7bff, 0x7c00}));
  const Tensor y = Tensor::Of<float>({3}, {1.0f, -2.5f, kInf});
  EXPECT_EQ(BitsOf(RunTensorOp(CastCall(y, DataType::kBfloat16))),
            (std::vector<uint16_t>{0x3f80, 0xc020, 0x7f80}));
  const Tensor half = RunTensorOp(CastCall(y, DataType::kFloat16));
  EXPECT_EQ(ElementsOf<float>(RunTensorOp(CastCall(half, DataType::kFloat))), ElementsOf<float>(y));
}

TEST(CastTest, WritesAndReadsStrings) {
  using Strings = std::vector<std::string>;
  EXPECT_EQ((CastTo<std::string, float>({1.5f, 3e9f, 0.1f, 123456789.0f, kNaN, kInf, -kInf})),
            (Strings{"1.5", "3e+09", "0.1", "1.2345679e+08", "NaN", "INF", "-INF"}));
  EXPECT_EQ((CastTo<std::string, int8_t>({-5, 7})), (Strings{"-5", "7"}));
  EXPECT_EQ((CastTo<std::string, uint64_t>({UINT64_MAX})), (Strings{"18446744073709551615"}));
  EXPECT_EQ((CastTo<std::string, bool>({true, false})), (Strings{"1", "0"}));
  EXPECT_EQ((CastTo<float, std::string>({"1.5", " +2", "3 ", "1e3", "INF", "-INF", "-.5"})),
            (std::vector<float>{1.5f, 2, 3, 1000, kInf, -kInf, -0.5f}));
  EXPECT_TRUE(std::isnan(CastTo<float, std::string>({"NaN"})[0]));
  EXPECT_EQ((CastTo<int64_t, std::string>({"-3", "1.7", "9223372036854775807"})),
            (std::vector<int64_t>{-3, 1, INT64_MAX}));
  EXPECT_EQ((CastTo<uint64_t, std::string>({"18446744073709551615"})),
            (std::vector<uint64_t>{UINT64_MAX}));
  EXPECT_EQ(ErrorOf(CastCall(Tensor::Of<std::string>({2}, {"1", "one"}), DataType::kFloat)),
            "element 1: 'one' is not a number of type float");
  EXPECT_NE(ErrorOf(CastCall(Tensor::Of<std::string>({1}, {""}), DataType::kInt64)), "no error");
}

// The conversion table of the ONNX specification for float8.
TEST(CastTest, SaturatesFloat8OnRequest) {
  struct Case {
    DataType type;
    std::vector<uint8_t> saturated, unsaturated;  // of 1, -0, 1000000, -inf, NaN
  };
  const Case cases[] = {
      {DataType::kFloat8e4m3fn, {0x38, 0x80, 0x7e, 0xfe, 0x7f}, {0x38, 0x80, 0x7f, 0xff, 0x7f}},
      {DataType::kFloat8e4m3fnuz, {0x40, 0x00, 0x7f, 0xff, 0x80}, {0x40, 0x00, 0x80, 0x80, 0x80}},
      {DataType::kFloat8e5m2, {0x3c, 0x80, 0x7b, 0xfb, 0x7e}, {0x3c, 0x80, 0x7c, 0xfc, 0x7e}},
      {DataType::kFloat8e5m2fnuz, {0x40, 0x00, 0x7f, 0xff, 0x80}, {0x40, 0x00, 0x80, 0x80, 0x80}},
  };
  const Tensor x = Tensor::Of<float>({5}, {1, -0.0f, 1e6f, -kInf, kNaN});
  for (const Case& c : cases) {
    for (const bool saturate : {true, false}) {
      OpCall call = CastCall(x, c.type);
      call.attributes.push_back(Attr("saturate", int64_t{saturate}));
      const Tensor y = RunTensorOp(std::move(call));
      const auto* bits = static_cast<const uint8_t*>(y.raw());
      EXPECT_EQ(std::vector<uint8_t>(bits, bits + 5), saturate ? c.saturated : c.unsaturated)
          << DataTypeName(c.type);
    }
  }
}

TEST(CastTest, ReturnsEveryNarrowFloatToItself) {
  for (const DataType type :
       {DataType::kFloat8e4m3fn, DataType::kFloat8e4m3fnuz, DataType::kFloat8e5m2,
        DataType::kFloat8e5m2fnuz, DataType::kFloat8e8m0}) {
    std::vector<uint8_t> patterns(256);
    for (size_t i = 0; i < 256; ++i) patterns[i] = static_cast<uint8_t>(i);
    const Tensor x = Tensor::View(type, {256}, patterns.data());
    const Tensor wide = RunTensorOp(CastCall(x, DataType::kDouble));
    OpCall narrow = CastCall(wide, type);
    narrow.attributes.push_back(Attr("saturate", int64_t{0}));  // keeps infinity
    const Tensor back = RunTensorOp(std::move(narrow));
    for (size_t i = 0; i < 256; ++i) {
      if (std::isnan(wide.data<double>()[i])) continue;
      EXPECT_EQ(static_cast<const uint8_t*>(back.raw())[i], patterns[i]) << DataTypeName(type);
    }
  }
}

TEST(CastTest, PacksSmallIntegers) {
  const Tensor x = Tensor::Of<int32_t>({5}, {7, -8, 3, -1, 17});
  const Tensor packed = RunTensorOp(CastCall(x, DataType::kInt4));
  ASSERT_EQ(packed.bytes(), 3u);
  const auto* bytes = static_cast<const uint8_t*>(packed.raw());
  EXPECT_EQ(bytes[0], 0x87);
  EXPECT_EQ(bytes[1], 0xf3);
  EXPECT_EQ(bytes[2] & 0xf, 1);
  EXPECT_EQ(ElementsOf<float>(RunTensorOp(CastCall(packed, DataType::kFloat))),
            (std::vector<float>{7, -8, 3, -1, 1}));
  const Tensor quads = RunTensorOp(CastCall(x, DataType::kUint2));
  EXPECT_EQ(ElementsOf<int64_t>(RunTensorOp(CastCall(quads, DataType::kInt64))),
            (std::vector<int64_t>{3, 0, 3, 3, 1}));
  const Tensor floats = Tensor::Of<float>({5}, {0.5f, -1.6f, 6, 100, 2.5f});
  const Tensor fours = RunTensorOp(CastCall(floats, DataType::kFloat4e2m1));
  EXPECT_EQ(ElementsOf<float>(RunTensorOp(CastCall(fours, DataType::kFloat))),
            (std::vector<float>{0.5f, -1.5f, 6, 6, 2}));
}

// The values of the OCP microscaling formats: 1 sign bit, no infinity, no NaN.
TEST(CastTest, PacksSixBitFloats) {
  const Tensor x = Tensor::Of<float>({6}, {0.125f, -7.5f, 28, 1000, -0.0f, 1});
  const Tensor e2m3 = RunTensorOp(CastCall(x, DataType::kFloat6e2m3));
  ASSERT_EQ(e2m3.bytes(), 5u);
  const auto* bytes = static_cast<const uint8_t*>(e2m3.raw());
  // Codes 0x01, 0x3f, 0x1f, 0x1f, 0x20, 0x08, six bits each.
  EXPECT_EQ(std::vector<uint8_t>(bytes, bytes + 5),
            (std::vector<uint8_t>{0xc1, 0xff, 0x7d, 0x20, 0x02}));
  EXPECT_EQ(ElementsOf<float>(RunTensorOp(CastCall(e2m3, DataType::kFloat))),
            (std::vector<float>{0.125f, -7.5f, 7.5f, 7.5f, 0, 1}));
  const Tensor e3m2 = RunTensorOp(CastCall(x, DataType::kFloat6e3m2));
  EXPECT_EQ(ElementsOf<float>(RunTensorOp(CastCall(e3m2, DataType::kFloat))),
            (std::vector<float>{0.125f, -8, 28, 28, 0, 1}));
}

TEST(CastTest, ConvertsLongTensorsOnSeveralThreads) {
  const Tensor y = RunTensorOp(CastCall(Iota<int32_t>({70001}), DataType::kFloat));
  EXPECT_EQ(ElementsOf<float>(y), ElementsOf<float>(Iota<float>({70001})));
}

TEST(CastTest, StoresAnyNumberOfElements) {
  std::vector<double> values(1000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i));
  const Tensor doubles = Tensor::Of<double>({1000}, values);
  for (const DataType type : {DataType::kFloat16, DataType::kBfloat16}) {
    Tensor stored = Tensor::Allocate(type, Shape({1003})).value();
    StoreElements(values.data(), 3, values.size(), {}, stored);
    std::vector<uint16_t> bits = BitsOf(stored);
    bits.erase(bits.begin(), bits.begin() + 3);
    EXPECT_EQ(bits, BitsOf(RunTensorOp(CastCall(doubles, type))));
  }
}

TEST(CastTest, FollowsTheTypeOfAnotherTensor) {
  const Tensor y =
      RunTensorOp({"CastLike", 19, {Tensor::Of<float>({1}, {2.5f}), Iota<int16_t>({3})}});
  EXPECT_EQ(ElementsOf<int16_t>(y), std::vector<int16_t>{2});
}

TEST(CastTest, RefusesUnknownTypes) {
  EXPECT_NE(ErrorOf(CastCall(Iota<float>({1}), DataType::kUndefined)), "no error");
  EXPECT_NE(ErrorOf(CastCall(Iota<float>({1}), DataType::kComplex64)), "no error");
  EXPECT_NE(ErrorOf({"Cast", 13, {Iota<float>({1})}, MakeAttributes(Attr("to", int64_t{99}))}),
            "no error");
}

}  // namespace
}  // namespace tenon
