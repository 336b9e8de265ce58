#include "ops/fusion/fusion.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/scalar.h"
#include "ops/conv/nchwc.h"
#include "ops/conv/weights_scale.h"
#include "ops/framework/widen_narrow.h"
#include "ops/fusion_cases.h"

namespace tenon {
namespace {

using B = GraphBuilder;
using Ints = std::vector<int64_t>;

// --- Activations ---

ValueId OnePlusErf(B& b, ValueId x) {
  return b.Op("Add", {b.Op("Erf", {b.Op("Div", {x, b.Scalar(1.41421354F)})}), b.Scalar(1)});
}
ValueId OnePlusTanh(B& b, ValueId x, float cubic = 0.044715F) {
  const ValueId cube = b.Op("Pow", {x, b.Scalar(3)});
  const ValueId sum = b.Op("Add", {x, b.Op("Mul", {b.Scalar(cubic), cube})});
  return b.Op("Add", {b.Scalar(1), b.Op("Tanh", {b.Op("Mul", {b.Scalar(0.797884583F), sum})})});
}
ValueId Relu6(B& b, ValueId x, float low = 0, float high = 6) {
  return b.Op("Clip", {b.Op("Add", {x, b.Scalar(3)}), b.Scalar(low), b.Scalar(high)});
}

TEST(ActivationFusionTest, EachRuleFiresWhereItMayAndNowhereElse) {
  const RuleCase cases[] = {
      {"gelu", true,
       [](B& b, ValueId x) {
         return b.Op("Mul", {b.Op("Mul", {x, OnePlusErf(b, x)}), b.Scalar(0.5)});
       }},
      {"gelu", true,
       [](B& b, ValueId x) {
         return b.Op("Mul", {b.Op("Mul", {x, b.Scalar(0.5)}), OnePlusErf(b, x)});
       }},
      {"gelu", true,
       [](B& b, ValueId x) {
         return b.Op("Mul", {x, b.Op("Mul", {b.Scalar(0.5), OnePlusErf(b, x)})});
       }},
      {"gelu", true,
       [](B& b, ValueId x) {
         const ValueId erf = b.Op("Erf", {b.Op("Mul", {x, b.Scalar(0.707106769F)})});
         return b.Op("Mul", {b.Op("Mul", {x, b.Op("Add", {b.Scalar(1), erf})}), b.Scalar(0.5)});
       }},
      {"gelu", false,
       [](B& b, ValueId x) {
         return b.Op("Mul", {b.Op("Mul", {x, OnePlusErf(b, x)}), b.Scalar(0.25)});
       }},
      {"gelu", false,
       [](B& b, ValueId x) {
         return b.Op("Mul", {b.Op("Mul", {x, OnePlusErf(b, b.Op("Neg", {x}))}), b.Scalar(0.5)});
       }},
      {"gelu tanh", true,
       [](B& b, ValueId x) {
         return b.Op("Mul", {b.Op("Mul", {b.Scalar(0.5), x}), OnePlusTanh(b, x)});
       }},
      {"gelu tanh", true,
       [](B& b, ValueId x) {
         const ValueId square = b.Op("Mul", {x, x});
         const ValueId factor =
             b.Op("Add", {b.Scalar(1), b.Op("Mul", {b.Scalar(0.044715F), square})});
         const ValueId inner = b.Op("Mul", {b.Op("Mul", {x, b.Scalar(0.797884583F)}), factor});
         const ValueId sum = b.Op("Add", {b.Scalar(1), b.Op("Tanh", {inner})});
         return b.Op("Mul", {x, b.Op("Mul", {b.Scalar(0.5), sum})});
       }},
      {"gelu tanh", false,
       [](B& b, ValueId x) {
         return b.Op("Mul", {b.Op("Mul", {b.Scalar(0.5), x}), OnePlusTanh(b, x, 0.05F)});
       }},
      {"swish", true,
       [](B& b, ValueId x) {
         return b.Op("Mul", {x, b.Op("Sigmoid", {x})});
       }},
      {"swish", true,
       [](B& b, ValueId x) {
         return b.Op("Mul", {b.Op("Sigmoid", {b.Op("Mul", {x, b.Scalar(1.702F)})}), x});
       }},
      {"swish", false,
       [](B& b, ValueId x) {
         return b.Op("Mul", {b.Op("Neg", {x}), b.Op("Sigmoid", {x})});
       }},
      {"mish", true,
       [](B& b, ValueId x) {
         return b.Op("Mul", {x, b.Op("Tanh", {b.Op("Softplus", {x})})});
       }},
      {"mish", false,
       [](B& b, ValueId x) {
         return b.Op("Mul", {x, b.Op("Tanh", {b.Op("Exp", {x})})});
       }},
      {"hard swish", true,
       [](B& b, ValueId x) {
         return b.Op("Div", {b.Op("Mul", {x, Relu6(b, x)}), b.Scalar(6)});
       }},
      {"hard swish", true,
       [](B& b, ValueId x) {
         return b.Op("Mul", {b.Op("Mul", {Relu6(b, x), x}), b.Scalar(0.166666672F)});
       }},
      {"hard swish", false,
       [](B& b, ValueId x) {
         return b.Op("Div", {b.Op("Mul", {x, Relu6(b, x, 0, 5)}), b.Scalar(6)});
       }},
      {"hard swish of hard sigmoid", true,
       [](B& b, ValueId x) {
         return b.Op("Mul",
                     {x, b.Op("HardSigmoid", {x}, MakeAttributes(Attr("alpha", 0.166666672F)))});
       }},
      {"hard swish of hard sigmoid", false,
       [](B& b, ValueId x) {
         return b.Op("Mul", {x, b.Op("HardSigmoid", {x})});
       }},
      {"hard sigmoid", true,
       [](B& b, ValueId x) {
         return b.Op("Div", {Relu6(b, x), b.Scalar(6)});
       }},
      {"hard sigmoid", false,
       [](B& b, ValueId x) {
         return b.Op("Div", {Relu6(b, x, -1), b.Scalar(6)});
       }},
  };
  CheckRules(RulesOf(ActivationFusions()), cases, InferForFusions);
}

TEST(ActivationFusionTest, NewNodesSayWhatTheyCompute) {
  B b;
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{Dim(2), Dim(3)});
  b.Output(b.Op("Mul", {x, b.Op("Sigmoid", {b.Op("Mul", {x, b.Scalar(1.5)})})}));
  b.Output(b.Op("Mul", {b.Op("Mul", {b.Scalar(0.5), x}), OnePlusTanh(b, x)}));
  const std::string text = FusedText(*b.graph);
  EXPECT_NE(text.find("Swish<alpha=1.5>(x)"), std::string::npos) << text;
  EXPECT_NE(text.find("Gelu<approximate=tanh>(x)"), std::string::npos) << text;
}

// --- Normalizations ---

ValueId MeanOf(B& b, ValueId x, Ints axes = {-1}) { return b.Op("ReduceMean", {x, b.Ints(axes)}); }
ValueId Vector(B& b, int64_t n) {
  return b.Constant(Tensor::Of<float>({n}, std::vector<float>(static_cast<size_t>(n), 1)));
}
ValueId DeviationOf(B& b, ValueId variance) {
  return b.Op("Sqrt", {b.Op("Add", {variance, b.Scalar(1e-5F)})});
}
// (x - mean) / sqrt(variance + epsilon)
ValueId Normalized(B& b, ValueId x, Ints axes = {-1}, Ints variance_axes = {-1}) {
  const ValueId d = b.Op("Sub", {x, MeanOf(b, x, axes)});
  const ValueId variance = MeanOf(b, b.Op("Pow", {d, b.Scalar(2)}), variance_axes);
  return b.Op("Div", {d, DeviationOf(b, variance)});
}
// As TensorFlow writes it.
ValueId OneFactor(B& b, ValueId x, int64_t n) {
  const ValueId mean = MeanOf(b, x);
  const ValueId d = b.Op("Sub", {x, mean});
  const ValueId deviation = DeviationOf(b, MeanOf(b, b.Op("Mul", {d, d})));
  const ValueId factor = b.Op("Mul", {b.Op("Reciprocal", {deviation}), Vector(b, n)});
  const ValueId offset = b.Op("Sub", {Vector(b, n), b.Op("Mul", {mean, factor})});
  return b.Op("Add", {b.Op("Mul", {x, factor}), offset});
}
ValueId Rms(B& b, ValueId x, int64_t n) {
  const ValueId deviation = DeviationOf(b, MeanOf(b, b.Op("Pow", {x, b.Scalar(2)})));
  return b.Op("Mul", {Vector(b, n), b.Op("Mul", {x, b.Op("Reciprocal", {deviation})})});
}
ValueId SkipNorm(B& b, ValueId x, SymbolicShape input, SymbolicShape skip) {
  (void)x;
  const ValueId sum = b.Op("Add", {b.Input("input", DataType::kFloat, std::move(input)),
                                   b.Input("skip", DataType::kFloat, std::move(skip))});
  return b.Op("LayerNormalization", {sum, Vector(b, 4), Vector(b, 4)});
}

TEST(NormalizationFusionTest, EachRuleFiresWhereItMayAndNowhereElse) {
  const SymbolicShape tokens = {Dim::Symbol("n"), Dim::Symbol("s"), Dim(4)};
  const RuleCase cases[] = {
      {"layer normalization", true,
       [](B& b, ValueId x) {
         return b.Op("Mul", {Normalized(b, x), Vector(b, 3)});
       }},
      {"layer normalization", true,
       [](B& b, ValueId x) {
         return b.Op("Mul", {Normalized(b, x, {0, 1}, {0, 1}),
                             b.Constant(Tensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6}))});
       }},
      {"layer normalization", false,
       [](B& b, ValueId x) {
         return b.Op("Mul", {Normalized(b, x), Vector(b, 1)});
       }},
      {"layer normalization", false,
       [](B& b, ValueId x) {
         return b.Op("Mul", {Normalized(b, x, {0}, {0}), Vector(b, 3)});
       }},
      {"layer normalization", false,
       [](B& b, ValueId x) {
         return b.Op("Mul", {Normalized(b, x, {-1}, {0, 1}), Vector(b, 3)});
       }},
      {"layer normalization with one factor", true,
       [](B& b, ValueId x) { return OneFactor(b, x, 3); }},
      {"layer normalization with one factor", false,
       [](B& b, ValueId x) { return OneFactor(b, x, 1); }},
      {"layer normalization bias", true,
       [](B& b, ValueId x) {
         return b.Op("Add", {b.Op("Mul", {Normalized(b, x), Vector(b, 3)}), Vector(b, 3)});
       }},
      {"layer normalization bias", false,
       [](B& b, ValueId x) {
         return b.Op("Add", {b.Op("Mul", {Normalized(b, x), Vector(b, 3)}), x});
       }},
      {"RMS normalization", true, [](B& b, ValueId x) { return Rms(b, x, 3); }},
      {"RMS normalization", false, [](B& b, ValueId x) { return Rms(b, x, 1); }},
      {"skip layer normalization", true,
       [=](B& b, ValueId x) { return SkipNorm(b, x, tokens, tokens); }},
      {"skip layer normalization", false,
       [=](B& b, ValueId x) { return SkipNorm(b, x, tokens, {Dim(4)}); }},
  };
  CheckRules(RulesOf(NormalizationFusions()), cases, InferForFusions);
}

TEST(NormalizationFusionTest, ABlockBecomesOneNode) {
  B b(13);
  const SymbolicShape tokens = {Dim::Symbol("n"), Dim(5), Dim(4)};
  const ValueId sum =
      b.Op("Add", {b.Input("a", DataType::kFloat, tokens), b.Input("b", DataType::kFloat, tokens)});
  const auto mean = [&](ValueId x) {
    return b.Op("ReduceMean", {x}, MakeAttributes(Attr("axes", Ints{2})));
  };
  const ValueId d = b.Op("Sub", {sum, mean(sum)});
  const ValueId variance = mean(b.Op("Pow", {d, b.Scalar(2)}));
  const ValueId norm = b.Op("Div", {d, DeviationOf(b, variance)});
  const ValueId scale = b.Input("scale", DataType::kFloat, SymbolicShape{Dim(4)});
  const ValueId bias = b.Input("bias", DataType::kFloat, SymbolicShape{Dim(4)});
  b.Output(b.Op("Add", {b.Op("Mul", {norm, scale}), bias}));
  const std::string output = b.graph->outputs()[0].name;
  EXPECT_EQ(
      FusedText(*b.graph),
      Format("{0} = SkipLayerNormalization<epsilon=1e-05>(a, b, scale, bias)\nreturn {0}", output));
}

// --- Convolutions ---

ValueId Image(B& b, int64_t channels = 3, std::string name = "image") {
  return b.Input(std::move(name), DataType::kFloat,
                 SymbolicShape{Dim::Symbol("n"), Dim(channels), Dim(8), Dim(8)});
}
ValueId Weights(B& b) { return b.Constant(Tensor::Of<float>({3, 2, 1, 1}, {1, 2, 3, 4, 5, 6})); }
ValueId ConvOf(B& b, bool with_bias = false) {
  std::vector<ValueId> inputs = {Image(b, 2), Weights(b)};
  if (with_bias) inputs.push_back(b.Constant(Tensor::Of<float>({3}, {7, 8, 9})));
  return b.Op("Conv", inputs);
}
ValueId NormOf(B& b, ValueId x, int64_t training = 0) {
  const auto vector = [&](std::initializer_list<float> values) {
    return b.Constant(Tensor::Of<float>({3}, values));
  };
  return b.Op("BatchNormalization",
              {x, vector({1, 2, 3}), vector({4, 5, 6}), vector({7, 8, 9}), vector({1, 4, 9})},
              MakeAttributes(Attr("training_mode", training), Attr("epsilon", 0.0F)));
}
ValueId Channels(B& b, Shape shape = {3, 1, 1}) {
  return b.Constant(Tensor::Of<float>(std::move(shape), {2, 3, 4}));
}

TEST(ConvFusionTest, EachFoldingFiresWhereItMayAndNowhereElse) {
  const RuleCase cases[] = {
      {"conv batch normalization", true, [](B& b, ValueId) { return NormOf(b, ConvOf(b)); }},
      {"conv batch normalization", true, [](B& b, ValueId) { return NormOf(b, ConvOf(b, true)); }},
      {"conv batch normalization", false, [](B& b, ValueId) { return NormOf(b, ConvOf(b), 1); }},
      {"conv batch normalization", false,
       [](B& b, ValueId) {
         const ValueId weights =
             b.Input("w", DataType::kFloat, SymbolicShape{Dim(3), Dim(2), Dim(1), Dim(1)});
         return NormOf(b, b.Op("Conv", {Image(b, 2), weights}));
       }},
      {"conv scale", true,
       [](B& b, ValueId) {
         return b.Op("Mul", {ConvOf(b), Channels(b)});
       }},
      {"conv scale", true,
       [](B& b, ValueId) {
         return b.Op("Mul", {ConvOf(b), b.Scalar(2)});
       }},
      {"conv scale", false,
       [](B& b, ValueId) {
         return b.Op("Mul", {ConvOf(b), b.Constant(Tensor::Of<float>({1, 1, 1, 1, 1}, {2}))});
       }},
      {"conv shift", true,
       [](B& b, ValueId) {
         return b.Op("Add", {ConvOf(b), Channels(b, {1, 3, 1, 1})});
       }},
      {"conv shift", false,
       [](B& b, ValueId) {
         return b.Op("Add",
                     {ConvOf(b), b.Constant(Tensor::Of<float>({8}, {1, 2, 3, 4, 5, 6, 7, 8}))});
       }},
  };
  CheckRules(RulesOf(ConvFoldings()), cases, InferForFusions);
}

TEST(ConvFusionTest, TransposedConvolutionsOfStride1AreTurned) {
  const auto transposed = [](B& b, std::vector<Attribute> attributes) {
    return b.Op("ConvTranspose", {Image(b, 3), Weights(b)}, std::move(attributes));
  };
  constexpr const char* kRule = "transposed conv of stride 1";
  const RuleCase cases[] = {
      {kRule, true, [&](B& b, ValueId) { return transposed(b, {}); }},
      {kRule, true,
       [&](B& b, ValueId) {
         return transposed(b, MakeAttributes(Attr("group", int64_t{3}), Attr("strides", Ints{1, 1}),
                                             Attr("output_padding", Ints{0, 0})));
       }},
      {kRule, false,
       [&](B& b, ValueId) {
         return transposed(b, MakeAttributes(Attr("strides", Ints{1, 2})));
       }},
      {kRule, false,
       [&](B& b, ValueId) {
         return transposed(b, MakeAttributes(Attr("pads", Ints{0, 1, 0, 0})));
       }},
      {kRule, false,
       [&](B& b, ValueId) {
         return transposed(b, MakeAttributes(Attr("output_padding", Ints{0, 1})));
       }},
      {kRule, false,
       [&](B& b, ValueId) {
         return transposed(b, MakeAttributes(Attr("dilations", Ints{1, INT64_MAX})));
       }},
      {kRule, false,
       [&](B& b, ValueId) {
         return transposed(b, MakeAttributes(Attr("pads", Ints{INT64_MIN, 0, 0, 0})));
       }},
      {kRule, false,
       [&](B& b, ValueId) {
         const ValueId weights =
             b.Input("w", DataType::kFloat, SymbolicShape{Dim(3), Dim(2), Dim(1), Dim(1)});
         return b.Op("ConvTranspose", {Image(b, 3), weights});
       }},
  };
  CheckRules(RulesOf(ConvTransposeRewrites()), cases, InferForFusions);
}

TEST(ConvFusionTest, EachRuleFiresWhereItMayAndNowhereElse) {
  const RuleCase cases[] = {
      {"conv residual", true,
       [](B& b, ValueId) {
         return b.Op("Add", {Image(b, 3, "z"), ConvOf(b)});
       }},
      {"conv residual", false,
       [](B& b, ValueId) {
         return b.Op("Add", {Image(b, 1, "z"), ConvOf(b)});
       }},
      {"conv activation", true, [](B& b, ValueId) { return b.Op("Relu", {ConvOf(b)}); }},
      {"conv activation", true,
       [](B& b, ValueId) {
         return b.Op("Clip", {ConvOf(b), ValueId::kNone, b.Scalar(6)});
       }},
      {"conv activation", false,
       [](B& b, ValueId) {
         return b.Op("Clip", {ConvOf(b), b.Input("low")});
       }},
      {"conv activation", true,
       [](B& b, ValueId) { return b.Op("QuickGelu", {ConvOf(b)}, {}, "com.microsoft"); }},
      {"conv activation", false, [](B& b, ValueId) { return b.Op("Exp", {ConvOf(b)}); }},
  };
  CheckRules(RulesOf(ConvFusions()), cases, InferForFusions);
}

TEST(ConvFusionTest, WhatFollowsABlockedConvolutionIsTakenIn) {
  const auto blocked = [](B& b, std::string name = "image") {
    return b.Input(std::move(name), DataType::kFloat,
                   SymbolicShape{Dim::Symbol("n"), Dim(1), Dim(8), Dim(8), Dim(16)});
  };
  const auto conv = [blocked](B& b, bool has_activation = false) {
    const ValueId weights = b.Constant(Tensor::Of<float>({3, 1, 1, 1}, {1, 2, 3}));
    std::vector<Attribute> attributes = MakeAttributes(Attr("group", int64_t{3}));
    if (has_activation) attributes.emplace_back("activation", std::string("Relu"));
    const ValueId y =
        b.Op("NchwcConv", {blocked(b), weights}, std::move(attributes), std::string(kNchwcDomain));
    b.graph->value(y).type =
        b.graph->value(b.graph->node(b.graph->value(y).producer).inputs[0]).type;
    return y;
  };
  const RuleCase cases[] = {
      {"conv residual", true,
       [&](B& b, ValueId) {
         return b.Op("Add", {conv(b), blocked(b, "z")});
       }},
      {"conv residual", false,
       [&](B& b, ValueId) {
         return b.Op("Add", {conv(b, true), blocked(b, "z")});
       }},
      {"conv activation", true, [&](B& b, ValueId) { return b.Op("Sigmoid", {conv(b)}); }},
      {"conv activation", true,
       [&](B& b, ValueId) { return b.Op("QuickGelu", {conv(b)}, {}, "com.microsoft"); }},
      {"conv activation", false, [&](B& b, ValueId) { return b.Op("Exp", {conv(b)}); }},
      {"conv activation", false, [&](B& b, ValueId) { return b.Op("Relu", {conv(b, true)}); }},
  };
  CheckRules(RulesOf(NchwcConvFusions()), cases, InferForFusions);
}

// A convolution of 3 channels with one kernel size, stride, pad and dilation on both axes.
ValueId SquareConv(B& b, ValueId x, int64_t kernel, int64_t pad, int64_t stride = 1,
                   int64_t dilation = 1, int64_t group = 1) {
  const Shape shape({3, 3 / group, kernel, kernel});
  const std::vector<float> ones(static_cast<size_t>(9 / group * kernel * kernel), 1);
  const ValueId weights = b.Constant(Tensor::Of<float>(shape, ones));
  const auto both = [](int64_t n) { return std::vector<int64_t>{n, n}; };
  return b.Op("Conv", {x, weights},
              MakeAttributes(Attr("strides", both(stride)), Attr("dilations", both(dilation)),
                             Attr("pads", std::vector<int64_t>(4, pad)), Attr("group", group)));
}

TEST(ConvFusionTest, SumsOfConvolutionsOfOneValueAreOneConvolution) {
  using Terms = std::function<std::pair<ValueId, ValueId>(B&, ValueId)>;
  const auto sum = [](bool fires, Terms terms) {
    return RuleCase{"conv sum", fires, [terms](B& b, ValueId) {
                      const auto [left, right] = terms(b, Image(b));
                      return b.Op("Add", {left, right});
                    }};
  };
  const RuleCase cases[] = {
      sum(true,
          [](B& b, ValueId x) {
            return std::pair(SquareConv(b, x, 1, 0), SquareConv(b, x, 3, 1));
          }),
      sum(true,
          [](B& b, ValueId x) {
            return std::pair(SquareConv(b, x, 3, 1, 2), SquareConv(b, x, 1, 0, 2));
          }),
      sum(true,
          [](B& b, ValueId x) { return std::pair(NormOf(b, x), SquareConv(b, x, 3, 1, 1, 1, 3)); }),
      sum(true,
          [](B& b, ValueId x) {
            return std::pair(SquareConv(b, x, 3, 2, 1, 2), SquareConv(b, x, 5, 4, 1, 2));
          }),
      sum(false,
          [](B& b, ValueId x) {  // of two values
            return std::pair(SquareConv(b, x, 3, 1), SquareConv(b, Image(b, 3, "other"), 3, 1));
          }),
      sum(false,
          [](B& b, ValueId x) {  // taps elsewhere
            return std::pair(SquareConv(b, x, 3, 1), SquareConv(b, x, 3, 2, 1, 2));
          }),
      sum(false,
          [](B& b, ValueId x) {  // sizes differ
            return std::pair(SquareConv(b, x, 3, 1), SquareConv(b, x, 1, 0, 8));
          }),
      sum(false,
          [](B& b, ValueId x) {  // groups differ
            return std::pair(SquareConv(b, x, 3, 1), SquareConv(b, x, 1, 0, 1, 1, 3));
          }),
      sum(false,
          [](B& b, ValueId x) {  // used elsewhere
            const ValueId first = SquareConv(b, x, 3, 1);
            b.Output(first);
            return std::pair(first, SquareConv(b, x, 1, 0));
          }),
      sum(false,
          [](B& b, ValueId x) {  // computes statistics
            return std::pair(SquareConv(b, x, 3, 1), NormOf(b, x, 1));
          }),
      sum(false,
          [](B& b, ValueId x) {  // another provider's
            const std::pair terms(SquareConv(b, x, 3, 1), SquareConv(b, x, 1, 0));
            for (const ValueId term : {terms.first, terms.second}) {
              b.graph->node(b.graph->value(term).producer).provider = 7;
            }
            return terms;
          }),
      sum(false,
          [](B& b, ValueId x) {  // strides
            return std::pair(SquareConv(b, x, 3, 1, 2), NormOf(b, x));
          }),
  };
  CheckRules(RulesOf(ConvSumFusions()), cases, InferForFusions);
}

TEST(ConvFusionTest, FoldedWeightsComputeTheSame) {
  B b;
  b.Output(b.Op("Mul", {b.Op("Add", {NormOf(b, ConvOf(b, true)), Channels(b)}), Channels(b)}));
  FusedText(*b.graph);
  ASSERT_EQ(b.graph->node_count(), 1u);
  const Node& conv = b.graph->node(b.graph->value(b.graph->outputs()[0].value).producer);
  EXPECT_EQ(conv.op_type, "Conv");
  ASSERT_NE(conv.FindAttribute(kWeightsScale), nullptr);
  EXPECT_EQ(b.graph->ConstantOf(conv.inputs[1])->values<float>()[2], 3) << "scaled too early";
  ASSERT_TRUE(FoldWeightScales(*b.graph).ok());
  EXPECT_EQ(conv.FindAttribute(kWeightsScale), nullptr);
  const auto weights = b.graph->ConstantOf(conv.inputs[1])->values<float>();
  const auto bias = b.graph->ConstantOf(conv.inputs[2])->values<float>();
  const double gamma[] = {1, 2, 3}, beta[] = {4, 5, 6}, mean[] = {7, 8, 9}, var[] = {1, 4, 9};
  const double c[] = {2, 3, 4}, conv_bias[] = {7, 8, 9};
  for (size_t i = 0; i < 3; ++i) {
    const double scale = gamma[i] / std::sqrt(var[i]) * c[i];
    EXPECT_FLOAT_EQ(weights[2 * i], static_cast<float>((2 * i + 1) * scale));
    EXPECT_FLOAT_EQ(weights[2 * i + 1], static_cast<float>((2 * i + 2) * scale));
    const double normalized = (conv_bias[i] - mean[i]) * gamma[i] / std::sqrt(var[i]) + beta[i];
    EXPECT_NEAR(bias[i], (normalized + c[i]) * c[i], 1e-5);
  }
}

TEST(ConvFusionTest, AResidualBlockBecomesOneNode) {
  B b;
  const ValueId z = Image(b, 3, "z");
  const ValueId sum = b.Op("Add", {NormOf(b, ConvOf(b)), z});
  b.Output(b.Op("LeakyRelu", {sum}, MakeAttributes(Attr("alpha", 0.25F))));
  const std::string text = FusedText(*b.graph);
  ASSERT_EQ(b.graph->node_count(), 1u) << text;
  const Node& conv = b.graph->node(b.graph->value(b.graph->outputs()[0].value).producer);
  EXPECT_EQ(conv.domain, "com.microsoft");
  EXPECT_EQ(conv.inputs[3], z);
  EXPECT_NE(text.find("FusedConv<activation=LeakyRelu, activation_params={0.25}>"),
            std::string::npos)
      << text;
}

TEST(ConvFusionTest, NothingIsAddedAfterAnActivation) {
  B b;
  b.Output(b.Op("Add", {b.Op("Relu", {ConvOf(b)}), Image(b, 3, "z")}));
  FusedText(*b.graph);
  EXPECT_EQ(b.graph->node_count(), 2u);
}

// --- Matrix products ---

ValueId Matrix(B& b, std::string name, SymbolicShape shape) {
  return b.Input(std::move(name), DataType::kFloat, std::move(shape));
}
ValueId MatMulOf(B& b, ValueId x) { return b.Op("MatMul", {x, Matrix(b, "w", {Dim(3), Dim(4)})}); }
ValueId CastToFloat(B& b, ValueId x) {
  return b.Op("Cast", {x}, MakeAttributes(Attr("to", static_cast<int64_t>(DataType::kFloat))));
}
auto FromBfloat16() { return MakeAttributes(Attr(std::string(kFromBfloat16), int64_t{1})); }
auto Perm(Ints perm) { return MakeAttributes(Attr("perm", std::move(perm))); }

TEST(MatMulFusionTest, EachRuleFiresWhereItMayAndNowhereElse) {
  const RuleCase cases[] = {
      {"gemm", true,
       [](B& b, ValueId x) {
         return b.Op("Gemm", {x, Matrix(b, "w", {Dim(3), Dim(4)}), Vector(b, 4)});
       }},
      {"gemm", false,
       [](B& b, ValueId x) {
         return b.Op("Gemm", {x, Matrix(b, "w", {Dim(3), Dim(4)}), Vector(b, 4)},
                     MakeAttributes(Attr("beta", 2.0F)));
       }},
      {"gemm", false,
       [](B& b, ValueId x) {
         return b.Op("Gemm",
                     {x, Matrix(b, "w", {Dim(3), Dim(4)}), Matrix(b, "c", {Dim(2), Dim(1)})});
       }},
      {"matmul scale", true,
       [](B& b, ValueId x) {
         return b.Op("Div", {MatMulOf(b, x), b.Scalar(8)});
       }},
      {"matmul scale", false,
       [](B& b, ValueId x) {
         return b.Op("Div", {b.Scalar(8), MatMulOf(b, x)});
       }},
      {"scaled A", true,
       [](B& b, ValueId x) {
         return MatMulOf(b, b.Op("Mul", {x, b.Scalar(3)}));
       }},
      {"scaled A", false,
       [](B& b, ValueId x) {
         return MatMulOf(b, b.Op("Mul", {x, x}));
       }},
      {"scaled B", true,
       [](B& b, ValueId x) {
         const ValueId w = Matrix(b, "w", {Dim(3), Dim(4)});
         return b.Op("MatMul", {x, b.Op("Mul", {w, b.Scalar(3)})});
       }},
      {"scaled B", false,
       [](B& b, ValueId x) {
         const ValueId w = Matrix(b, "w", {Dim(3)});
         return b.Op("MatMul", {x, b.Op("Mul", {w, b.Scalar(3)})});
       }},
      {"transposed A", true,
       [](B& b, ValueId x) {
         const ValueId t = b.Op("Transpose", {x}, Perm({1, 0}));
         return b.Op("MatMul", {t, Matrix(b, "w", {Dim(2), Dim(4)})});
       }},
      {"transposed A", false, [](B& b, ValueId x) { return MatMulOf(b, x); }},
      {"transposed B", true,
       [](B& b, ValueId) {
         const ValueId q = Matrix(b, "q", {Dim(2), Dim(3), Dim(4)});
         const ValueId k = Matrix(b, "k", {Dim(2), Dim(5), Dim(4)});
         return b.Op("MatMul", {q, b.Op("Transpose", {k}, Perm({0, 2, 1}))});
       }},
      {"transposed B", false,
       [](B& b, ValueId) {
         const ValueId q = Matrix(b, "q", {Dim(2), Dim(3), Dim(4)});
         const ValueId k = Matrix(b, "k", {Dim(5), Dim(4), Dim(2)});
         return b.Op("MatMul", {q, b.Op("Transpose", {k}, Perm({2, 1, 0}))});
       }},
      {"narrow operand", true,
       [](B& b, ValueId x) {
         const ValueId w = b.Input("w", DataType::kBfloat16, SymbolicShape{Dim(3), Dim(4)});
         return b.Op("MatMul", {x, CastToFloat(b, w)}, FromBfloat16());
       }},
      {"narrow operand", true,
       [](B& b, ValueId x) {
         const ValueId w = b.Input("w", DataType::kBfloat16, SymbolicShape{Dim(4), Dim(3)});
         const ValueId wide = CastToFloat(b, w);
         b.Output(wide);
         return b.Op("Gemm", {x, b.Op("Transpose", {wide}, Perm({1, 0}))}, FromBfloat16());
       }},
      {"narrow operand", false,  // whose other operand need not be rounded
       [](B& b, ValueId x) {
         const ValueId w = b.Input("w", DataType::kBfloat16, SymbolicShape{Dim(3), Dim(4)});
         return b.Op("MatMul", {x, CastToFloat(b, w)});
       }},
      {"narrow operand", false,
       [](B& b, ValueId x) {
         const ValueId w = b.Input("w", DataType::kFloat16, SymbolicShape{Dim(3), Dim(4)});
         return b.Op("MatMul", {x, CastToFloat(b, w)}, FromBfloat16());
       }},
      {"matmul bias", true,
       [](B& b, ValueId x) {
         return b.Op("Add", {Vector(b, 4), MatMulOf(b, x)});
       }},
      {"matmul bias", false,
       [](B& b, ValueId x) {
         return b.Op("Add", {Matrix(b, "c", {Dim(2), Dim(1)}), MatMulOf(b, x)});
       }},
      {"matmul bias", false,  // which makes the result wider than the product
       [](B& b, ValueId x) {
         const ValueId column = b.Op("MatMul", {x, Matrix(b, "w", {Dim(3), Dim(1)})});
         return b.Op("Add", {column, Vector(b, 4)});
       }},
      {"matmul bias", false,  // which gives it another axis
       [](B& b, ValueId x) {
         const ValueId bias = b.Constant(Tensor::Of<float>({1, 1, 4}, {1, 2, 3, 4}));
         return b.Op("Add", {MatMulOf(b, x), bias});
       }},
      {"matmul residual", true,
       [](B& b, ValueId x) {
         return b.Op("Add", {Matrix(b, "c", {Dim(2), Dim(4)}), MatMulOf(b, x)});
       }},
      {"matmul residual", false,
       [](B& b, ValueId x) {
         return b.Op("Add", {Matrix(b, "c", {Dim(7), Dim(2), Dim(4)}), MatMulOf(b, x)});
       }},
      {"matmul activation", true, [](B& b, ValueId x) { return b.Op("Tanh", {MatMulOf(b, x)}); }},
      {"matmul activation", false, [](B& b, ValueId x) { return b.Op("Exp", {MatMulOf(b, x)}); }},
  };
  CheckRules(RulesOf(MatMulFusions()), cases, InferForFusions);
}

TEST(MatMulFusionTest, AFeedForwardLayerBecomesOneNodePerProduct) {
  B b;
  const SymbolicShape tokens = {Dim::Symbol("n"), Dim::Symbol("s"), Dim(4)};
  const ValueId x = Matrix(b, "x", tokens);
  const ValueId up = b.Op("Add", {b.Op("MatMul", {x, Matrix(b, "up", {Dim(4), Dim(16)})}),
                                  Matrix(b, "up_bias", {Dim(16)})});
  const ValueId gelu = b.Op("Mul", {b.Op("Mul", {up, OnePlusErf(b, up)}), b.Scalar(0.5)});
  const ValueId down = b.Op("MatMul", {gelu, Matrix(b, "down", {Dim(16), Dim(4)})});
  b.Output(b.Op("Add", {b.Op("Add", {Matrix(b, "down_bias", {Dim(4)}), down}), x}));
  const std::string hidden = b.graph->value(gelu).name;
  const std::string output = b.graph->outputs()[0].name;
  EXPECT_EQ(FusedText(*b.graph), Format("{1} = FusedMatMul<activation=Gelu>(x, up, up_bias)\n"
                                        "{0} = FusedMatMul({1}, down, down_bias, x)\nreturn {0}",
                                        output, hidden));
}

TEST(MatMulFusionTest, GemmKeepsItsAttributesAndFlattensTheBias) {
  B b;
  const ValueId x = Matrix(b, "x", {Dim(3), Dim(2)});
  const ValueId bias = b.Constant(Tensor::Of<float>({1, 4}, {1, 2, 3, 4}));
  b.Output(b.Op("Relu", {b.Op("Gemm", {x, Matrix(b, "w", {Dim(3), Dim(4)}), bias},
                              MakeAttributes(Attr("alpha", 0.5F), Attr("transA", int64_t{1})))}));
  const std::string output = b.graph->outputs()[0].name;
  EXPECT_EQ(FusedText(*b.graph),
            Format("{0} = FusedMatMul<alpha=0.5, transA=1, activation=Relu>(x, w, {{1, 2, 3, 4}})\n"
                   "return {0}",
                   output));
}

// --- Attention ---

struct AttentionParts {
  SymbolicShape mask = {Dim::Symbol("n"), Dim(1), Dim(1), Dim::Symbol("s")};
  Ints key_permutation = {0, 1, 3, 2};
  int64_t axis = -1;
  Dim key_heads = Dim(2);
  // As PyTorch exports it: keys are exchanged with batch and heads as one axis, and rows of weights
  // that are no numbers become this one.
  std::optional<float> unseen = {};
  Ints flat_permutation = {0, 2, 1};
};

ValueId SwappedFlat(B& b, ValueId k, const AttentionParts& parts) {
  const Dim s = Dim::Symbol("s"), many = Dim::Symbol("n") * Dim(2);
  const ValueId flat =
      b.Shaped(b.Op("Reshape", {k, b.Input("flat_shape", DataType::kInt64)}), {many, s, Dim(4)});
  const ValueId swapped = b.Op("Transpose", {flat}, Perm(parts.flat_permutation));
  return b.Shaped(b.Op("Reshape", {swapped, b.Input("keys_shape", DataType::kInt64)}),
                  {Dim::Symbol("n"), Dim(2), Dim(4), s});
}

ValueId AttentionOf(B& b, const AttentionParts& parts) {
  const Dim n = Dim::Symbol("n"), s = Dim::Symbol("s");
  const ValueId q = Matrix(b, "q", {n, Dim(2), s, Dim(4)});
  const bool heads_first = parts.key_permutation[1] == 1;
  const ValueId k = Matrix(b, "k",
                           heads_first ? SymbolicShape{n, parts.key_heads, s, Dim(4)}
                                       : SymbolicShape{n, s, parts.key_heads, Dim(4)});
  const ValueId v = Matrix(b, "v", {n, Dim(2), s, Dim(4)});
  const ValueId transposed =
      parts.unseen ? SwappedFlat(b, k, parts) : b.Op("Transpose", {k}, Perm(parts.key_permutation));
  const ValueId scores = b.Op("Mul", {b.Op("MatMul", {q, transposed}), b.Scalar(0.5)});
  const ValueId masked = b.Op("Add", {scores, Matrix(b, "mask", parts.mask)});
  ValueId weights = b.Op("Softmax", {masked}, MakeAttributes(Attr("axis", parts.axis)));
  if (parts.unseen) {
    weights = b.Op("Where", {b.Op("IsNaN", {weights}), b.Scalar(*parts.unseen), weights});
  }
  return b.Op("MatMul", {weights, v});
}

// What each of a few heads of keys and values becomes for those of queries.
struct Repeats {
  // [batch, 2 heads, 1, length, size] and its third axis repeated, unless said.
  SymbolicShape group = {Dim::Symbol("n"), Dim(2), Dim(1), Dim::Symbol("s"), Dim(4)};
  SymbolicShape repeat = {Dim::Symbol("n"), Dim(2), Dim(3), Dim::Symbol("s"), Dim(4)};
  SymbolicShape joined = {Dim::Symbol("n"), Dim(6), Dim::Symbol("s"), Dim(4)};
  bool repeats_values = true;
  bool is_flat = false;
  Ints key_permutation = {0, 1, 3, 2};

  ValueId Repeat(B& b, ValueId x) const {
    const ValueId grouped = b.Shaped(b.Op("Unsqueeze", {x, b.Ints({2})}), group);
    return b.Shaped(
        b.Op("Expand", {grouped, b.Input(b.graph->UnusedName("repeat"), DataType::kInt64)}),
        repeat);
  }
  ValueId Join(B& b, ValueId x) const {
    const ValueId repeated = Repeat(b, x);
    return b.Shaped(
        b.Op("Reshape", {repeated, b.Input(b.graph->UnusedName("joined"), DataType::kInt64)}),
        joined);
  }
};

ValueId SwappedKeys(B& b, ValueId k, const Repeats& repeats) {
  if (!repeats.is_flat) {
    return b.Op("Transpose", {repeats.Join(b, k)}, Perm(repeats.key_permutation));
  }
  const Dim many = Dim::Symbol("n") * Dim(6), s = Dim::Symbol("s");
  const ValueId flat = b.Op("Reshape", {repeats.Repeat(b, k), b.Input("flat", DataType::kInt64)});
  const ValueId swapped = b.Op("Transpose", {b.Shaped(flat, {many, s, Dim(4)})}, Perm({0, 2, 1}));
  return b.Shaped(b.Op("Reshape", {swapped, b.Input("keys", DataType::kInt64)}),
                  {Dim::Symbol("n"), Dim(6), Dim(4), s});
}

// Attention of 6 heads of queries, and 2 of keys and values.
ValueId GroupedAttention(B& b, const Repeats& repeats, ValueId q, ValueId k, ValueId v) {
  const ValueId scores = b.Op("MatMul", {q, SwappedKeys(b, k, repeats)});
  const ValueId weights = b.Op("Softmax", {b.Op("Mul", {scores, b.Scalar(0.5)})});
  return b.Op("MatMul", {weights, repeats.repeats_values ? repeats.Join(b, v) : v});
}

ValueId GroupedAttention(B& b, const Repeats& repeats) {
  const Dim n = Dim::Symbol("n"), s = Dim::Symbol("s");
  const Dim value_heads = Dim(repeats.repeats_values ? 2 : 6);
  return GroupedAttention(b, repeats, Matrix(b, "q", {n, Dim(6), s, Dim(4)}),
                          Matrix(b, "k", {n, Dim(2), s, Dim(4)}),
                          Matrix(b, "v", {n, value_heads, s, Dim(4)}));
}

// Attention between linear layers, heads split and joined as exporters do.
ValueId MultiHead(B& b, int64_t heads) {
  const Dim n = Dim::Symbol("n"), s = Dim::Symbol("s");
  const auto split = [&](const char* name, Ints perm) {
    const ValueId flat = Matrix(b, name, {n, s, Dim(8)});
    const ValueId reshaped =
        b.Op("Reshape", {flat, b.Input(Format("{}_shape", name), DataType::kInt64)});
    b.Shaped(reshaped, {n, s, Dim(heads), Dim(4)});
    return b.Op("Transpose", {reshaped}, Perm(std::move(perm)));
  };
  const ValueId scores = b.Op("MatMul", {split("q", {0, 2, 1, 3}), split("k", {0, 2, 3, 1})});
  const ValueId weights = b.Op("Softmax", {b.Op("Div", {scores, b.Scalar(2)})});
  const ValueId mixed = b.Op("MatMul", {weights, split("v", {0, 2, 1, 3})});
  const ValueId joined = b.Op("Reshape", {b.Op("Transpose", {mixed}, Perm({0, 2, 1, 3})),
                                          b.Input("joined_shape", DataType::kInt64)});
  return b.Shaped(joined, {n, s, Dim(8)});
}

TEST(AttentionFusionTest, EachRuleFiresWhereItMayAndNowhereElse) {
  const auto attention = [](AttentionParts parts) {
    return [parts](B& b, ValueId) { return AttentionOf(b, parts); };
  };
  const Dim n = Dim::Symbol("n"), s = Dim::Symbol("s");
  const auto grouped = [](Repeats repeats) {
    return [repeats](B& b, ValueId) { return GroupedAttention(b, repeats); };
  };
  const RuleCase cases[] = {
      {"attention", true, attention({})},
      {"attention", true, attention({.key_permutation = {0, 2, 3, 1}})},
      {"attention", false, attention({.key_permutation = {0, 3, 1, 2}})},
      {"attention", false, attention({.axis = 2})},
      {"attention", false, attention({.key_heads = Dim(1)})},
      {"attention", true, attention({.unseen = 0})},
      {"attention", false, attention({.unseen = 1})},
      {"attention", false, attention({.unseen = 0, .flat_permutation = {1, 2, 0}})},
      {"attention", false, attention({.mask = {Dim(7), Dim(1), Dim(1), Dim(1), Dim(1)}})},
      {"attention of repeated heads", true, grouped({})},
      {"attention of repeated heads", true, grouped({.is_flat = true})},
      {"attention of repeated heads", false, grouped({.repeats_values = false})},
      {"attention", true, grouped({.repeats_values = false})},
      // Head 0, 1, 0, 1, ... where Attention takes 0, 0, 0, 1, ...
      {"attention of repeated heads", false,
       grouped(
           {.group = {n, Dim(1), Dim(2), s, Dim(4)}, .repeat = {n, Dim(3), Dim(2), s, Dim(4)}})},
      {"attention of repeated heads", false,  // which repeats rows
       grouped(
           {.group = {n, Dim(2), s, Dim(1), Dim(4)}, .repeat = {n, Dim(2), s, Dim(3), Dim(4)}})},
      {"attention of repeated heads", false,
       grouped({.repeat = {n, Dim(2), Dim::Symbol("r"), s, Dim(4)}})},
      {"attention of repeated heads", false, grouped({.joined = {n, Dim(6), Dim(4), s}})},
      {"attention of repeated heads", false, grouped({.key_permutation = {0, 2, 3, 1}})},
      {"attention of joined heads", true, [](B& b, ValueId) { return MultiHead(b, 2); }},
      {"attention of joined heads", false, [](B& b, ValueId) { return MultiHead(b, 3); }},
  };
  CheckRules(RulesOf(AttentionFusions()), cases, InferForFusions);
}

TEST(AttentionFusionTest, HeadsThatAreRepeatedAreNotCopied) {
  for (const bool is_flat : {false, true}) {
    B b;
    b.Output(GroupedAttention(b, {.is_flat = is_flat}));
    const std::string output = b.graph->outputs()[0].name;
    EXPECT_EQ(FusedText(*b.graph),
              Format("{0} = Attention<scale=0.5>(q, k, v)\nreturn {0}", output));
  }
}

TEST(AttentionFusionTest, ABlockOfRepeatedHeadsBecomesOneNode) {
  B b;
  const Dim n = Dim::Symbol("n"), s = Dim::Symbol("s");
  const auto split = [&](const char* name, int64_t heads) {
    const ValueId flat = Matrix(b, name, {n, s, Dim(4 * heads)});
    const ValueId reshaped =
        b.Op("Reshape", {flat, b.Input(Format("{}_shape", name), DataType::kInt64)});
    b.Shaped(reshaped, {n, s, Dim(heads), Dim(4)});
    return b.Op("Transpose", {reshaped}, Perm({0, 2, 1, 3}));
  };
  const ValueId mixed = GroupedAttention(b, {}, split("q", 6), split("k", 2), split("v", 2));
  const ValueId joined = b.Op("Reshape", {b.Op("Transpose", {mixed}, Perm({0, 2, 1, 3})),
                                          b.Input("joined_shape", DataType::kInt64)});
  b.Output(b.Shaped(joined, {n, s, Dim(24)}));
  const std::string output = b.graph->outputs()[0].name;
  EXPECT_EQ(FusedText(*b.graph),
            Format("{0} = Attention<scale=0.5, q_num_heads=6, kv_num_heads=2>(q, k, v)\nreturn {0}",
                   output));
}

TEST(AttentionFusionTest, ABlockBecomesOneNode) {
  B b;
  b.Output(MultiHead(b, 2));
  const std::string output = b.graph->outputs()[0].name;
  EXPECT_EQ(FusedText(*b.graph),
            Format("{0} = Attention<scale=0.5, q_num_heads=2, kv_num_heads=2>(q, k, v)\nreturn {0}",
                   output));
  B masked;
  masked.Output(AttentionOf(masked, {}));
  EXPECT_NE(FusedText(*masked.graph).find("Attention<scale=0.5>(q, k, v, mask)"),
            std::string::npos);
}

// --- All of them ---

// --- Scalars ---

TEST(ScalarFusionTest, EachRuleFiresWhereItMayAndNowhereElse) {
  const auto chain = [](const char* first, float a, const char* second, float b) {
    return [=](B& g, ValueId x) {
      return g.Op(second, {g.Op(first, {x, g.Scalar(a)}), g.Scalar(b)});
    };
  };
  const auto scaled_sum = [](const char* outer, float a, float b, float c) {
    return [=](B& g, ValueId x) {
      const ValueId product = g.Op("Mul", {g.Scalar(a), x});
      return g.Op(outer, {g.Op("Sub", {product, g.Scalar(b)}), g.Scalar(c)});
    };
  };
  const auto used_twice = [](B& g, ValueId x) {
    const ValueId product = g.Op("Mul", {x, g.Scalar(2)});
    g.Output(g.Op("Neg", {product}));
    return g.Op("Mul", {product, g.Scalar(3)});
  };
  const auto divided_by_x = [](B& g, ValueId x) {
    return g.Op("Mul", {g.Op("Div", {g.Scalar(2), x}), g.Scalar(3)});
  };
  const RuleCase cases[] = {
      {"scale scale", true, chain("Mul", 2, "Div", 3)},
      {"scale scale", true, chain("Div", -2, "Mul", 3)},
      {"scale scale", false, chain("Mul", 2, "Mul", 0)},
      {"scale scale", false, chain("Mul", 1e30F, "Mul", 1e-30F)},
      {"scale scale", false, used_twice},
      {"scale scale", false, divided_by_x},
      {"shift shift", true, chain("Add", 2, "Add", 3)},
      {"shift shift", true, chain("Add", -2, "Sub", 3)},
      {"shift shift", false, chain("Add", 8388608, "Sub", 8388608)},  // rounds
      {"scale shift scale", true, scaled_sum("Div", 2, 3, 4)},
      {"scale shift scale", true, scaled_sum("Mul", 2, 3, 4)},
      {"scale shift scale", false, scaled_sum("Mul", 2, 3, 0)},
  };
  CheckRules(RulesOf(ScalarFusions()), cases, InferForFusions);
}

TEST(ScalarFusionTest, ANormalizationOfPicturesIsAProductAndASum) {
  B b;
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{Dim(2), Dim(3)});
  const ValueId unit = b.Op("Div", {x, b.Scalar(255)});
  b.Output(b.Op("Div", {b.Op("Sub", {unit, b.Scalar(0.5)}), b.Scalar(0.25)}));
  FusedText(*b.graph);
  std::vector<double> constants;
  const auto order = b.graph->TopologicalOrder();
  ASSERT_TRUE(order);
  for (const NodeId id : *order) {
    const Node& node = b.graph->node(id);
    EXPECT_EQ(node.op_type, constants.empty() ? "Mul" : "Add");
    constants.push_back(ScalarOf(*b.graph->ConstantOf(node.inputs[1])).value());
  }
  EXPECT_EQ(constants, (std::vector<double>{4 / 255.0F, -2}));
}

TEST(ScalarFusionTest, IntegersStayAsTheyAre) {
  B b;
  const ValueId x = b.Input("x", DataType::kInt32, SymbolicShape{Dim(2)});
  const ValueId two = b.Constant(Tensor::Of<int32_t>({}, {2}));
  b.Output(b.Op("Mul", {b.Op("Div", {x, two}), two}));
  const std::string text = FusedText(*b.graph);
  EXPECT_NE(text.find("Div"), std::string::npos) << text;
}

TEST(FusionTest, NothingIsMadeThatHasNoKernel) {
  EXPECT_TRUE(MakeFusions([](auto, auto, DataType) { return false; })[0].rules.rules().empty());
  const auto only_double = [](std::string_view, std::string_view, DataType type) {
    return type == DataType::kUndefined || type == DataType::kDouble;
  };
  B b;
  b.Output(b.Op("Relu", {ConvOf(b)}));
  InferForFusions(*b.graph);
  for (const FusionPass& pass : MakeFusions(only_double)) {
    EXPECT_EQ(ApplyRules(*b.graph, pass.rules), 0u);
  }
}

TEST(FusionTest, OnlyNodesOfTheProviderAreFused) {
  B b;
  b.Output(b.Op("Relu", {ConvOf(b)}));
  InferForFusions(*b.graph);
  PlainPassRunner passes;
  ASSERT_TRUE(FuseNodes(*b.graph, 3, passes).ok());
  EXPECT_EQ(b.graph->node_count(), 2u);
}

}  // namespace
}  // namespace tenon
