#include <algorithm>
#include <cmath>

#include "ops/op_cases.h"
#include "ops/reference.h"

namespace tenon {
namespace {

struct Rect {
  double low[2], high[2];
};

Rect RectOf(const float* box, bool center) {
  if (center) {
    return {{box[1] - box[3] / 2.0, box[0] - box[2] / 2.0},
            {box[1] + box[3] / 2.0, box[0] + box[2] / 2.0}};
  }
  return {{std::min(box[0], box[2]), std::min(box[1], box[3])},
          {std::max(box[0], box[2]), std::max(box[1], box[3])}};
}

double Overlap(const Rect& a, const Rect& b) {
  double common = 1, area_a = 1, area_b = 1;
  for (int i = 0; i < 2; ++i) {
    common *= std::max(0.0, std::min(a.high[i], b.high[i]) - std::max(a.low[i], b.low[i]));
    area_a *= a.high[i] - a.low[i];
    area_b *= b.high[i] - b.low[i];
  }
  return common == 0 ? 0 : common / (area_a + area_b - common);
}

// Greedy selection, by the definition.
std::vector<int64_t> Select(const Tensor& boxes, const Tensor& scores, int64_t most, double overlap,
                            double least_score, bool center) {
  std::vector<int64_t> selected;
  const int64_t n = boxes.shape()[1];
  for (int64_t line = 0; line < scores.shape()[0] * scores.shape()[1]; ++line) {
    const int64_t batch = line / scores.shape()[1];
    const float* score = scores.data<float>() + line * n;
    std::vector<int64_t> order;
    for (int64_t i = 0; i < n; ++i) {
      if (score[i] > least_score) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return score[a] > score[b]; });
    std::vector<Rect> kept;
    for (const int64_t i : order) {
      if (static_cast<int64_t>(kept.size()) >= most) break;
      const Rect rect = RectOf(boxes.data<float>() + (batch * n + i) * 4, center);
      const bool covered = std::any_of(kept.begin(), kept.end(), [&](const Rect& other) {
        return Overlap(rect, other) > overlap;
      });
      if (covered) continue;
      kept.push_back(rect);
      selected.insert(selected.end(), {batch, line % scores.shape()[1], i});
    }
  }
  return selected;
}

Tensor Scalar(float value) { return Tensor::Of<float>({}, {value}); }

TEST(NonMaxSuppressionTest, SelectsGreedily) {
  for (const bool center : {false, true}) {
    for (const int64_t most : {0, 1, 5, 100}) {
      Tensor boxes = Scattered({2, 83, 4}, 7);
      if (center) {
        for (int64_t i = 0; i < boxes.size(); ++i) {
          if (i % 4 >= 2) boxes.data<float>()[i] = std::abs(boxes.data<float>()[i]);
        }
      }
      Tensor scores = Scattered({2, 3, 83}, 3);
      for (int64_t i = 0; i < scores.size(); i += 5) scores.data<float>()[i] = 1;  // equal ones
      const Tensor y = RunTensorOp({"NonMaxSuppression",
                                    11,
                                    {boxes, scores, Ints({most}), Scalar(0.3f), Scalar(-0.5f)},
                                    MakeAttributes(Attr("center_point_box", int64_t{center}))});
      EXPECT_EQ(ElementsOf<int64_t>(y), Select(boxes, scores, most, 0.3f, -0.5, center));
    }
  }
}

TEST(NonMaxSuppressionTest, NeedsNoThresholds) {
  const Tensor boxes = Tensor::Of<float>({1, 3, 4}, {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3});
  const Tensor scores = Tensor::Of<float>({1, 1, 3}, {0.5f, NAN, -INFINITY});
  const Tensor y = RunTensorOp({"NonMaxSuppression", 10, {boxes, scores, Ints({9})}});
  EXPECT_EQ(ElementsOf<int64_t>(y), (std::vector<int64_t>{0, 0, 0, 0, 0, 2}));
  EXPECT_EQ(RunTensorOp({"NonMaxSuppression", 10, {boxes, scores}}).shape(), Shape({0, 3}));
}

TEST(NonMaxSuppressionTest, RefusesBadInputs) {
  const auto error = [](const Shape& boxes, const Shape& scores, float overlap) {
    return ErrorOf({"NonMaxSuppression",
                    11,
                    {Scattered(boxes), Scattered(scores), Ints({INT64_MAX}), Scalar(overlap)}});
  };
  EXPECT_EQ(error({1, 3, 4}, {1, 2, 3}, 0.5f), "no error");
  EXPECT_EQ(error({1, 3, 4}, {1, 2, 3}, 2), "input 3: expected a threshold in [0, 1], got 2");
  EXPECT_NE(error({1, 3, 5}, {1, 2, 3}, 0.5f), "no error");
  EXPECT_NE(error({1, 3, 4}, {1, 2, 4}, 0.5f), "no error");
  EXPECT_NE(error({1, 3, 4}, {2, 2, 3}, 0.5f), "no error");
}

}  // namespace
}  // namespace tenon
