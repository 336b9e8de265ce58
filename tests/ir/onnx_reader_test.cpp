#include "ir/onnx_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/proto_message.h"
#include "ir/schema.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;

// y = Relu(Add(x, w)), the nodes in the wrong order.
Message SmallGraph() {
  const float w[2] = {1, 2};
  return Message()
      .Bytes(GraphField::kName, "small")
      .Add(GraphField::kNode, NodeMessage("Relu", {"sum"}, {"y"}))
      .Add(GraphField::kNode, NodeMessage("Add", {"x", "w"}, {"sum"}))
      .Add(GraphField::kInput, FloatValue("x", {2}))
      .Add(GraphField::kOutput, FloatValue("y", {2}))
      .Add(GraphField::kValueInfo, FloatValue("sum", {2}))
      .Add(GraphField::kInitializer,
           RawTensor("w", DataType::kFloat, {2}, {reinterpret_cast<const char*>(w), sizeof(w)}));
}

TEST(OnnxReaderTest, ReadsAModel) {
  const Message message = ModelMessage(SmallGraph())
                              .Bytes(ModelField::kProducerName, "tests")
                              .Bytes(ModelField::kProducerVersion, "2")
                              .Bytes(ModelField::kDomain, "org.example")
                              .Int(ModelField::kModelVersion, 7)
                              .Bytes(ModelField::kDocString, "a model")
                              .Add(ModelField::kMetadata, Entry("license", "MIT"))
                              .Bytes(ModelField::kConfiguration, "opaque");
  const Result<Model> model = Parse(message);
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->ir_version, 10);
  EXPECT_EQ(model->opsets, (OpsetImports{{"", 21}}));
  EXPECT_EQ(model->producer_name, "tests");
  EXPECT_EQ(model->producer_version, "2");
  EXPECT_EQ(model->domain, "org.example");
  EXPECT_EQ(model->model_version, 7);
  EXPECT_EQ(model->doc_string, "a model");
  EXPECT_EQ(model->metadata, (Metadata{{"license", "MIT"}}));
  EXPECT_EQ(model->device_configurations, std::vector<std::string>{"opaque"});

  const Graph& graph = *model->graph;
  EXPECT_EQ(graph.name, "small");
  ASSERT_EQ(graph.node_count(), 2u);
  const Node& relu = graph.node(NodeId{0});
  EXPECT_EQ(relu.op_type, "Relu");
  EXPECT_EQ(relu.opset, 21);
  EXPECT_EQ(relu.schema, FindSchema("", "Relu", 14));
  ASSERT_EQ(graph.inputs.size(), 1u);
  EXPECT_EQ(graph.value(graph.inputs[0]).type.ToString(), "tensor(float) [2]");
  EXPECT_EQ(graph.value(relu.inputs[0]).name, "sum");
  EXPECT_EQ(graph.value(relu.inputs[0]).type.ToString(), "tensor(float) [2]");
  const Tensor* w = graph.ConstantOf(graph.FindValue("w"));
  ASSERT_NE(w, nullptr);
  EXPECT_EQ(w->data<float>()[1], 2);
  EXPECT_EQ(graph.outputs()[0].name, "y");
  EXPECT_EQ(graph.TopologicalOrder().value(), (std::vector<NodeId>{NodeId{1}, NodeId{0}}));
}

TEST(OnnxReaderTest, KnowsTheVersionsOfDomainsThatToolsDoNotImport) {
  const std::pair<std::string, std::string> cases[] = {{"com.microsoft", "Gelu"},
                                                       {"ai.onnx.ml", "Normalizer"}};
  for (const auto& [domain, op_type] : cases) {
    const Message graph =
        Message()
            .Bytes(GraphField::kName, "g")
            .Add(GraphField::kNode,
                 NodeMessage(op_type, {"x"}, {"y"}).Bytes(NodeField::kDomain, domain))
            .Add(GraphField::kInput, FloatValue("x", {2, 3}))
            .Add(GraphField::kOutput, FloatValue("y", {2, 3}));
    const Result<Model> model = Parse(ModelMessage(graph));
    ASSERT_TRUE(model) << model.error().message();
    const Node& node = model->graph->node(NodeId{0});
    EXPECT_EQ(node.opset, NewestOpset(domain));
    EXPECT_EQ(node.schema, FindSchema(domain, op_type, node.opset));
    EXPECT_NE(node.schema, nullptr);
  }
}

TEST(OnnxReaderTest, FieldsMayComeInAnyOrder) {
  const Message message = Message()
                              .Add(ModelField::kGraph, SmallGraph())
                              .Add(ModelField::kOpsetImport, Opset("ai.onnx", 13))
                              .Int(ModelField::kIrVersion, 7);
  const Result<Model> model = Parse(message);
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->graph->node(NodeId{0}).opset, 13);
  EXPECT_EQ(model->opsets, (OpsetImports{{"", 13}}));
}

TEST(OnnxReaderTest, ViewsInitializersInMemoryThatAnOwnerKeeps) {
  const auto bytes = std::make_shared<std::string>(ModelMessage(SmallGraph()).bytes());
  // The alignment of elements is arbitrary here, so all shifts of the model in memory are tested.
  size_t views = 0;
  for (size_t shift = 0; shift < 4; ++shift) {
    const auto shifted = std::make_shared<std::string>(std::string(shift, ' ') + *bytes);
    const auto span = std::as_bytes(std::span(*shifted)).subspan(shift);
    const Result<Model> model = ReadModel(span, shifted);
    ASSERT_TRUE(model) << model.error().message();
    const Tensor& w = *model->graph->ConstantOf(model->graph->FindValue("w"));
    const char* data = static_cast<const char*>(w.raw());
    views += data >= shifted->data() && data < shifted->data() + shifted->size();
    EXPECT_EQ(w.data<float>()[0], 1);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % alignof(float), 0u);
  }
  EXPECT_EQ(views, 1u);
}

TEST(OnnxReaderTest, InitializersListedAsInputsAreConstantBeforeVersion4) {
  for (const int64_t ir_version : {3, 4}) {
    const Message message =
        Message()
            .Int(ModelField::kIrVersion, ir_version)
            .Add(ModelField::kGraph, SmallGraph().Add(GraphField::kInput, FloatValue("w", {2})))
            .Add(ModelField::kOpsetImport, Opset("", 8));
    const Result<Model> model = Parse(message);
    ASSERT_TRUE(model) << model.error().message();
    const Graph& graph = *model->graph;
    const bool is_constant = ir_version < 4;
    EXPECT_EQ(graph.ConstantOf(graph.FindValue("w")) != nullptr, is_constant);
    EXPECT_EQ(graph.inputs.size(), is_constant ? 1u : 2u);
  }
}

Message Body(Message node, std::string_view output) {
  return Message()
      .Bytes(GraphField::kName, "body")
      .Add(GraphField::kNode, node)
      .Add(GraphField::kOutput, Message().Bytes(ValueInfoField::kName, output));
}

TEST(OnnxReaderTest, CapturesPassThroughEveryLevel) {
  const Message innermost = Body(NodeMessage("Add", {"x", "late"}, {"b"}), "b");
  const Message middle = Body(
      NodeMessage("If", {"c"}, {"m"},
                  {GraphAttribute("then_branch", innermost),
                   GraphAttribute("else_branch", Body(NodeMessage("Neg", {"x"}, {"n"}), "n"))}),
      "m");
  const Message graph =
      Message()
          .Bytes(GraphField::kName, "outer")
          .Add(GraphField::kNode,
               NodeMessage(
                   "If", {"c"}, {"y"},
                   {GraphAttribute("then_branch", middle),
                    GraphAttribute("else_branch", Body(NodeMessage("Abs", {"x"}, {"a"}), "a"))}))
          .Add(GraphField::kNode, NodeMessage("Neg", {"x"}, {"late"}))
          .Add(GraphField::kInput, FloatValue("x", {2}))
          .Add(GraphField::kInput, FloatValue("c", {}))
          .Add(GraphField::kOutput, FloatValue("y", {2}));
  const Result<Model> model = Parse(ModelMessage(graph));
  ASSERT_TRUE(model) << model.error().message();
  const Graph& outer = *model->graph;
  const auto branches = outer.node(NodeId{0}).Subgraphs();
  ASSERT_EQ(branches.size(), 2u);
  const Graph& then_branch = *branches[0];
  ASSERT_EQ(then_branch.captures.size(), 3u);
  EXPECT_EQ(outer.value(then_branch.captures[0].outer).name, "c");
  const Graph& inner = *then_branch.node(NodeId{0}).Subgraphs()[0];
  ASSERT_EQ(inner.captures.size(), 2u);
  EXPECT_EQ(then_branch.value(inner.captures[1].outer).name, "late");
  EXPECT_EQ(inner.value(inner.captures[0].inner).type.ToString(), "tensor(float) [2]");
  // The If reads c itself and captures c, x and late.
  EXPECT_EQ(outer.value(outer.FindValue("late")).consumers, std::vector<NodeId>{NodeId{0}});
  EXPECT_EQ(outer.TopologicalOrder().value(), (std::vector<NodeId>{NodeId{1}, NodeId{0}}));
}

TEST(OnnxReaderTest, ReadsFunctions) {
  const Message reference = Message()
                                .Bytes(AttributeField::kName, "alpha")
                                .Bytes(AttributeField::kReference, "slope")
                                .Int(AttributeField::kType, 1);
  const Message function =
      Message()
          .Bytes(FunctionField::kName, "Leaky")
          .Bytes(FunctionField::kDomain, "org.example")
          .Bytes(FunctionField::kOverload, "v1")
          .Bytes(FunctionField::kInput, "a")
          .Bytes(FunctionField::kOutput, "b")
          .Bytes(FunctionField::kAttribute, "required")
          .Add(FunctionField::kAttributeProto, IntAttribute("slope", 3))
          .Add(FunctionField::kNode, NodeMessage("LeakyRelu", {"a"}, {"b"}, {reference}))
          .Add(FunctionField::kValueInfo, FloatValue("b", {2}))
          .Add(FunctionField::kMetadata, Entry("k", "v"))
          .Add(FunctionField::kOpsetImport, Opset("", 16));
  const Message call = NodeMessage("Leaky", {"x"}, {"y"})
                           .Bytes(NodeField::kDomain, "org.example")
                           .Bytes(NodeField::kOverload, "v1");
  const Message graph = Message()
                            .Add(GraphField::kNode, call)
                            .Add(GraphField::kInput, FloatValue("x", {2}))
                            .Add(GraphField::kOutput, FloatValue("y", {2}));
  const Result<Model> model = Parse(ModelMessage(graph)
                                        .Add(ModelField::kFunctions, function)
                                        .Add(ModelField::kOpsetImport, Opset("org.example", 1)));
  ASSERT_TRUE(model) << model.error().message();
  const Node& caller = model->graph->node(NodeId{0});
  EXPECT_EQ(caller.schema, nullptr);
  const Function* found = model->FindFunction(caller);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->required_attributes, std::vector<std::string>{"required"});
  EXPECT_EQ(*found->attributes[0].get<int64_t>(), 3);
  EXPECT_EQ(found->metadata, (Metadata{{"k", "v"}}));
  const Node& leaky = found->body->node(NodeId{0});
  EXPECT_EQ(leaky.opset, 16);
  EXPECT_EQ(leaky.attributes[0].reference, "slope");
  EXPECT_EQ(leaky.attributes[0].type(), AttributeType::kFloat);
  EXPECT_EQ(found->body->value(found->body->outputs()[0].value).type.ToString(),
            "tensor(float) [2]");
}

TEST(OnnxReaderTest, ReadsEveryFunctionBodyOfTheSchemas) {
  size_t bodies = 0;
  for (const OpSchema& schema : AllSchemas()) {
    if (schema.function_body.empty()) continue;
    const Result<Function> function = ReadFunction(std::as_bytes(std::span(schema.function_body)));
    ASSERT_TRUE(function) << schema.name << ": " << function.error().message();
    EXPECT_EQ(function->name, schema.name);
    EXPECT_GT(function->body->node_count(), 0u);
    EXPECT_EQ(function->body->inputs.size(), schema.inputs.size()) << schema.name;
    ++bodies;
  }
  EXPECT_GT(bodies, 30u);
}

TEST(OnnxReaderTest, KeepsTrainingInfoAnnotationsAndMetadata) {
  Message graph = SmallGraph();
  graph.Add(GraphField::kMetadata, Entry("g", "1"))
      .Add(GraphField::kQuantizationAnnotation,
           Message()
               .Bytes(AnnotationField::kTensorName, "w")
               .Add(AnnotationField::kQuantParameterTensorNames, Entry("SCALE_TENSOR", "s")))
      .Add(GraphField::kNode, NodeMessage("Abs", {"x"}, {"z"})
                                  .Bytes(NodeField::kDocString, "doc")
                                  .Add(NodeField::kMetadata, Entry("n", "2"))
                                  .Bytes(NodeField::kDeviceConfigurations, "opaque"));
  // The training graph reads a value of the main graph.
  const Message algorithm = Message().Add(GraphField::kNode, NodeMessage("Neg", {"w"}, {"w_new"}));
  const Message training = Message()
                               .Add(TrainingField::kAlgorithm, algorithm)
                               .Add(TrainingField::kUpdateBinding, Entry("w", "w_new"));
  const Result<Model> model = Parse(ModelMessage(graph).Add(ModelField::kTrainingInfo, training));
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->graph->metadata, (Metadata{{"g", "1"}}));
  ASSERT_EQ(model->graph->quantization_annotations.size(), 1u);
  EXPECT_EQ(model->graph->quantization_annotations[0].quant_parameter_tensor_names,
            (Metadata{{"SCALE_TENSOR", "s"}}));
  const Node& abs = model->graph->node(NodeId{2});
  EXPECT_EQ(abs.doc_string, "doc");
  EXPECT_EQ(abs.metadata, (Metadata{{"n", "2"}}));
  EXPECT_EQ(abs.device_configurations, std::vector<std::string>{"opaque"});
  ASSERT_EQ(model->training_info.size(), 1u);
  EXPECT_EQ(model->training_info[0].update_binding, (Metadata{{"w", "w_new"}}));
  EXPECT_EQ(model->training_info[0].algorithm->node_count(), 1u);
}

TEST(OnnxReaderTest, ReadsTypes) {
  const auto type_of = [](const Message& type) {
    const Message value =
        Message().Bytes(ValueInfoField::kName, "x").Add(ValueInfoField::kType, type);
    const Result<Model> model = Parse(ModelMessage(Message().Add(GraphField::kInput, value)));
    if (!model) return model.error().message();
    return model->graph->value(ValueId{0}).type.ToString();
  };
  const Message dims = Message()
                           .Add(ShapeField::kDim, Message().Bytes(DimField::kParam, "batch"))
                           .Add(ShapeField::kDim, Message().Int(DimField::kValue, 3))
                           .Add(ShapeField::kDim, Message().Int(DimField::kValue, -1))
                           .Add(ShapeField::kDim, Message());
  const Message tensor = Message().Add(
      TypeField::kTensor,
      Message().Int(TensorTypeField::kElementType, 7).Add(TensorTypeField::kShape, dims));
  EXPECT_EQ(type_of(tensor), "tensor(int64) [batch, 3, ?, ?]");
  const Message sequence =
      Message().Add(TypeField::kSequence, Message().Add(HolderTypeField::kElementType, tensor));
  EXPECT_EQ(type_of(sequence), "seq(tensor(int64))");
  EXPECT_EQ(type_of(Message().Add(TypeField::kOptional,
                                  Message().Add(HolderTypeField::kElementType, sequence))),
            "optional(seq(tensor(int64)))");
  EXPECT_EQ(type_of(Message().Add(
                TypeField::kMap,
                Message().Int(MapTypeField::kKeyType, 8).Add(MapTypeField::kValueType, tensor))),
            "map(string,tensor(int64))");
  EXPECT_EQ(type_of(Message().Add(TypeField::kSparseTensor,
                                  Message().Int(TensorTypeField::kElementType, 1))),
            "sparse_tensor(float)");
  EXPECT_THAT(
      type_of(Message().Add(TypeField::kTensor, Message().Int(TensorTypeField::kElementType, 99))),
      HasSubstr("99 is not the number of an element type"));
  Message deep = tensor;
  for (int i = 0; i < 100; ++i) {
    deep = Message().Add(TypeField::kSequence, Message().Add(HolderTypeField::kElementType, deep));
  }
  EXPECT_THAT(type_of(deep), HasSubstr("nested more than 50 levels"));
}

}  // namespace
}  // namespace tenon
