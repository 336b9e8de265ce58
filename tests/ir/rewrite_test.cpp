#include "ir/rewrite.h"

#include <gtest/gtest.h>

#include "ir/graph_builder.h"
#include "ir/rewrite_limit.h"
#include "ir/scalar.h"
#include "ir/schema.h"

namespace tenon {
namespace {

const Pattern x = Any("x");

Rule Swish() {
  return {.name = "swish",
          .pattern = Op("Mul", {x, Op("Sigmoid", {x})}),
          .replace = [](Replacement& r) { return r.Op("Swish", {r["x"]}); }};
}

RuleSet One(Rule rule) {
  std::vector<Rule> rules;
  rules.push_back(std::move(rule));
  return RuleSet(std::move(rules));
}

// A rule that turns what the pattern fits into "Found(x)".
RuleSet Found(Pattern pattern) {
  return One({.name = "found", .pattern = std::move(pattern), .replace = [](Replacement& r) {
                return r.Op("Found", {r["x"]});
              }});
}

// How often "Found" fires on Relu(a) combined as `make` says.
template <class Make>
size_t Fires(Pattern pattern, Make make) {
  GraphBuilder b;
  const ValueId a = b.Input("a", DataType::kFloat, SymbolicShape{Dim(2)});
  b.Output(make(b, a));
  return ApplyRules(*b.graph, Found(std::move(pattern)));
}

TEST(RewriteTest, ReplacesAPatternAndKeepsTheRootsOutput) {
  GraphBuilder b;
  const ValueId a = b.Input("a", DataType::kFloat, SymbolicShape{Dim(2)});
  const ValueId y = b.Op("Mul", {b.Op("Sigmoid", {a}), a});
  b.graph->value(y).type = ValueType::Tensor(DataType::kFloat, SymbolicShape{Dim(2)});
  b.Output(b.Op("Relu", {y}));
  Node& root = b.graph->node(b.graph->value(y).producer);
  root.provider = 3;
  EXPECT_EQ(ApplyRules(*b.graph, One(Swish())), 1u);
  EXPECT_EQ(GraphText(*b.graph), "v_2 = Swish(a)\nv_3 = Relu(v_2)\nreturn v_3");
  const Node& swish = b.graph->node(b.graph->value(y).producer);
  EXPECT_EQ(swish.name, "Mul1");
  EXPECT_EQ(swish.provider, 3);
  EXPECT_EQ(swish.opset, 24) << "the first version that has it";
  EXPECT_EQ(b.graph->value(y).type.ToString(), "tensor(float) [2]");
  EXPECT_EQ(b.graph->value(a).consumers.size(), 1u);
}

TEST(RewriteTest, NewNodesOfTheStandardHaveTheirSchema) {
  GraphBuilder b(11);
  b.Output(b.Op("Relu", {b.Input("a")}));
  const auto rules =
      One({.name = "norm", .pattern = Op("Relu", {x}), .replace = [](Replacement& r) {
             return r.Op("LayerNormalization", {r["x"], r["x"]});
           }});
  ApplyRules(*b.graph, rules);
  const Node& node = b.graph->node(b.graph->value(b.graph->outputs()[0].value).producer);
  ASSERT_NE(node.schema, nullptr);
  EXPECT_EQ(node.schema->name, "LayerNormalization");
  EXPECT_EQ(node.opset, 17) << "the first version that has it";
}

TEST(RewriteTest, EqualNamesAreOneValue) {
  GraphBuilder b;
  b.Output(b.Op("Mul", {b.Input("a"), b.Op("Sigmoid", {b.Input("b")})}));
  EXPECT_EQ(ApplyRules(*b.graph, One(Swish())), 0u);
}

TEST(RewriteTest, IntermediateValuesHaveNoOtherUse) {
  const auto build = [](auto use) {
    GraphBuilder b;
    const ValueId a = b.Input("a");
    const ValueId gate = b.Op("Sigmoid", {a});
    b.Output(b.Op("Mul", {a, gate}));
    use(b, gate);
    return ApplyRules(*b.graph, One(Swish()));
  };
  EXPECT_EQ(build([](GraphBuilder&, ValueId) {}), 1u);
  EXPECT_EQ(build([](GraphBuilder& b, ValueId gate) { b.Output(b.Op("Relu", {gate})); }), 0u);
  EXPECT_EQ(build([](GraphBuilder& b, ValueId gate) { b.Output(gate); }), 0u);
  EXPECT_EQ(build([](GraphBuilder& b, ValueId gate) {
              GraphBuilder branch;
              branch.Output(branch.Capture(gate, "inside"));
              b.Output(b.Op("If", {b.Input("condition", DataType::kBool)},
                            MakeAttributes(Attr("then_branch", std::move(branch.graph)))));
            }),
            0u);
}

TEST(RewriteTest, SharedIntermediatesStayForTheirOtherUses) {
  GraphBuilder b;
  const ValueId a = b.Input("a");
  const ValueId gate = b.Op("Sigmoid", {a});
  b.Output(b.Op("Mul", {a, gate}));
  b.Output(gate);
  EXPECT_EQ(ApplyRules(*b.graph, Found(Op("Mul", {x, Op("Sigmoid", {x}).Shared()}))), 1u);
  EXPECT_EQ(GraphText(*b.graph), "v = Sigmoid(a)\nv_2 = Found(a)\nreturn v_2, v");
}

TEST(RewriteTest, AMatchIsInOnePart) {
  const Pattern pattern = Op("Add", {Op("Relu", {x}), Any("dy")});
  for (const bool is_before : {true, false}) {
    GraphBuilder b;
    const ValueId a = b.Input("a");
    ValueId relu = is_before ? b.Op("Relu", {a}) : ValueId::kNone;
    const ValueId dy = b.Op("YieldOp", {a}, {}, "com.microsoft");
    if (!is_before) relu = b.Op("Relu", {a});
    b.Output(b.Op("Add", {relu, dy}));
    ASSERT_TRUE(b.graph->SettleParts().ok());
    EXPECT_EQ(ApplyRules(*b.graph, Found(pattern)), is_before ? 0u : 1u);
    const ValueId result = b.graph->outputs()[0].value;
    EXPECT_EQ(b.graph->node(b.graph->value(result).producer).part, 2);
  }
}

TEST(RewriteTest, AValueUsedTwiceInsideTheMatchIsNoOtherUse) {
  const Pattern centred = Op("Sub", {x, Op("Sigmoid", {x})});
  const auto square = [](GraphBuilder& b, ValueId a) {
    const ValueId d = b.Op("Sub", {a, b.Op("Sigmoid", {a})});
    return b.Op("Div", {d, b.Op("Exp", {d})});
  };
  EXPECT_EQ(Fires(Op("Div", {centred, Op("Exp", {centred})}), square), 1u);
}

TEST(RewriteTest, CommutativeOperatorsMatchInBothOrdersOnly) {
  const auto apply = [](const char* op) {
    return [op](GraphBuilder& b, ValueId a) { return b.Op(op, {b.Op("Exp", {a}), a}); };
  };
  EXPECT_EQ(Fires(Op("Add", {x, Op("Exp", {x})}), apply("Add")), 1u);
  EXPECT_EQ(Fires(Op("Sub", {x, Op("Exp", {x})}), apply("Sub")), 0u);
}

TEST(RewriteTest, BacktracksIntoEarlierChoices) {
  // With the first order, y is bound to Exp(a) and the second Add fails.
  const Pattern y = Any("y");
  const Pattern pattern = Op("Div", {Op("Add", {y, x}), Op("Neg", {y})});
  EXPECT_EQ(Fires(pattern,
                  [](GraphBuilder& b, ValueId a) {
                    return b.Op("Div", {b.Op("Add", {b.Op("Exp", {a}), a}), b.Op("Neg", {a})});
                  }),
            1u);
}

TEST(RewriteTest, ScalarsAreNearAndDoNotRaiseTheRank) {
  const auto times = [](Tensor factor) {
    return [factor](GraphBuilder& b, ValueId a) { return b.Op("Mul", {a, b.Constant(factor)}); };
  };
  const Pattern pattern = Op("Mul", {x, Scalar(1.4142135623730951)});
  EXPECT_EQ(Fires(pattern, times(Tensor::Of<float>({}, {1.41421354f}))), 1u);
  EXPECT_EQ(Fires(pattern, times(Tensor::Of<float>({1}, {1.41421354f}))), 1u);
  EXPECT_EQ(Fires(pattern, times(Tensor::Of<float>({1, 1}, {1.41421354f}))), 0u);
  EXPECT_EQ(Fires(pattern, times(Tensor::Of<float>({}, {1.4143f}))), 0u);
  EXPECT_EQ(Fires(pattern, times(Tensor::Of<float>({2}, {1.41421354f, 1.41421354f}))), 0u);
  EXPECT_EQ(Fires(Op("Mul", {x, Scalar("any")}), times(Tensor::Of<float>({}, {7}))), 1u);
}

TEST(RewriteTest, ConstantsFulfilTheirCondition) {
  const auto is_vector = [](const Tensor& tensor) { return tensor.rank() == 1; };
  const auto plus = [](Tensor bias) {
    return [bias](GraphBuilder& b, ValueId a) { return b.Op("Add", {a, b.Constant(bias)}); };
  };
  const Pattern pattern = Op("Add", {x, Constant("bias", is_vector)});
  EXPECT_EQ(Fires(pattern, plus(Tensor::Of<float>({2}, {1, 2}))), 1u);
  EXPECT_EQ(Fires(pattern, plus(Tensor::Of<float>({1, 2}, {1, 2}))), 0u);
  EXPECT_EQ(Fires(pattern, [](GraphBuilder& b, ValueId a) { return b.Op("Add", {a, a}); }), 0u);
}

TEST(RewriteTest, OptionalAndFurtherInputs) {
  const auto clip = [](bool low, bool high) {
    return [=](GraphBuilder& b, ValueId a) {
      std::vector<ValueId> inputs = {a, low ? b.Scalar(0) : ValueId::kNone};
      if (high) inputs.push_back(b.Scalar(6));
      return b.Op("Clip", inputs);
    };
  };
  EXPECT_EQ(Fires(Op("Clip", {x}), clip(false, false)), 1u);
  EXPECT_EQ(Fires(Op("Clip", {x}), clip(true, false)), 0u);
  EXPECT_EQ(Fires(Op("Clip", {x}).WithMoreInputs(), clip(true, true)), 1u);
  EXPECT_EQ(Fires(Op("Clip", {x, Maybe("low"), Any("high")}), clip(false, true)), 1u);
  EXPECT_EQ(Fires(Op("Clip", {x, Maybe("low"), Any("high")}), clip(true, false)), 0u);
}

TEST(RewriteTest, AlternativesAttributesAndOutputs) {
  const auto cast = [](GraphBuilder& b, ValueId a) {
    return b.Op("Exp", {b.Op("Cast", {a}, MakeAttributes(Attr("to", int64_t{10})))});
  };
  const auto through = [](int64_t to) {
    return Op("Exp", {OneOf({Op("Cast", {x}).With("to", to), Op("Neg", {x})})});
  };
  EXPECT_EQ(Fires(through(10), cast), 1u);
  EXPECT_EQ(Fires(through(1), cast), 0u);
  const auto leaky = [](GraphBuilder& b, ValueId a) { return b.Op("Softmax", {a}); };
  EXPECT_EQ(Fires(Op("Softmax", {x}).With("axis", int64_t{-1}), leaky), 1u) << "the default";
  EXPECT_EQ(Fires(Op("Softmax", {x}).With("axis", int64_t{0}), leaky), 0u);
  EXPECT_EQ(Fires(OpOf({"Sin", "Softmax"}, {x}), leaky), 1u);
  EXPECT_EQ(Fires(Op("Softmax", {x}).In("com.microsoft"), leaky), 0u);
  EXPECT_EQ(Fires(Op("Softmax", {x}).Where([](const Node& n) { return n.opset < 13; }), leaky), 0u);
  const auto second = [](GraphBuilder& b, ValueId a) {
    return b.Op("Exp", {b.OpN("TopK", {a, b.Ints({1})}, 2)[1]});
  };
  EXPECT_EQ(Fires(Op("Exp", {Op("TopK", {x, Any("k")}).Output(1)}), second), 1u);
  EXPECT_EQ(Fires(Op("Exp", {Op("TopK", {x, Any("k")})}), second), 0u);
}

TEST(RewriteTest, OtherOutputsOfTheRootMustBeUnused) {
  GraphBuilder b;
  const auto outputs = b.OpN("TopK", {b.Input("a"), b.Ints({1})}, 2);
  b.Output(outputs[0]);
  const auto rules = Found(Op("TopK", {x, Any("k")}));
  b.Output(outputs[1]);
  EXPECT_EQ(ApplyRules(*b.graph, rules), 0u);
  b.graph->SetOutput(1, outputs[0]);
  EXPECT_EQ(ApplyRules(*b.graph, rules), 1u);
}

TEST(RewriteTest, AnExistingValueCanTakeThePlace) {
  GraphBuilder b;
  const ValueId a = b.Input("a");
  b.Output(b.Op("Neg", {b.Op("Neg", {b.Op("Neg", {a})})}));
  const auto rules =
      One({.name = "negneg", .pattern = Op("Neg", {Op("Neg", {x})}), .replace = [](Replacement& r) {
             return r["x"];
           }});
  EXPECT_EQ(ApplyRules(*b.graph, rules), 1u);
  EXPECT_EQ(GraphText(*b.graph), "v_3 = Neg(a)\nreturn v_3");
}

TEST(RewriteTest, ConditionsAndDecliningReplacementsLeaveTheGraph) {
  GraphBuilder b;
  b.Output(b.Op("Relu", {b.Input("a")}));
  Rule rule = {.name = "declines", .pattern = Op("Relu", {x}), .replace = [](Replacement&) {
                 return ValueId::kNone;
               }};
  EXPECT_EQ(ApplyRules(*b.graph, One(rule)), 0u);
  rule.when = [](const Match& match) { return match.shape("x") != nullptr; };
  rule.replace = [](Replacement& r) { return r.Op("Found", {r["x"]}); };
  EXPECT_EQ(ApplyRules(*b.graph, One(rule)), 0u);
  EXPECT_EQ(b.graph->node_capacity(), 1u);
}

TEST(RewriteTest, ALimitLetsOnlyTheFirstRewritesHappen) {
  const auto make = [](GraphBuilder& b) {
    ValueId y = b.Input("a", DataType::kFloat, SymbolicShape{Dim(2)});
    for (int i = 0; i < 3; ++i) y = b.Op("Mul", {b.Op("Sigmoid", {y}), y});
    b.Output(y);
  };
  GraphBuilder all, two, none;
  for (GraphBuilder* b : {&all, &two, &none}) make(*b);
  {
    const RewriteLimit outer(0);
    {
      const RewriteLimit limit(2);
      EXPECT_EQ(ApplyRules(*two.graph, One(Swish())), 2u);
      ASSERT_EQ(limit.allowed().size(), 2u);
      EXPECT_EQ(limit.allowed()[1], "'swish' at Mul-14 node 'Mul3'");
    }
    EXPECT_EQ(ApplyRules(*none.graph, One(Swish())), 0u);
  }
  EXPECT_EQ(ApplyRules(*all.graph, One(Swish())), 3u);
}

TEST(RewriteTest, OnlyNodesOfTheProvider) {
  GraphBuilder b;
  const ValueId a = b.Input("a");
  const ValueId y = b.Op("Mul", {a, b.Op("Sigmoid", {a})});
  b.Output(y);
  Node& root = b.graph->node(b.graph->value(y).producer);
  root.provider = 1;
  EXPECT_EQ(ApplyRules(*b.graph, One(Swish()), {.provider = 1}), 0u) << "Sigmoid is not owned";
  b.graph->node(static_cast<NodeId>(0)).provider = 1;
  EXPECT_EQ(ApplyRules(*b.graph, One(Swish()), {.provider = 0}), 0u);
  EXPECT_EQ(ApplyRules(*b.graph, One(Swish()), {.provider = 1}), 1u);
}

TEST(RewriteTest, FusionLeavesAnAcyclicGraph) {
  // Between the Exp that fuses and its root lies a path through a node that does not fuse.
  GraphBuilder b;
  const ValueId a = b.Input("a");
  const ValueId e = b.Op("Exp", {a});
  b.Output(b.Op("Add", {e, b.Op("Sin", {e})}));
  EXPECT_EQ(ApplyRules(*b.graph, Found(Op("Add", {Op("Exp", {x}), Any("y")}))), 0u);
  EXPECT_EQ(ApplyRules(*b.graph, Found(Op("Add", {Op("Exp", {x}).Shared(), Any("y")}))), 1u);
  EXPECT_TRUE(b.graph->TopologicalOrder());
}

TEST(RewriteTest, ACyclicGraphEnds) {
  GraphBuilder b;
  const ValueId a = b.Input("a");
  const ValueId first = b.Op("Neg", {a});
  b.Output(b.Op("Neg", {first}));
  b.graph->SetInput(b.graph->value(first).producer, 0, b.graph->outputs()[0].value);
  ApplyRules(*b.graph, Found(Op("Neg", {Op("Neg", {Op("Neg", {x})})})));
  EXPECT_LE(b.graph->node_count(), 2u);
}

TEST(RewriteTest, RulesThatUndoEachOtherEnd) {
  GraphBuilder b;
  b.Output(b.Op("Sin", {b.Input("a")}));
  const auto to = [](const char* from, const char* target) {
    return Rule{.name = target, .pattern = Op(from, {x}), .replace = [target](Replacement& r) {
                  return r.Op(target, {r["x"]});
                }};
  };
  const RuleSet rules({to("Sin", "Cos"), to("Cos", "Sin")});
  EXPECT_GT(ApplyRules(*b.graph, rules), 0u);
  EXPECT_EQ(b.graph->node_count(), 1u);
}

TEST(RewriteTest, OneSweepFollowsAChain) {
  GraphBuilder b;
  ValueId value = b.Input("a");
  for (int i = 0; i < 10001; ++i) value = b.Op("Neg", {value});
  b.Output(value);
  const auto rules =
      One({.name = "negneg", .pattern = Op("Neg", {Op("Neg", {x})}), .replace = [](Replacement& r) {
             return r["x"];
           }});
  EXPECT_EQ(ApplyRules(*b.graph, rules), 5000u);
  EXPECT_EQ(b.graph->node_count(), 1u);
}

TEST(ScalarTest, ReadsAndMakesEveryFloatType) {
  for (const DataType type : {DataType::kFloat, DataType::kDouble, DataType::kFloat16,
                              DataType::kBfloat16, DataType::kInt32, DataType::kInt64}) {
    const Tensor two = MakeScalar(type, 2, {1}).value();
    EXPECT_EQ(ScalarOf(two), 2.0) << DataTypeName(type);
    EXPECT_TRUE(IsScalarNear(two, 2));
    EXPECT_FALSE(IsScalarNear(two, 2.1)) << DataTypeName(type);
  }
  EXPECT_TRUE(IsScalarNear(MakeScalar(DataType::kFloat16, 0.044715).value(), 0.044715));
  EXPECT_FALSE(IsScalarNear(MakeScalar(DataType::kFloat, 0.0448).value(), 0.044715));
  const float narrow = static_cast<float>(Float16(0.044715f));
  EXPECT_TRUE(IsScalarNear(MakeScalar(DataType::kFloat, narrow).value(), 0.044715));
  EXPECT_FALSE(IsScalarNear(MakeScalar(DataType::kFloat, narrow + 1e-6f).value(), 0.044715));
  EXPECT_EQ(ScalarOf(Tensor::Of<float>({2}, {1, 1})), std::nullopt);
  EXPECT_EQ(ScalarOf(Tensor::Of<std::string>({}, {"1"})), std::nullopt);
  EXPECT_FALSE(MakeScalar(DataType::kString, 1));
}

}  // namespace
}  // namespace tenon
