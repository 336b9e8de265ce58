// Models in ONNX Runtime's format. tests/python/test_ort_format.py exchanges files with
// onnxruntime.
#include <flatbuffers/flatbuffers.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "ir/graph_builder.h"
#include "ir/onnx_reader.h"
#include "ir/onnx_writer.h"
#include "ir/ort_tables.h"
#include "ir/ort_writer.h"
#include "ir/proto_message.h"
#include "ir/schema.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> SpanOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Result<std::string> WriteOrt(const Model& model) {
  return WriteModel(model, {.format = ModelFormat::kOrt});
}

std::string ReadError(std::string_view bytes, const ReadOptions& options = {}) {
  const Result<Model> model = ReadModel(SpanOf(bytes), nullptr, options);
  return model ? "" : model.error().message();
}

std::string WriteError(const Model& model) {
  const Result<std::string> bytes = WriteOrt(model);
  return bytes ? "" : bytes.error().message();
}

// A model with everything that the format can hold.
Message ModelWithEverything() {
  const auto attribute = [](std::string_view name, AttributeType type) {
    return Message()
        .Bytes(AttributeField::kName, name)
        .Int(AttributeField::kType, static_cast<int64_t>(type));
  };
  const Message tensor = RawTensor("", DataType::kInt16, {2}, "abcd");
  const Message no_elements = RawTensor("", DataType::kFloat, {0, 3}, "");
  const Message strings = Message()
                              .Ints(TensorField::kDims, {2})
                              .Int(TensorField::kDataType, 8)
                              .Bytes(TensorField::kStringData, std::string_view("a\0b", 3))
                              .Bytes(TensorField::kStringData, "");
  const Message shape =
      Message()
          .Add(ShapeField::kDim, Message().Int(DimField::kValue, 0))
          .Add(ShapeField::kDim,
               Message().Bytes(DimField::kParam, "n").Bytes(DimField::kDenotation, "DATA_TIME"))
          .Add(ShapeField::kDim, Message());
  const Message tensor_type =
      Message()
          .Add(TypeField::kTensor,
               Message().Int(TensorTypeField::kElementType, 1).Add(TensorTypeField::kShape, shape))
          .Bytes(TypeField::kDenotation, "IMAGE");
  const Message map_type = Message().Add(
      TypeField::kMap,
      Message()
          .Int(MapTypeField::kKeyType, 7)
          .Add(MapTypeField::kValueType,
               Message().Add(TypeField::kTensor, Message().Int(TensorTypeField::kElementType, 1))));
  const auto value = [](std::string_view name, const Message& type) {
    return Message()
        .Bytes(ValueInfoField::kName, name)
        .Add(ValueInfoField::kType, type)
        .Bytes(ValueInfoField::kDocString, "about it");
  };
  const auto holder = [](const Message& element) {
    return Message().Add(TypeField::kSequence,
                         Message().Add(HolderTypeField::kElementType, element));
  };
  // Reads a value of each graph around it.
  const Message inner = Message()
                            .Bytes(GraphField::kName, "")
                            .Add(GraphField::kNode, NodeMessage("Sum", {"x", "w", "b"}, {"i"}))
                            .Add(GraphField::kOutput, FloatValue("i", {2, 3}));
  const auto body = [&](std::string_view op_type) {
    return Message()
        .Bytes(GraphField::kName, "")
        .Add(GraphField::kNode, NodeMessage(op_type, {"x"}, {"b"}))
        .Add(GraphField::kNode, NodeMessage("Nest", {}, {"o"}, {GraphAttribute("inner", inner)})
                                    .Bytes(NodeField::kDomain, "org.example"))
        .Add(GraphField::kOutput, FloatValue("o", {2, 3}))
        .Add(GraphField::kValueInfo, FloatValue("b", {2, 3}));
  };
  using enum AttributeType;
  const Message node =
      NodeMessage("Everything", {"x", "", "w", "s"}, {"y", "", "maps"},
                  {attribute("float", kFloat).Float(AttributeField::kFloat, 0.5f),
                   attribute("zero", kFloat).Float(AttributeField::kFloat, 0),
                   attribute("int", kInt).Int(AttributeField::kInt, -7),
                   attribute("no int", kInt).Int(AttributeField::kInt, 0),
                   attribute("string", kString).Bytes(AttributeField::kString, "s"),
                   attribute("no string", kString).Bytes(AttributeField::kString, ""),
                   attribute("tensor", kTensor).Add(AttributeField::kTensor, tensor),
                   attribute("strings", kTensor).Add(AttributeField::kTensor, strings),
                   attribute("empty", kTensor).Add(AttributeField::kTensor, no_elements),
                   attribute("graph", kGraph).Add(AttributeField::kGraph, body("Neg")),
                   attribute("floats", kFloats).Floats(AttributeField::kFloats, {1, 2}),
                   attribute("ints", kInts).Ints(AttributeField::kInts, {3, -4}),
                   attribute("no ints", kInts),
                   attribute("texts", kStrings)
                       .Bytes(AttributeField::kStrings, "")
                       .Bytes(AttributeField::kStrings, "t"),
                   attribute("tensors", kTensors)
                       .Add(AttributeField::kTensors, tensor)
                       .Add(AttributeField::kTensors, strings),
                   attribute("graphs", kGraphs)
                       .Add(AttributeField::kGraphs, body("Abs"))
                       .Add(AttributeField::kGraphs, body("Exp"))
                       .Bytes(AttributeField::kDocString, "doc")})
          .Bytes(NodeField::kName, "n")
          .Bytes(NodeField::kDomain, "org.example")
          .Bytes(NodeField::kDocString, "doc");
  const Message sparse =
      Message()
          .Add(SparseTensorField::kValues, RawTensor("s", DataType::kInt16, {2}, "abcd"))
          .Add(SparseTensorField::kIndices, Message()
                                                .Ints(TensorField::kDims, {2})
                                                .Int(TensorField::kDataType, 7)
                                                .Ints(TensorField::kInt64Data, {1, 5}))
          .Ints(SparseTensorField::kDims, {3, 2});
  const Message graph =
      Message()
          .Bytes(GraphField::kName, "")
          .Bytes(GraphField::kDocString, "graph doc")
          .Add(GraphField::kNode, node)
          .Add(GraphField::kNode,
               NodeMessage("Concat", {"y", "y"}, {"z"}, {IntAttribute("axis", 0)}))
          .Add(GraphField::kInitializer, RawTensor("w", DataType::kFloat, {2}, "abcdefgh")
                                             .Bytes(TensorField::kDocString, "tensor doc"))
          .Add(GraphField::kInitializer, RawTensor("scalar", DataType::kDouble, {}, "abcdefgh"))
          .Add(GraphField::kSparseInitializer, sparse)
          .Add(GraphField::kInput, FloatValue("x", {2, 3}))
          .Add(GraphField::kInput, value("d", tensor_type))
          .Add(GraphField::kInput, value("list", holder(holder(tensor_type))))
          .Add(GraphField::kOutput, FloatValue("z", {}))
          .Add(GraphField::kOutput, value("maps", map_type))
          .Add(GraphField::kValueInfo, FloatValue("y", {4, 3}));
  return ModelMessage(graph)
      .Bytes(ModelField::kProducerName, "p")
      .Bytes(ModelField::kProducerVersion, "v")
      .Bytes(ModelField::kDomain, "d")
      .Int(ModelField::kModelVersion, 3)
      .Bytes(ModelField::kDocString, "doc")
      .Add(ModelField::kOpsetImport, Opset("org.example", 2))
      .Add(ModelField::kMetadata, Entry("a", "b"))
      .Add(ModelField::kMetadata, Entry("c", ""));
}

std::string FileWithEverything() { return WriteOrt(Parse(ModelWithEverything()).value()).value(); }

TEST(OrtFormatTest, HoldsModels) {
  const Result<Model> model = Parse(ModelWithEverything());
  ASSERT_TRUE(model) << model.error().message();
  const Result<std::string> file = WriteOrt(*model);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_TRUE(HasOrtIdentifier(SpanOf(*file)));
  const Result<Model> again = ReadModel(SpanOf(*file), nullptr);
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(WriteModel(*again).value(), WriteModel(*model).value());
  EXPECT_EQ(WriteOrt(*again).value(), *file);
}

TEST(OrtFormatTest, ReadsElementsWhereTheyAre) {
  const std::string file = FileWithEverything();
  const auto owner = std::make_shared<std::string>(file);
  const auto is_inside = [&](const Tensor& tensor) {
    const auto* const at = static_cast<const char*>(tensor.raw());
    return at >= owner->data() && at + tensor.bytes() <= owner->data() + owner->size();
  };
  const auto weight = [](const Model& model) -> const Tensor& {
    return *model.graph->StoredConstantOf(model.graph->FindValue("w"));
  };
  const Model view = ReadModel(SpanOf(*owner), owner).value();
  EXPECT_TRUE(is_inside(weight(view)));
  EXPECT_EQ(view.external_places, nullptr);
  const Model copy = ReadModel(SpanOf(*owner), nullptr).value();
  EXPECT_FALSE(is_inside(weight(copy)));
  EXPECT_EQ(std::memcmp(weight(copy).raw(), "abcdefgh", 8), 0);
}

TEST(OrtFormatTest, ReadsBytesAtAnyAddress) {
  const std::string file = FileWithEverything();
  const Result<Model> expected = ReadModel(SpanOf(file), nullptr);
  for (size_t shift = 1; shift < 8; ++shift) {
    const std::string shifted = std::string(shift, ' ') + file;
    const Result<Model> model = ReadModel(SpanOf(shifted).subspan(shift), nullptr);
    ASSERT_TRUE(model) << model.error().message();
    EXPECT_EQ(WriteModel(*model).value(), WriteModel(*expected).value());
  }
}

TEST(OrtFormatTest, IsToldByItsFirstBytes) {
  EXPECT_TRUE(HasOrtName("model.ort"));
  EXPECT_TRUE(HasOrtName("folder/MODEL.Ort"));
  EXPECT_FALSE(HasOrtName(".ort"));
  EXPECT_FALSE(HasOrtName("model.ort.onnx"));
  // A ModelProto whose producer's name begins with the identifier, which is then where a file in
  // the ORT format has it.
  const std::string onnx = Message()
                               .Int(ModelField::kIrVersion, 10)
                               .Bytes(ModelField::kProducerName, "ORTMaker")
                               .bytes();
  ASSERT_EQ(onnx.substr(4, 4), ort::kIdentifier);
  EXPECT_FALSE(HasOrtIdentifier(SpanOf(onnx)));
  EXPECT_FALSE(HasOrtIdentifier(SpanOf("ORTM")));
  EXPECT_EQ(ReadError(ModelMessage(Message()).bytes(), {.format = ModelFormat::kOrt}),
            "expected the identifier ORTM of the ORT format at byte 4");
  EXPECT_THAT(ReadError(FileWithEverything(), {.format = ModelFormat::kOnnx}), HasSubstr("byte"));
}

TEST(OrtFormatTest, SurvivesTruncationAtEveryByte) {
  const std::string file = FileWithEverything();
  constexpr size_t kMostPadding = 7;
  for (size_t size = 0; size + kMostPadding < file.size(); ++size) {
    // Of exactly this size, so that sanitizers see any read beyond it.
    const std::vector<char> part(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    const std::string_view bytes(part.data(), part.size());
    EXPECT_NE(ReadError(bytes, {.format = ModelFormat::kOrt}), "") << size;
  }
}

TEST(OrtFormatTest, SurvivesChangesOfEveryByte) {
  const std::string file = FileWithEverything();
  for (size_t i = 0; i < file.size(); ++i) {
    for (const unsigned change : {1U, 0x80U}) {
      std::vector<char> changed(file.begin(), file.end());
      changed[i] = static_cast<char>(static_cast<unsigned char>(changed[i]) ^ change);
      const auto owner = std::make_shared<std::vector<char>>(std::move(changed));
      const Result<Model> model =
          ReadModel(std::as_bytes(std::span(*owner)), owner, {.format = ModelFormat::kOrt});
      if (model) {
        EXPECT_TRUE(WriteModel(*model)) << i;
      } else {
        EXPECT_NE(model.error().message(), "") << i;
      }
    }
  }
}

// Files that no writer makes.
class FileMaker {
 public:
  using Place = flatbuffers::Offset<void>;
  struct Field {
    uint16_t number;
    Place place = {};
    int64_t value = 0;  // if there is no place
    size_t bytes = 8;
  };

  Place Text(const std::string& text) { return builder_.CreateString(text).Union(); }
  Place List(const std::vector<Place>& places) { return builder_.CreateVector(places).Union(); }
  Place Bytes(size_t count) {
    return builder_.CreateVector(std::vector<uint8_t>(count, 1)).Union();
  }
  Place Dims(const std::vector<int64_t>& dims) { return builder_.CreateVector(dims).Union(); }
  Place Table(const std::vector<Field>& fields) {
    const auto start = builder_.StartTable();
    for (const Field& field : fields) {
      const auto at = static_cast<flatbuffers::voffset_t>(4 + 2 * field.number);
      if (!field.place.IsNull()) {
        builder_.AddOffset(at, field.place);
      } else if (field.bytes == 8) {
        builder_.AddElement<int64_t>(at, field.value, 0);
      } else if (field.bytes == 4) {
        builder_.AddElement<int32_t>(at, static_cast<int32_t>(field.value), 0);
      } else {
        builder_.AddElement<uint8_t>(at, static_cast<uint8_t>(field.value), 0);
      }
    }
    return Place(builder_.EndTable(start));
  }
  // A file with a graph of these fields.
  std::string File(const std::vector<Field>& graph, const std::string& version = "6") {
    const Place graph_table = Table(graph);
    const Place domain = Text("");
    const Place opset = Table({{ort::Opset::kDomain, domain}, {ort::Opset::kVersion, {}, 21}});
    const Place opsets = List({opset});
    const Place model = Table({{ort::Model::kIrVersion, {}, 10},
                               {ort::Model::kOpsets, opsets},
                               {ort::Model::kGraph, graph_table}});
    const Place version_text = Text(version);
    builder_.Finish(Table({{ort::File::kVersion, version_text}, {ort::File::kModel, model}}),
                    ort::kIdentifier);
    return {reinterpret_cast<const char*>(builder_.GetBufferPointer()), builder_.GetSize()};
  }

 private:
  flatbuffers::FlatBufferBuilder builder_;
};

TEST(OrtFormatTest, ReadsAllVersions) {
  for (const char* const version : {"1", "4", "5", "6"}) {
    EXPECT_EQ(ReadError(FileMaker().File({}, version)), "") << version;
  }
  for (const char* const version : {"7", "0", "-1", "", "6.0", "six", "99999999999"}) {
    EXPECT_EQ(ReadError(FileMaker().File({}, version)),
              Format("the file has version '{}' of the ORT format; the newest supported one is 6",
                     version));
  }
}

TEST(OrtFormatTest, SaysWhatIsWrong) {
  const auto tensor_with = [](FileMaker& make, std::vector<FileMaker::Field> fields) {
    const auto name = make.Text("w"), dims = make.Dims({100});
    fields.push_back({ort::Tensor::kName, name});
    fields.push_back({ort::Tensor::kDims, dims});
    fields.push_back({ort::Tensor::kType, {}, 2, 4});
    return make.Table(fields);
  };
  struct Case {
    std::function<std::string(FileMaker&)> file;
    std::string error;
  };
  const Case cases[] = {
      {[&](FileMaker& make) {
         const auto tensor = tensor_with(make, {{ort::Tensor::kExternalOffset, {}, 8}});
         const auto list = make.List({tensor});
         return make.File({{ort::Graph::kInitializers, list}});
       },
       "tensor 'w': the elements are in another file, whose name the ORT format does not store"},
      {[&](FileMaker& make) {
         const auto elements = make.Bytes(99);
         const auto tensor = tensor_with(make, {{ort::Tensor::kElements, elements}});
         const auto list = make.List({tensor});
         return make.File({{ort::Graph::kInitializers, list}});
       },
       "external data in 'ort': the tensor has 100 bytes, got a length of 99"},
      {[&](FileMaker& make) {
         const auto elements = make.Bytes(1000);
         const auto field = FileMaker::Field{ort::Tensor::kElements, elements};
         const auto list = make.List(
             {tensor_with(make, {field}), tensor_with(make, {field}), tensor_with(make, {field})});
         return make.File({{ort::Graph::kInitializers, list}});
       },
       "tensor 'w': the tensors have more bytes than the file: some share their elements"},
      {[](FileMaker& make) {
         const auto name = make.Text("n"), op_type = make.Text("Fused_1");
         const auto node = make.Table({{ort::Node::kName, name},
                                       {ort::Node::kOpType, op_type},
                                       {ort::Node::kKind, {}, ort::Node::kFused, 4}});
         const auto list = make.List({node});
         return make.File({{ort::Graph::kNodes, list}});
       },
       "node 'n': is fused: only the provider that made it can run it"},
      {[](FileMaker& make) {
         const auto name = make.Text("y");
         const auto list = make.List({name});
         return make.File({{ort::Graph::kOutputs, list}});
       },
       "the file does not describe the value 'y', an input or output of its graph"},
      {[](FileMaker& make) {
         // Each of many entries is the same list of many entries.
         const auto text = make.Text("x");
         const auto texts = make.List(std::vector<FileMaker::Place>(1000, text));
         const auto op_type = make.Text("Sum");
         const auto node = make.Table({{ort::Node::kOpType, op_type}, {ort::Node::kInputs, texts}});
         const auto list = make.List(std::vector<FileMaker::Place>(1000, node));
         return make.File({{ort::Graph::kNodes, list}});
       },
       "refers to more tables than the file has: some are shared"},
      {[](FileMaker& make) {
         // Types within types: more levels than a type may have.
         auto type = make.Table({});
         for (int i = 0; i < 60; ++i) {
           const auto sequence = make.Table({{ort::SequenceType::kElement, type}});
           type = make.Table(
               {{ort::Type::kForm, sequence}, {ort::Type::kKind, {}, ort::Type::kSequence, 1}});
         }
         const auto name = make.Text("v");
         const auto value = make.Table({{ort::Value::kName, name}, {ort::Value::kType, type}});
         const auto values = make.List({value});
         const auto inputs = make.List({name});
         return make.File({{ort::Graph::kValues, values}, {ort::Graph::kInputs, inputs}});
       },
       "a type is nested more than 50 levels deep"},
  };
  for (const Case& test : cases) {
    FileMaker make;
    EXPECT_THAT(ReadError(test.file(make)), HasSubstr(test.error));
  }
}

TEST(OrtFormatTest, LeavesTypesOfOtherKindsUnread) {
  // Unverified, what the field points to may be anywhere: here, beyond the file.
  for (const uint8_t kind : {uint8_t{0}, uint8_t{4}, uint8_t{255}}) {
    FileMaker make;
    const auto type =
        make.Table({{ort::Type::kForm, {}, 0x7fffffff, 4}, {ort::Type::kKind, {}, kind, 1}});
    const auto name = make.Text("v");
    const auto value = make.Table({{ort::Value::kName, name}, {ort::Value::kType, type}});
    const auto values = make.List({value});
    const auto inputs = make.List({name});
    const std::string file =
        make.File({{ort::Graph::kValues, values}, {ort::Graph::kInputs, inputs}});
    const Result<Model> model = ReadModel(SpanOf(file), nullptr);
    ASSERT_TRUE(model) << model.error().message();
    EXPECT_EQ(model->graph->value(model->graph->FindValue("v")).type.kind, Value::Kind::kNone);
  }
}

TEST(OrtFormatTest, BoundsTheTextThatManyShare) {
  // 20 000 nodes with the same name of 20 000 bytes would have 400 MB.
  FileMaker make;
  const auto name = make.Text(std::string(20'000, 'n'));
  std::vector<FileMaker::Place> nodes;
  for (int i = 0; i < 20'000; ++i) nodes.push_back(make.Table({{ort::Node::kName, name}}));
  const auto list = make.List(nodes);
  EXPECT_THAT(ReadError(make.File({{ort::Graph::kNodes, list}})),
              HasSubstr("the names and attributes have more bytes than the file can hold"));
}

Model ModelAround(std::unique_ptr<Graph> graph) {
  Model model;
  model.ir_version = 10;
  model.opsets = {{"", 21}};
  model.graph = std::move(graph);
  return model;
}

// A model with a node of one attribute, whose output has a type.
Model ModelWithNode(Attribute attribute, ValueType type) {
  GraphBuilder g(21);
  std::vector<Attribute> attributes;
  attributes.push_back(std::move(attribute));
  const ValueId x = g.Input("x", DataType::kFloat, SymbolicShape{2});
  const ValueId y = g.Op("Anything", {x}, std::move(attributes), "org.example");
  g.graph->value(y).type = std::move(type);
  g.Output(y);
  return ModelAround(std::move(g.graph));
}

TEST(OrtFormatTest, RefusesWhatItCannotHold) {
  const ValueType number = ValueType::Tensor(DataType::kFloat);
  EXPECT_EQ(WriteError(ModelWithNode({"a", int64_t{1}}, number)), "");
  EXPECT_THAT(WriteError(ModelWithNode({"a", number}, number)),
              HasSubstr("attribute 'a': the ORT format has no attributes of type"));
  EXPECT_THAT(WriteError(ModelWithNode({"a", std::make_shared<SparseTensor>()}, number)),
              HasSubstr("attribute 'a': the ORT format has no attributes of type"));
  EXPECT_THAT(WriteError(ModelWithNode({"a", int64_t{1}}, ValueType::Optional(number))),
              HasSubstr("the ORT format has no type optional(tensor(float))"));
  EXPECT_THAT(WriteError(ModelWithNode({"a", int64_t{1}}, {})),
              HasSubstr("its type is unknown, but the ORT format needs it"));
  Model calling = ModelWithNode({"a", int64_t{1}}, number);
  calling.functions.push_back(
      {.name = "Anything", .domain = "org.example", .body = std::make_unique<Graph>()});
  EXPECT_THAT(WriteError(calling), HasSubstr("calls a function of the model"));
  const Result<std::string> external =
      WriteModel(calling, {.format = ModelFormat::kOrt, .external_data_file = "weights"});
  ASSERT_FALSE(external);
  EXPECT_EQ(external.error().message(), "a file in the ORT format cannot have external data");
}

TEST(OrtFormatTest, RefusesTwoGigabytes) {
  // Nothing reads the elements: there is no room for them.
  const char elements[8] = {};
  GraphBuilder g(21);
  const ValueId x = g.Input("x", DataType::kUint8, SymbolicShape{1});
  const ValueId weights = g.Constant(Tensor::ReadOnlyView(DataType::kUint8, Shape{int64_t{1} << 31},
                                                          elements, std::make_shared<int>()));
  g.Output(g.Shaped(g.Op("Add", {x, weights}), SymbolicShape{1}, DataType::kUint8));
  EXPECT_THAT(WriteError(ModelAround(std::move(g.graph))), HasSubstr("has 2 GiB or more"));
}

TEST(OrtFormatTest, ReplacesWhatOnnxRuntimeHasNoKernelsFor) {
  GraphBuilder g(21);
  const ValueId x = g.Input("x", DataType::kFloat, SymbolicShape{2});
  const ValueId like = g.Input("like", DataType::kInt64, SymbolicShape{2});
  g.Output(g.Op("CastLike", {g.Op("Relu", {g.Op("HardSwish", {x})}), like}));
  for (size_t i = 0; i < g.graph->node_capacity(); ++i) {
    Node& node = g.graph->node(static_cast<NodeId>(i));
    node.schema = FindSchema(node.domain, node.op_type, node.opset);
  }
  Model model = ModelAround(std::move(g.graph));
  ASSERT_TRUE(ReplaceForOrt(model).ok());
  const std::string text = GraphText(*model.graph);
  EXPECT_THAT(text, HasSubstr("HardSigmoid"));
  EXPECT_THAT(text, HasSubstr("Cast<to=7>"));
  EXPECT_THAT(text, HasSubstr("Relu"));
  EXPECT_EQ(text.find("CastLike("), std::string::npos);
  EXPECT_EQ(text.find("HardSwish("), std::string::npos);
}

TEST(OrtFormatTest, MakesConstantNodesInitializers) {
  GraphBuilder g(21);
  const ValueId x = g.Input("x", DataType::kFloat, SymbolicShape{2});
  const ValueId constant =
      g.Op("Constant", {}, MakeAttributes(Attr("value_floats", std::vector{1.f})));
  g.Output(g.Shaped(g.Op("Add", {x, constant}), SymbolicShape{2}));
  const std::string name = g.graph->value(constant).name;
  const Result<std::string> file = WriteOrt(ModelAround(std::move(g.graph)));
  ASSERT_TRUE(file) << file.error().message();
  const Model model = ReadModel(SpanOf(*file), nullptr).value();
  EXPECT_EQ(model.graph->node_count(), 1u);
  EXPECT_NE(model.graph->ConstantOf(model.graph->FindValue(name)), nullptr);
}

}  // namespace
}  // namespace tenon
