#include <cmath>
#include <limits>

#include "ops/op_cases.h"

namespace tenon {
namespace {

using Floats = std::vector<float>;

OpCall MlCall(std::string op, Value x, std::vector<Attribute> attributes) {
  OpCall call{std::move(op), 1, {std::move(x)}, std::move(attributes)};
  call.domain = "ai.onnx.ml";
  return call;
}

void ExpectNear(const Tensor& actual, const Floats& expected) {
  ASSERT_EQ(actual.size(), static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual.data<float>()[i], expected[i], 1e-6f) << i;
  }
}

const Tensor kX = Tensor::Of<float>({3, 2}, {1, 0, -1, 0.2f, 0.1f, 0.05f});

// Expected scores of classifiers are what onnxruntime 1.31 gives.
TEST(LinearClassifierTest, GivesLabelsAndScores) {
  struct Case {
    Floats coefficients, intercepts;
    std::string transform;
    std::vector<int64_t> labels;
    Floats scores;
  };
  const Case cases[] = {
      {{1, 2}, {0}, "NONE", {11, 10, 11}, {0, 1, 1.6f, -0.6f, 0.8f, 0.2f}},
      {{1, 2},
       {0},
       "LOGISTIC",
       {11, 10, 11},
       {0.2689414f, 0.7310586f, 0.6456563f, 0.3543437f, 0.4501660f, 0.5498340f}},
      {{1, 2, -1, 1},
       {0.1f, 0.2f},
       "SOFTMAX",
       {10, 11, 10},
       {0.8698916f, 0.1301085f, 0.1301085f, 0.8698916f, 0.5374298f, 0.4625702f}},
  };
  for (const Case& c : cases) {
    OpCall call = MlCall(
        "LinearClassifier", kX,
        MakeAttributes(Attr("coefficients", c.coefficients), Attr("intercepts", c.intercepts),
                       Attr("classlabels_ints", std::vector<int64_t>{10, 11}),
                       Attr("post_transform", c.transform)));
    call.output_count = 2;
    const auto outputs = RunOp(std::move(call));
    ASSERT_TRUE(outputs) << outputs.error().message();
    EXPECT_EQ(ElementsOf<int64_t>((*outputs)[0].tensor()), c.labels);
    ExpectNear((*outputs)[1].tensor(), c.scores);
  }
}

TEST(LinearRegressorTest, MatchesPlainLoops) {
  for (const int64_t columns : {1, 3, 16, 37}) {
    Floats coefficients, intercepts = {0.5f, -1};
    Tensor x = Tensor::Allocate(DataType::kInt32, {5, columns}).value();
    for (int64_t i = 0; i < 2 * columns; ++i) {
      coefficients.push_back(static_cast<float>(i % 7) / 4);
    }
    for (int64_t i = 0; i < x.size(); ++i) x.data<int32_t>()[i] = static_cast<int32_t>(i % 11);
    const Tensor y = RunTensorOp(
        MlCall("LinearRegressor", x,
               MakeAttributes(Attr("coefficients", coefficients), Attr("intercepts", intercepts),
                              Attr("targets", int64_t{2}))));
    ASSERT_EQ(y.shape(), Shape({5, 2}));
    for (int64_t i = 0; i < y.size(); ++i) {
      double sum = intercepts[static_cast<size_t>(i % 2)];
      for (int64_t k = 0; k < columns; ++k) {
        sum += coefficients[static_cast<size_t>(i % 2 * columns + k)] *
               x.data<int32_t>()[i / 2 * columns + k];
      }
      EXPECT_EQ(y.data<float>()[i], static_cast<float>(sum));
    }
  }
  EXPECT_EQ(ErrorOf(MlCall("LinearRegressor", kX, MakeAttributes(Attr("coefficients", Floats{1})))),
            "input 0: expected at most 1 features for 1 coefficients, got shape [3, 2]");
  EXPECT_NE(ErrorOf(MlCall(
                "LinearRegressor", kX,
                MakeAttributes(Attr("coefficients", Floats{1, 2}), Attr("targets", INT64_MIN)))),
            "no error");
}

// As onnxruntime does.
TEST(LinearRegressorTest, IgnoresWhatIsTooMuch) {
  const auto regress = [](Floats coefficients, Floats intercepts, int64_t targets) {
    return RunTensorOp(MlCall(
        "LinearRegressor", kX,
        MakeAttributes(Attr("coefficients", std::move(coefficients)),
                       Attr("intercepts", std::move(intercepts)), Attr("targets", targets))));
  };
  ExpectNear(regress({1, 2, 99}, {0.5f}, 1), ElementsOf<float>(regress({1, 2}, {0.5f}, 1)));
  // Intercepts that are not one for each target.
  ExpectNear(regress({1, 2, 3, 4}, {100}, 2), ElementsOf<float>(regress({1, 2, 3, 4}, {}, 2)));
}

TEST(LinearClassifierTest, IgnoresCoefficientsThatNoFeatureNeeds) {
  const auto classify = [](Floats coefficients, std::vector<std::string> strings = {}) {
    OpCall call = MlCall("LinearClassifier", kX,
                         MakeAttributes(Attr("coefficients", std::move(coefficients)),
                                        Attr("intercepts", Floats{0.1f, 0.2f}),
                                        Attr("classlabels_ints", std::vector<int64_t>{10, 11}),
                                        Attr("classlabels_strings", std::move(strings))));
    call.output_count = 2;
    return RunOp(std::move(call));
  };
  const auto expected = classify({1, 2, -1, 1}), outputs = classify({1, 2, -1, 1, 7, 8});
  ASSERT_TRUE(expected && outputs);
  ExpectNear((*outputs)[1].tensor(), ElementsOf<float>((*expected)[1].tensor()));
  EXPECT_EQ(classify({1, 2, -1, 1, 7}).error().message(),
            "attribute 'coefficients': expected as many for each of 2 intercepts, got 5");
  EXPECT_EQ(classify({1, 2, -1, 1}, {"a", "b"}).error().message(),
            "expected either 'classlabels_ints' or 'classlabels_strings'");
}

TEST(NormalizerTest, DividesRowsByTheirNorm) {
  const auto normalize = [](std::string norm) {
    return RunTensorOp(MlCall("Normalizer", Tensor::Of<double>({3, 2}, {-3, 2, 0, 0, 3, -4}),
                              MakeAttributes(Attr("norm", std::move(norm)))));
  };
  ExpectNear(normalize("MAX"), {-1.5f, 1, 0, 0, 1, -4 / 3.0f});
  ExpectNear(normalize("L1"), {-0.6f, 0.4f, 0, 0, 3 / 7.0f, -4 / 7.0f});
  ExpectNear(normalize("L2"), {-0.8320503f, 0.5547002f, 0, 0, 0.6f, -0.8f});
  EXPECT_EQ(ErrorOf(MlCall("Normalizer", Iota<float>({2, 2, 2}), {})),
            "input 0: expected rank 1 or 2, got shape [2, 2, 2]");
}

TEST(ScalerTest, ShiftsAndScalesFeatures) {
  const auto scale = [](Floats factors, Floats offsets) {
    return MlCall("Scaler", Iota<int64_t>({2, 2}),
                  MakeAttributes(Attr("scale", factors), Attr("offset", offsets)));
  };
  ExpectNear(RunTensorOp(scale({2, 3}, {1})), {-2, 0, 2, 6});
  EXPECT_EQ(ErrorOf(scale({1, 2, 3}, {1})),
            "attribute 'scale': expected one entry or one for each of 2 features, got 3");
}

TEST(ImputerTest, ReplacesAValue) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  ExpectNear(RunTensorOp(MlCall("Imputer", Tensor::Of<float>({2, 2}, {nan, 1, 2, nan}),
                                MakeAttributes(Attr("imputed_value_floats", Floats{5, 6}),
                                               Attr("replaced_value_float", nan)))),
             {5, 1, 2, 6});
  const Tensor ints =
      RunTensorOp(MlCall("Imputer", Ints({0, 4}),
                         MakeAttributes(Attr("imputed_value_int64s", std::vector<int64_t>{9}),
                                        Attr("replaced_value_int64", int64_t{4}))));
  EXPECT_EQ(ElementsOf<int64_t>(ints), (std::vector<int64_t>{0, 9}));
}

TEST(BinarizerTest, ComparesWithTheThreshold) {
  ExpectNear(RunTensorOp(MlCall("Binarizer", Tensor::Of<float>({3}, {0.5f, 0.6f, -1}),
                                MakeAttributes(Attr("threshold", 0.5f)))),
             {0, 1, 0});
}

TEST(ArrayFeatureExtractorTest, PicksColumns) {
  OpCall call = MlCall("ArrayFeatureExtractor", Iota<float>({2, 3}), {});
  call.inputs.emplace_back(Ints({2, 0}));
  const Tensor y = RunTensorOp(std::move(call));
  EXPECT_EQ(y.shape(), Shape({2, 2}));
  ExpectNear(y, {2, 0, 5, 3});
  OpCall bad = MlCall("ArrayFeatureExtractor", Iota<float>({2, 3}), {});
  bad.inputs.emplace_back(Ints({3}));
  EXPECT_EQ(ErrorOf(std::move(bad)), "index 3 at position 0 is out of range [-3, 2] of axis 1");
}

TEST(ZipMapTest, MapsLabelsToScores) {
  const auto outputs = RunOp(
      MlCall("ZipMap", Iota<float>({3, 2}),
             MakeAttributes(Attr("classlabels_strings", std::vector<std::string>{"a", "b"}))));
  ASSERT_TRUE(outputs) << outputs.error().message();
  const Sequence& sequence = (*outputs)[0].sequence();
  ASSERT_EQ(sequence.elements.size(), 3u);
  for (size_t row = 0; row < 3; ++row) {
    const Map& map = sequence.elements[row].map();
    EXPECT_EQ(ElementsOf<std::string>(map.keys), (std::vector<std::string>{"a", "b"}));
    const auto first = static_cast<float>(2 * row);
    EXPECT_EQ(ElementsOf<float>(map.values), (Floats{first, first + 1}));
  }
  EXPECT_EQ(ErrorOf(MlCall("ZipMap", Iota<float>({3, 2}),
                           MakeAttributes(Attr("classlabels_int64s", std::vector<int64_t>{1})))),
            "input 0: expected 1 columns, one for each label, got shape [3, 2]");
}

}  // namespace
}  // namespace tenon
