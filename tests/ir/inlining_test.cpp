#include <gtest/gtest.h>

#include "ir/graph_builder.h"
#include "ir/passes.h"
#include "ir/schema.h"

namespace tenon {
namespace {

Attribute Reference(std::string name, std::string reference, AttributeType type) {
  Attribute attribute;
  attribute.name = std::move(name);
  attribute.reference = std::move(reference);
  attribute.referenced_type = type;
  return attribute;
}

Function MakeFunction(std::string name, GraphBuilder body) {
  Function function;
  function.name = std::move(name);
  function.domain = "local";
  function.body = std::move(body.graph);
  return function;
}

Model MakeModel(GraphBuilder graph) {
  Model model;
  model.graph = std::move(graph.graph);
  return model;
}

// f(x) = inner(x) for each name in `calls`, added up.
Function Calls(std::string name, const std::vector<std::string>& calls) {
  GraphBuilder b;
  ValueId value = b.Input("x");
  for (const std::string& callee : calls) value = b.Op(callee, {value}, {}, "local");
  b.Output(value);
  return MakeFunction(std::move(name), std::move(b));
}

TEST(InlineFunctionsTest, BodiesReplaceCallsWithTheirAttributes) {
  GraphBuilder body;
  const ValueId p = body.Input("p");
  const ValueId soft =
      body.Op("Softmax", {p}, MakeAttributes(Reference("axis", "along", AttributeType::kInt)));
  const ValueId leaky = body.Op("LeakyRelu", {soft},
                                MakeAttributes(Reference("alpha", "slope", AttributeType::kFloat),
                                               Reference("other", "absent", AttributeType::kInt)));
  body.Output(leaky);
  Function function = MakeFunction("Act", std::move(body));
  function.attributes.push_back(Attr("slope", 0.25F));

  GraphBuilder b;
  const ValueId x = b.Input("x");
  const ValueId y = b.Op("Act", {x}, MakeAttributes(Attr("along", int64_t{1})), "local");
  b.Output(
      b.Op("Act", {y}, MakeAttributes(Attr("along", int64_t{0}), Attr("slope", 0.5F)), "local"));
  Model model = MakeModel(std::move(b));
  model.functions.push_back(std::move(function));
  ASSERT_TRUE(InlineFunctions(model).ok());
  EXPECT_EQ(GraphText(*model.graph),
            "Act0/v = Softmax<axis=1>(x)\nv = LeakyRelu<alpha=0.25>(Act0/v)\n"
            "Act1/v = Softmax<axis=0>(v)\nv_2 = LeakyRelu<alpha=0.5>(Act1/v)\nreturn v_2");
  EXPECT_TRUE(model.functions.empty());
  EXPECT_EQ(model.graph->node(model.graph->value(model.graph->outputs()[0].value).producer).name,
            "Act1/LeakyRelu1");
}

TEST(InlineFunctionsTest, NestedCallsOverloadsAndInputsLeftOut) {
  GraphBuilder inner;
  const ValueId low = inner.Input("x");
  const ValueId limit = inner.Input("limit");
  inner.Output(inner.Op("Clip", {low, limit}));
  GraphBuilder overloaded;
  overloaded.Output(overloaded.Op("Neg", {overloaded.Input("x")}));
  Function other = MakeFunction("Inner", std::move(overloaded));
  other.overload = "second";

  GraphBuilder b;
  const ValueId x = b.Input("x");
  const ValueId first = b.Op("Outer", {x}, {}, "local");
  const ValueId second = b.Op("Inner", {first}, {}, "local");
  b.graph->node(b.graph->value(second).producer).overload = "second";
  b.Output(second);
  Model model = MakeModel(std::move(b));
  model.functions.push_back(Calls("Outer", {"Inner", "Inner"}));
  model.functions.push_back(MakeFunction("Inner", std::move(inner)));
  model.functions.push_back(std::move(other));
  ASSERT_TRUE(InlineFunctions(model).ok());
  EXPECT_EQ(GraphText(*model.graph),
            "Outer0/v = Clip(x, _)\nv = Clip(Outer0/v, _)\nv_2 = Neg(v)\nreturn v_2");
}

TEST(InlineFunctionsTest, PassesOnInputsAndInitializersAndRepeatedOutputs) {
  GraphBuilder body;
  const ValueId p = body.Input("p");
  const ValueId y = body.Op("Neg", {p});
  body.Output(p);
  body.Output(y);
  body.Output(y);
  body.Output(body.Constant(Tensor::Of<float>({}, {4})));
  GraphBuilder b;
  for (const ValueId output : b.OpN("Pass", {b.Input("x")}, 4, {}, "local")) b.Output(output);
  Model model = MakeModel(std::move(b));
  model.functions.push_back(MakeFunction("Pass", std::move(body)));
  ASSERT_TRUE(InlineFunctions(model).ok());
  EXPECT_EQ(GraphText(*model.graph),
            "v_2 = Neg(x)\nv = Identity(x)\nv_3 = Identity(v_2)\nv_4 = Identity({4})\n"
            "return v, v_2, v_3, v_4");
}

TEST(InlineFunctionsTest, SubgraphsOfBodiesSeeTheCallersValues) {
  GraphBuilder body;
  const ValueId p = body.Input("p");
  const ValueId condition = body.Input("condition");
  GraphBuilder branch;
  branch.Output(branch.Op("LeakyRelu", {branch.Capture(p, "p")},
                          MakeAttributes(Reference("alpha", "slope", AttributeType::kFloat))));
  body.Output(
      body.Op("If", {condition}, MakeAttributes(Attr("then_branch", std::move(branch.graph)))));
  GraphBuilder b;
  const ValueId x = b.Input("x");
  const ValueId flag = b.Input("flag", DataType::kBool);
  b.Output(b.Op("Branch", {x, flag}, MakeAttributes(Attr("slope", 0.5F)), "local"));
  Model model = MakeModel(std::move(b));
  model.functions.push_back(MakeFunction("Branch", std::move(body)));
  ASSERT_TRUE(InlineFunctions(model).ok());
  EXPECT_EQ(GraphText(*model.graph), "v = If<then_branch=...>(flag)\nreturn v");
  const NodeId node = model.graph->value(model.graph->outputs()[0].value).producer;
  const Graph& copy = *model.graph->node(node).Subgraphs()[0];
  EXPECT_EQ(copy.captures[0].outer, x);
  EXPECT_EQ(GraphText(copy), "Branch0/v = LeakyRelu<alpha=0.5>(x)\nreturn Branch0/v");
}

// Operators such as BeamSearch find the inputs of their subgraphs by name.
TEST(InlineFunctionsTest, InputsAndOutputsOfSubgraphsKeepTheirNames) {
  GraphBuilder decoder;
  decoder.Output(decoder.Op("Neg", {decoder.Input("input_ids")}));
  decoder.Output(decoder.Op("Abs", {decoder.Input("past_0")}));
  GraphBuilder body;
  const ValueId p = body.Input("p");
  body.Output(
      body.Op("BeamSearch", {p}, MakeAttributes(Attr("decoder", std::move(decoder.graph)))));
  GraphBuilder b;
  b.Output(b.Op("Search", {b.Input("x")}, {}, "local"));
  Model model = MakeModel(std::move(b));
  model.functions.push_back(MakeFunction("Search", std::move(body)));
  ASSERT_TRUE(InlineFunctions(model).ok());
  const NodeId node = model.graph->value(model.graph->outputs()[0].value).producer;
  const Graph& copy = *model.graph->node(node).Subgraphs()[0];
  ASSERT_EQ(copy.inputs.size(), 2u);
  EXPECT_EQ(copy.value(copy.inputs[0]).name, "input_ids");
  EXPECT_EQ(copy.value(copy.inputs[1]).name, "past_0");
  ASSERT_EQ(copy.outputs().size(), 2u);
  EXPECT_EQ(copy.outputs()[0].name, "v");
}

TEST(InlineFunctionsTest, RecursionIsRefusedByName) {
  GraphBuilder b;
  b.Output(b.Op("A", {b.Input("x")}, {}, "local"));
  Model model = MakeModel(std::move(b));
  model.functions.push_back(Calls("A", {"B"}));
  model.functions.push_back(Calls("B", {"C"}));
  model.functions.push_back(Calls("C", {"B"}));
  const Status status = InlineFunctions(model);
  EXPECT_EQ(status.code(), StatusCode::kInvalidGraph);
  EXPECT_EQ(status.message(), "function 'B' calls itself: B -> C -> B");
}

TEST(InlineFunctionsTest, ExponentialAndDeepCallsAreRefused) {
  const auto build = [](int levels, size_t calls) {
    GraphBuilder b;
    b.Output(b.Op("f0", {b.Input("x")}, {}, "local"));
    Model model = MakeModel(std::move(b));
    for (int i = 0; i < levels; ++i) {
      model.functions.push_back(
          Calls(Format("f{}", i), std::vector<std::string>(calls, Format("f{}", i + 1))));
    }
    return InlineFunctions(model);
  };
  EXPECT_TRUE(build(50, 1).ok());
  EXPECT_EQ(build(50, 2).message(), "inlining the model's functions gives more than 1000000 nodes");
  EXPECT_EQ(build(20000, 1).code(), StatusCode::kInvalidGraph);
}

TEST(InlineFunctionsTest, TooManyInputsAreRefused) {
  GraphBuilder b;
  const ValueId x = b.Input("x");
  b.Output(b.Op("A", {x, x}, {}, "local"));
  Model model = MakeModel(std::move(b));
  model.functions.push_back(Calls("A", {}));
  EXPECT_EQ(InlineFunctions(model).message(),
            "A node 'A0': expected at most 1 inputs and 1 outputs, got 2 and 1");
}

TEST(ConstantIfTest, TheBranchTakenReplacesTheIf) {
  for (const bool condition : {false, true}) {
    GraphBuilder b;
    const ValueId x = b.Input("x");
    const auto branch = [&](const char* op) {
      GraphBuilder body;
      body.Output(body.Op(op, {body.Capture(x, "inner")}));
      return std::move(body.graph);
    };
    b.Output(b.Op(
        "If", {b.Constant(Tensor::Of<bool>({}, {condition}))},
        MakeAttributes(Attr("then_branch", branch("Neg")), Attr("else_branch", branch("Abs")))));
    size_t changes = 0;
    ASSERT_TRUE(InlineConstantIfs(*b.graph, &changes).ok());
    EXPECT_EQ(changes, 1u);
    EXPECT_EQ(GraphText(*b.graph), Format("v = {}(x)\nreturn v", condition ? "Neg" : "Abs"));
    EXPECT_EQ(b.graph->value(x).consumers.size(), 1u);
  }
}

TEST(ExpandOperatorsTest, FunctionBodiesReplaceOperatorsWithoutKernels) {
  GraphBuilder b(18);
  b.Output(b.Op("Selu", {b.Input("x")}, MakeAttributes(Attr("alpha", 2.0F))));
  ASSERT_TRUE(ExpandOperators(*b.graph, [](const Graph&, const Node& node) {
                return node.op_type != "Selu";
              }).ok());
  const std::string text = GraphText(*b.graph);
  EXPECT_EQ(text.find("= Selu"), std::string::npos) << text;
  EXPECT_NE(text.find("Exp("), std::string::npos) << text;
  for (size_t i = 0; i < b.graph->node_capacity(); ++i) {
    const Node* node = b.graph->FindNode(static_cast<NodeId>(i));
    if (node == nullptr) continue;
    EXPECT_NE(node->schema, nullptr) << node->Describe();
  }
}

TEST(ExpandOperatorsTest, EveryBodyOfTheSchemasExpandsToOperatorsOfTheStandard) {
  size_t bodies = 0;
  for (const OpSchema& schema : AllSchemas()) {
    if (schema.function_body.empty()) continue;
    ++bodies;
    GraphBuilder b(schema.since);
    std::vector<ValueId> inputs;
    const auto count = static_cast<size_t>(schema.max_inputs);
    for (size_t i = 0; i < std::min<size_t>(count, schema.inputs.size()); ++i) {
      inputs.push_back(b.Input(Format("input{}", i)));
    }
    const auto outputs =
        b.OpN(std::string(schema.name), inputs, static_cast<size_t>(schema.min_outputs), {},
              std::string(schema.domain));
    for (const ValueId output : outputs) b.Output(output);
    Node& node = b.graph->node(static_cast<NodeId>(0));
    node.schema = &schema;
    // Everything that has a body is expanded, down to what has none.
    const Status status =
        ExpandOperators(*b.graph, [](const Graph&, const Node&) { return false; });
    ASSERT_TRUE(status.ok()) << schema.name << "-" << schema.since << ": " << status.message();
    EXPECT_GT(b.graph->node_count(), 0u);
    EXPECT_TRUE(b.graph->TopologicalOrder()) << schema.name;
    for (const GraphOutput& output : b.graph->outputs()) {
      EXPECT_NE(b.graph->value(output.value).producer, NodeId::kNone) << schema.name;
    }
  }
  EXPECT_GT(bodies, 10u);
}

}  // namespace
}  // namespace tenon
