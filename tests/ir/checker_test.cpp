#include "ir/checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/proto_message.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;

Message ModelWith(const Message& node, int64_t opset = 21) {
  const Message graph = Message()
                            .Add(GraphField::kNode, node)
                            .Add(GraphField::kInput, FloatValue("x", {2}))
                            .Add(GraphField::kInput, FloatValue("w", {2}));
  return Message()
      .Int(ModelField::kIrVersion, 10)
      .Add(ModelField::kGraph, graph)
      .Add(ModelField::kOpsetImport, Opset("", opset))
      .Add(ModelField::kOpsetImport, Opset("org.example", 1));
}

Status Check(const Message& message, const CheckOptions& options = {}) {
  const Result<Model> model = Parse(message);
  return model ? CheckModel(*model, options) : model.error();
}

std::string CheckNode(const Message& node, int64_t opset = 21) {
  return Check(ModelWith(node, opset)).message();
}

Message FloatAttribute(std::string_view name) {
  return Message()
      .Bytes(AttributeField::kName, name)
      .Float(AttributeField::kFloat, 1)
      .Int(AttributeField::kType, 1);
}

struct NodeCase {
  Message node;
  int64_t opset;
  std::string message;  // "" if the node is right
};

TEST(CheckerTest, ComparesNodesWithTheirSchemas) {
  const NodeCase cases[] = {
      {NodeMessage("Add", {"x", "w"}, {"y"}), 21, ""},
      {NodeMessage("Softmax", {"x"}, {"y"}, {IntAttribute("axis", 1)}), 13, ""},
      {NodeMessage("Clip", {"x", "", "w"}, {"y"}), 13, ""},
      {NodeMessage("Clip", {"x", "", ""}, {"y"}), 13, ""},
      {NodeMessage("Concat", {"x", "w", "x", "w"}, {"y"}, {IntAttribute("axis", 0)}), 13, ""},
      {NodeMessage("Relu", {"x"}, {"y"}, {IntAttribute("__tool", 0)}), 14, ""},
      {NodeMessage("Anything", {"x"}, {"y"}).Bytes(NodeField::kDomain, "org.example"), 21, ""},
      {NodeMessage("Add", {"x"}, {"y"}).Bytes(NodeField::kName, "plus"), 21,
       "Add-14 node 'plus': expected 2 inputs, got 1"},
      {NodeMessage("Clip", {"x", "w", "x", "w"}, {"y"}), 13,
       "Clip-13 node #0: expected 1 to 3 inputs, got 4"},
      {NodeMessage("Concat", {}, {"y"}, {IntAttribute("axis", 0)}), 13,
       "Concat-13 node #0: expected at least 1 inputs, got 0"},
      {NodeMessage("Add", {"x", "w"}, {"y", "z"}), 21, "Add-14 node #0: expected 1 output, got 2"},
      {NodeMessage("Add", {"x", ""}, {"y"}), 21,
       "Add-14 node #0: expected input 1 (B), which must not be left out, got none"},
      {NodeMessage("Softmax", {"x"}, {"y"}, {IntAttribute("axes", 1)}), 13,
       "Softmax-13 node #0: the operator has no attribute 'axes' (did you mean 'axis'?); its "
       "attributes are: axis"},
      {NodeMessage("Softmax", {"x"}, {"y"}, {FloatAttribute("axis")}), 13,
       "Softmax-13 node #0: attribute 'axis': expected type int, got float"},
      {NodeMessage("Cast", {"x"}, {"y"}), 13,
       "Cast-13 node #0: expected attribute 'to' of type int, got none"},
      {NodeMessage("Upsample", {"x", "w"}, {"y"}), 10,
       "Upsample-10 node #0: is deprecated since opset 10; the model imports opset 10"},
      {NodeMessage("Upsample", {"x", "w"}, {"y"}), 9, ""},
      // Deprecated too, but ONNX Runtime runs it.
      {NodeMessage("GroupNormalization", {"x", "w", "w"}, {"y"}, {IntAttribute("num_groups", 1)}),
       18, ""},
      {NodeMessage("LayerNormalization", {"x", "w"}, {"y"}), 16,
       "LayerNormalization-16 node #0: exists since opset 17 of domain 'ai.onnx'; the model "
       "imports "
       "opset 16"},
      {NodeMessage("Sofmax", {"x"}, {"y"}), 13,
       "Sofmax-13 node #0: ai.onnx:Sofmax(-1) is not a registered function/op (did you mean "
       "'Softmax'?)"},
  };
  for (const NodeCase& c : cases) {
    const std::string message = CheckNode(c.node, c.opset);
    // The position of the node follows it.
    EXPECT_EQ(message.substr(0, message.find(" (node 0 of graph ''")), c.message);
  }
}

TEST(CheckerTest, ChecksSubgraphs) {
  const Message body = Message()
                           .Add(GraphField::kNode, NodeMessage("Sofmax", {"x"}, {"b"}))
                           .Add(GraphField::kOutput, Message().Bytes(ValueInfoField::kName, "b"));
  const Message node =
      NodeMessage("If", {"x"}, {"y"},
                  {GraphAttribute("then_branch", body), GraphAttribute("else_branch", body)});
  EXPECT_THAT(
      CheckNode(node),
      HasSubstr("If-21 node #0: Sofmax-21 node #0: ai.onnx:Sofmax(-1) is not a registered"));
}

TEST(CheckerTest, ChecksCallsOfFunctions) {
  const Message function = Message()
                               .Bytes(FunctionField::kName, "F")
                               .Bytes(FunctionField::kDomain, "org.example")
                               .Bytes(FunctionField::kInput, "a")
                               .Bytes(FunctionField::kOutput, "b")
                               .Bytes(FunctionField::kAttribute, "alpha")
                               .Add(FunctionField::kNode, NodeMessage("Neg", {"a"}, {"b"}))
                               .Add(FunctionField::kOpsetImport, Opset("", 18));
  const auto check = [&](Message call) {
    call.Bytes(NodeField::kDomain, "org.example");
    return Check(ModelWith(call).Add(ModelField::kFunctions, function)).message();
  };
  EXPECT_EQ(check(NodeMessage("F", {"x"}, {"y"}, {FloatAttribute("alpha")})), "");
  EXPECT_THAT(check(NodeMessage("F", {"x"}, {"y"})),
              HasSubstr("expected attribute 'alpha', which the function requires, got none"));
  EXPECT_THAT(check(NodeMessage("F", {"x", "w"}, {"y"}, {FloatAttribute("alpha")})),
              HasSubstr("expected 0 to 1 inputs, got 2"));
  const Message twice =
      ModelWith(NodeMessage("Relu", {"x"}, {"y"})).Add(ModelField::kFunctions, function);
  EXPECT_THAT(Check(Message(twice).Add(ModelField::kFunctions, function)).message(),
              HasSubstr("function 'F' of domain 'org.example' is defined more than once"));
}

TEST(CheckerTest, RefusesVersionsThatItDoesNotKnow) {
  const Message node = NodeMessage("Relu", {"x"}, {"y"});
  const Status status = Check(ModelWith(node, 1000));
  EXPECT_EQ(status.code(), StatusCode::kFail);
  EXPECT_THAT(status.message(), HasSubstr("opset 1000 of domain 'ai.onnx' is not known"));
  EXPECT_TRUE(Check(ModelWith(node, 1000), {.allow_newer_opsets = true}).ok());
  Model model = Parse(ModelWith(node)).value();
  model.ir_version = 15;
  EXPECT_THAT(CheckModel(model).message(), HasSubstr("IR version 15 is not supported"));
}

TEST(CheckerTest, MayAllowUnknownOperators) {
  const Message model = ModelWith(NodeMessage("Sofmax", {"x"}, {"y"}));
  EXPECT_TRUE(Check(model, {.allow_unknown_operators = true}).ok());
}

TEST(CheckerTest, OperatorsThatRewritesMakeAreUnknown) {
  Message node = NodeMessage("FusedMatMul", {"x", "x"}, {"y"});
  node.Bytes(NodeField::kDomain, "com.tenon");
  const Message model = ModelWith(node).Add(ModelField::kOpsetImport, Opset("com.tenon", 1));
  const Status status = Check(model, {.allow_unknown_operators = true});
  EXPECT_EQ(status.code(), StatusCode::kFail);
  EXPECT_THAT(status.message(),
              HasSubstr("com.tenon:FusedMatMul(-1) is not a registered function/op"));
}

TEST(CheckerTest, InputsOfTheModelNeedATypeOfTheirOwn) {
  const Message untyped =
      ModelMessage(Message().Add(GraphField::kInput, Message().Bytes(ValueInfoField::kName, "x")));
  EXPECT_THAT(Check(untyped).message(), HasSubstr("input 'x' of the model has no type"));
}

}  // namespace
}  // namespace tenon
