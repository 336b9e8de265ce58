#include <algorithm>
#include <numeric>

#include "ops/op_cases.h"

namespace tenon {
namespace {

template <class T>
void ExpectTransposed(const Shape& shape, const std::vector<int64_t>& perm) {
  const Tensor x = Iota<T>(shape);
  const Tensor y = RunTensorOp({"Transpose", 13, {x}, MakeAttributes(Attr("perm", perm))});
  for (size_t i = 0; i < perm.size(); ++i) {
    ASSERT_EQ(y.shape()[i], shape[static_cast<size_t>(perm[i])]);
  }
  ExpectElements<T>(y, x, [&](const std::vector<int64_t>& at) {
    std::vector<int64_t> from(at.size());
    for (size_t i = 0; i < at.size(); ++i) from[static_cast<size_t>(perm[i])] = at[i];
    return from;
  });
}

TEST(TransposeTest, PermutesAxesOfEveryElementSize) {
  ForEachElementSize([](auto element) {
    using T = decltype(element);
    std::vector<int64_t> perm = {0, 1, 2, 3};
    do {
      ExpectTransposed<T>({2, 3, 1, 5}, perm);
      ExpectTransposed<T>({17, 2, 3, 33}, perm);
    } while (std::next_permutation(perm.begin(), perm.end()));
    ExpectTransposed<T>({}, {});
    ExpectTransposed<T>({3, 0, 2}, {2, 1, 0});
  });
  ExpectTransposed<float>({700, 301}, {1, 0});
  ExpectTransposed<uint8_t>({2, 3, 2, 3, 2, 3, 2, 3, 2, 2}, {9, 1, 8, 3, 6, 5, 4, 7, 2, 0});
}

TEST(TransposeTest, ReversesTheAxesByDefault) {
  const Tensor x = Iota<float>({2, 3, 4});
  const Tensor y = RunTensorOp({"Transpose", 13, {x}});
  EXPECT_EQ(y.shape(), Shape({4, 3, 2}));
  ExpectElements<float>(y, x, [](std::vector<int64_t> at) {
    std::reverse(at.begin(), at.end());
    return at;
  });
}

TEST(TransposeTest, RefusesWhatIsNoPermutation) {
  const auto error = [](std::vector<int64_t> perm) {
    return ErrorOf(
        {"Transpose", 13, {Iota<float>({2, 3})}, MakeAttributes(Attr("perm", std::move(perm)))});
  };
  EXPECT_EQ(error({0}), "expected attribute 'perm' to be a permutation of 2 axes, got [0]");
  EXPECT_NE(error({0, 0}), "no error");
  EXPECT_NE(error({0, 2}), "no error");
  EXPECT_NE(error({-1, 0}), "no error");
}

}  // namespace
}  // namespace tenon
