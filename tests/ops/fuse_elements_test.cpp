#include "ops/elementwise/fuse_elements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/fusion_cases.h"
#include "ops/product_reference.h"
#include "ops/run_op.h"

namespace tenon {
namespace {

using B = GraphBuilder;

const SymbolicShape kShape = {Dim::Symbol("n"), 40, 64};

// How many groups a graph has once its elements are fused.
size_t CountFused(B& b) {
  InferForFusions(*b.graph);
  FuseElements(*b.graph, -1);
  size_t count = 0;
  for (size_t i = 0; i < b.graph->node_capacity(); ++i) {
    const Node* const node = b.graph->FindNode(static_cast<NodeId>(i));
    count += node != nullptr && node->op_type == "FusedElements";
  }
  return count;
}

TEST(FuseElementsTest, NodesThatOnlyReadEachOtherBecomeOne) {
  B b;
  const ValueId x = b.Input("x", DataType::kFloat, kShape);
  const ValueId bias = b.Input("bias", DataType::kFloat, SymbolicShape{64});
  const ValueId scale = b.Input("scale", DataType::kFloat, SymbolicShape{40, 1});
  const ValueId sum = b.Op("Add", {bias, x});
  const ValueId gate = b.Op("Sigmoid", {sum});
  const ValueId low = b.Op("Clip", {gate, b.Scalar(-2), b.Scalar(0.25)});
  const ValueId product = b.Op("Mul", {b.Op("Mul", {low, gate}), scale});
  b.Output(b.Op("Sub", {b.Scalar(1), b.Op("Pow", {product, b.Scalar(2)})}));
  EXPECT_EQ(CountFused(b), 1u);
  EXPECT_EQ(b.graph->node_count(), 1u);
  const Node& node = *b.graph->FindNode(static_cast<NodeId>(b.graph->node_capacity() - 1));
  EXPECT_EQ(node.inputs[0], x) << "the output may lie there";
  EXPECT_EQ(node.inputs.size(), 5u);
  EXPECT_EQ(node.GetInts("operands").size(), 14u);
}

TEST(FuseElementsTest, ValuesThatOthersReadStay) {
  B b;
  const ValueId x = b.Input("x", DataType::kFloat, kShape);
  const ValueId a = b.Op("Relu", {x}), c = b.Op("Neg", {a}), d = b.Op("Abs", {c});
  b.Output(d);
  b.Output(a);  // an output
  const ValueId e = b.Op("Exp", {x}), f = b.Op("Neg", {e});
  b.Output(b.Op("Add", {f, e}));  // both readers are in the group
  const ValueId g = b.Op("Tanh", {x});
  b.Output(b.Op("Softmax", {g}));  // another operator
  b.Output(b.Op("Neg", {g}));
  EXPECT_EQ(CountFused(b), 2u);
  EXPECT_EQ(b.graph->node_count(), 2u + 4u) << "Relu, Tanh, Softmax and the last Neg stay";
}

TEST(FuseElementsTest, OnlyResultsOfOneShapeAreFused) {
  const struct {
    const char* what;
    SymbolicShape other;
    bool is_fused;
  } cases[] = {
      {"the same", kShape, true},
      {"a number", {}, true},
      {"one element", {1, 1, 1}, true},
      {"a row", {64}, true},
      {"a matrix", {40, 64}, true},
      {"a column", {40, 1}, true},
      {"one for each image", {Dim::Symbol("n"), 1, 1}, true},
      {"a row for each image", {Dim::Symbol("n"), 1, 64}, false},
      {"a size that may be 1", {Dim::Symbol("m"), 1, 1}, false},
      {"a larger shape", {7, Dim::Symbol("n"), 40, 64}, false},
  };
  for (const auto& c : cases) {
    B b;
    const ValueId x = b.Input("x", DataType::kFloat, kShape);
    const ValueId other = b.Input("other", DataType::kFloat, c.other);
    b.Output(b.Op("Add", {b.Op("Neg", {x}), other}));
    EXPECT_EQ(CountFused(b), c.is_fused ? 1u : 0u) << c.what;
  }
  B b;
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{64, 40, 3});
  const ValueId channels = b.Input("channels", DataType::kFloat, SymbolicShape{3});
  b.Output(b.Op("Neg", {b.Op("Mul", {x, channels})}));
  EXPECT_EQ(CountFused(b), 0u) << "runs of three elements";
}

TEST(FuseElementsTest, OtherTypesAndUnknownShapesStay) {
  for (const DataType type : {DataType::kDouble, DataType::kFloat}) {
    for (const bool has_shape : {false, true}) {
      B b;
      const auto shape = has_shape ? std::optional<SymbolicShape>(kShape) : std::nullopt;
      const ValueId x = b.Input("x", type, shape);
      b.Output(b.Op("Neg", {b.Op("Abs", {x})}));
      EXPECT_EQ(CountFused(b), type == DataType::kFloat && has_shape ? 1u : 0u);
    }
  }
  B b;
  const ValueId x = b.Input("x", DataType::kFloat, kShape);
  const ValueId bound = b.Input("bound", DataType::kFloat, SymbolicShape{});
  b.Output(b.Op("Neg", {b.Op("Clip", {x, bound})}));
  EXPECT_EQ(CountFused(b), 0u) << "a bound that is known in the run alone";
}

// The parts of a training step keep their nodes.
TEST(FuseElementsTest, NothingMovesAcrossYieldOp) {
  B b;
  const ValueId x = b.Input("x", DataType::kFloat, kShape);
  const ValueId kept = b.Op("Abs", {b.Op("Neg", {x})});
  const ValueId y = b.Shaped(b.Op("YieldOp", {x}, {}, "com.microsoft"), kShape);
  b.Output(b.Op("Mul", {b.Op("Neg", {y}), kept}));
  EXPECT_EQ(CountFused(b), 2u);
  EXPECT_EQ(b.graph->node_count(), 3u);

  B parts;
  const auto yield = [&](ValueId value) {
    return parts.Shaped(parts.Op("YieldOp", {value}, {}, "com.microsoft"), kShape);
  };
  const ValueId first = yield(parts.Input("x", DataType::kFloat, kShape));
  const ValueId between = parts.Op("Abs", {parts.Op("Neg", {first})});
  const ValueId second = yield(first);
  parts.Output(parts.Op("Mul", {parts.Op("Neg", {second}), between}));
  EXPECT_EQ(CountFused(parts), 2u);
  EXPECT_EQ(parts.graph->node_count(), 4u);
}

TEST(FuseElementsTest, SubgraphsToo) {
  B body;
  const ValueId x = body.Input("x", DataType::kFloat, kShape);
  body.Output(body.Op("Neg", {body.Op("Abs", {x})}));
  InferForFusions(*body.graph);
  B b;
  const ValueId outer = b.Input("outer", DataType::kFloat, kShape);
  std::vector<Attribute> attributes;
  attributes.emplace_back("body", std::move(body.graph));
  b.Output(b.Op("Scan", {outer}, std::move(attributes)));
  FuseElements(*b.graph, -1);
  const Graph& inner = *b.graph->node(static_cast<NodeId>(0)).Subgraphs()[0];
  EXPECT_EQ(inner.node_count(), 1u);
}

Result<std::vector<Value>> RunSteps(std::vector<Value> inputs, std::vector<std::string> functions,
                                    std::vector<int64_t> operands, std::vector<float> parameters) {
  return RunOp({.op_type = "FusedElements",
                .opset = 1,
                .inputs = std::move(inputs),
                .attributes = MakeAttributes(Attr("functions", std::move(functions)),
                                             Attr("operands", std::move(operands)),
                                             Attr("parameters", std::move(parameters))),
                .domain = "com.tenon"});
}

TEST(FusedElementsTest, WrongStepsAreErrors) {
  const struct {
    std::vector<std::string> functions;
    std::vector<int64_t> operands;
    size_t parameters;
    const char* message;
  } cases[] = {
      {{}, {}, 0, "got 0 and 0 for 0"},
      {{"Relu"}, {0}, 2, "got 1 and 2 for 1"},
      {{"Relu"}, {0, -1}, 1, "got 2 and 1 for 1"},
      {{"Relu"}, {2, -1}, 2, "numbers below 2 for step 0, got 2"},
      {{"Add"}, {0, -1}, 2, "numbers below 2 for step 0, got -1"},
      {{"Relu", "Add"}, {0, -1, 2, 3}, 4, "numbers below 3 for step 1, got 3"},
      {{"MatMul"}, {0, 1}, 2, "'MatMul' is no element-wise function"},
  };
  const Tensor x = FilledWith<float>({3, 4}, 0);
  for (const auto& c : cases) {
    const auto y = RunSteps({x, x}, c.functions, c.operands, std::vector<float>(c.parameters));
    ASSERT_FALSE(y) << c.message;
    EXPECT_THAT(y.error().message(), testing::HasSubstr(c.message));
  }
}

TEST(FusedElementsTest, InputsThatDoNotFitAreErrors) {
  const Tensor x = FilledWith<float>({3, 4}, 0);
  for (const Shape& shape : {Shape{3, 4}, Shape{1, 4}, Shape{3, 1}, Shape{1, 1}}) {
    const Tensor z = FilledWith<float>(shape, 1);
    const auto y = RunSteps({x, z}, {"Neg", "Add"}, {0, -1, 2, 1}, {0, 0, 0, 0});
    ASSERT_TRUE(y) << y.error().message();
    for (int64_t row = 0; row < 3; ++row) {
      for (int64_t column = 0; column < 4; ++column) {
        const int64_t i = shape[0] == 1 ? 0 : row, k = shape[1] == 1 ? 0 : column;
        EXPECT_EQ((*y)[0].tensor().data<float>()[row * 4 + column],
                  z.data<float>()[i * shape[1] + k] - x.data<float>()[row * 4 + column]);
      }
    }
  }
  const auto message = [&](Shape shape) {
    const auto y = RunSteps({x, FilledWith<float>(std::move(shape), 1)}, {"Neg", "Add"},
                            {0, -1, 2, 1}, {0, 0, 0, 0});
    return y ? std::string("no error") : y.error().message();
  };
  EXPECT_THAT(message({2, 4}), testing::HasSubstr("broadcast"));
  EXPECT_THAT(message({3, 3}), testing::HasSubstr("broadcast"));
  const auto spread = RunSteps({FilledWith<float>({2, 3, 4}, 0), FilledWith<float>({2, 1, 4}, 1)},
                               {"Add"}, {0, 1}, {0, 0});
  ASSERT_FALSE(spread);
  EXPECT_EQ(spread.error().message(),
            "input 1: expected neighbouring dimensions of the output [2, 3, 4], got [2, 1, 4]");
}

}  // namespace
}  // namespace tenon
