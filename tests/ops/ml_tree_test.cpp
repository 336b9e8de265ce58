#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "kernels/dispatch.h"
#include "ops/op_cases.h"

namespace tenon {
namespace {

using Ints64 = std::vector<int64_t>;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// A tree as nested nodes, scored by recursion.
struct ReferenceNode {
  std::string mode = "LEAF";
  int64_t feature = 0;
  double value = 0;
  bool missing_true = false;
  int64_t on_true = 0, on_false = 0;
  std::vector<std::pair<int64_t, double>> weights;  // score, weight
};
using ReferenceTree = std::vector<ReferenceNode>;

const ReferenceNode& LeafOf(const ReferenceTree& tree, const double* x, int64_t at = 0) {
  const ReferenceNode& node = tree[static_cast<size_t>(at)];
  if (node.mode == "LEAF") return node;
  const double v = x[node.feature];
  bool holds = (node.mode == "BRANCH_LEQ" && v <= node.value) ||
               (node.mode == "BRANCH_LT" && v < node.value) ||
               (node.mode == "BRANCH_GTE" && v >= node.value) ||
               (node.mode == "BRANCH_GT" && v > node.value) ||
               (node.mode == "BRANCH_EQ" && v == node.value) ||
               (node.mode == "BRANCH_NEQ" && v != node.value);
  if (std::isnan(v) && node.missing_true) holds = true;
  return LeafOf(tree, x, holds ? node.on_true : node.on_false);
}

// A random tree whose values are multiples of 1/4, so that sums are exact in any order.
ReferenceTree RandomTree(std::mt19937& random, const std::vector<std::string>& modes, int depth,
                         int64_t features, int64_t scores, bool missing) {
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint32_t>(n));
  };
  ReferenceTree tree(1);
  std::vector<std::pair<int64_t, int>> open = {{0, depth}};
  while (!open.empty()) {
    const auto [at, levels] = open.back();
    open.pop_back();
    ReferenceNode node;
    if (levels == 0 || below(8) == 0) {
      for (int64_t score = 0; score < scores; ++score) {
        if (scores == 1 || below(2)) node.weights.emplace_back(score, (below(17) - 8) / 4.0);
      }
    } else {
      node.mode = modes[static_cast<size_t>(below(static_cast<int64_t>(modes.size())))];
      node.feature = below(features);
      node.value = (below(9) - 4) / 2.0;
      node.missing_true = missing && below(2);
      // The false branch first, so that node ids have no order that an implementation could use.
      node.on_false = static_cast<int64_t>(tree.size());
      node.on_true = node.on_false + 1;
      tree.resize(tree.size() + 2);
      open.emplace_back(node.on_false, levels - 1);
      open.emplace_back(node.on_true, levels - 1);
    }
    tree[static_cast<size_t>(at)] = node;
  }
  return tree;
}

// The attributes of an ensemble; `kind` is "class" or "target".
std::vector<Attribute> AttributesOf(const std::vector<ReferenceTree>& trees,
                                    const std::string& kind) {
  Ints64 tree_ids, node_ids, features, on_true, on_false, missing, w_trees, w_nodes, w_ids;
  std::vector<std::string> modes;
  std::vector<float> values, weights;
  for (size_t t = 0; t < trees.size(); ++t) {
    for (size_t i = 0; i < trees[t].size(); ++i) {
      const ReferenceNode& node = trees[t][i];
      tree_ids.push_back(static_cast<int64_t>(t) * 3 + 1);
      node_ids.push_back(static_cast<int64_t>(i));
      features.push_back(node.feature);
      modes.push_back(node.mode);
      values.push_back(static_cast<float>(node.value));
      on_true.push_back(node.on_true);
      on_false.push_back(node.on_false);
      missing.push_back(node.missing_true);
      for (const auto& [score, weight] : node.weights) {
        w_trees.push_back(tree_ids.back());
        w_nodes.push_back(node_ids.back());
        w_ids.push_back(score);
        weights.push_back(static_cast<float>(weight));
      }
    }
  }
  return MakeAttributes(Attr("nodes_treeids", tree_ids), Attr("nodes_nodeids", node_ids),
                        Attr("nodes_featureids", features), Attr("nodes_modes", modes),
                        Attr("nodes_values", values), Attr("nodes_truenodeids", on_true),
                        Attr("nodes_falsenodeids", on_false),
                        Attr("nodes_missing_value_tracks_true", missing),
                        Attr(kind + "_treeids", w_trees), Attr(kind + "_nodeids", w_nodes),
                        Attr(kind + "_ids", w_ids), Attr(kind + "_weights", weights));
}

OpCall RegressorCall(Tensor x, const std::vector<ReferenceTree>& trees, int64_t targets) {
  OpCall call{"TreeEnsembleRegressor", 3, {std::move(x)}, AttributesOf(trees, "target")};
  call.domain = "ai.onnx.ml";
  call.attributes.push_back(Attr("n_targets", targets));
  return call;
}

std::vector<double> ReferenceScores(const std::vector<ReferenceTree>& trees, const double* x,
                                    size_t targets, const std::string& aggregate) {
  std::vector<double> scores(targets, 0);
  std::vector<bool> met(targets, false);
  for (const ReferenceTree& tree : trees) {
    for (const auto& [score, weight] : LeafOf(tree, x).weights) {
      const auto i = static_cast<size_t>(score);
      double& s = scores[i];
      s = aggregate == "MIN" && met[i]   ? std::min(s, weight)
          : aggregate == "MAX" && met[i] ? std::max(s, weight)
                                         : s + weight;
      met[i] = true;
    }
  }
  for (double& s : scores) {
    if (aggregate == "AVERAGE") s /= static_cast<double>(trees.size());
  }
  return scores;
}

template <class X>
void ExpectRegression(const std::vector<std::string>& modes, bool missing, size_t targets,
                      const std::string& aggregate, int most_depth = 9) {
  std::mt19937 random(7);
  constexpr int64_t kFeatures = 5;
  std::vector<ReferenceTree> trees;
  for (const int depth : {0, 1, 3, 6, 6, 9, 2, 4, 5, 7, 3}) {
    trees.push_back(RandomTree(random, modes, std::min(depth, most_depth), kFeatures,
                               static_cast<int64_t>(targets), missing));
  }
  for (const int64_t rows : {1, 7, 8, 65, 700}) {
    Tensor x = Tensor::Allocate(DataTypeOf<X>(), {rows, kFeatures}).value();
    for (int64_t i = 0; i < x.size(); ++i) {
      x.data<X>()[i] = static_cast<X>((static_cast<double>(random() % 13) - 6) / 2);
      const bool is_nan = std::is_floating_point_v<X> && rows != 65 && random() % 5 == 0;
      if (is_nan) x.data<X>()[i] = static_cast<X>(kNaN);
    }
    OpCall call = RegressorCall(x, trees, static_cast<int64_t>(targets));
    call.attributes.push_back(Attr("aggregate_function", aggregate));
    const Tensor y = RunTensorOp(std::move(call));
    ASSERT_EQ(y.shape(), Shape({rows, static_cast<int64_t>(targets)}));
    for (int64_t row = 0; row < rows; ++row) {
      double features[kFeatures];
      for (int64_t i = 0; i < kFeatures; ++i) {
        features[i] = static_cast<double>(x.data<X>()[row * kFeatures + i]);
      }
      const auto expected = ReferenceScores(trees, features, targets, aggregate);
      for (size_t i = 0; i < targets; ++i) {
        ASSERT_EQ(y.data<float>()[static_cast<size_t>(row) * targets + i],
                  static_cast<float>(expected[i]))
            << aggregate << " row " << row;
      }
    }
  }
}

TEST(TreeEnsembleRegressorTest, GoesDownTreesOfEveryMode) {
  const std::vector<std::string> all = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                        "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  for (const std::string& mode : all) {
    for (const bool missing : {false, true}) {
      ExpectRegression<float>({mode}, missing, 1, "SUM");
    }
  }
  ExpectRegression<float>(all, true, 1, "SUM");
  ExpectRegression<double>(all, true, 1, "SUM");
  ExpectRegression<int64_t>(all, false, 2, "SUM");
  ExpectRegression<int32_t>({"BRANCH_LT"}, false, 1, "SUM");
}

TEST(TreeEnsembleRegressorTest, AggregatesSeveralTargets) {
  for (const std::string aggregate : {"SUM", "AVERAGE", "MIN", "MAX"}) {
    ExpectRegression<float>({"BRANCH_LEQ"}, false, 1, aggregate);
    ExpectRegression<float>({"BRANCH_LEQ"}, true, 3, aggregate);
  }
}

// Trees of at most 64 leaves have a way of their own, which depends on the number of leaves.
TEST(TreeEnsembleRegressorTest, GoesDownSmallTreesOnEveryTarget) {
  for (const kernels::Target target : kernels::SupportedTargets()) {
    kernels::SetActiveTarget(target);
    for (const int most_depth : {0, 3, 4, 5, 6, 7}) {
      for (const bool missing : {false, true}) {
        ExpectRegression<float>({"BRANCH_LEQ"}, missing, 1, "SUM", most_depth);
        ExpectRegression<float>({"BRANCH_LT"}, missing, 3, "AVERAGE", most_depth);
        ExpectRegression<double>({"BRANCH_LEQ"}, missing, 2, "SUM", most_depth);
      }
    }
  }
  kernels::SetActiveTarget(kernels::SupportedTargets().back());
}

// As converters of LightGBM write a test for several categories.
TEST(TreeEnsembleRegressorTest, GoesDownTreesThatShareNodes) {
  ReferenceTree tree(6);
  tree[0] = {"BRANCH_EQ", 0, 1.0, false, 1, 2, {}};
  tree[1] = {"BRANCH_LEQ", 1, 0.5, false, 4, 5, {}};
  tree[2] = {"BRANCH_EQ", 0, 3.0, false, 1, 3, {}};
  tree[3] = {"BRANCH_EQ", 0, 5.0, false, 1, 5, {}};
  tree[4].weights = {{0, 1.0}};
  tree[5].weights = {{0, 2.0}};
  const Tensor x = Tensor::Of<float>({5, 2}, {1, 0, 3, 1, 5, 0, 2, 0, 5, 1});
  const Tensor y = RunTensorOp(RegressorCall(x, {tree}, 1));
  const std::vector<float> wanted = {1, 2, 1, 2, 2};
  EXPECT_EQ(std::vector<float>(y.data<float>(), y.data<float>() + y.size()), wanted);
  tree[3].on_true = 2;
  EXPECT_EQ(ErrorOf(RegressorCall(x, {tree}, 1)), "node 2 of tree 1 is below itself");
}

// One branch on feature 0 at 0, with a leaf on each side.
ReferenceTree Stump(std::vector<std::pair<int64_t, double>> on_true,
                    std::vector<std::pair<int64_t, double>> on_false) {
  ReferenceTree tree(3);
  tree[0] = {"BRANCH_LEQ", 0, 0.0, false, 1, 2, {}};
  tree[1].weights = std::move(on_true);
  tree[2].weights = std::move(on_false);
  return tree;
}

const Tensor kTwoRows = Tensor::Of<float>({2, 1}, {-1, 1});

TEST(TreeEnsembleRegressorTest, AddsBaseValuesBeforeTheTransform) {
  OpCall call = RegressorCall(kTwoRows, {Stump({{0, 1}}, {{0, -1}, {1, 2}})}, 2);
  call.attributes.push_back(Attr("base_values", std::vector<float>{0.5f, 1.0f}));
  call.attributes.push_back(Attr("post_transform", std::string("LOGISTIC")));
  const Tensor y = RunTensorOp(std::move(call));
  const double scores[] = {1.5, 1.0, -0.5, 3.0};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(y.data<float>()[i], 1 / (1 + std::exp(-scores[i])), 1e-6);
  }
}

TEST(TreeEnsembleRegressorTest, GivesSmallLogisticsToTheLastPlaces) {
  OpCall call = RegressorCall(kTwoRows, {Stump({{0, -3}, {1, 3}}, {{0, -12}, {1, -80}})}, 2);
  call.attributes.push_back(Attr("post_transform", std::string("LOGISTIC")));
  const Tensor y = RunTensorOp(std::move(call));
  const double scores[] = {-3, 3, -12, -80};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_FLOAT_EQ(y.data<float>()[i], static_cast<float>(1 / (1 + std::exp(-scores[i]))));
  }
}

TEST(TreeEnsembleRegressorTest, TakesDoubleTensors) {
  OpCall call{"TreeEnsembleRegressor", 3, {Tensor::Of<double>({1, 1}, {1.0 + 1e-12})}};
  call.domain = "ai.onnx.ml";
  call.attributes = AttributesOf({Stump({{0, 1}}, {{0, 2}})}, "target");
  std::erase_if(call.attributes, [](const Attribute& a) {
    return a.name == "nodes_values" || a.name == "target_weights";
  });
  call.attributes.push_back(
      Attr("nodes_values_as_tensor", Tensor::Of<double>({3}, {1.0, 0.0, 0.0})));
  call.attributes.push_back(Attr("target_weights_as_tensor", Tensor::Of<double>({2}, {1, 2})));
  EXPECT_EQ(ElementsOf<float>(RunTensorOp(std::move(call))), std::vector<float>{2});
}

struct Classified {
  Ints64 labels;
  std::vector<float> scores;
};

Classified Classify(const std::vector<ReferenceTree>& trees, Ints64 labels,
                    const std::string& transform, std::vector<float> base = {}) {
  OpCall call{"TreeEnsembleClassifier", 3, {kTwoRows}, AttributesOf(trees, "class"), 2};
  call.domain = "ai.onnx.ml";
  call.attributes.push_back(Attr("classlabels_int64s", std::move(labels)));
  call.attributes.push_back(Attr("post_transform", transform));
  if (!base.empty()) call.attributes.push_back(Attr("base_values", std::move(base)));
  const auto outputs = RunOp(std::move(call));
  if (!outputs) {
    ADD_FAILURE() << outputs.error().message();
    return {};
  }
  return {ElementsOf<int64_t>((*outputs)[0].tensor()), ElementsOf<float>((*outputs)[1].tensor())};
}

void ExpectNear(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-6f) << i;
}

// The expected values are what onnxruntime 1.31 gives for the same ensembles.
TEST(TreeEnsembleClassifierTest, ComplementsALoneScore) {
  const auto positive = Classify({Stump({{0, 0.2}}, {{0, 0.7}})}, {10, 11}, "NONE");
  EXPECT_EQ(positive.labels, (Ints64{10, 11}));
  ExpectNear(positive.scores, {0.8f, 0.2f, 0.3f, 0.7f});
  const auto logistic = Classify({Stump({{0, 0.2}}, {{0, 0.7}})}, {10, 11}, "LOGISTIC", {0.1f});
  ExpectNear(logistic.scores, {0.4255574f, 0.5744425f, 0.3100255f, 0.6899745f});
  const auto mixed = Classify({Stump({{0, -0.4}}, {{0, 0.7}})}, {10, 11}, "NONE");
  EXPECT_EQ(mixed.labels, (Ints64{10, 11}));
  ExpectNear(mixed.scores, {0.4f, -0.4f, -0.7f, 0.7f});
  const auto second = Classify({Stump({{1, -0.4}}, {{1, 0.7}})}, {10, 11}, "SOFTMAX");
  EXPECT_EQ(second.labels, (Ints64{10, 11}));
  ExpectNear(second.scores, {0.5986876f, 0.4013123f, 0.3318122f, 0.6681877f});
}

TEST(TreeEnsembleClassifierTest, ChoosesTheLargestOfSeveralScores) {
  const std::vector<ReferenceTree> trees = {Stump({{0, 0.2}}, {{0, 0.7}}),
                                            Stump({{1, -0.1}}, {{1, 0.8}}),
                                            Stump({{2, -0.4}}, {{2, 0.9}})};
  const auto none = Classify(trees, {10, 11, 12}, "NONE", {0.1f, 0.1f, 0.1f});
  EXPECT_EQ(none.labels, (Ints64{10, 12}));
  ExpectNear(none.scores, {0.3f, 0.0f, -0.3f, 0.8f, 0.9f, 1.0f});
  const auto zero = Classify(trees, {10, 11, 12}, "SOFTMAX_ZERO", {0.1f, 0.1f, 0.1f});
  ExpectNear(zero.scores, {0.6456563f, 0.0f, 0.3543437f, 0.3006096f, 0.3322250f, 0.3671654f});
  const auto two = Classify({Stump({{0, 0.7}, {1, 0.3}}, {{0, 0.3}, {1, 0.7}})}, {4, 5}, "NONE");
  EXPECT_EQ(two.labels, (Ints64{4, 5}));
  ExpectNear(two.scores, {0.7f, 0.3f, 0.3f, 0.7f});
}

TEST(TreeEnsembleRegressorTest, RefusesBrokenTrees) {
  const auto error = [](ReferenceTree tree, int64_t targets = 1, Tensor x = kTwoRows) {
    return ErrorOf(RegressorCall(std::move(x), {std::move(tree)}, targets));
  };
  ReferenceTree tree = Stump({{0, 1}}, {{0, 2}});
  tree[0].on_false = 9;
  EXPECT_EQ(error(tree), "node 9 of tree 1 does not exist");
  tree[0].on_false = 0;
  EXPECT_EQ(error(tree), "node 0 of tree 1 is below itself");
  tree = Stump({{0, 1}}, {{5, 2}});
  EXPECT_EQ(error(tree), "weight 1: expected a class or target in [0, 0], got 5");
  tree = Stump({{0, 1}}, {{0, 2}});
  tree[0].feature = -1;
  EXPECT_EQ(error(tree), "node 0 of tree 1: feature -1 is out of range");
  tree[0].feature = 3;
  EXPECT_EQ(error(tree), "input 0: expected at least 4 features, got shape [2, 1]");
  tree[0].feature = 0;
  tree[0].mode = "BRANCH";
  EXPECT_EQ(error(tree), "attribute 'nodes_modes': unknown mode 'BRANCH'");
  EXPECT_EQ(error(Stump({{0, 1}}, {{0, 2}}), 0),
            "attribute 'n_targets': expected at least 1, got 0");
  OpCall call = RegressorCall(kTwoRows, {Stump({{0, 1}}, {{0, 2}})}, 1);
  std::erase_if(call.attributes, [](const Attribute& a) { return a.name == "nodes_modes"; });
  EXPECT_EQ(ErrorOf(std::move(call)), "expected the nodes_ attributes to have 3 entries each");
}

}  // namespace
}  // namespace tenon
