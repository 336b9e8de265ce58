// The reader's messages for wrong models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/proto_message.h"

namespace tenon {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Message GraphOf(std::initializer_list<Message> nodes) {
  Message graph = Message()
                      .Bytes(GraphField::kName, "g")
                      .Add(GraphField::kInput, FloatValue("x", {2}))
                      .Add(GraphField::kOutput, FloatValue("y", {2}));
  for (const Message& node : nodes) graph.Add(GraphField::kNode, node);
  return graph;
}

TEST(ReaderErrorsTest, NamesMistakesInGraphs) {
  const Message relu = NodeMessage("Relu", {"x"}, {"y"});
  const auto error = [](std::initializer_list<Message> nodes) {
    return ErrorOfGraph(GraphOf(nodes));
  };
  EXPECT_EQ(error({relu}), "");
  EXPECT_THAT(
      error({NodeMessage("Relu", {"weigth"}, {"weight"}), relu}),
      HasSubstr("graph 'g': Relu node #0: input 0: 'weigth' is not the output of a node, an "
                "input or an initializer (did you mean 'weight'?)"));
  EXPECT_THAT(error({NodeMessage("Abs", {"x"}, {"z"})}),
              HasSubstr("graph output 0: 'y' is not the output"));
  EXPECT_THAT(error({relu, NodeMessage("Abs", {"x"}, {"y"})}),
              HasSubstr("Abs node #1: value 'y' is defined more than once"));
  EXPECT_THAT(error({NodeMessage("Abs", {"x"}, {"x"}), relu}),
              HasSubstr("value 'x' is defined more than once"));
  EXPECT_THAT(
      error({NodeMessage("Add", {"x", "b"}, {"a"}), NodeMessage("Abs", {"a"}, {"b"}), relu}),
      AllOf(HasSubstr("cycle"), HasSubstr("Add node #0"), HasSubstr("Abs node #1")));
  EXPECT_THAT(error({NodeMessage("", {"x"}, {"y"})}), HasSubstr("has no op_type"));
  EXPECT_THAT(error({NodeMessage("Relu", {"x"}, {"y"}).Bytes(NodeField::kDomain, "org.example")}),
              HasSubstr("the model has no opset import for the domain 'org.example'"));
  EXPECT_THAT(
      error({NodeMessage("Relu", {"x"}, {"y"}, {IntAttribute("a", 1), IntAttribute("a", 1)})}),
      HasSubstr("Relu node #0: attribute 'a' is given more than once"));
}

TEST(ReaderErrorsTest, NamesMistakesInAttributes) {
  const auto error = [](const Message& attribute) {
    return ErrorOfGraph(GraphOf({NodeMessage("Relu", {"x"}, {"y"}, {attribute})}));
  };
  const Message named = Message().Bytes(AttributeField::kName, "a");
  EXPECT_EQ(error(Message(named).Int(AttributeField::kInt, 5)), "");
  EXPECT_EQ(error(Message(named).Int(AttributeField::kInt, 0)), "");
  EXPECT_THAT(error(Message(named).Int(AttributeField::kInt, 5).Int(AttributeField::kType, 1)),
              HasSubstr("attribute 'a': expected a value of type float, got one of type int"));
  EXPECT_THAT(error(Message(named).Int(AttributeField::kType, 77)),
              HasSubstr("77 is not the number of an attribute type"));
  EXPECT_THAT(error(named), HasSubstr("has neither a type nor a value"));
  EXPECT_THAT(error(Message(named).Int(AttributeField::kType, 4)),
              HasSubstr("expected one value of type tensor, got 0"));
  EXPECT_THAT(error(Message(named).Bytes(AttributeField::kReference, "r")),
              HasSubstr("only attributes in functions may refer to others"));
}

TEST(ReaderErrorsTest, NamesMistakesInModels) {
  const Message graph = GraphOf({NodeMessage("Relu", {"x"}, {"y"})});
  const auto code = [](const Message& model) { return Parse(model).error().code(); };
  const Message empty;
  EXPECT_EQ(code(empty), StatusCode::kInvalidProtobuf);
  EXPECT_THAT(ErrorOf(empty), HasSubstr("expected an ONNX model with one graph, got 0 graphs"));
  EXPECT_EQ(ErrorOf(Message().Add(ModelField::kGraph, graph)), "the model has no IR version");
  const Message no_opset = Message().Int(ModelField::kIrVersion, 1).Add(ModelField::kGraph, graph);
  EXPECT_EQ(code(no_opset), StatusCode::kFail);
  EXPECT_THAT(ErrorOf(no_opset), HasSubstr("the model has no opset import"));
  EXPECT_THAT(ErrorOf(ModelMessage(graph).Int(ModelField::kIrVersion, 15)),
              HasSubstr("the model has IR version 15; the newest supported one is 14"));
  // Of two versions of a domain the last counts.
  EXPECT_EQ(ErrorOf(ModelMessage(graph).Add(ModelField::kOpsetImport, Opset("", 20))), "");
  EXPECT_THAT(
      ErrorOf(ModelMessage(graph).Add(ModelField::kOpsetImport, Opset("a", int64_t{1} << 40))),
      HasSubstr("1099511627776 is not a version"));
}

TEST(ReaderErrorsTest, NamesTheByteThatIsWrong) {
  const Message model = ModelMessage(GraphOf({NodeMessage("Relu", {"x"}, {"y"})}));
  const std::string cut = model.bytes().substr(0, 20);
  const Result<Model> read = ReadModel(std::as_bytes(std::span(cut)), nullptr);
  EXPECT_EQ(read.error().code(), StatusCode::kInvalidProtobuf);
  EXPECT_THAT(read.error().message(), HasSubstr("ModelProto at byte 4: field 7 has"));
  // Field 3 of a node is its name: bytes, not an integer.
  EXPECT_THAT(ErrorOfGraph(Message().Add(GraphField::kNode, Message().Int(NodeField::kName, 1))),
              HasSubstr("NodeProto at byte 7: expected bytes in field 3, got an integer"));
  EXPECT_THAT(ErrorOfGraph(Message().Bytes(GraphField::kNode, std::string(11, '\xff'))),
              HasSubstr("an integer has more than 64 bits"));
  EXPECT_THAT(ErrorOfGraph(Message().Bytes(GraphField::kNode, std::string("\x00\x00", 2))),
              HasSubstr("no field has the number 0"));
  EXPECT_THAT(ErrorOfGraph(Message().Bytes(GraphField::kNode, "\x0b")),
              HasSubstr("expected bytes in field 1, got an unknown wire type"));
}

TEST(ReaderErrorsTest, RefusesSubgraphsNestedTooDeep) {
  const auto nested = [](int levels) {
    Message graph = GraphOf({NodeMessage("Relu", {"x"}, {"y"})});
    for (int i = 0; i < levels; ++i) {
      graph = Message()
                  .Add(GraphField::kNode,
                       NodeMessage("If", {}, {"y"}, {GraphAttribute("then_branch", graph)}))
                  .Add(GraphField::kOutput, FloatValue("y", {2}));
    }
    return ErrorOfGraph(graph);
  };
  EXPECT_EQ(nested(30), "");
  EXPECT_THAT(nested(34), HasSubstr("subgraphs are nested more than 34 levels deep"));
  EXPECT_THAT(nested(300), HasSubstr("subgraphs are nested more than 34 levels deep"));
}

// Comparing each attribute with each other one would take minutes.
TEST(ReaderErrorsTest, ManyAttributesTakeLittleTime) {
  Message node = NodeMessage("Relu", {"x"}, {"y"});
  for (int i = 0; i < 300000; ++i) {
    node.Add(NodeField::kAttribute, IntAttribute(Format("a{}", i), 1));
  }
  EXPECT_EQ(ErrorOfGraph(GraphOf({node})), "");
}

TEST(ReaderErrorsTest, NamesMistakesInInitializers) {
  const auto error = [](std::initializer_list<Message> tensors) {
    Message graph = GraphOf({NodeMessage("Relu", {"x"}, {"y"})});
    for (const Message& tensor : tensors) graph.Add(GraphField::kInitializer, tensor);
    return ErrorOfGraph(graph);
  };
  const Message good = RawTensor("w", DataType::kInt8, {2}, "ab");
  EXPECT_EQ(error({good}), "");
  EXPECT_THAT(error({good, good}), HasSubstr("initializer 'w' is defined more than once"));
  EXPECT_THAT(error({RawTensor("", DataType::kInt8, {2}, "ab")}),
              HasSubstr("an initializer has no name"));
  EXPECT_THAT(
      error({RawTensor("x", DataType::kInt8, {2}, "ab")}),
      HasSubstr("initializer 'x': expected tensor(float) as of the input, got tensor(int8)"));
  Message graph = GraphOf({NodeMessage("Relu", {"x"}, {"y"})});
  graph.Add(GraphField::kInitializer, good).Add(GraphField::kOutput, FloatValue("w", {2}));
  EXPECT_THAT(
      ErrorOfGraph(graph),
      HasSubstr("output 'w': expected tensor(int8) as of the initializer, got tensor(float)"));
  EXPECT_THAT(error({RawTensor("w", DataType::kInt8, {3}, "ab")}),
              HasSubstr("tensor 'w': expected 3 bytes of raw_data for int8 elements of shape [3], "
                        "got 2"));
}

}  // namespace
}  // namespace tenon
