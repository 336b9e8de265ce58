#include "ir/passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/stop_signal.h"
#include "ir/graph_builder.h"

namespace tenon {
namespace {

class NoFunctions final : public ShapeFunctionTable {
 public:
  ShapeFunction Find(const Node&) const override { return nullptr; }
};

// Evaluates Neg and Add of float scalars; Add of a negative number fails.
class ScalarEvaluator final : public NodeEvaluator {
 public:
  bool CanEvaluate(const Graph&, const Node& node) const override {
    return node.op_type == "Neg" || node.op_type == "Add" || node.op_type == "NonZero";
  }
  Result<std::vector<Value>> Evaluate(const Graph&, const Node& node,
                                      std::span<const Value> inputs) override {
    ++evaluations;
    const float a = *inputs[0].tensor().data<float>();
    if (node.op_type == "Neg") return One(-a);
    if (a < 0) return Fail("negative");
    return One(a + *inputs[1].tensor().data<float>());
  }
  int evaluations = 0;

 private:
  static std::vector<Value> One(float value) { return {Tensor::Of<float>({}, {value})}; }
};

TEST(DeadCodeTest, RemovesUnusedNodes) {
  GraphBuilder b;
  const ValueId x = b.Input("x");
  const ValueId unused = b.Scalar(1);
  b.Op("Add", {b.Op("Neg", {x}), unused});
  b.Output(b.Op("Relu", {x}));
  EXPECT_EQ(RemoveDeadCode(*b.graph), 3u);
  EXPECT_EQ(GraphText(*b.graph), "v_4 = Relu(x)\nreturn v_4");
  EXPECT_FALSE(b.graph->value(unused).initializer.has_value());
  EXPECT_EQ(RemoveDeadCode(*b.graph), 0u);
}

TEST(DeadCodeTest, RemovesUnusedOptionalOutputs) {
  GraphBuilder b;
  const ValueId x = b.Input("x");
  b.Output(b.OpN("Dropout", {x}, 2)[0]);
  b.Output(b.OpN("TopK", {x, b.Ints({1})}, 2)[0]);
  RemoveDeadCode(*b.graph);
  EXPECT_EQ(GraphText(*b.graph), "v, _ = Dropout(x)\nv_4, v_5 = TopK(x, {1})\nreturn v, v_4");
}

TEST(DeadCodeTest, CapturesWithoutUseLoseTheirProducers) {
  GraphBuilder b;
  const ValueId x = b.Input("x");
  const ValueId used = b.Op("Neg", {x});
  const ValueId unused = b.Op("Abs", {x});
  GraphBuilder branch;
  branch.Output(branch.Op("Relu", {branch.Capture(used, "used")}));
  branch.Op("Relu", {branch.Capture(unused, "unused")});
  b.Output(b.Op("If", {b.Input("condition", DataType::kBool)},
                MakeAttributes(Attr("then_branch", std::move(branch.graph)))));
  RemoveDeadCode(*b.graph);
  EXPECT_EQ(GraphText(*b.graph), "v = Neg(x)\nv_4 = If<then_branch=...>(condition)\nreturn v_4");
}

TEST(GatherConstantsTest, ConstantNodesBecomeInitializersAlsoInsideSubgraphs) {
  GraphBuilder b;
  const ValueId constant =
      b.Op("Constant", {}, MakeAttributes(Attr("value_floats", std::vector<float>{1, 2})));
  GraphBuilder branch;
  const ValueId inner = branch.Capture(constant, "inner");
  branch.Output(branch.Op("Neg", {inner}));
  const Graph& body = *branch.graph;
  b.Output(b.Op("If", {b.Input("condition", DataType::kBool)},
                MakeAttributes(Attr("then_branch", std::move(branch.graph)))));
  EXPECT_EQ(GatherConstants(*b.graph).value(), 2u);
  ASSERT_NE(body.ConstantOf(inner), nullptr);
  EXPECT_EQ(body.ConstantOf(inner)->raw(), b.graph->ConstantOf(constant)->raw());
  EXPECT_TRUE(body.captures.empty());
  EXPECT_TRUE(b.graph->IsUnused(constant));
}

TEST(GatherConstantsTest, RefusesConstantsWithoutValue) {
  GraphBuilder b;
  b.Op("Neg", {b.Op("Constant", {})});
  const auto result = GatherConstants(*b.graph);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message(),
            "Constant-19 node 'Constant0': expected one attribute with the value, got 0 "
            "(node 0 of graph '', ai.onnx opset 20)");
}

TEST(CommonSubexpressionsTest, JoinsEqualNodesAndTheirUsers) {
  GraphBuilder b;
  const ValueId x = b.Input("x");
  const auto half = [&](int64_t axis) {
    return b.Op("Add", {b.Op("Softmax", {x}, MakeAttributes(Attr("axis", axis))), b.Scalar(0.5)});
  };
  b.Output(b.Op("Concat", {half(0), half(0), half(1)}));
  EXPECT_EQ(JoinCommonSubexpressions(*b.graph), 1u) << "the constants differ";
  EXPECT_EQ(ShareConstants(*b.graph), 2u);
  EXPECT_EQ(JoinCommonSubexpressions(*b.graph), 1u);
  EXPECT_EQ(GraphText(*b.graph),
            "v = Softmax<axis=0>(x)\nv_3 = Add(v, {0.5})\nv_7 = Softmax<axis=1>(x)\n"
            "v_9 = Add(v_7, {0.5})\nv_10 = Concat(v_3, v_3, v_9)\nreturn v_10");
}

TEST(CommonSubexpressionsTest, LeavesWhatIsComputedAgainInAnotherPart) {
  GraphBuilder b;
  const ValueId x = b.Input("x"), h = b.Op("Exp", {x});
  const ValueId dy = b.Op("YieldOp", {b.Op("Neg", {h})}, {}, "com.microsoft");
  b.Output(b.Op("Sum", {dy, b.Op("Exp", {x}), b.Op("Exp", {x})}));
  ASSERT_TRUE(b.graph->SettleParts().ok());
  EXPECT_EQ(JoinCommonSubexpressions(*b.graph), 1u) << "the two after the YieldOp";
  EXPECT_FALSE(b.graph->IsUnused(h));
}

TEST(CommonSubexpressionsTest, LeavesWhatDiffersOrIsRandomOrAnOutput) {
  GraphBuilder b;
  const ValueId x = b.Input("x");
  b.Output(b.Op("Concat", {b.Op("RandomNormalLike", {x}), b.Op("RandomNormalLike", {x})}));
  b.Output(b.Op("Sub", {b.Op("Unknown", {x}), b.Op("Unknown", {x})}));
  b.Output(b.Op("Sub", {b.Op("Cast", {x}, MakeAttributes(Attr("to", int64_t{6}))),
                        b.Op("Cast", {x}, MakeAttributes(Attr("to", int64_t{7})))}));
  b.Output(b.Op("Neg", {x}));
  b.Output(b.Op("Neg", {x}));
  b.Output(b.Op("Add", {b.Scalar(1), b.Constant(Tensor::Of<int32_t>({}, {0x3f800000}))}));
  EXPECT_EQ(ShareConstants(*b.graph) + JoinCommonSubexpressions(*b.graph), 0u);
}

TEST(FoldConstantsTest, ComputesWhatDependsOnConstantsAlone) {
  GraphBuilder b;
  const ValueId x = b.Input("x");
  const ValueId sum = b.Shaped(b.Op("Add", {b.Scalar(2), b.Scalar(3)}), {});
  const ValueId folded = b.Shaped(b.Op("Neg", {sum}), {});
  b.Output(b.Op("Mul", {x, folded}));
  ScalarEvaluator evaluator;
  FoldingBudget budget;
  EXPECT_EQ(FoldConstants(*b.graph, evaluator, budget), 2u);
  EXPECT_EQ(GraphText(*b.graph), "v_5 = Mul(x, {-5})\nreturn v_5");
}

TEST(FoldConstantsTest, LeavesFailuresOutputsAndUnknownSizes) {
  GraphBuilder b;
  const ValueId fails = b.Shaped(b.Op("Add", {b.Scalar(-1), b.Scalar(3)}), {});
  const ValueId unknown = b.Op("Neg", {b.Scalar(7)});
  b.Output(b.Op("Mul", {fails, unknown}));
  b.Output(b.Shaped(b.Op("Neg", {b.Scalar(8)}), {}));
  ScalarEvaluator evaluator;
  FoldingBudget budget;
  EXPECT_EQ(FoldConstants(*b.graph, evaluator, budget), 0u);
  EXPECT_EQ(evaluator.evaluations, 1);
}

TEST(FoldConstantsTest, KeepsToItsBudget) {
  const auto folds = [](SymbolicShape shape, FoldingBudget budget) {
    GraphBuilder b;
    b.Output(b.Op("Abs", {b.Shaped(b.Op("Neg", {b.Scalar(1)}), std::move(shape))}));
    ScalarEvaluator evaluator;
    return FoldConstants(*b.graph, evaluator, budget);
  };
  EXPECT_EQ(folds({Dim(25)}, {.bytes = 96}), 1u) << "100 bytes from 4";
  EXPECT_EQ(folds({Dim(25)}, {.bytes = 95}), 0u);
  EXPECT_EQ(folds({Dim(INT64_MAX)}, {}), 0u);
  EXPECT_EQ(folds({Dim(1)}, {.time = std::chrono::seconds(0)}), 0u);
}

TEST(FoldConstantsTest, ValuesThatStayAreNotMadeUpFor) {
  const auto folds = [](bool has_other_reader, size_t bytes) {
    GraphBuilder b;
    const ValueId one = b.Scalar(1);
    ValueId value = b.Shaped(b.Op("Neg", {one}), {});
    for (int i = 0; i < 3; ++i) value = b.Shaped(b.Op("Neg", {value}), {});
    b.Output(b.Op("Abs", {value}));
    if (has_other_reader) b.Output(b.Op("Abs", {one}));
    ScalarEvaluator evaluator;
    FoldingBudget budget{.bytes = bytes};
    const size_t changes = FoldConstants(*b.graph, evaluator, budget);
    EXPECT_EQ(b.graph->value(one).initializer.has_value(), has_other_reader);
    return changes;
  };
  EXPECT_EQ(folds(false, 0), 4u) << "each takes the place of the one before";
  EXPECT_EQ(folds(true, 4), 4u);
  EXPECT_EQ(folds(true, 3), 0u);
}

TEST(FoldConstantsTest, ANodeThatTakesTooLongStays) {
  struct SlowEvaluator : NodeEvaluator {
    bool CanEvaluate(const Graph&, const Node&) const override { return true; }
    Result<std::vector<Value>> Evaluate(const Graph&, const Node&,
                                        std::span<const Value> inputs) override {
      while (!StopSignal::CutsCurrent()) {
      }
      return std::vector<Value>{inputs[0]};
    }
  };
  GraphBuilder b;
  b.Output(b.Op("Abs", {b.Shaped(b.Op("Neg", {b.Scalar(1)}), {})}));
  SlowEvaluator evaluator;
  FoldingBudget budget{.time = std::chrono::milliseconds(20)};
  EXPECT_EQ(FoldConstants(*b.graph, evaluator, budget), 0u);
}

TEST(FoldConstantsTest, WithoutALimitOfTimeEveryNodeIsFolded) {
  struct LoopingEvaluator : NodeEvaluator {
    bool CanEvaluate(const Graph&, const Node&) const override { return true; }
    Result<std::vector<Value>> Evaluate(const Graph&, const Node&,
                                        std::span<const Value> inputs) override {
      StopSignal::CutsCurrent();  // as a loop does before its first part
      return std::vector<Value>{inputs[0]};
    }
  };
  GraphBuilder b;
  const ValueId negative = b.Shaped(b.Op("Neg", {b.Scalar(1)}), {});
  b.Output(b.Op("Abs", {b.Shaped(b.Op("Abs", {negative}), {})}));
  LoopingEvaluator evaluator;
  FoldingBudget budget{.time = std::chrono::nanoseconds::max()};
  EXPECT_EQ(FoldConstants(*b.graph, evaluator, budget), 2u);
}

TEST(FoldKnownElementsTest, TurnsKnownShapeComputationsIntoConstants) {
  GraphBuilder b;
  const ValueId x = b.Input("x");
  const ValueId shape = b.Shaped(b.Op("Shape", {x}), {Dim(2)}, DataType::kInt64);
  const ValueId partly = b.Shaped(b.Op("Shape", {x}), {Dim(2)}, DataType::kInt64);
  const ValueId output = b.Shaped(b.Op("Size", {x}), {}, DataType::kInt64);
  b.Output(b.Op("Concat", {shape, partly}));
  b.Output(output);
  const KnownElements known = {
      {b.graph.get(),
       {{shape, {Dim(4), Dim(5)}}, {partly, {Dim(4), Dim::Symbol("n")}}, {output, {Dim(20)}}}}};
  EXPECT_EQ(FoldKnownElements(*b.graph, known), 1u);
  EXPECT_EQ(GraphText(*b.graph),
            "v_2 = Shape(x)\nv_3 = Size(x)\nv_4 = Concat({4, 5}, v_2)\nreturn v_4, v_3");
}

TEST(FoldKnownShapesTest, LeavesWhatIsComputedFromShapes) {
  GraphBuilder b;
  const ValueId x = b.Input("x");
  const ValueId shape = b.Shaped(b.Op("Shape", {x}), {Dim(2)}, DataType::kInt64);
  const ValueId last = b.Shaped(b.Op("Slice", {b.Input("other")}), {Dim(1)}, DataType::kInt64);
  b.Output(b.Op("Concat", {shape, last}));
  b.Output(b.Op("Reshape", {x, b.Input("sizes", DataType::kInt64)}));
  const KnownElements known = {{b.graph.get(), {{shape, {Dim(4), Dim(5)}}, {last, {Dim(8)}}}}};
  EXPECT_EQ(FoldKnownShapes(*b.graph, known), 1u);
  EXPECT_THAT(GraphText(*b.graph), testing::HasSubstr("Concat({4, 5}, v_3)"));
  EXPECT_EQ(FoldKnownElements(*b.graph, known), 1u);
  EXPECT_THAT(GraphText(*b.graph), testing::HasSubstr("Concat({4, 5}, {8})"));
}

TEST(FoldKnownElementsTest, FoldsTheShapesOfReshapes) {
  const Dim n = Dim::Symbol("n"), m = Dim::Symbol("m");
  struct Case {
    SymbolicShape input;
    Dims requested;
    std::string expected;
  };
  const Case cases[] = {
      {{n, m, Dim(768)}, {n, m, Dim(12), Dim(64)}, "{0, 0, 12, 64}"},
      {{n, m, Dim(768)}, {n * m, Dim(768)}, "{-1, 768}"},
      {{n, m, Dim(768)}, {m, n, Dim(768)}, "shape"},
      {{n, m, Dim(768)}, {Dim(-1), n, Dim(768)}, "shape"},
      {{n, m}, {Dim::Unknown(), Dim(2)}, "shape"},
  };
  for (const Case& c : cases) {
    GraphBuilder b;
    const ValueId x = b.Input("x", DataType::kFloat, c.input);
    const ValueId shape = b.Input("shape", DataType::kInt64);
    b.Output(b.Op("Reshape", {x, shape}));
    FoldKnownElements(*b.graph, {{b.graph.get(), {{shape, c.requested}}}});
    EXPECT_EQ(GraphText(*b.graph), Format("v = Reshape(x, {})\nreturn v", c.expected));
  }
}

TEST(RunGeneralPassesTest, SettlesOnTheSmallestGraph) {
  GraphBuilder b;
  const ValueId x = b.Input("x");
  const ValueId one = b.Op("Constant", {}, MakeAttributes(Attr("value_float", 1.0F)));
  const ValueId condition = b.Constant(Tensor::Of<bool>({}, {true}));
  GraphBuilder branch;
  const ValueId y = branch.Capture(x, "y");
  branch.Output(branch.Op("Add", {branch.Op("Mul", {y, branch.Capture(one, "one")}),
                                  branch.Op("Mul", {y, branch.Capture(one, "same")})}));
  GraphBuilder other;
  other.Output(other.Op("Neg", {other.Capture(x, "z")}));
  b.Output(b.Op("If", {condition},
                MakeAttributes(Attr("then_branch", std::move(branch.graph)),
                               Attr("else_branch", std::move(other.graph)))));
  ScalarEvaluator evaluator;
  const NoFunctions functions;
  ASSERT_TRUE(
      RunGeneralPasses(*b.graph, {.shape_functions = &functions, .evaluator = &evaluator}).ok());
  EXPECT_EQ(GraphText(*b.graph), "v_3 = Add(x, x)\nreturn v_3");
}

TEST(RunGeneralPassesTest, TenThousandNodesTakeLittleTime) {
  GraphBuilder b;
  ValueId value = b.Input("x", DataType::kFloat, SymbolicShape{Dim(2), Dim(3)});
  for (int i = 0; i < 2500; ++i) {
    const ValueId sum = b.Op("Add", {b.Op("Relu", {value}), b.Scalar(static_cast<float>(i + 1))});
    value = b.Op("Identity", {b.Op("Mul", {sum, b.Op("Sigmoid", {sum})})});
  }
  b.Output(b.Op("Abs", {value}));
  const NoFunctions functions;
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(RunGeneralPasses(*b.graph, {.shape_functions = &functions}).ok());
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(b.graph->node_count(), 10001u);
  RecordProperty(
      "milliseconds",
      static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(took).count()));
  // Generous, for sanitizers on a busy machine: what is quadratic takes minutes.
  EXPECT_LT(took, std::chrono::seconds(20));
}

}  // namespace
}  // namespace tenon
