#include <cmath>

#include "ops/op_cases.h"
#include "ops/reference.h"

namespace tenon {
namespace {

struct LossCase {
  Shape scores;
  bool weighted;
  std::optional<int64_t> ignored;
};

const LossCase kCases[] = {
    {{3, 5}, false, {}},    {{3, 5}, true, {}},      {{3, 5}, true, 2},   {{2, 3, 4}, false, -1},
    {{2, 3, 4}, true, 100}, {{2, 3, 2, 2}, true, 1}, {{1, 1}, false, {}}, {{4, 300}, true, {}},
};

Tensor TargetOf(const LossCase& c) {
  Shape shape;
  for (size_t i = 0; i < c.scores.rank(); ++i) {
    if (i != 1) shape.Append(c.scores[i]);
  }
  Tensor target = Iota<int64_t>(shape);
  for (int64_t i = 0; i < target.size(); ++i) {
    int64_t& t = target.data<int64_t>()[i];
    t = i % 3 == 1 && c.ignored ? *c.ignored : i * 7 % c.scores[1];
  }
  return target;
}

template <class T>
void CheckLoss(const LossCase& c, const std::string& reduction, bool softmax) {
  SCOPED_TRACE(c.scores.ToString() + reduction);
  const Tensor x = Scattered<T>(c.scores), target = TargetOf(c);
  const Tensor weights = Scattered<T>({c.scores[1]}, 4);
  OpCall call{softmax ? "SoftmaxCrossEntropyLoss" : "NegativeLogLikelihoodLoss",
              13,
              {x, target, c.weighted ? Value(weights) : Value()},
              MakeAttributes(Attr("reduction", reduction))};
  if (c.ignored) call.attributes.push_back(Attr("ignore_index", *c.ignored));
  call.output_count = softmax ? 2 : 1;
  const auto outputs = RunOp(std::move(call));
  ASSERT_TRUE(outputs) << outputs.error().message();
  const int64_t classes = c.scores[1], inner = c.scores.Product(2, c.scores.rank());
  const auto log_prob = [&](int64_t i) {
    if (!softmax) return static_cast<double>(x.data<T>()[i]);
    const int64_t first = i / (classes * inner) * classes * inner + i % inner;
    double sum = 0;
    for (int64_t k = 0; k < classes; ++k) {
      sum += std::exp(static_cast<double>(x.data<T>()[first + k * inner]));
    }
    return static_cast<double>(x.data<T>()[i]) - std::log(sum);
  };
  double sum = 0, weight_sum = 0;
  std::vector<double> losses;
  for (int64_t i = 0; i < target.size(); ++i) {
    const int64_t t = target.data<int64_t>()[i];
    if (c.ignored && t == *c.ignored) {
      losses.push_back(0);
      continue;
    }
    const double weight = c.weighted ? static_cast<double>(weights.data<T>()[t]) : 1;
    losses.push_back(-weight * log_prob((i / inner * classes + t) * inner + i % inner));
    sum += losses.back();
    weight_sum += weight;
  }
  const Tensor& y = (*outputs)[0].tensor();
  if (reduction == "none") {
    ExpectElements<T>(y, target.shape(), 1e-5,
                      [&](int64_t i) { return losses[static_cast<size_t>(i)]; });
  } else {
    ExpectElements<T>(y, {}, 1e-5,
                      [&](int64_t) { return reduction == "sum" ? sum : sum / weight_sum; });
  }
  if (softmax) ExpectElements<T>((*outputs)[1].tensor(), c.scores, 1e-5, log_prob);
}

TEST(CrossEntropyTest, FollowsTheFormula) {
  for (const LossCase& c : kCases) {
    for (const char* reduction : {"none", "sum", "mean"}) {
      for (const bool softmax : {false, true}) {
        CheckLoss<float>(c, reduction, softmax);
        CheckLoss<double>(c, reduction, softmax);
      }
    }
  }
}

TEST(CrossEntropyTest, RefusesHostileTargets) {
  const Tensor x = Scattered({1, 3});
  for (const char* name : {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"}) {
    for (const int64_t t : {int64_t{3}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
      EXPECT_NE(ErrorOf({name, 13, {x, Ints({t})}}), "no error") << t;
    }
    EXPECT_NE(ErrorOf({name, 13, {x, Ints({0, 1})}}), "no error");
    EXPECT_NE(ErrorOf({name, 13, {x, Ints({0}), Scattered({2})}}), "no error");
    EXPECT_NE(
        ErrorOf({name, 13, {x, Ints({0})}, MakeAttributes(Attr("reduction", std::string("most")))}),
        "no error");
  }
}

}  // namespace
}  // namespace tenon
