#include "ir/extraction.h"

#include <gtest/gtest.h>

#include "ir/graph_builder.h"

namespace tenon {
namespace {

// x -> Relu -> a -> Sigmoid -> b -> Add(b, c) -> d -> Tanh -> y, with a constant c.
class ExtractionTest : public ::testing::Test {
 protected:
  ExtractionTest() {
    x_ = b_.Input("x");
    a_ = b_.Op("Relu", {x_});
    b1_ = b_.Op("Sigmoid", {a_});
    d_ = b_.Op("Add", {b1_, b_.Scalar(3)});
    y_ = b_.Op("Tanh", {d_});
    b_.Output(y_);
  }
  Graph& graph() { return *b_.graph; }
  NodeId Producer(ValueId id) { return graph().value(id).producer; }
  Result<Extraction> Extract(std::vector<NodeId> nodes, bool constants_are_inputs = true) {
    return ExtractNodes(graph(), nodes,
                        {.op_type = "Fused",
                         .domain = "test",
                         .name = "fused",
                         .provider = 3,
                         .constants_are_inputs = constants_are_inputs});
  }

  GraphBuilder b_;
  ValueId x_, a_, b1_, d_, y_;
};

TEST_F(ExtractionTest, OneNodeStandsForTheGroup) {
  const std::string before = GraphText(graph());
  const auto extraction = Extract({Producer(d_), Producer(b1_)});  // in any order
  ASSERT_TRUE(extraction) << extraction.error().message();
  const Node& call = graph().node(extraction->call);
  EXPECT_EQ(call.op_type, "Fused");
  EXPECT_EQ(call.provider, 3);
  ASSERT_EQ(call.inputs.size(), 2u);  // a, then the constant
  EXPECT_EQ(call.inputs[0], a_);
  EXPECT_NE(graph().ConstantOf(call.inputs[1]), nullptr);
  EXPECT_EQ(call.outputs, (std::vector<ValueId>{d_}));
  EXPECT_EQ(graph().node_count(), 3u);
  const Graph& body = *extraction->body;
  ASSERT_EQ(body.inputs.size(), 1u);
  EXPECT_EQ(body.node_count(), 2u);
  EXPECT_EQ(body.outputs().size(), 1u);
  EXPECT_NE(GraphText(body).find("Add("), std::string::npos);
  EXPECT_NE(GraphText(body).find("{3}"), std::string::npos);

  ASSERT_TRUE(PutBack(graph(), *extraction).ok());
  EXPECT_EQ(graph().node_count(), 4u);
  EXPECT_TRUE(graph().TopologicalOrder());
  EXPECT_NE(before, "");
}

TEST_F(ExtractionTest, ConstantsMayStayInTheBody) {
  const auto extraction = Extract({Producer(d_)}, false);
  EXPECT_EQ(graph().node(extraction->call).inputs, (std::vector<ValueId>{b1_}));
}

TEST_F(ExtractionTest, ValuesReadOutsideAreOutputs) {
  b_.Output(b1_);
  const auto extraction = Extract({Producer(a_), Producer(b1_), Producer(d_)});
  EXPECT_EQ(graph().node(extraction->call).outputs, (std::vector<ValueId>{b1_, d_}));
  EXPECT_EQ(graph().node(extraction->call).inputs[0], x_);
}

TEST_F(ExtractionTest, APathThatComesBackIsRefused) {
  const std::string before = GraphText(graph());
  const auto extraction = Extract({Producer(a_), Producer(d_)});
  ASSERT_FALSE(extraction);
  EXPECT_EQ(extraction.error().code(), StatusCode::kInvalidGraph);
  EXPECT_NE(extraction.error().message().find("Sigmoid node"), std::string::npos);
  EXPECT_EQ(GraphText(graph()), before);
}

TEST_F(ExtractionTest, GroupsThatAreNoneAreRefused) {
  EXPECT_EQ(Extract({}).error().message(), "a group of nodes to fuse is empty");
  EXPECT_NE(Extract({Producer(a_), Producer(a_)}).error().message().find("twice"),
            std::string::npos);
  EXPECT_NE(Extract({static_cast<NodeId>(99)}).error().message().find("node 99"),
            std::string::npos);
}

TEST_F(ExtractionTest, WhatSubgraphsCaptureIsAnInput) {
  auto branch = [&] {
    GraphBuilder inner;
    const ValueId captured = inner.Capture(a_, "a");
    inner.Output(inner.Op("Neg", {captured}));
    return std::move(inner.graph);
  };
  const ValueId condition = b_.Input("condition", DataType::kBool);
  std::vector<Attribute> attributes;
  attributes.emplace_back("then_branch", branch());
  attributes.emplace_back("else_branch", branch());
  const ValueId chosen = b_.Op("If", {condition}, std::move(attributes));
  b_.Output(chosen);
  const auto extraction = Extract({Producer(chosen)});
  ASSERT_TRUE(extraction) << extraction.error().message();
  EXPECT_EQ(graph().node(extraction->call).inputs, (std::vector<ValueId>{condition, a_}));
  // The captures of the copied branches refer to the body's input.
  const Graph& body = *extraction->body;
  for (size_t i = 0; i < body.node_capacity(); ++i) {
    const Node* node = body.FindNode(static_cast<NodeId>(i));
    for (const Graph* subgraph : node->Subgraphs()) {
      EXPECT_EQ(subgraph->captures.at(0).outer, body.inputs[1]);
    }
  }
}

}  // namespace
}  // namespace tenon
