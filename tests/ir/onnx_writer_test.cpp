#include "ir/onnx_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/temporary_folder.h"
#include "ir/onnx_reader.h"
#include "ir/proto_message.h"
#include "ir/schema.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;

Result<Model> Reread(const Model& model) {
  TENON_ASSIGN_OR_RETURN(const std::string bytes, WriteModel(model));
  return ReadModel(std::as_bytes(std::span(bytes)), nullptr);
}

// A model around a graph, with ai.onnx 21.
Model ModelOf(std::unique_ptr<Graph> graph, int64_t ir_version = 10) {
  Model model;
  model.ir_version = ir_version;
  model.opsets = {{"", 21}};
  model.graph = std::move(graph);
  return model;
}

// What a graph computes, as text: one line per node in topological order, and the outputs.
std::string TextOf(const Graph& graph) {
  const auto name = [&](ValueId id) {
    return id == ValueId::kNone ? std::string("-") : graph.value(id).name;
  };
  std::string text;
  const std::vector<NodeId> order = graph.TopologicalOrder().value();
  for (const NodeId id : order) {
    const Node& node = graph.node(id);
    for (const ValueId output : node.outputs) text += name(output) + " ";
    text += "= " + node.op_type + "(";
    for (const ValueId input : node.inputs) text += name(input) + " ";
    text += ")";
    for (const Graph* subgraph : node.Subgraphs()) text += " {" + TextOf(*subgraph) + "}";
    text += "; ";
  }
  for (const GraphOutput& output : graph.outputs()) {
    text += output.name + ":" + name(output.value) + " ";
  }
  return text;
}

// Bytes of every kind of message, each with every field that is kept.
std::string FullModel() {
  const auto attribute = [](std::string_view name, AttributeType type) {
    return Message()
        .Bytes(AttributeField::kName, name)
        .Int(AttributeField::kType, static_cast<int64_t>(type));
  };
  const Message tensor = RawTensor("", DataType::kInt16, {2}, "abcd");
  const Message indices = Message()
                              .Ints(TensorField::kDims, {2})
                              .Int(TensorField::kDataType, 7)
                              .Ints(TensorField::kInt64Data, {1, 5});
  const auto sparse = [&](std::string_view name) {
    return Message()
        .Add(SparseTensorField::kValues, RawTensor(name, DataType::kInt16, {2}, "abcd"))
        .Add(SparseTensorField::kIndices, indices)
        .Ints(SparseTensorField::kDims, {3, 2});
  };
  const Message shape =
      Message()
          .Add(ShapeField::kDim, Message().Int(DimField::kValue, 3))
          .Add(ShapeField::kDim,
               Message().Bytes(DimField::kParam, "n").Bytes(DimField::kDenotation, "DATA_TIME"));
  const Message type = Message().Add(
      TypeField::kSequence,
      Message().Add(HolderTypeField::kElementType,
                    Message()
                        .Add(TypeField::kTensor, Message()
                                                     .Int(TensorTypeField::kElementType, 1)
                                                     .Add(TensorTypeField::kShape, shape))
                        .Bytes(TypeField::kDenotation, "IMAGE")));
  const Message body = Message()
                           .Bytes(GraphField::kName, "body")
                           .Add(GraphField::kNode, NodeMessage("Neg", {"x"}, {"b"}))
                           .Add(GraphField::kOutput, Message().Bytes(ValueInfoField::kName, "b"));
  const auto second_body =
      Message()
          .Bytes(GraphField::kName, "body2")
          .Add(GraphField::kNode, NodeMessage("Abs", {"x"}, {"b"}))
          .Add(GraphField::kOutput, Message().Bytes(ValueInfoField::kName, "b"));
  using enum AttributeType;
  const Message node =
      NodeMessage(
          "Everything", {"x", "", "w"}, {"y", "", "z"},
          {attribute("float", kFloat).Float(AttributeField::kFloat, 0.5f),
           attribute("int", kInt).Int(AttributeField::kInt, -7),
           attribute("string", kString).Bytes(AttributeField::kString, "s"),
           attribute("tensor", kTensor).Add(AttributeField::kTensor, tensor),
           attribute("graph", kGraph).Add(AttributeField::kGraph, body),
           attribute("floats", kFloats).Floats(AttributeField::kFloats, {1, 2}),
           attribute("ints", kInts).Ints(AttributeField::kInts, {3, -4}),
           attribute("no ints", kInts),
           attribute("strings", kStrings)
               .Bytes(AttributeField::kStrings, "")
               .Bytes(AttributeField::kStrings, "t"),
           attribute("tensors", kTensors)
               .Add(AttributeField::kTensors, tensor)
               .Add(AttributeField::kTensors, tensor),
           attribute("graphs", kGraphs)
               .Add(AttributeField::kGraphs, body)
               .Add(AttributeField::kGraphs, second_body),
           attribute("sparse", kSparseTensor).Add(AttributeField::kSparseTensor, sparse("")),
           attribute("sparses", kSparseTensors).Add(AttributeField::kSparseTensors, sparse("")),
           attribute("type", kTypeProto).Add(AttributeField::kTypeProto, type),
           attribute("types", kTypeProtos)
               .Add(AttributeField::kTypeProtos, type)
               .Bytes(AttributeField::kDocString, "doc")})
          .Bytes(NodeField::kName, "n")
          .Bytes(NodeField::kDomain, "org.example")
          .Bytes(NodeField::kOverload, "o")
          .Bytes(NodeField::kDocString, "doc")
          .Add(NodeField::kMetadata, Entry("k", "v"))
          .Bytes(NodeField::kDeviceConfigurations, "opaque");
  const Message scalar = FloatValue("z", {}).Bytes(ValueInfoField::kDocString, "doc");
  const Message graph =
      Message()
          .Bytes(GraphField::kName, "g")
          .Bytes(GraphField::kDocString, "doc")
          .Add(GraphField::kNode, node)
          .Add(GraphField::kInitializer, RawTensor("w", DataType::kUint8, {2}, "ab")
                                             .Bytes(TensorField::kDocString, "tensor doc")
                                             .Add(TensorField::kMetadata, Entry("t", "u")))
          .Add(GraphField::kInitializer, Message()
                                             .Ints(TensorField::kDims, {1})
                                             .Int(TensorField::kDataType, 8)
                                             .Bytes(TensorField::kName, "text")
                                             .Bytes(TensorField::kStringData, "hello"))
          .Add(GraphField::kSparseInitializer, sparse("s"))
          .Add(GraphField::kInput,
               FloatValue("x", {2, 0}).Add(ValueInfoField::kMetadata, Entry("m", "n")))
          .Add(GraphField::kInput, FloatValue("d", {}))
          .Add(GraphField::kInitializer, RawTensor("d", DataType::kFloat, {}, "abcd"))
          .Add(GraphField::kOutput, Message().Bytes(ValueInfoField::kName, "y"))
          .Add(GraphField::kValueInfo, scalar)
          .Add(GraphField::kQuantizationAnnotation,
               Message()
                   .Bytes(AnnotationField::kTensorName, "w")
                   .Add(AnnotationField::kQuantParameterTensorNames, Entry("SCALE_TENSOR", "s")))
          .Add(GraphField::kMetadata, Entry("g", "h"));
  const Message function = Message()
                               .Bytes(FunctionField::kName, "F")
                               .Bytes(FunctionField::kDomain, "org.example")
                               .Bytes(FunctionField::kInput, "a")
                               .Bytes(FunctionField::kOutput, "b")
                               .Add(FunctionField::kNode, NodeMessage("Neg", {"a"}, {"b"}))
                               .Add(FunctionField::kOpsetImport, Opset("", 18));
  return ModelMessage(graph)
      .Bytes(ModelField::kProducerName, "p")
      .Bytes(ModelField::kProducerVersion, "v")
      .Bytes(ModelField::kDomain, "d")
      .Int(ModelField::kModelVersion, 3)
      .Bytes(ModelField::kDocString, "doc")
      .Add(ModelField::kOpsetImport, Opset("org.example", 2))
      .Add(ModelField::kMetadata, Entry("a", "b"))
      .Add(ModelField::kFunctions, function)
      .Add(ModelField::kTrainingInfo,
           Message().Add(TrainingField::kAlgorithm,
                         Message().Add(GraphField::kNode, NodeMessage("Neg", {"w"}, {"w2"}))))
      .Bytes(ModelField::kConfiguration, "opaque")
      .bytes();
}

TEST(OnnxWriterTest, WritesAllThatWasRead) {
  const std::string source = FullModel();
  const Result<Model> model = ReadModel(std::as_bytes(std::span(source)), nullptr);
  ASSERT_TRUE(model) << model.error().message();
  const Result<std::string> first = WriteModel(*model);
  ASSERT_TRUE(first) << first.error().message();
  const Result<Model> again = ReadModel(std::as_bytes(std::span(*first)), nullptr);
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(WriteModel(*again).value(), *first);
  EXPECT_NE(first->find("DATA_TIME"), std::string::npos);

  EXPECT_EQ(TextOf(*again->graph), TextOf(*model->graph));
  EXPECT_EQ(again->opsets, model->opsets);
  EXPECT_EQ(again->metadata, model->metadata);
  EXPECT_EQ(again->device_configurations, model->device_configurations);
  EXPECT_EQ(again->training_info.size(), 1u);
  EXPECT_EQ(again->functions.at(0).opsets, (OpsetImports{{"", 18}}));
  const Graph& graph = *again->graph;
  const Node& node = graph.node(NodeId{0});
  const Node& original = model->graph->node(NodeId{0});
  ASSERT_EQ(node.attributes.size(), original.attributes.size());
  for (size_t i = 0; i < node.attributes.size(); ++i) {
    EXPECT_EQ(node.attributes[i].name, original.attributes[i].name);
    EXPECT_EQ(node.attributes[i].type(), original.attributes[i].type()) << node.attributes[i].name;
  }
  EXPECT_EQ(node.GetInts("ints"), (std::vector<int64_t>{3, -4}));
  EXPECT_EQ(node.overload, "o");
  EXPECT_EQ(node.device_configurations, original.device_configurations);
  EXPECT_EQ(graph.value(graph.FindValue("z")).type.ToString(), "tensor(float) []");
  EXPECT_EQ(graph.value(graph.FindValue("x")).metadata, (Metadata{{"m", "n"}}));
  EXPECT_EQ(graph.value(graph.FindValue("w")).initializer_metadata, (Metadata{{"t", "u"}}));
  EXPECT_EQ(graph.value(graph.FindValue("s")).initializer.sparse().dense_shape, (Shape{3, 2}));
  EXPECT_EQ(graph.ConstantOf(graph.FindValue("text"))->data<std::string>()[0], "hello");
  EXPECT_TRUE(graph.value(graph.FindValue("d")).is_input);
  EXPECT_EQ(graph.quantization_annotations.size(), 1u);
}

TEST(OnnxWriterTest, OutputsKeepTheirNames) {
  auto graph = std::make_unique<Graph>();
  const ValueId x = graph->AddValue("x", ValueType::Tensor(DataType::kFloat, SymbolicShape{2}));
  graph->AddInput(x);
  const ValueId inner = graph->AddValue("inner");
  const ValueId y = graph->AddValue("y");
  graph->AddNode({.op_type = "Neg", .inputs = {x}, .outputs = {inner}, .opset = 21});
  graph->AddNode({.op_type = "Abs", .inputs = {inner}, .outputs = {y}, .opset = 21});
  graph->AddOutput("renamed", inner);  // its producer can give the name
  graph->AddOutput("twice", inner);    // needs an Identity
  graph->AddOutput("passed", x);       // an input keeps its name: needs an Identity
  graph->AddOutput("x", x);            // passed through as it is
  const Result<Model> model = Reread(ModelOf(std::move(graph)));
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(TextOf(*model->graph),
            "renamed = Neg(x ); y = Abs(renamed ); twice = Identity(renamed ); "
            "passed = Identity(x ); renamed:renamed twice:twice passed:passed x:x ");
}

TEST(OnnxWriterTest, ValuesThatStandInTheWayAreRenamed) {
  auto graph = std::make_unique<Graph>();
  const ValueId x = graph->AddValue("x");
  graph->AddInput(x);
  const ValueId y = graph->AddValue("y");
  const ValueId z = graph->AddValue("z");
  graph->AddNode({.op_type = "Neg", .inputs = {x}, .outputs = {y}, .opset = 21});
  graph->AddNode({.op_type = "Abs", .inputs = {y}, .outputs = {z}, .opset = 21});
  graph->AddOutput("y", z);  // while another value is called y
  const Result<Model> model = Reread(ModelOf(std::move(graph)));
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(TextOf(*model->graph), "y_3 = Neg(x ); y = Abs(y_3 ); y:y ");
}

TEST(OnnxWriterTest, SubgraphsUseOuterNamesAndMakeTheirOutputs) {
  auto body = std::make_unique<Graph>();
  auto graph = std::make_unique<Graph>();
  const ValueId x = graph->AddValue("x");
  graph->AddInput(x);
  const ValueId inside = body->AddValue("seen_inside");
  body->captures.push_back({x, inside});
  const ValueId clash = body->AddValue("x");  // called like the outer value, but another
  body->AddNode({.op_type = "Neg", .inputs = {inside}, .outputs = {clash}, .opset = 21});
  body->AddOutput("first", clash);
  body->AddOutput("second", clash);
  body->AddOutput("third", inside);
  std::vector<Attribute> attributes;
  attributes.emplace_back("then_branch", std::move(body));
  const ValueId y = graph->AddValue("y");
  graph->AddNode({.op_type = "If",
                  .inputs = {x},
                  .outputs = {y},
                  .attributes = std::move(attributes),
                  .opset = 21});
  graph->AddOutput("y", y);
  const Result<Model> model = Reread(ModelOf(std::move(graph)));
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(TextOf(*model->graph),
            "y = If(x ) {x_2 = Neg(x ); second = Identity(x_2 ); third = Identity(x ); "
            "x_2:x_2 second:second third:third }; y:y ");
}

TEST(OnnxWriterTest, InitializersAreInputsBeforeVersion4) {
  for (const int64_t ir_version : {3, 4}) {
    auto graph = std::make_unique<Graph>();
    const ValueId w = graph->AddInitializer("w", Tensor::Of<float>({1}, {1}));
    const ValueId y = graph->AddValue("y");
    graph->AddNode({.op_type = "Neg", .inputs = {w}, .outputs = {y}, .opset = 21});
    graph->AddOutput("y", y);
    const std::string bytes = WriteModel(ModelOf(std::move(graph), ir_version)).value();
    // As of a later version, the same bytes show whether "w" is among the inputs.
    std::string later = bytes;
    later[1] = 10;
    const Result<Model> model = ReadModel(std::as_bytes(std::span(later)), nullptr);
    ASSERT_TRUE(model) << model.error().message();
    EXPECT_EQ(model->graph->inputs.size(), ir_version < 4 ? 1u : 0u);
  }
}

TEST(OnnxWriterTest, ImportsDomainsAndRefusesOtherVersions) {
  const auto model_with = [](std::string op_type, std::string domain, int32_t opset) {
    auto graph = std::make_unique<Graph>();
    const ValueId x = graph->AddValue("x");
    graph->AddInput(x);
    const ValueId y = graph->AddValue("y");
    Node& node = graph->AddNode({.op_type = std::move(op_type),
                                 .domain = std::move(domain),
                                 .inputs = {x},
                                 .outputs = {y},
                                 .opset = opset});
    node.schema = FindSchema(node.domain, node.op_type, node.opset);
    graph->AddOutput("y", y);
    return Reread(ModelOf(std::move(graph)));
  };
  EXPECT_EQ(model_with("Fused", "org.example", 0)->opsets,
            (OpsetImports{{"", 21}, {"org.example", 1}}));
  EXPECT_TRUE(model_with("Softmax", "", 18));
  const Result<Model> older = model_with("Softmax", "", 11);
  ASSERT_FALSE(older);
  EXPECT_THAT(older.error().message(),
              HasSubstr("Softmax node #0: means Softmax-11, which opset 21 of domain ''"));
}

class OnnxWriterFileTest : public ::testing::Test {
 protected:
  const TemporaryFolder own_folder_;
  const std::string folder_ = own_folder_.path();
};

TEST_F(OnnxWriterFileTest, LargeInitializersGoToTheExternalFile) {
  auto graph = std::make_unique<Graph>();
  graph->AddInitializer("a", Tensor::Of<float>({3}, {1, 2, 3}));
  graph->AddInitializer("b", Tensor::Of<float>({2}, {4, 5}));
  graph->AddInitializer("c", Tensor::Of<float>({3}, {6, 7, 8}));
  const Model model = ModelOf(std::move(graph));
  const std::string path = folder_ + "/model.onnx";
  const WriteOptions options = {.external_data_file = "weights", .external_data_threshold = 12};
  const Status written = WriteModelFile(model, path, options);
  ASSERT_TRUE(written.ok()) << written.message();
  EXPECT_EQ(std::filesystem::file_size(folder_ + "/weights"), 16u + 12u);
  Result<Model> read = ReadModel(path);
  ASSERT_TRUE(read) << read.error().message();
  // Written over the files from which it is mapped.
  EXPECT_TRUE(WriteModelFile(*read, path, options).ok());
  read = ReadModel(path);
  ASSERT_TRUE(read) << read.error().message();
  const auto first = [&](const char* name) {
    return read->graph->ConstantOf(read->graph->FindValue(name))->data<float>()[0];
  };
  EXPECT_EQ(first("a"), 1);
  EXPECT_EQ(first("b"), 4);
  EXPECT_EQ(first("c"), 6);
}

TEST_F(OnnxWriterFileTest, ExternalDataLiesBesideTheModel) {
  const Model model = ModelOf(std::make_unique<Graph>());
  for (const char* name : {"../weights", "/tmp/weights", "a/b", ".."}) {
    EXPECT_EQ(WriteModelFile(model, folder_ + "/m.onnx", {.external_data_file = name}).code(),
              StatusCode::kInvalidArgument)
        << name;
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/m.onnx"));
}

TEST(OnnxWriterTest, RefusesModelsThatNoReaderTakes) {
  auto graph = std::make_unique<Graph>();
  // Never touched, so it takes no memory.
  static char block[64];
  graph->AddInitializer("huge",
                        Tensor::View(DataType::kUint8, Shape{int64_t{1} << 31}, block, nullptr));
  const auto bytes = WriteModel(ModelOf(std::move(graph)));
  ASSERT_FALSE(bytes);
  EXPECT_THAT(bytes.error().message(), HasSubstr("more than 2 GiB"));
}

}  // namespace
}  // namespace tenon
