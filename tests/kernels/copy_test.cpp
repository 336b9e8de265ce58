#include "kernels/copy.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/target_test.h"
#include "kernels/transpose.h"

namespace tenon::kernels {
namespace {

using Sizes = std::vector<size_t>;
using Strides = std::vector<ptrdiff_t>;

size_t CountOf(const Sizes& shape) {
  return std::accumulate(shape.begin(), shape.end(), size_t{1}, std::multiplies<>());
}

// Calls f(index) for all indices of a shape, in row-major order.
template <class F>
void ForEachIndex(const Sizes& shape, F&& f) {
  Sizes index(shape.size());
  for (size_t k = 0; k < CountOf(shape); ++k) {
    size_t rest = k;
    for (size_t i = shape.size(); i-- > 0;) {
      index[i] = rest % shape[i];
      rest /= shape[i];
    }
    f(index);
  }
}

ptrdiff_t OffsetOf(const Sizes& index, const Strides& strides) {
  ptrdiff_t offset = 0;
  for (size_t i = 0; i < index.size(); ++i) offset += static_cast<ptrdiff_t>(index[i]) * strides[i];
  return offset;
}

Strides DenseStrides(const Sizes& shape) {
  Strides strides(shape.size());
  ptrdiff_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= static_cast<ptrdiff_t>(shape[i]);
  }
  return strides;
}

// Runs a plan in pieces of `step` units, last piece first.
void RunInTasks(const CopyPlan& plan, const void* src, void* dst, size_t step) {
  for (size_t end = plan.units; end > 0;) {
    const size_t begin = end > step ? end - step : 0;
    RunCopy(plan, src, dst, begin, end);
    end = begin;
  }
}

std::vector<uint8_t> Bytes(size_t n) {
  std::vector<uint8_t> bytes(n);
  Random random(n);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random.Next());
  return bytes;
}

constexpr size_t kElementSizes[] = {1, 2, 4, 8, 16};

const Sizes kTransposeShapes[] = {
    {},        {1},       {5},         {0, 3},         {1, 7},          {3, 5},
    {16, 16},  {17, 33},  {64, 64},    {65, 130},      {200, 3},        {3, 200},
    {2, 3, 4}, {5, 1, 6}, {4, 16, 20}, {2, 17, 3, 18}, {3, 2, 2, 2, 3}, {300, 257},
    {2, 77},   {4, 131},
};

TEST(TransposeTest, MatchesReferenceForEveryPermutationAndElementSize) {
  for (const Sizes& shape : kTransposeShapes) {
    Sizes permutation(shape.size());
    std::iota(permutation.begin(), permutation.end(), size_t{0});
    do {
      Sizes result_shape(shape.size());
      for (size_t i = 0; i < shape.size(); ++i) result_shape[i] = shape[permutation[i]];
      const Strides strides = DenseStrides(shape);
      for (const size_t size : kElementSizes) {
        const auto src = Bytes(CountOf(shape) * size);
        std::vector<uint8_t> expected, got(src.size(), 0);
        ForEachIndex(result_shape, [&](const Sizes& index) {
          ptrdiff_t offset = 0;
          for (size_t i = 0; i < index.size(); ++i) {
            offset += static_cast<ptrdiff_t>(index[i]) * strides[permutation[i]];
          }
          const auto from = src.begin() + offset * static_cast<ptrdiff_t>(size);
          expected.insert(expected.end(), from, from + static_cast<ptrdiff_t>(size));
        });
        const auto plan = MakeTransposePlan(shape, permutation, size);
        ASSERT_TRUE(plan.has_value());
        RunInTasks(*plan, src.data(), got.data(), 3);
        ASSERT_EQ(got, expected) << "rank " << shape.size() << ", element of " << size;
      }
    } while (std::next_permutation(permutation.begin(), permutation.end()));
  }
}

TEST(TransposeTest, MergesAxesAndKeepsRuns) {
  const auto heads = MakeTransposePlan(Sizes{2, 12, 128, 64}, Sizes{0, 2, 1, 3}, 4);
  EXPECT_EQ(heads->method, CopyPlan::Method::kRuns);
  EXPECT_EQ(heads->element, 256u);
  const auto nhwc = MakeTransposePlan(Sizes{2, 64, 56, 56}, Sizes{0, 2, 3, 1}, 4);
  EXPECT_EQ(nhwc->method, CopyPlan::Method::kTiles);
  EXPECT_EQ(nhwc->rank, 1u);
  const auto identity = MakeTransposePlan(Sizes{2, 3, 4}, Sizes{0, 1, 2}, 4);
  EXPECT_EQ(identity->element, 96u);
  EXPECT_EQ(identity->units, 1u);
}

TEST(TransposeTest, RefusesWhatIsNoPermutation) {
  EXPECT_FALSE(MakeTransposePlan(Sizes{2, 3}, Sizes{0, 0}, 4).has_value());
  EXPECT_FALSE(MakeTransposePlan(Sizes{2, 3}, Sizes{0, 2}, 4).has_value());
  EXPECT_FALSE(MakeTransposePlan(Sizes{2, 3}, Sizes{0}, 4).has_value());
  EXPECT_FALSE(MakeTransposePlan(Sizes(33, 1), Sizes(33, 0), 4).has_value());
}

struct CopyCase {
  const char* name;
  Sizes shape;
  Strides src, dst;
  ptrdiff_t src_begin = 0;  // element of src of index 0
};
const CopyCase kCopyCases[] = {
    {"dense", {3, 4, 5}, {20, 5, 1}, {20, 5, 1}},
    {"large and dense", {70000}, {1}, {1}},
    {"slice of rows", {3, 5}, {20, 1}, {5, 1}},
    {"concat", {3, 5}, {5, 1}, {11, 1}},
    {"step 2", {4, 6}, {12, 2}, {6, 1}},
    {"step -1", {4, 6}, {6, -1}, {6, 1}, 5},
    {"both reversed", {4, 6}, {-6, -1}, {6, 1}, 23},
    {"expand rows", {4, 6}, {0, 1}, {6, 1}},
    {"expand columns", {4, 6}, {1, 0}, {6, 1}},
    {"expand all", {4, 6}, {0, 0}, {6, 1}},
    {"tile", {2, 3, 2, 5, 3, 7}, {0, 35, 0, 7, 0, 1}, {630, 210, 105, 21, 7, 1}},
    {"tile in many units", {40, 3, 50, 11}, {550, 0, 11, 1}, {1650, 550, 11, 1}},
    {"expand rows of rows", {4, 21, 10}, {10, 0, 1}, {210, 10, 1}},
    {"expand reversed rows", {4, 3, 2, 10}, {0, -10, 0, 1}, {60, 20, 10, 1}, 20},
    {"expand rows with gaps", {5, 4, 6}, {6, 0, 1}, {40, 7, 1}},
    {"scatter", {40}, {1}, {3}},
    {"pairs", {9, 2}, {4, 1}, {2, 1}},
    {"empty", {4, 0}, {1, 1}, {1, 1}},
    {"transposed into a larger matrix", {40, 50}, {1, 40}, {64, 1}},
    {"long columns", {2, 70000}, {1, 2}, {70000, 1}},
};

TEST(CopyTest, MatchesReference) {
  for (const CopyCase& test : kCopyCases) {
    for (const size_t size : kElementSizes) {
      constexpr size_t kElements = 150000;
      const auto src = Bytes(kElements * size);
      std::vector<uint8_t> expected(kElements * size, 7), got = expected;
      ForEachIndex(test.shape, [&](const Sizes& index) {
        const ptrdiff_t from = test.src_begin + OffsetOf(index, test.src);
        std::memcpy(expected.data() + OffsetOf(index, test.dst) * static_cast<ptrdiff_t>(size),
                    src.data() + from * static_cast<ptrdiff_t>(size), size);
      });
      const auto plan = MakeCopyPlan(test.shape, test.src, test.dst, size);
      ASSERT_TRUE(plan.has_value());
      RunInTasks(*plan, src.data() + test.src_begin * static_cast<ptrdiff_t>(size), got.data(), 2);
      ASSERT_EQ(got, expected) << test.name << ", element of " << size;
    }
  }
}

TEST(CopyTest, FillRepeatsTheElement) {
  for (const size_t size : kElementSizes) {
    const auto element = Bytes(size);
    std::vector<uint8_t> got(37 * size + 1, 7);
    Fill(element.data(), size, got.data(), 37);
    EXPECT_EQ(got.back(), 7);
    for (size_t i = 0; i < 37 * size; ++i) ASSERT_EQ(got[i], element[i % size]);
  }
}

}  // namespace
}  // namespace tenon::kernels
