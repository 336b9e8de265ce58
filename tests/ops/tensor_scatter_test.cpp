#include "ops/framework/narrow_types.h"
#include "ops/op_cases.h"

namespace tenon {
namespace {

OpCall Call(Tensor past, Tensor update, Value indices, std::string mode, int64_t axis) {
  return {"TensorScatter",
          24,
          {std::move(past), std::move(update), std::move(indices)},
          MakeAttributes(Attr("mode", std::move(mode)), Attr("axis", axis))};
}

TEST(TensorScatterTest, WritesAfterTheIndices) {
  ForEachElementSize([]<class T>(T) {
    for (const bool circular : {false, true}) {
      const Tensor past = Iota<T>({2, 3, 5, 2});
      Tensor update = Iota<T>({2, 3, 2, 2});
      const std::vector<int64_t> indices =
          circular ? std::vector<int64_t>{4, 13} : std::vector<int64_t>{3, 0};
      std::vector<T> expected = ElementsOf<T>(past);
      for (int64_t i = 0; i < update.size(); ++i) {
        auto at = CoordinatesOf(i, update.shape());
        at[2] = (indices[static_cast<size_t>(at[0])] + at[2]) % 5;
        expected[static_cast<size_t>(PositionOf(at, past.shape()))] = update.data<T>()[i];
      }
      const Tensor y = RunTensorOp(Call(past, update, Tensor::Of<int64_t>({2}, indices),
                                        circular ? "circular" : "linear", -2));
      EXPECT_EQ(ElementsOf<T>(y), expected);
    }
  });
}

TEST(TensorScatterTest, WritesPackedElements) {
  // 4-bit elements 0..9 in [2, 5]; two of them replaced from an odd position on.
  for (const int64_t inner : {1, 2}) {
    const Shape shape = {2, 5, inner}, update_shape = {2, 2, inner};
    Tensor past = Tensor::Allocate(DataType::kUint4, shape).value();
    Tensor update = Tensor::Allocate(DataType::kUint4, update_shape).value();
    std::vector<uint8_t> expected;
    for (int64_t i = 0; i < past.size(); ++i) {
      PackBits(past.data<uint8_t>(), static_cast<size_t>(i), 4, static_cast<uint8_t>(i % 16));
      expected.push_back(static_cast<uint8_t>(i % 16));
    }
    for (int64_t i = 0; i < update.size(); ++i) {
      const auto value = static_cast<uint8_t>(15 - i);
      PackBits(update.data<uint8_t>(), static_cast<size_t>(i), 4, value);
      auto at = CoordinatesOf(i, update_shape);
      at[1] += 1 + at[0];
      expected[static_cast<size_t>(PositionOf(at, shape))] = value;
    }
    const Tensor y = RunTensorOp(Call(past, update, Ints({1, 2}), "linear", 1));
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(UnpackBits(y.data<uint8_t>(), i, 4), expected[i]) << i;
    }
  }
}

TEST(TensorScatterTest, RefusesWhatDoesNotFit) {
  const auto error = [](Value indices, const char* mode, int64_t axis, int64_t steps = 2) {
    return ErrorOf(
        Call(Iota<float>({2, 5, 3}), Iota<float>({2, steps, 3}), std::move(indices), mode, axis));
  };
  EXPECT_EQ(error(Ints({0, 4}), "linear", 1), "input 2: expected indices in [0, 3], got 4 at 1");
  EXPECT_EQ(error(Ints({0, 4}), "circular", 1), "no error");
  EXPECT_EQ(error(Ints({0, INT64_MAX}), "circular", 1), "no error");
  EXPECT_NE(error(Ints({0, -1}), "circular", 1), "no error");
  EXPECT_NE(error(Ints({INT64_MIN, 0}), "linear", 1), "no error");
  EXPECT_NE(error(Ints({0}), "linear", 1), "no error");
  EXPECT_NE(error(Value(), "linear", 0), "no error");
  EXPECT_NE(error(Value(), "linear", 1, 6), "no error");
  EXPECT_EQ(error(Value(), "linear", 1, 0), "no error");
  // The indices of an update without elements are checked as any other's.
  EXPECT_EQ(error(Ints({5, 0}), "linear", 1, 0), "no error");
  EXPECT_EQ(error(Ints({0, 6}), "linear", 1, 0), "input 2: expected indices in [0, 5], got 6 at 1");
  EXPECT_NE(error(Ints({0, -1}), "circular", 1, 0), "no error");
  EXPECT_NE(ErrorOf(Call(Iota<float>({2, 0, 5, 3}), Iota<float>({2, 0, 2, 3}), Ints({0, -1}),
                         "circular", 2)),
            "no error");
}

}  // namespace
}  // namespace tenon
