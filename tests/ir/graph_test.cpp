#include "ir/graph.h"

#include <gtest/gtest.h>

#include "ir/graph_builder.h"

namespace tenon {
namespace {

// y = Relu(Add(x, x)); the nodes are added in the wrong order.
struct SmallGraph {
  SmallGraph() {
    x = graph.AddValue("x");
    sum = graph.AddValue("sum");
    y = graph.AddValue("y");
    graph.AddInput(x);
    relu = graph.AddNode({.op_type = "Relu", .inputs = {sum}, .outputs = {y}}).id;
    add = graph.AddNode({.op_type = "Add", .inputs = {x, x}, .outputs = {sum}, .name = "plus"}).id;
    graph.AddOutput("y", y);
  }
  Graph graph;
  ValueId x, sum, y;
  NodeId relu, add;
};

TEST(GraphTest, TracksProducersAndConsumers) {
  SmallGraph g;
  EXPECT_EQ(g.graph.value(g.sum).producer, g.add);
  EXPECT_EQ(g.graph.value(g.x).consumers.size(), 2u);
  EXPECT_FALSE(g.graph.HasOneUse(g.x));
  EXPECT_TRUE(g.graph.HasOneUse(g.sum));
  EXPECT_FALSE(g.graph.IsUnused(g.y));
}

TEST(GraphTest, ConstantsAreAlignedWhenRead) {
  const auto bytes = std::make_shared<std::string>(9, '\0');
  Graph graph;
  const ValueId id = graph.AddInitializer(
      "w", Tensor::ReadOnlyView(DataType::kFloat, {2}, bytes->data() + 1, bytes));
  const Tensor* stored = graph.StoredConstantOf(id);
  ASSERT_TRUE(stored);
  EXPECT_FALSE(stored->is_aligned());
  const Tensor* constant = graph.ConstantOf(id);
  ASSERT_TRUE(constant);
  EXPECT_TRUE(constant->is_aligned());
  EXPECT_EQ(constant->data<float>()[1], 0);
  EXPECT_EQ(graph.StoredConstantOf(id)->raw(), constant->raw());
}

TEST(GraphTest, OrdersTopologicallyAndNamesCycles) {
  SmallGraph g;
  EXPECT_EQ(g.graph.TopologicalOrder().value(), (std::vector<NodeId>{g.add, g.relu}));
  g.graph.SetInput(g.add, 1, g.y);
  const auto cyclic = g.graph.TopologicalOrder();
  ASSERT_FALSE(cyclic);
  EXPECT_EQ(cyclic.error().code(), StatusCode::kInvalidGraph);
  EXPECT_NE(cyclic.error().message().find("Add node 'plus'"), std::string::npos);
}

// What is computed before a YieldOp stays there when other nodes are put in its place.
TEST(GraphTest, PartsKeepTheirNodes) {
  GraphBuilder b;
  const auto id_of = [&](ValueId value) { return b.graph->value(value).producer; };
  const ValueId x = b.Input("x"), kept = b.Op("Relu", {x}), y = b.Op("Neg", {x});
  const ValueId dy = b.Op("YieldOp", {y}, {}, "com.microsoft");
  const ValueId again = b.Op("Exp", {x}), z = b.Op("Sum", {kept, dy, again});
  b.Output(z);
  ASSERT_TRUE(b.graph->SettleParts().ok());

  const auto replace = [&](ValueId value, bool has_part) {
    const Node& old = b.graph->node(id_of(value));
    NodeSpec spec = {.op_type = "Abs", .inputs = old.inputs, .outputs = old.outputs};
    const int32_t part = has_part ? old.part : kNoPart;
    b.graph->RemoveNode(old.id);
    b.graph->AddNode(std::move(spec)).part = part;
  };
  replace(kept, true);
  replace(again, true);
  const std::unique_ptr<Graph> clone = b.graph->Clone();
  for (const Graph* graph : {b.graph.get(), clone.get()}) {
    EXPECT_EQ(graph->TopologicalOrder().value(),
              (std::vector{id_of(y), id_of(kept), id_of(dy), id_of(again), id_of(z)}));
  }
  replace(kept, false);
  EXPECT_EQ(b.graph->TopologicalOrder().value(),
            (std::vector{id_of(y), id_of(dy), id_of(again), id_of(kept), id_of(z)}))
      << "its first reader is after the YieldOp";
  replace(y, false);
  EXPECT_EQ(b.graph->TopologicalOrder().value(),
            (std::vector{id_of(y), id_of(dy), id_of(again), id_of(kept), id_of(z)}))
      << "the YieldOp reads it";
}

TEST(GraphTest, ReplacesUsesEverywhere) {
  SmallGraph g;
  g.graph.ReplaceUses(g.y, g.sum);
  g.graph.RemoveNode(g.relu);
  EXPECT_EQ(g.graph.outputs()[0].value, g.sum);
  EXPECT_EQ(g.graph.outputs()[0].name, "y");
  EXPECT_EQ(g.graph.node_count(), 1u);
  g.graph.ReplaceUses(g.sum, g.x);
  EXPECT_TRUE(g.graph.IsUnused(g.sum));
}

TEST(GraphTest, CapturesCountAsUsesAndFollowReplacement) {
  SmallGraph g;
  auto body = std::make_unique<Graph>();
  const ValueId inner = body->AddValue("sum_inside");
  body->captures.push_back({g.sum, inner});
  body->AddOutput("out", inner);
  std::vector<Attribute> attributes;
  attributes.emplace_back("then_branch", std::move(body));
  const ValueId z = g.graph.AddValue("z");
  const NodeId branch = g.graph
                            .AddNode({.op_type = "If",
                                      .inputs = {g.x},
                                      .outputs = {z},
                                      .attributes = std::move(attributes)})
                            .id;
  EXPECT_EQ(g.graph.value(g.sum).consumers.size(), 2u);
  const auto copy = g.graph.Clone();
  g.graph.ReplaceUses(g.sum, g.x);
  EXPECT_EQ(g.graph.node(branch).Subgraphs()[0]->captures[0].outer, g.x);
  EXPECT_EQ(copy->node(branch).Subgraphs()[0]->captures[0].outer, g.sum);
  EXPECT_TRUE(g.graph.IsUnused(g.sum));
}

TEST(GraphTest, DropsUnusedValues) {
  SmallGraph g;
  auto body = std::make_unique<Graph>();
  body->AddValue("left over");
  const ValueId inner = body->AddValue("sum_inside");
  body->captures.push_back({g.sum, inner});
  body->AddOutput("out", inner);
  std::vector<Attribute> attributes;
  attributes.emplace_back("then_branch", std::move(body));
  g.graph.AddInitializer("unused weights", Tensor::Of<float>({1}, {1}));
  const ValueId unread_input = g.graph.AddValue("unread input");
  g.graph.AddInput(unread_input);
  const ValueId z = g.graph.AddValue("z");  // made by the branch, never read
  const NodeId branch = g.graph
                            .AddNode({.op_type = "If",
                                      .inputs = {g.x},
                                      .outputs = {z},
                                      .attributes = std::move(attributes)})
                            .id;
  g.graph.ReplaceUses(g.x, g.y);
  g.graph.SetInput(g.add, 0, g.sum);
  g.graph.ReplaceUses(g.y, g.sum);
  g.graph.RemoveNode(g.relu);

  g.graph.DropUnusedValues();
  EXPECT_EQ(g.graph.value_count(), 4u);  // x and the unread input, sum, z
  for (const char* name : {"y", "unused weights"}) {
    EXPECT_EQ(g.graph.FindValue(name), ValueId::kNone) << name;
  }
  ASSERT_EQ(g.graph.inputs.size(), 2u);
  EXPECT_EQ(g.graph.inputs[0], g.graph.FindValue("x"));
  EXPECT_EQ(g.graph.inputs[1], g.graph.FindValue("unread input"));
  const ValueId sum = g.graph.FindValue("sum");
  EXPECT_EQ(g.graph.outputs()[0].value, sum);
  EXPECT_EQ(g.graph.value(sum).producer, g.add);
  EXPECT_EQ(g.graph.node(g.add).outputs[0], sum);
  EXPECT_EQ(g.graph.node(g.add).inputs[0], sum);
  EXPECT_EQ(g.graph.node(branch).outputs[0], g.graph.FindValue("z"));
  const Graph& subgraph = *g.graph.node(branch).Subgraphs()[0];
  EXPECT_EQ(subgraph.value_count(), 1u);
  EXPECT_EQ(subgraph.captures[0].outer, sum);
  EXPECT_EQ(subgraph.captures[0].inner, subgraph.FindValue("sum_inside"));
  EXPECT_EQ(subgraph.outputs()[0].value, subgraph.captures[0].inner);
}

TEST(GraphTest, ConstantsAreInitializersThatNothingOverrides) {
  Graph graph;
  const ValueId w = graph.AddInitializer("w", Tensor::Of<float>({2}, {1, 2}));
  EXPECT_NE(graph.ConstantOf(w), nullptr);
  graph.AddInput(w);
  EXPECT_EQ(graph.ConstantOf(w), nullptr);
  EXPECT_EQ(graph.UnusedName("w"), "w_1");
}

}  // namespace
}  // namespace tenon
