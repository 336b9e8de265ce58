#include "kernels/elementwise/broadcast.h"

#include <algorithm>
#include <numeric>

#include "kernels/target_test.h"

namespace tenon::kernels {
namespace {

using Shape = std::vector<int64_t>;

Result<BroadcastPlan> Plan(const std::vector<Shape>& shapes) {
  std::vector<std::span<const int64_t>> spans(shapes.begin(), shapes.end());
  return MakeBroadcastPlan(spans);
}

// Offsets of the inputs for every output element, the slow and obvious way.
std::vector<std::vector<size_t>> ReferenceOffsets(const std::vector<Shape>& shapes) {
  size_t rank = 0;
  for (const Shape& s : shapes) rank = std::max(rank, s.size());
  Shape out(rank, 1);
  std::vector<Shape> padded;
  for (Shape s : shapes) {
    s.insert(s.begin(), rank - s.size(), 1);
    for (size_t axis = 0; axis < rank; ++axis) {
      if (s[axis] != 1) out[axis] = s[axis];
    }
    padded.push_back(s);
  }
  size_t total = 1;
  for (const int64_t dim : out) total *= dim;
  std::vector<std::vector<size_t>> offsets(total);
  for (size_t element = 0; element < total; ++element) {
    for (const Shape& s : padded) {
      size_t rest = element, offset = 0, stride = 1;
      for (size_t axis = rank; axis-- > 0;) {
        const size_t index = rest % out[axis];
        rest /= out[axis];
        if (s[axis] != 1) offset += index * stride;
        stride *= s[axis];
      }
      offsets[element].push_back(offset);
    }
  }
  return offsets;
}

const std::vector<Shape> kShapeCases[] = {
    {{}, {}},
    {{1}, {1, 1}},
    {{5}, {}},
    {{2, 3, 4}, {2, 3, 4}},
    {{2, 3, 4}, {4}},
    {{4}, {2, 3, 4}},
    {{2, 3, 4}, {3, 1}},
    {{2, 3, 4}, {2, 1, 4}},
    {{2, 1, 4}, {1, 3, 1}},
    {{5, 1}, {1, 7}},
    {{2, 1, 3, 1, 2}, {1, 4, 1, 5, 2}},
    {{3, 0, 2}, {1, 1, 2}},
    {{0}, {1}},
    {{2, 3}, {3}, {2, 1}},
    {{4, 1, 1}, {1, 3, 1}, {1, 1, 2}},
    {{1}, {6, 5}, {5}},
};

TEST(BroadcastTest, VisitsEveryElementOnceWithTheRightInputs) {
  for (const auto& shapes : kShapeCases) {
    const auto plan = Plan(shapes);
    ASSERT_TRUE(plan.has_value());
    const auto reference = ReferenceOffsets(shapes);
    ASSERT_EQ(plan->output_size(), reference.size());
    for (const size_t grain : {1, 3, 64, 100000}) {
      const BroadcastTasks tasks = SplitBroadcast(*plan, grain);
      std::vector<int> seen(reference.size());
      for (size_t task = 0; task < tasks.count; ++task) {
        ForEachRunOfTask(*plan, tasks, task, [&](const auto& offsets, size_t output, size_t n) {
          for (size_t j = 0; j < n; ++j) {
            ASSERT_LT(output + j, reference.size());
            ++seen[output + j];
            for (size_t i = 0; i < shapes.size(); ++i) {
              EXPECT_EQ(offsets[i] + j * plan->inner_stride[i], reference[output + j][i]);
            }
          }
        });
      }
      EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<long>(seen.size()));
    }
  }
}

TEST(BroadcastTest, MergesAxesOfOnePattern) {
  const auto same = Plan({{2, 3, 4}, {2, 3, 4}});
  EXPECT_EQ(same->inner, 24u);
  EXPECT_EQ(same->outer, 1u);
  const auto channel = Plan({{8, 16, 5, 6}, {16, 1, 1}});
  EXPECT_EQ(channel->inner, 30u);
  EXPECT_EQ(channel->inner_stride[1], 0u);
  EXPECT_EQ(channel->outer_rank, 2u);
  const auto row = Plan({{2, 3, 4}, {1, 1, 4}});
  EXPECT_EQ(row->inner, 4u);
  EXPECT_EQ(row->outer, 6u);
  EXPECT_EQ(row->outer_rank, 1u);
}

TEST(BroadcastTest, RefusesShapesThatDoNotBroadcast) {
  const auto mismatch = Plan({{2, 3}, {4}});
  ASSERT_FALSE(mismatch.has_value());
  EXPECT_NE(mismatch.error().message().find("input 1"), std::string::npos);
  EXPECT_FALSE(Plan({{0}, {3}}).has_value());
  EXPECT_FALSE(Plan({{-1}, {1}}).has_value());
  EXPECT_FALSE(Plan({Shape(40, 1), {1}}).has_value());
  const int64_t huge = int64_t{1} << 40;
  EXPECT_FALSE(Plan({{huge, 1}, {1, huge}}).has_value());
}

template <class T>
void CheckSub(ElementType type, const std::vector<Shape>& shapes) {
  const auto plan = Plan(shapes);
  const auto reference = ReferenceOffsets(shapes);
  std::vector<T> a(5000), b(5000), y(reference.size());
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<T>(i % 113);
    b[i] = static_cast<T>(i % 13);
  }
  const BroadcastBinary sub = {FindBinary(BinaryOp::kSub, type), sizeof(T), sizeof(T)};
  for (const size_t grain : {1, 100, 100000}) {
    std::fill(y.begin(), y.end(), T{77});
    const BroadcastTasks tasks = SplitBroadcast(*plan, grain);
    for (size_t t = tasks.count; t-- > 0;) {
      RunBroadcastBinary(*plan, tasks, t, sub, a.data(), b.data(), y.data());
    }
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(y[i], static_cast<T>(a[reference[i][0]] - b[reference[i][1]])) << i;
    }
  }
}

TEST(BroadcastTest, ShortRunsMatchReferenceForEveryElementSize) {
  const std::vector<Shape> cases[] = {{{700, 3}, {3}},
                                      {{3, 70, 16}, {3, 1, 16}},
                                      {{3, 1, 16}, {3, 70, 16}},
                                      {{2, 33, 48}, {48}},
                                      {{70, 16}, {70, 1, 16}},
                                      {{3}, {700, 3}},
                                      {{700, 1}, {700, 3}},
                                      {{40, 2, 3}, {40, 1, 3}},
                                      {{5, 300, 2}, {5, 1, 2}},
                                      {{900, 1}, {1, 5}},
                                      {{2, 3, 2, 3, 2}, {3, 1, 3, 1}},
                                      {{1, 600, 1, 2}, {2, 1, 3, 1}},
                                      {{}, {7}}};
  for (const auto& shapes : cases) {
    CheckSub<float>(ElementType::kFloat, shapes);
    CheckSub<double>(ElementType::kDouble, shapes);
    CheckSub<int8_t>(ElementType::kInt8, shapes);
    CheckSub<int16_t>(ElementType::kInt16, shapes);
  }
}

TEST(BroadcastTest, RunsBinaryOperatorsAndWhere) {
  const std::vector<Shape> shapes = {{3, 1, 5}, {4, 1}};
  const auto plan = Plan(shapes);
  std::vector<float> a(15), b(4), y(60);
  std::iota(a.begin(), a.end(), 0.0f);
  std::iota(b.begin(), b.end(), 100.0f);
  const BroadcastBinary sub = {FindBinary(BinaryOp::kSub, ElementType::kFloat), 4, 4};
  const BroadcastTasks tasks = SplitBroadcast(*plan, 7);
  for (size_t t = 0; t < tasks.count; ++t) {
    RunBroadcastBinary(*plan, tasks, t, sub, a.data(), b.data(), y.data());
  }
  for (size_t i = 0; i < 60; ++i) EXPECT_EQ(y[i], a[i / 20 * 5 + i % 5] - b[i / 5 % 4]);

  const auto where = Plan({{3, 1, 1}, {3, 1, 5}, {4, 1}});
  const uint8_t condition[] = {1, 0, 1};
  const BroadcastTasks where_tasks = SplitBroadcast(*where, 7);
  for (size_t t = 0; t < where_tasks.count; ++t) {
    RunBroadcastWhere(*where, where_tasks, t, 4, condition, a.data(), b.data(), y.data());
  }
  for (size_t i = 0; i < 60; ++i) {
    EXPECT_EQ(y[i], condition[i / 20] ? a[i / 20 * 5 + i % 5] : b[i / 5 % 4]);
  }
}

}  // namespace
}  // namespace tenon::kernels
