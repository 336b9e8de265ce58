#include <algorithm>
#include <cmath>

#include "ops/op_cases.h"
#include "ops/reference.h"

namespace tenon {
namespace {

struct LayoutCase {
  Shape x;
  Shape scales;
  int64_t axis;
  int64_t block_size;
};

const LayoutCase kLayouts[] = {
    {{3, 5}, {}, 1, 0},
    {{7}, {1}, 1, 0},
    {{7}, {7}, 0, 0},
    {{}, {}, 1, 0},
    {{2, 3, 4}, {3}, 1, 0},
    {{2, 3, 4}, {4}, -1, 0},
    {{2, 3, 4}, {2}, 0, 0},
    {{2, 7, 3}, {2, 3, 3}, 1, 3},
    {{2, 3, 600}, {2, 3, 19}, 2, 32},
    {{9, 2}, {1, 2}, 0, 16},
    {{2, 0, 4}, {0}, 1, 0},
    {{300, 300}, {300}, 1, 0},
    {{1, 5}, {1, 5}, 1, 1},
};

// The position of the scale of element `i`.
int64_t ScaleOf(const LayoutCase& c, int64_t i) {
  if (c.scales.NumElements() == 1) return 0;
  auto at = CoordinatesOf(i, c.x);
  const auto axis =
      static_cast<size_t>(c.axis < 0 ? c.axis + static_cast<int64_t>(c.x.rank()) : c.axis);
  if (c.block_size == 0) return at[axis];
  at[axis] /= c.block_size;
  return PositionOf(at, c.scales);
}

template <class T>
void CheckLayout(const LayoutCase& c) {
  const Tensor x = Scattered(c.x);
  Tensor scales = Scattered(c.scales, 5);
  Tensor zero_points = Tensor::Allocate(DataTypeOf<T>(), c.scales).value();
  for (int64_t i = 0; i < scales.size(); ++i) {
    scales.data<float>()[i] = std::abs(scales.data<float>()[i]) / 60 + 0.001f;
    zero_points.data<T>()[i] = static_cast<T>(i * 7 % 50);
  }
  const auto attributes = [&] {
    return MakeAttributes(Attr("axis", c.axis), Attr("block_size", c.block_size));
  };
  const Tensor y = RunTensorOp({"QuantizeLinear", 25, {x, scales, zero_points}, attributes()});
  ExpectElements<T>(y, c.x, 0, [&](int64_t i) {
    const int64_t s = ScaleOf(c, i);
    const float quotient = x.data<float>()[i] / scales.data<float>()[s];
    const double value = std::nearbyint(static_cast<double>(quotient)) +
                         static_cast<double>(zero_points.data<T>()[s]);
    return std::clamp<double>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
  });
  const Tensor back = RunTensorOp({"DequantizeLinear", 25, {y, scales, zero_points}, attributes()});
  ExpectElements(back, c.x, 0, [&](int64_t i) {
    const int64_t s = ScaleOf(c, i);
    const auto difference = static_cast<float>(y.data<T>()[i] - zero_points.data<T>()[s]);
    return static_cast<double>(difference * scales.data<float>()[s]);
  });
}

TEST(QuantizeLinearTest, FindsTheScaleOfEveryElement) {
  for (const LayoutCase& c : kLayouts) {
    SCOPED_TRACE(c.x.ToString() + c.scales.ToString());
    CheckLayout<uint8_t>(c);
    CheckLayout<int8_t>(c);
    CheckLayout<int16_t>(c);
    CheckLayout<uint16_t>(c);
  }
}

TEST(QuantizeLinearTest, DividesInThePrecisionOfTheScale) {
  // 1001 / 0.1 = 10010 in double, but a half holds neither 0.1 nor 10010.
  const Tensor x = Tensor::Of<Float16>({1}, {Float16(1001.0f)});
  const Tensor scale = Tensor::Of<Float16>({}, {Float16(0.1f)});
  const Tensor zero = Tensor::Of<int16_t>({}, {0});
  const float quotient = 1001.0f / static_cast<float>(Float16(0.1f));
  const Tensor y = RunTensorOp({"QuantizeLinear", 23, {x, scale, zero}});
  EXPECT_EQ(*y.data<int16_t>(), std::nearbyint(static_cast<float>(Float16(quotient))));
  const Tensor z = RunTensorOp(
      {"QuantizeLinear", 23, {x, scale, zero}, MakeAttributes(Attr("precision", int64_t{1}))});
  EXPECT_EQ(*z.data<int16_t>(), std::nearbyint(quotient));
}

TEST(QuantizeLinearTest, PacksNarrowIntegers) {
  const Tensor x = Tensor::Of<float>({5}, {-9, -2, 1, 6, 99});
  const Tensor scale = Tensor::Of<float>({}, {1});
  const Tensor y = RunTensorOp({"QuantizeLinear",
                                25,
                                {x, scale},
                                MakeAttributes(Attr("output_dtype", int64_t{22}))});  // int4
  ASSERT_EQ(y.type(), DataType::kInt4);
  const auto* bytes = static_cast<const uint8_t*>(y.raw());
  EXPECT_EQ(bytes[0], 0xe8);
  EXPECT_EQ(bytes[1], 0x61);
  EXPECT_EQ(bytes[2] & 0xf, 7);
  const Tensor back = RunTensorOp({"DequantizeLinear", 25, {y, scale}});
  EXPECT_EQ(ElementsOf<float>(back), (std::vector<float>{-8, -2, 1, 6, 7}));
}

TEST(QuantizeLinearTest, TheDefaultTypeIsUint8) {
  const Tensor y = RunTensorOp({"QuantizeLinear", 10, {Scattered({4}), Scattered({})}});
  EXPECT_EQ(y.type(), DataType::kUint8);
}

TEST(QuantizeLinearTest, RefusesScalesThatDoNotFit) {
  const Tensor x = Scattered({2, 3, 4});
  const auto error = [&](Shape scales, int64_t axis, int64_t block_size) {
    return ErrorOf({"QuantizeLinear",
                    25,
                    {x, Scattered(std::move(scales))},
                    MakeAttributes(Attr("axis", axis), Attr("block_size", block_size))});
  };
  EXPECT_EQ(error({3}, 1, 0), "no error");
  EXPECT_NE(error({4}, 1, 0), "no error");
  EXPECT_NE(error({2, 3, 4}, 1, 0), "no error");
  EXPECT_EQ(error({2, 2, 4}, 1, 2), "no error");
  EXPECT_NE(error({2, 1, 4}, 1, 2), "no error");
  for (const int64_t hostile : {int64_t{-4}, int64_t{3}, INT64_MIN, INT64_MAX}) {
    EXPECT_NE(error({3}, hostile, 0), "no error") << hostile;
  }
  EXPECT_NE(error({2, 2, 4}, 1, -1), "no error");
  EXPECT_NE(error({2, 2, 4}, 1, INT64_MIN), "no error");
  EXPECT_NE(error({2, 2, 4}, 1, INT64_MAX), "no error");
  EXPECT_NE(ErrorOf({"QuantizeLinear",
                     25,
                     {x, Scattered({}), Tensor::Of<int8_t>({}, {0})},
                     MakeAttributes(Attr("output_dtype", int64_t{2}))}),
            "no error");
}

TEST(DynamicQuantizeLinearTest, CoversTheRangeAndZero) {
  for (const int64_t n : {1, 5, 100, 70000}) {
    for (const float offset : {0.0f, 5.0f, -5.0f}) {
      Tensor x = Scattered({n});
      float least = 0, most = 0;
      for (int64_t i = 0; i < n; ++i) {
        float& v = x.data<float>()[i];
        v += offset;
        least = std::min(least, v);
        most = std::max(most, v);
      }
      const auto outputs = RunOp({"DynamicQuantizeLinear", 11, {x}, {}, 3});
      ASSERT_TRUE(outputs) << outputs.error().message();
      const float scale = (most - least) / 255.0f;
      const float zero_point = std::nearbyint(std::clamp(-least / scale, 0.0f, 255.0f));
      EXPECT_EQ(*(*outputs)[1].tensor().data<float>(), scale);
      EXPECT_EQ(*(*outputs)[2].tensor().data<uint8_t>(), zero_point);
      ExpectElements<uint8_t>((*outputs)[0].tensor(), {n}, 0, [&](int64_t i) {
        const double value =
            std::nearbyint(static_cast<double>(x.data<float>()[i] / scale)) + zero_point;
        return std::clamp(value, 0.0, 255.0);
      });
    }
  }
}

TEST(DynamicQuantizeLinearTest, GivesZerosTheScaleOne) {
  for (const int64_t n : {0, 3}) {
    const Tensor x = Tensor::Of<float>({n}, std::vector<float>(static_cast<size_t>(n)));
    const auto outputs = RunOp({"DynamicQuantizeLinear", 11, {x}, {}, 3});
    ASSERT_TRUE(outputs) << outputs.error().message();
    EXPECT_EQ(*(*outputs)[1].tensor().data<float>(), 1.0f);
    EXPECT_EQ(*(*outputs)[2].tensor().data<uint8_t>(), 0);
  }
}

}  // namespace
}  // namespace tenon
