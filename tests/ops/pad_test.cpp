#include "ops/op_cases.h"

namespace tenon {
namespace {

// A row padded element by element, walking outwards as NumPy's documentation describes.
std::vector<int64_t> PaddedSources(int64_t dim, int64_t before, int64_t after,
                                   const std::string& mode) {
  std::vector<int64_t> sources;
  for (int64_t i = -before; i < dim + after; ++i) {
    int64_t source = i;
    if (mode == "constant" && (i < 0 || i >= dim)) source = -1;
    if (mode == "edge") source = i < 0 ? 0 : i >= dim ? dim - 1 : i;
    while (mode == "wrap" && (source < 0 || source >= dim)) source += source < 0 ? dim : -dim;
    while (mode == "reflect" && (source < 0 || source >= dim)) {
      source = source < 0 ? -source : 2 * (dim - 1) - source;
      if (dim == 1) source = 0;
    }
    sources.push_back(source);
  }
  return sources;
}

TEST(PadTest, PadsInEveryMode) {
  ForEachElementSize([](auto element) {
    using T = decltype(element);
    for (const std::string mode : {"constant", "edge", "reflect", "wrap"}) {
      const Tensor x = Iota<T>({2, 3, 4});
      const Tensor seven = Tensor::Of<T>({}, {Iota<T>({8}).template data<T>()[7]});
      const Tensor y = RunTensorOp(
          {"Pad", 19, {x, Ints({1, 0, 5, 2, 0, 9}), seven}, MakeAttributes(Attr("mode", mode))});
      ASSERT_EQ(y.shape(), Shape({5, 3, 18}));
      const auto rows = PaddedSources(2, 1, 2, mode);
      const auto columns = PaddedSources(4, 5, 9, mode);
      for (int64_t i = 0; i < y.size(); ++i) {
        const auto at = CoordinatesOf(i, y.shape());
        const int64_t row = rows[static_cast<size_t>(at[0])];
        const int64_t column = columns[static_cast<size_t>(at[2])];
        const T expected = row < 0 || column < 0
                               ? seven.template data<T>()[0]
                               : x.data<T>()[PositionOf({row, at[1], column}, x.shape())];
        ASSERT_EQ(y.data<T>()[i], expected) << mode << " " << i;
      }
    }
  });
}

// Whole axes and axes of one element around the padded one, in every place.
TEST(PadTest, PadsOneAxisAmongOthers) {
  for (const std::string mode : {"constant", "edge", "reflect", "wrap"}) {
    for (const Shape& shape : {Shape({1, 3, 4, 1}), Shape({4, 1, 3, 2}), Shape({2, 3, 1, 5})}) {
      for (size_t axis = 0; axis < shape.rank(); ++axis) {
        const Tensor x = Iota<float>(shape);
        std::vector<int64_t> pads(2 * shape.rank(), 0);
        pads[axis] = 2;
        pads[axis + shape.rank()] = 1;
        const Tensor y = RunTensorOp({"Pad",
                                      19,
                                      {x, Tensor::Of<int64_t>({8}, std::span<const int64_t>(pads))},
                                      MakeAttributes(Attr("mode", mode))});
        const auto sources = PaddedSources(shape[axis], 2, 1, mode);
        ASSERT_EQ(y.size(), x.size() / shape[axis] * (shape[axis] + 3));
        for (int64_t i = 0; i < y.size(); ++i) {
          auto at = CoordinatesOf(i, y.shape());
          at[axis] = sources[static_cast<size_t>(at[axis])];
          const float expected = at[axis] < 0 ? 0 : x.data<float>()[PositionOf(at, x.shape())];
          ASSERT_EQ(y.data<float>()[i], expected) << mode << " axis " << axis << " at " << i;
        }
      }
    }
  }
}

std::vector<float> PaddedVector(int64_t before, int64_t after, const std::string& mode) {
  return ElementsOf<float>(RunTensorOp(
      {"Pad", 19, {Iota<float>({4}), Ints({before, after})}, MakeAttributes(Attr("mode", mode))}));
}

TEST(PadTest, CropsWithNegativePads) {
  EXPECT_EQ(PaddedVector(-1, 2, "constant"), (std::vector<float>{1, 2, 3, 0, 0}));
  EXPECT_EQ(PaddedVector(2, -2, "edge"), (std::vector<float>{0, 0, 0, 1}));
  EXPECT_EQ(PaddedVector(-1, 2, "reflect"), (std::vector<float>{1, 2, 3, 2, 1}));
  EXPECT_EQ(PaddedVector(-2, -2, "constant"), std::vector<float>{});
}

TEST(PadTest, TakesAxesAndOlderAttributes) {
  const Tensor x = Iota<float>({2, 3});
  const Tensor y = RunTensorOp({"Pad", 18, {x, Ints({1, 0}), Value(), Ints({-1})}});
  EXPECT_EQ(y.shape(), Shape({2, 4}));
  EXPECT_EQ(ElementsOf<float>(y), (std::vector<float>{0, 0, 1, 2, 0, 3, 4, 5}));
  const std::vector<int64_t> pads = {0, 1, 0, 0};
  for (const char* name : {"pads", "paddings"}) {
    const int32_t opset = std::string(name) == "pads" ? 2 : 1;
    const Tensor z =
        RunTensorOp({"Pad", opset, {x}, MakeAttributes(Attr(name, pads), Attr("value", 9.0f))});
    EXPECT_EQ(ElementsOf<float>(z), (std::vector<float>{9, 0, 1, 2, 9, 3, 4, 5}));
  }
  EXPECT_EQ(RunTensorOp({"Pad", 13, {Iota<float>({}), Ints({})}}).shape(), Shape());
}

TEST(PadTest, MayTakeWhatTheOtherEndAdds) {
  const Tensor seven = Tensor::Of<float>({}, std::vector<float>{7});
  for (const auto& [before, after] : {std::pair(-5, 9), std::pair(9, -5), std::pair(-6, 2)}) {
    const Tensor y = RunTensorOp({"Pad", 19, {Iota<float>({4}), Ints({before, after}), seven}});
    for (const float element : y.values<float>()) EXPECT_EQ(element, 7) << before << " " << after;
    EXPECT_EQ(y.shape(), Shape({4 + before + after}));
  }
}

TEST(PadTest, RefusesBadPads) {
  const auto error = [](int64_t before, int64_t after, std::string mode = "constant",
                        int64_t dim = 4) {
    return ErrorOf({"Pad",
                    19,
                    {Iota<float>({dim}), Ints({before, after})},
                    MakeAttributes(Attr("mode", mode))});
  };
  EXPECT_EQ(error(-3, -2), "pads -3 and -2 take more than the 4 elements of axis 0");
  EXPECT_NE(error(INT64_MIN, INT64_MIN), "no error");
  EXPECT_NE(error(INT64_MAX, INT64_MAX), "no error");
  EXPECT_NE(error(-5, 0), "no error");
  EXPECT_NE(error(9, -14), "no error");
  EXPECT_EQ(error(-5, 9, "edge"), "axis 0 has no elements to pad with");
  EXPECT_EQ(error(1, 0, "edge", 0), "axis 0 has no elements to pad with");
  EXPECT_EQ(error(1, 0, "mirror"),
            "attribute 'mode': expected constant, reflect, edge or wrap, got 'mirror'");
  EXPECT_EQ(ErrorOf({"Pad", 19, {Iota<float>({4}), Ints({1})}}),
            "expected 2 pads, two for each of 1 axes, got 1");
}

}  // namespace
}  // namespace tenon
