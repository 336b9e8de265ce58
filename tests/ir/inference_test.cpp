#include "ir/inference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "ir/graph_builder.h"

namespace tenon {
namespace {

using testing::StartsWith;

Status SameAsInput(const Node&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  return context.SetOutput(0, std::move(shape));
}

Status Broadcast(const Node&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape a, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape b, context.Input(1));
  const auto left = context.KnownDims(0);
  const auto right = context.KnownDims(1);
  if (left && right && left->size() == right->size()) {
    Dims products;
    for (size_t i = 0; i < left->size(); ++i) products.push_back((*left)[i] * (*right)[i]);
    context.SetOutputDims(0, std::move(products));
  }
  if (a.rank() == b.rank() && a[0].is_number() && b[0].is_number() && !(a[0] == b[0])) {
    return InvalidArgument("input 1: expected {} as of input 0, got {}", a[0], b[0]);
  }
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, BroadcastShapes(a, b));
  return context.SetOutput(0, std::move(shape));
}

Status ShapeOf(const Node&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape input, context.Input(0));
  context.SetOutputDims(0, input.dims());
  return context.SetOutput(0, {Dim(static_cast<int64_t>(input.rank()))}, DataType::kInt64);
}

Status Expand(const Node&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(Dims dims, context.InputAsDims(1));
  return context.SetOutput(0, SymbolicShape(std::move(dims)));
}

Status If(const Node&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const std::vector<ValueType> types,
                         context.InferSubgraph("then_branch", {}));
  return context.SetOutputType(0, types[0]);
}

// Runs the body once with the known types and once more without shapes, as Loop does.
Status Loop(const Node&, ShapeContext& context) {
  ValueType carried = context.InputType(0);
  TENON_RETURN_IF_ERROR(context.InferSubgraph("body", {carried}));
  carried.shape.reset();
  TENON_ASSIGN_OR_RETURN(const auto types, context.InferSubgraph("body", {carried}));
  return context.SetOutputType(0, types[0]);
}

class Functions final : public ShapeFunctionTable {
 public:
  ShapeFunction Find(const Node& node) const override {
    static const std::map<std::string, ShapeFunction> functions = {
        {"Relu", SameAsInput}, {"Add", Broadcast}, {"Mul", Broadcast}, {"Shape", ShapeOf},
        {"Expand", Expand},    {"If", If},         {"Loop", Loop}};
    const auto found = functions.find(node.op_type);
    return found == functions.end() ? nullptr : found->second;
  }
};

std::string TypeText(const Graph& graph, ValueId id) { return graph.value(id).type.ToString(); }
Status Infer(Graph& graph, bool strict = false) {
  return InferTypes(graph, Functions(), {.strict = strict});
}

TEST(InferenceTest, FollowsSymbolsThroughTheGraph) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{Dim::Symbol("n"), Dim(3)});
  const ValueId y = b.Op("Add", {b.Op("Relu", {x}), b.Scalar(1)});
  b.Output(y);
  ASSERT_TRUE(Infer(*b.graph).ok());
  EXPECT_EQ(TypeText(*b.graph, y), "tensor(float) [n, 3]");
}

TEST(InferenceTest, ChecksTheTypesOfInputs) {
  const SymbolicShape shape = {Dim(2), Dim(2)};
  const auto error_of = [&](const char* op_type, std::vector<DataType> types,
                            const char* domain = "") {
    GraphBuilder b(domain[0] == 0 ? 20 : 1);
    std::vector<ValueId> inputs;
    for (const DataType type : types) {
      inputs.push_back(b.Input(Format("x{}", inputs.size()), type, shape));
    }
    b.Op(op_type, std::move(inputs), {}, domain);
    // Without the description of the node and its inputs at the end.
    const std::string text(Infer(*b.graph).message());
    return text.substr(0, text.find(" (node"));
  };
  using T = DataType;
  EXPECT_EQ(error_of("MatMul", {T::kFloat, T::kFloat}), "");
  EXPECT_EQ(error_of("Gather", {T::kFloat, T::kInt32}), "");
  EXPECT_EQ(error_of("Concat", {T::kInt8, T::kInt8, T::kInt8}), "");
  EXPECT_EQ(error_of("MatMul", {T::kFloat, T::kUndefined}), "");
  EXPECT_EQ(error_of("MatMul", {T::kFloat, T::kInt32}),
            "MatMul-13 node 'MatMul0': input 1 'x1': expected tensor(float) as input 0 'x0', "
            "got tensor(int32)");
  EXPECT_EQ(error_of("Gather", {T::kFloat, T::kFloat}),
            "Gather-13 node 'Gather0': input 1 'x1': expected one of tensor(int32), tensor(int64), "
            "got tensor(float)");
  EXPECT_EQ(error_of("Concat", {T::kInt8, T::kInt8, T::kInt16}),
            "Concat-13 node 'Concat0': input 2 'x2': expected tensor(int8) as input 0 "
            "'x0', got tensor(int16)");
  EXPECT_EQ(error_of("Reshape", {T::kFloat, T::kInt32}),
            "Reshape-19 node 'Reshape0': input 1 'x1': expected one of tensor(int64), got "
            "tensor(int32)");
  EXPECT_THAT(error_of("SequenceLength", {T::kFloat}),
              StartsWith("SequenceLength-11 node 'SequenceLength0': input 0 'x0': expected one of "
                         "seq(tensor(float))"));
  // Halves only, by its schema.
  EXPECT_EQ(error_of("RelativePositionBias", {T::kDouble, T::kInt64, T::kInt64}, "com.microsoft"),
            "");
  EXPECT_EQ(error_of("RelativePositionBias", {T::kFloat, T::kInt8, T::kInt8}, "com.microsoft"),
            "com.microsoft.RelativePositionBias-1 node 'RelativePositionBias0': input 1 'x1': "
            "expected one of "
            "tensor(int64), got tensor(int8)");
}

// A call of a function may leave out an input that a node of its body needs.
TEST(InferenceTest, RequiredInputsAreThere) {
  GraphBuilder b(20);
  b.Op("Identity", {ValueId::kNone});
  EXPECT_THAT(Infer(*b.graph).message(),
              StartsWith("Identity-19 node 'Identity0': input 0 is required and missing"));
}

TEST(InferenceTest, NamesUnknownDimensionsOfInputs) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{Dim::Unknown(), Dim(3)});
  const ValueId y = b.Op("Add", {x, b.Op("Relu", {x})});
  ASSERT_TRUE(Infer(*b.graph).ok());
  EXPECT_EQ(TypeText(*b.graph, y), "tensor(float) [x.0, 3]");
}

TEST(InferenceTest, FollowsElementsOfShapeComputations) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{Dim::Symbol("n"), Dim(3)});
  const ValueId shape = b.Op("Mul", {b.Op("Shape", {x}), b.Ints({2, 5})});
  const ValueId y = b.Op("Expand", {x, shape});
  KnownElements known;
  ASSERT_TRUE(InferTypes(*b.graph, Functions(), {}, &known).ok());
  EXPECT_EQ(TypeText(*b.graph, y), "tensor(float) [2*n, 15]");
  EXPECT_EQ(SymbolicShape(known[b.graph.get()][shape]).ToString(), "[2*n, 15]");
}

TEST(InferenceTest, KnowsTheRankThatAnUnknownShapeGives) {
  GraphBuilder b;
  const ValueId x = b.Input("x");
  const ValueId shape = b.Input("shape", DataType::kInt64, SymbolicShape{Dim(2)});
  const ValueId y = b.Op("Expand", {x, shape});
  ASSERT_TRUE(Infer(*b.graph).ok());
  EXPECT_EQ(TypeText(*b.graph, y), "tensor(float) [v.0, v.1]");
}

TEST(InferenceTest, ReadsConstantNodes) {
  GraphBuilder b;
  const ValueId x = b.Input("x");
  const ValueId shape =
      b.Op("Constant", {}, MakeAttributes(Attr("value_ints", std::vector<int64_t>{4, 5})));
  const ValueId y = b.Op("Expand", {x, shape});
  ASSERT_TRUE(Infer(*b.graph).ok());
  EXPECT_EQ(TypeText(*b.graph, shape), "tensor(int64) [2]");
  EXPECT_EQ(TypeText(*b.graph, y), "tensor(float) [4, 5]");
}

TEST(InferenceTest, OperatorsWithoutShapeFunctionKeepWhatIsDeclared) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{Dim(2)});
  const ValueId y = b.Op("Tanh", {x});
  const ValueId z = b.Op("Sin", {x});
  b.graph->value(z).type = ValueType::Tensor(DataType::kFloat, SymbolicShape{Dim(2)});
  ASSERT_TRUE(Infer(*b.graph).ok());
  EXPECT_EQ(TypeText(*b.graph, y), "tensor(float)");
  EXPECT_EQ(TypeText(*b.graph, z), "tensor(float) [2]");
}

TEST(InferenceTest, DeclaredTypesFillGapsAndContradictionsDependOnStrictness) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{Dim::Symbol("n"), Dim(3)});
  const ValueId y = b.Op("Relu", {x});
  const auto declare = [&](SymbolicShape shape) {
    b.graph->value(y).type = ValueType::Tensor(DataType::kFloat, std::move(shape));
  };
  declare({Dim(7), Dim::Unknown()});
  ASSERT_TRUE(Infer(*b.graph, true).ok());
  EXPECT_EQ(TypeText(*b.graph, y), "tensor(float) [7, 3]");
  declare({Dim(7), Dim(4)});
  ASSERT_TRUE(Infer(*b.graph).ok());
  EXPECT_EQ(TypeText(*b.graph, y), "tensor(float) [n, 3]");
  declare({Dim(7), Dim(4)});
  const Status status = Infer(*b.graph, true);
  EXPECT_EQ(status.code(), StatusCode::kInvalidGraph);
  EXPECT_EQ(status.message(),
            "Relu-14 node 'Relu0': output 0 'v': expected tensor(float) [7, 4] as the model "
            "declares, got tensor(float) [n, 3] (node 0 of graph '', ai.onnx opset 20; inputs: 'x' "
            "tensor(float) [n, 3])");
}

TEST(InferenceTest, FailuresNameNodeOperatorAndValues) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{Dim(2)});
  const ValueId w = b.Input("w_up", DataType::kFloat, SymbolicShape{Dim(3)});
  b.Output(b.Op("Add", {x, w}));
  const Status status = Infer(*b.graph);
  EXPECT_EQ(status.code(), StatusCode::kInvalidGraph);
  EXPECT_EQ(status.message(),
            "Add-14 node 'Add0': input 1 'w_up': expected 2 as of input 0 'x', got 3 (node 0 of "
            "graph '', ai.onnx opset 20; inputs: 'x' tensor(float) [2], 'w_up' tensor(float) [3])");
}

TEST(InferenceTest, CapturedTypesAndConstantsReachSubgraphs) {
  GraphBuilder b;
  const ValueId condition = b.Input("condition", DataType::kBool, SymbolicShape{});
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{Dim::Symbol("n")});
  const ValueId shape = b.Ints({6, 7});
  GraphBuilder then_branch;
  const ValueId inner = then_branch.Op(
      "Expand", {then_branch.Capture(x, "inner_x"), then_branch.Capture(shape, "inner_shape")});
  then_branch.Output(inner);
  GraphBuilder else_branch;
  const ValueId other = else_branch.Op("Relu", {else_branch.Capture(x, "other_x")});
  else_branch.Output(other);
  const Graph& then_graph = *then_branch.graph;
  const Graph& else_graph = *else_branch.graph;
  const ValueId y = b.Op("If", {condition},
                         MakeAttributes(Attr("then_branch", std::move(then_branch.graph)),
                                        Attr("else_branch", std::move(else_branch.graph))));
  ASSERT_TRUE(Infer(*b.graph).ok());
  EXPECT_EQ(TypeText(then_graph, inner), "tensor(float) [6, 7]");
  EXPECT_EQ(TypeText(else_graph, other), "tensor(float) [n]") << "a captured type reaches Relu";
  EXPECT_EQ(TypeText(*b.graph, y), "tensor(float) [6, 7]");
}

TEST(InferenceTest, ALaterRunOfASubgraphForgetsTheEarlierOne) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kInt64, SymbolicShape{Dim(2)});
  GraphBuilder body;
  body.Output(body.Op("Relu", {body.Input("carried")}));
  const ValueId y = b.Op("Loop", {x}, MakeAttributes(Attr("body", std::move(body.graph))));
  ASSERT_TRUE(Infer(*b.graph).ok());
  EXPECT_EQ(TypeText(*b.graph, y), "tensor(int64)");
  ASSERT_TRUE(Infer(*b.graph).ok());
  EXPECT_EQ(TypeText(*b.graph, y), "tensor(int64)");
}

TEST(InferenceTest, DeeplyNestedLoopsEndInBoundedTime) {
  auto inner = std::make_unique<Graph>();
  for (int depth = 0; depth < 60; ++depth) {
    GraphBuilder body;
    const ValueId carried = body.Input("carried");
    body.Output(depth == 0
                    ? body.Op("Relu", {carried})
                    : body.Op("Loop", {carried}, MakeAttributes(Attr("body", std::move(inner)))));
    inner = std::move(body.graph);
  }
  EXPECT_EQ(Infer(*inner).code(), StatusCode::kInvalidGraph);
}

TEST(InferenceTest, CyclesAreRefused) {
  GraphBuilder b;
  const ValueId x = b.Input("x");
  const ValueId y = b.Op("Add", {x, x});
  b.graph->SetInput(b.graph->value(y).producer, 1, y);
  EXPECT_EQ(Infer(*b.graph).code(), StatusCode::kInvalidGraph);
}

TEST(InferenceTest, BranchesThatMayNeverRunMayHoldShapesThatDoNotFit) {
  GraphBuilder b;
  const ValueId condition = b.Input("condition", DataType::kBool, SymbolicShape());
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{Dim(2)});
  GraphBuilder then_branch;
  const ValueId weights = then_branch.Constant(Tensor::Of<float>({3}, {1, 2, 3}));
  then_branch.Output(then_branch.Op("Add", {then_branch.Capture(x, "inner_x"), weights}));
  GraphBuilder else_branch;
  else_branch.Output(else_branch.Op("Relu", {else_branch.Capture(x, "other_x")}));
  b.Op("If", {condition},
       MakeAttributes(Attr("then_branch", std::move(then_branch.graph)),
                      Attr("else_branch", std::move(else_branch.graph))));
  EXPECT_TRUE(Infer(*b.graph).ok());
}

}  // namespace
}  // namespace tenon
