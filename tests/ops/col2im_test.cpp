#include "ops/op_cases.h"
#include "ops/reference.h"

namespace tenon {
namespace {

struct Case {
  std::vector<int64_t> image, block, dilations, pads, strides;
};

// Every element of every block, added where it lies.
template <class T>
void ExpectAdded(const Case& c) {
  const size_t rank = c.image.size();
  Shape steps(rank, 0);
  for (size_t i = 0; i < rank; ++i) {
    steps[i] = (c.image[i] + c.pads[i] + c.pads[i + rank] - c.dilations[i] * (c.block[i] - 1) - 1) /
                   c.strides[i] +
               1;
  }
  const Shape block(c.block), image(c.image);
  const Tensor x = Iota<T>({2, 3 * block.NumElements(), steps.NumElements()});
  Shape out = {2, 3};
  for (const int64_t size : c.image) out.Append(size);
  std::vector<T> expected(static_cast<size_t>(out.NumElements()), T());
  for (int64_t i = 0; i < x.size(); ++i) {
    const auto at = CoordinatesOf(i, x.shape());
    const auto element = CoordinatesOf(at[1] % block.NumElements(), block);
    const auto step = CoordinatesOf(at[2], steps);
    std::vector<int64_t> to = {at[0], at[1] / block.NumElements()};
    bool inside = true;
    for (size_t k = 0; k < rank; ++k) {
      to.push_back(step[k] * c.strides[k] + element[k] * c.dilations[k] - c.pads[k]);
      inside = inside && to.back() >= 0 && to.back() < c.image[k];
    }
    if (inside) {
      T& sum = expected[static_cast<size_t>(PositionOf(to, out))];
      sum = static_cast<T>(sum + x.data<T>()[i]);
    }
  }
  const auto list = [](const std::vector<int64_t>& sizes) {
    return Tensor::Of<int64_t>({static_cast<int64_t>(sizes.size())}, sizes);
  };
  const Tensor y = RunTensorOp({"Col2Im",
                                18,
                                {x, list(c.image), list(c.block)},
                                MakeAttributes(Attr("dilations", c.dilations), Attr("pads", c.pads),
                                               Attr("strides", c.strides))});
  ASSERT_EQ(y.shape(), out);
  EXPECT_EQ(ElementsOf<T>(y), expected);
}

TEST(Col2ImTest, AddsBlocksUp) {
  const Case cases[] = {
      {{5, 5}, {2, 3}, {1, 1}, {0, 0, 0, 0}, {1, 1}},
      {{7, 9}, {3, 2}, {2, 3}, {1, 2, 3, 0}, {2, 1}},
      {{4, 5, 6}, {2, 1, 3}, {1, 2, 2}, {0, 1, 2, 1, 0, 0}, {1, 2, 3}},
      {{9}, {4}, {2}, {3, 3}, {5}},
  };
  for (const Case& c : cases) {
    ExpectAdded<float>(c);
    ExpectAdded<double>(c);
    ExpectAdded<uint8_t>(c);
    ExpectAdded<int64_t>(c);
  }
}

TEST(Col2ImTest, RefusesWhatDoesNotFit) {
  const auto error = [](const Shape& x, Tensor image, Tensor block,
                        std::vector<int64_t> strides = {1, 1}) {
    return ErrorOf({"Col2Im",
                    18,
                    {Scattered(x), std::move(image), std::move(block)},
                    MakeAttributes(Attr("strides", std::move(strides)))});
  };
  EXPECT_EQ(error({1, 4, 4}, Ints({3, 3}), Ints({2, 2})), "no error");
  EXPECT_NE(error({1, 5, 4}, Ints({3, 3}), Ints({2, 2})), "no error");
  EXPECT_NE(error({1, 4, 5}, Ints({3, 3}), Ints({2, 2})), "no error");
  EXPECT_NE(error({1, 4, 4}, Ints({3, 3}), Ints({2, 4})), "no error");
  EXPECT_NE(error({1, 4, 4}, Ints({3}), Ints({2, 2})), "no error");
  EXPECT_NE(error({1, 4, 4}, Ints({INT64_MAX, 3}), Ints({2, INT64_MIN})), "no error");
  EXPECT_NE(error({1, 4, 4}, Ints({3, 3}), Ints({0, 2})), "no error");
  EXPECT_NE(error({1, 4, 4}, Ints({3, 3}), Ints({2, 2}), {0, 1}), "no error");
}

TEST(Col2ImTest, JoinsStrings) {
  const Tensor blocks = Tensor::Of<std::string>({1, 2, 2}, {"a", "b", "c", "d"});
  const Tensor y =
      RunTensorOp({"Col2Im",
                   18,
                   {blocks, Tensor::Of<int64_t>({2}, {1, 4}), Tensor::Of<int64_t>({2}, {1, 2})},
                   MakeAttributes(Attr("dilations", std::vector<int64_t>{1, 2}))});
  EXPECT_EQ(ElementsOf<std::string>(y), (std::vector<std::string>{"a", "b", "c", "d"}));
  const Tensor overlapping = RunTensorOp(
      {"Col2Im", 18, {blocks, Tensor::Of<int64_t>({2}, {1, 3}), Tensor::Of<int64_t>({2}, {1, 2})}});
  EXPECT_EQ(ElementsOf<std::string>(overlapping), (std::vector<std::string>{"a", "bc", "d"}));
}

}  // namespace
}  // namespace tenon
