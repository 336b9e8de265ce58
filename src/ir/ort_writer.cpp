#include "ir/ort_writer.h"

#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <limits>
#include <map>

#include "ir/constant_node.h"
#include "ir/graph_writer.h"
#include "ir/ort_tables.h"
#include "ir/passes.h"
#include "ir/schema.h"
#include "ir/value_names.h"

namespace tenon {
namespace {

using flatbuffers::FlatBufferBuilder;

// Of something that the file has already: it is written before what refers to it.
using Place = flatbuffers::Offset<void>;
using Places = std::vector<Place>;

// A FlatBuffer has less than 2 GiB. What is written between two checks fits into the rest.
constexpr uint64_t kMostBytes = std::numeric_limits<int32_t>::max() - (uint64_t{64} << 20);

// A field of a table: the bits of a number, or a place. 0 means that the table does not have it.
struct FieldValue {
  FieldValue(uint16_t number, Place place) : field(number), value(place.o) {}
  template <class T>
  requires std::is_arithmetic_v<T> FieldValue(uint16_t number, T scalar)
      : field(number), bytes(sizeof(T)) {
    std::memcpy(&value, &scalar, sizeof(T));
  }

  uint16_t field;
  uint8_t bytes = 0;  // of a number; 0: it is a place
  uint64_t value = 0;
};

// The parts of a file that need no graph, and what its graphs share.
class OrtFileWriter {
 public:
  OrtFileWriter(const Model& model, FlatBufferBuilder& builder)
      : model_(model), builder_(builder), opsets_(model.opsets) {}

  void Write();

  // After an error, which is the first one, nothing of value is written any more. The functions
  // that write do not report errors, so that they are small; what they return is then null.
  const Status& status() const { return status_; }
  bool failed() const { return !status_.ok(); }
  void SetError(Status status) {
    if (!failed()) status_ = std::move(status);
  }
  // Says where the error is, if there is one: called after each part in which it may have happened.
  void AddContext(const std::string& place) {
    if (failed()) status_ = std::move(status_).WithContext(place);
  }

  const Model& model() const { return model_; }
  OpsetImports& opsets() { return opsets_; }

  // Whether the file has room for so many more bytes; if not, that is the error.
  bool HasRoom(uint64_t bytes);
  Place AddTable(std::initializer_list<FieldValue> fields);
  Place AddList(const Places& places) {
    return failed() ? Place() : builder_.CreateVector(places).Union();
  }
  template <class T>
  Place AddNumbers(const T* numbers, size_t count) {
    return HasRoom(count * sizeof(T)) ? builder_.CreateVector(numbers, count).Union() : Place();
  }
  Place AddEdges(const std::vector<ort::EdgeEnd>& edges) {
    return builder_.CreateVectorOfStructs(edges.data(), edges.size()).Union();
  }
  // A text that the file may have several times.
  Place AddName(std::string_view name) {
    if (!HasRoom(name.size())) return {};
    return builder_.CreateSharedString(name.data(), name.size()).Union();
  }
  // Null for an empty text.
  Place AddText(std::string_view text) {
    if (text.empty() || !HasRoom(text.size())) return {};
    return builder_.CreateString(text.data(), text.size()).Union();
  }
  Place AddTexts(std::span<const std::string> texts);
  Place AddTensor(std::string_view name, std::string_view doc_string, const Tensor& tensor);
  Place AddSparseTensor(std::string_view name, std::string_view doc_string,
                        const SparseTensor& sparse);
  Place AddValue(std::string_view name, std::string_view doc_string, const ValueType& type);
  // Notes that a node has this schema.
  void NoteOperator(const OpSchema& schema) {
    operators_.emplace(Format("{}:{}:{}", schema.domain, schema.name, schema.since), &schema);
  }

 private:
  Place AddDims(const Shape& shape) { return AddNumbers(shape.data(), shape.rank()); }
  Place AddType(const ValueType& type);
  Place AddTensorType(const ValueType& type);
  Place AddDim(const Dim& dim, std::string_view denotation);
  Place AddOpsets();
  Place AddMetadata();
  Place AddOperator(std::string_view name, const OpSchema& schema);
  Place AddOperators();
  Place AddModel();

  const Model& model_;
  FlatBufferBuilder& builder_;
  OpsetImports opsets_;
  std::map<std::string, const OpSchema*> operators_;  // by ort::Operator::kName
  Status status_;
};

class OrtGraphWriter {
 public:
  // `outer` has the names of the graph around this one, or is null.
  OrtGraphWriter(const Graph& graph, const ValueNames* outer, OrtFileWriter& file)
      : graph_(graph),
        names_(graph, outer),
        file_(file),
        constants_(graph.value_count()),
        makers_(graph.value_count()) {}

  Place Write();

 private:
  struct Maker {
    int32_t node = -1;
    int32_t output = 0;
  };
  struct Edges {
    std::vector<ort::EdgeEnd> in;
    std::vector<ort::EdgeEnd> out;
  };

  void ReadConstants();
  void AddNodes();
  void AddNode(const Node& node, Place outputs);
  void AddIdentities();
  // Of a node that reads these values, the next one in the file.
  void NoteEdges(const std::vector<ValueId>& inputs);
  Place AddEdges();
  Place AddAttributes(const Node& node);
  Place AddAttribute(const Attribute& attribute);
  void AddInitializers();
  void AddValues();
  Place AddNames(const std::vector<ValueId>& values);

  const Graph& graph_;
  const ValueNames names_;
  OrtFileWriter& file_;
  std::vector<Value> constants_;  // by value: what a Constant node makes
  std::vector<Maker> makers_;     // by value: the node that makes it
  std::vector<Edges> edges_;      // by node
  bool has_absent_ = false;       // whether a node has an input or output without a name
  Places nodes_, values_, initializers_, sparse_initializers_;
};

bool OrtFileWriter::HasRoom(uint64_t bytes) {
  if (bytes > kMostBytes || builder_.GetSize() > kMostBytes - bytes) {
    SetError(
        InvalidArgument("the model has 2 GiB or more, which no file in the ORT format can hold: "
                        "write an ONNX file with external data"));
  }
  return !failed();
}

Place OrtFileWriter::AddTable(std::initializer_list<FieldValue> fields) {
  const flatbuffers::uoffset_t start = builder_.StartTable();
  for (const FieldValue& field : fields) {
    const auto place =
        static_cast<flatbuffers::voffset_t>((2 + field.field) * sizeof(flatbuffers::voffset_t));
    switch (field.bytes) {
      case 0:
        builder_.AddOffset(place, Place(static_cast<flatbuffers::uoffset_t>(field.value)));
        break;
      case 1:
        builder_.AddElement(place, static_cast<uint8_t>(field.value), uint8_t{0});
        break;
      case 4:
        builder_.AddElement(place, static_cast<uint32_t>(field.value), uint32_t{0});
        break;
      default:
        builder_.AddElement(place, field.value, uint64_t{0});
    }
  }
  return Place(builder_.EndTable(start));
}

Place OrtFileWriter::AddTexts(std::span<const std::string> texts) {
  Places places;
  for (const std::string& text : texts) places.push_back(AddName(text));
  return AddList(places);
}

Place OrtFileWriter::AddTensor(std::string_view name, std::string_view doc_string,
                               const Tensor& tensor) {
  Place strings, elements;
  if (tensor.type() == DataType::kString) {
    strings = AddTexts(tensor.values<std::string>());
  } else {
    elements = AddNumbers(static_cast<const uint8_t*>(tensor.raw()), tensor.bytes());
  }
  const Place name_place = AddText(name), doc_place = AddText(doc_string);
  const Place dims = AddDims(tensor.shape());
  return AddTable({{ort::Tensor::kName, name_place},
                   {ort::Tensor::kDocString, doc_place},
                   {ort::Tensor::kDims, dims},
                   {ort::Tensor::kType, static_cast<int32_t>(tensor.type())},
                   {ort::Tensor::kElements, elements},
                   {ort::Tensor::kStrings, strings}});
}

Place OrtFileWriter::AddSparseTensor(std::string_view name, std::string_view doc_string,
                                     const SparseTensor& sparse) {
  const Place values = AddTensor(name, doc_string, sparse.values);
  const Place indices = AddTensor("", "", sparse.indices);
  const Place dims = AddDims(sparse.dense_shape);
  return AddTable({{ort::SparseTensor::kValues, values},
                   {ort::SparseTensor::kIndices, indices},
                   {ort::SparseTensor::kDims, dims}});
}

Place OrtFileWriter::AddDim(const Dim& dim, std::string_view denotation) {
  const Place denotation_place = AddText(denotation);
  Place size;
  if (dim.is_number()) {
    size = AddTable({{ort::DimSize::kKind, static_cast<int8_t>(ort::DimSize::kIsNumber)},
                     {ort::DimSize::kNumber, dim.value()}});
  } else if (!dim.is_unknown()) {
    const Place symbol = AddName(dim.ToString());
    size = AddTable({{ort::DimSize::kKind, static_cast<int8_t>(ort::DimSize::kIsSymbol)},
                     {ort::DimSize::kSymbol, symbol}});
  }
  return AddTable({{ort::Dim::kSize, size}, {ort::Dim::kDenotation, denotation_place}});
}

Place OrtFileWriter::AddTensorType(const ValueType& type) {
  Place shape;
  if (type.shape) {
    Places dims;
    for (size_t axis = 0; axis < type.shape->rank(); ++axis) {
      const bool has_denotation = axis < type.dim_denotations.size();
      dims.push_back(AddDim((*type.shape)[axis], has_denotation ? type.dim_denotations[axis] : ""));
    }
    const Place list = AddList(dims);
    shape = AddTable({{ort::Shape::kDims, list}});
  }
  return AddTable({{ort::TensorType::kElementType, static_cast<int32_t>(type.element_type)},
                   {ort::TensorType::kShape, shape}});
}

Place OrtFileWriter::AddType(const ValueType& type) {
  Place held, form;
  if (type.held) {
    held = AddType(*type.held);
  }
  ort::Type::Kind kind = ort::Type::kNone;
  switch (type.kind) {
    case Value::Kind::kTensor:
      kind = ort::Type::kTensor;
      if (type.element_type != DataType::kUndefined) form = AddTensorType(type);
      break;
    case Value::Kind::kSequence:
      kind = ort::Type::kSequence;
      if (type.held) form = AddTable({{ort::SequenceType::kElement, held}});
      break;
    case Value::Kind::kMap:
      kind = ort::Type::kMap;
      if (!type.held) break;
      form = AddTable({{ort::MapType::kKeyType, static_cast<int32_t>(type.element_type)},
                       {ort::MapType::kElement, held}});
      break;
    case Value::Kind::kNone:
      break;
    default:
      SetError(NotImplemented("the ORT format has no type {}", type.TypeName()));
  }
  if (form.IsNull()) SetError(InvalidGraph("its type is unknown, but the ORT format needs it"));
  const Place denotation = AddText(type.denotation);
  return AddTable({{ort::Type::kDenotation, denotation},
                   {ort::Type::kKind, static_cast<uint8_t>(kind)},
                   {ort::Type::kForm, form}});
}

Place OrtFileWriter::AddValue(std::string_view name, std::string_view doc_string,
                              const ValueType& type) {
  if (failed()) return {};
  const Place type_place = AddType(type);
  AddContext(Format("value '{}'", name));
  const Place name_place = AddName(name), doc_place = AddText(doc_string);
  return AddTable({{ort::Value::kName, name_place},
                   {ort::Value::kDocString, doc_place},
                   {ort::Value::kType, type_place}});
}

Place OrtGraphWriter::Write() {
  ReadConstants();
  AddNodes();
  AddInitializers();
  AddValues();
  Places output_names;
  for (const ValueNames::Output& output : names_.outputs()) {
    output_names.push_back(file_.AddName(output.name));
  }
  const Place outputs = file_.AddList(output_names);
  const Place inputs = AddNames(graph_.inputs);
  const Place initializers = file_.AddList(initializers_);
  const Place sparse_initializers = file_.AddList(sparse_initializers_);
  const Place values = file_.AddList(values_);
  const Place nodes = file_.AddList(nodes_);
  const Place edges = AddEdges();
  return file_.AddTable({{ort::Graph::kInitializers, initializers},
                         {ort::Graph::kValues, values},
                         {ort::Graph::kNodes, nodes},
                         {ort::Graph::kNodeCount, static_cast<uint32_t>(nodes_.size())},
                         {ort::Graph::kEdges, edges},
                         {ort::Graph::kInputs, inputs},
                         {ort::Graph::kOutputs, outputs},
                         {ort::Graph::kSparseInitializers, sparse_initializers}});
}

void OrtGraphWriter::ReadConstants() {
  for (size_t i = 0; i < graph_.node_capacity(); ++i) {
    const Node* const node = graph_.FindNode(static_cast<NodeId>(i));
    if (node == nullptr || !IsConstantNode(*node) || !node->has_output(0)) continue;
    Result<Value> value = ValueOfConstantNode(*node);
    if (value) {
      constants_[Index(node->outputs[0])] = std::move(*value);
    } else {
      file_.SetError(std::move(value.error()).WithContext(node->Describe()));
    }
  }
}

Place OrtGraphWriter::AddNames(const std::vector<ValueId>& values) {
  Places names;
  for (const ValueId id : values) {
    has_absent_ |= id == ValueId::kNone;
    names.push_back(file_.AddName(names_[id]));
  }
  return file_.AddList(names);
}

void OrtGraphWriter::AddNodes() {
  const Result<std::vector<NodeId>> order = graph_.TopologicalOrder();
  if (!order) return file_.SetError(order.error());
  for (const NodeId id : *order) {
    const Node& node = graph_.node(id);
    if (IsConstantNode(node)) continue;
    AddNode(node, AddNames(node.outputs));
    if (file_.failed()) return file_.AddContext(node.Describe());
  }
  AddIdentities();
}

// The values of this graph that the subgraphs of a node read, each once.
std::vector<ValueId> CapturesOf(const Node& node) {
  std::vector<ValueId> captures;
  for (const Graph* const subgraph : node.Subgraphs()) {
    for (const Capture& capture : subgraph->captures) {
      const bool is_new =
          std::find(captures.begin(), captures.end(), capture.outer) == captures.end();
      if (is_new) captures.push_back(capture.outer);
    }
  }
  return captures;
}

// How many of the node's inputs belong to each input of its schema.
std::vector<int32_t> ArgCountsOf(const Node& node) {
  auto left = static_cast<int32_t>(node.inputs.size());
  if (node.schema == nullptr) return std::vector<int32_t>(node.inputs.size(), 1);
  std::vector<int32_t> counts;
  for (const OpFormal& formal : node.schema->inputs) {
    const bool takes_all = formal.kind == FormalKind::kVariadic;
    counts.push_back(takes_all ? left : std::min(left, 1));
    left -= counts.back();
  }
  return counts;
}

void OrtGraphWriter::AddNode(const Node& node, Place outputs) {
  if (file_.model().FindFunction(node) != nullptr) {
    file_.SetError(
        NotImplemented("calls a function of the model, but the ORT format has no functions"));
  }
  file_.SetError(ImportOperator(node, file_.opsets()));
  if (file_.failed()) return;
  if (node.schema != nullptr) file_.NoteOperator(*node.schema);
  const Place attributes = AddAttributes(node);
  const std::vector<ValueId> captures = CapturesOf(node);
  const std::vector<int32_t> counts = ArgCountsOf(node);
  const Place name = file_.AddText(node.name), doc_string = file_.AddText(node.doc_string);
  const Place domain = file_.AddName(node.domain), op_type = file_.AddName(node.op_type);
  const Place inputs = AddNames(node.inputs), capture_names = AddNames(captures);
  const Place arg_counts = file_.AddNumbers(counts.data(), counts.size());
  const int32_t since = node.schema != nullptr ? node.schema->since : std::max(node.opset, 1);
  const auto index = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back(file_.AddTable({{ort::Node::kName, name},
                                   {ort::Node::kDocString, doc_string},
                                   {ort::Node::kDomain, domain},
                                   {ort::Node::kSince, since},
                                   {ort::Node::kIndex, index},
                                   {ort::Node::kOpType, op_type},
                                   {ort::Node::kInputs, inputs},
                                   {ort::Node::kOutputs, outputs},
                                   {ort::Node::kAttributes, attributes},
                                   {ort::Node::kArgCounts, arg_counts},
                                   {ort::Node::kCaptures, capture_names}}));
  std::vector<ValueId> read = node.inputs;
  read.insert(read.end(), captures.begin(), captures.end());
  NoteEdges(read);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.has_output(i)) continue;
    makers_[Index(node.outputs[i])] = {static_cast<int32_t>(index), static_cast<int32_t>(i)};
  }
}

// Identity nodes for the outputs that need one.
void OrtGraphWriter::AddIdentities() {
  for (size_t i = 0; i < graph_.outputs().size(); ++i) {
    const ValueNames::Output& output = names_.outputs()[i];
    if (!output.needs_identity) continue;
    file_.SetError(CheckIdentity(graph_, names_, i));
    Node identity;
    identity.op_type = "Identity";
    identity.opset = file_.opsets().emplace("", kIdentityOpset).first->second;
    identity.schema = FindSchema("", identity.op_type, identity.opset);
    identity.inputs = {graph_.outputs()[i].value};
    const Place name = file_.AddName(output.name);
    AddNode(identity, file_.AddList({name}));
    values_.push_back(file_.AddValue(output.name, "", graph_.value(identity.inputs[0]).type));
  }
}

void OrtGraphWriter::NoteEdges(const std::vector<ValueId>& inputs) {
  const auto node = static_cast<uint32_t>(edges_.size());
  edges_.emplace_back();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == ValueId::kNone) continue;
    const auto [maker, output] = makers_[Index(inputs[i])];
    if (maker < 0) continue;
    const auto input = static_cast<int32_t>(i);
    edges_.back().in.push_back({static_cast<uint32_t>(maker), output, input});
    edges_[static_cast<size_t>(maker)].out.push_back({node, output, input});
  }
}

Place OrtGraphWriter::AddEdges() {
  Places tables;
  for (uint32_t i = 0; i < edges_.size(); ++i) {
    const Place in = file_.AddEdges(edges_[i].in), out = file_.AddEdges(edges_[i].out);
    tables.push_back(file_.AddTable(
        {{ort::Edges::kNode, i}, {ort::Edges::kInputs, in}, {ort::Edges::kOutputs, out}}));
  }
  return file_.AddList(tables);
}

Place OrtGraphWriter::AddAttributes(const Node& node) {
  Places tables;
  for (const Attribute& attribute : node.attributes) {
    tables.push_back(AddAttribute(attribute));
    if (file_.failed()) {
      file_.AddContext(Format("attribute '{}'", attribute.name));
      break;
    }
  }
  return file_.AddList(tables);
}

Place OrtGraphWriter::AddAttribute(const Attribute& attribute) {
  FieldValue held(ort::Attribute::kName, Place());
  const auto set = [&](uint16_t field, Place place) { held = FieldValue(field, place); };
  const auto graph = [&](const std::unique_ptr<Graph>& subgraph) {
    return OrtGraphWriter(*subgraph, &names_, file_).Write();
  };
  if (const auto* number = attribute.get<float>()) {
    held = FieldValue(ort::Attribute::kFloat, *number);
  } else if (const auto* integer = attribute.get<int64_t>()) {
    held = FieldValue(ort::Attribute::kInt, *integer);
  } else if (const auto* text = attribute.get<std::string>()) {
    set(ort::Attribute::kString, file_.AddName(*text));
  } else if (const auto* tensor = attribute.get<Tensor>()) {
    const Place place = file_.AddTensor("", "", *tensor);
    set(ort::Attribute::kTensor, place);
  } else if (const auto* subgraph = attribute.get<std::unique_ptr<Graph>>()) {
    const Place place = graph(*subgraph);
    set(ort::Attribute::kGraph, place);
  } else if (const auto* numbers = attribute.get<std::vector<float>>()) {
    set(ort::Attribute::kFloats, file_.AddNumbers(numbers->data(), numbers->size()));
  } else if (const auto* integers = attribute.get<std::vector<int64_t>>()) {
    set(ort::Attribute::kInts, file_.AddNumbers(integers->data(), integers->size()));
  } else if (const auto* texts = attribute.get<std::vector<std::string>>()) {
    const Place place = file_.AddTexts(*texts);
    set(ort::Attribute::kStrings, place);
  } else if (const auto* tensors = attribute.get<std::vector<Tensor>>()) {
    Places places;
    for (const Tensor& entry : *tensors) {
      const Place place = file_.AddTensor("", "", entry);
      places.push_back(place);
    }
    set(ort::Attribute::kTensors, file_.AddList(places));
  } else if (const auto* subgraphs = attribute.get<std::vector<std::unique_ptr<Graph>>>()) {
    Places places;
    for (const std::unique_ptr<Graph>& entry : *subgraphs) {
      const Place place = graph(entry);
      places.push_back(place);
    }
    set(ort::Attribute::kGraphs, file_.AddList(places));
  } else {
    file_.SetError(NotImplemented("the ORT format has no attributes of type {}",
                                  AttributeTypeName(attribute.type())));
  }
  const Place name = file_.AddName(attribute.name), doc = file_.AddText(attribute.doc_string);
  return file_.AddTable({{ort::Attribute::kName, name},
                         {ort::Attribute::kDocString, doc},
                         {ort::Attribute::kType, static_cast<int32_t>(attribute.type())},
                         held});
}

void OrtGraphWriter::AddInitializers() {
  for (size_t i = 0; i < graph_.value_count(); ++i) {
    const auto id = static_cast<ValueId>(i);
    const ValueInfo& info = graph_.value(id);
    const Value& value = info.initializer.has_value() ? info.initializer : constants_[i];
    const std::string_view doc_string = info.is_input ? std::string_view() : info.doc_string;
    if (value.is_tensor()) {
      initializers_.push_back(file_.AddTensor(names_[id], doc_string, value.tensor()));
    } else if (value.has_value()) {
      sparse_initializers_.push_back(file_.AddSparseTensor(names_[id], doc_string, value.sparse()));
    }
  }
}

// The type of a constant, as which nodes see a sparse one.
ValueType DenseTypeOf(const Value& value) {
  if (value.is_tensor()) return ValueType::Of(value);
  return ValueType::Tensor(value.sparse().values.type(), SymbolicShape(value.sparse().dense_shape));
}

void OrtGraphWriter::AddValues() {
  for (size_t i = 0; i < graph_.value_count(); ++i) {
    const auto id = static_cast<ValueId>(i);
    const ValueInfo& info = graph_.value(id);
    const bool is_made = info.producer != NodeId::kNone || info.initializer.has_value();
    if (!is_made && !info.is_input && graph_.IsUnused(id)) continue;
    const ValueType type = constants_[i].has_value() ? DenseTypeOf(constants_[i]) : info.type;
    const Place value = file_.AddValue(names_[id], info.doc_string, type);
    values_.push_back(value);
  }
  if (!has_absent_) return;
  // Stands for everything that is absent.
  const Place name = file_.AddName("");
  values_.push_back(file_.AddTable({{ort::Value::kName, name}}));
}

Place OrtFileWriter::AddOpsets() {
  Places tables;
  for (const auto& [name, version] : opsets_) {
    const Place domain = AddName(name);
    tables.push_back(
        AddTable({{ort::Opset::kDomain, domain}, {ort::Opset::kVersion, int64_t{version}}}));
  }
  return AddList(tables);
}

Place OrtFileWriter::AddMetadata() {
  Places tables;
  for (const auto& [key, value] : model_.metadata) {
    const Place key_place = AddName(key), value_place = AddName(value);
    tables.push_back(AddTable({{ort::Entry::kKey, key_place}, {ort::Entry::kValue, value_place}}));
  }
  return AddList(tables);
}

// The name of a formal's type constraint, or its own if its type is fixed.
std::string_view ConstraintOf(const OpFormal& formal, const OpSchema& schema) {
  return schema.FindConstraint(formal.type) != nullptr ? formal.type : formal.name;
}

Place OrtFileWriter::AddOperator(std::string_view name, const OpSchema& schema) {
  const std::span<const OpFormal> lists[] = {schema.inputs, schema.outputs};
  Places tables;
  for (std::string_view last;;) {
    // The next name in alphabetical order.
    std::string_view next;
    for (const auto& formals : lists) {
      for (const OpFormal& formal : formals) {
        const std::string_view candidate = ConstraintOf(formal, schema);
        if (candidate > last && (next.empty() || candidate < next)) next = candidate;
      }
    }
    if (next.empty()) break;
    Places places;
    for (uint8_t is_output = 0; is_output < 2; ++is_output) {
      for (uint32_t i = 0; i < lists[is_output].size(); ++i) {
        if (ConstraintOf(lists[is_output][i], schema) != next) continue;
        places.push_back(AddTable({{ort::Formal::kIsOutput, is_output}, {ort::Formal::kIndex, i}}));
      }
    }
    const Place next_name = AddName(next), list = AddList(places);
    tables.push_back(
        AddTable({{ort::Constraint::kName, next_name}, {ort::Constraint::kFormals, list}}));
    last = next;
  }
  const Place name_place = AddName(name), list = AddList(tables);
  return AddTable({{ort::Operator::kName, name_place}, {ort::Operator::kConstraints, list}});
}

Place OrtFileWriter::AddOperators() {
  Places tables;
  for (const auto& [name, schema] : operators_) tables.push_back(AddOperator(name, *schema));
  const Place list = AddList(tables);
  return AddTable({{ort::Operators::kList, list}});
}

Place OrtFileWriter::AddModel() {
  const Place graph = OrtGraphWriter(*model_.graph, nullptr, *this).Write();
  const Place opsets = AddOpsets(), metadata = AddMetadata();
  const Place producer_name = AddText(model_.producer_name);
  const Place producer_version = AddText(model_.producer_version);
  const Place domain = AddText(model_.domain), doc_string = AddText(model_.doc_string);
  const Place graph_doc_string = AddText(model_.graph->doc_string);
  return AddTable({{ort::Model::kIrVersion, model_.ir_version},
                   {ort::Model::kOpsets, opsets},
                   {ort::Model::kProducerName, producer_name},
                   {ort::Model::kProducerVersion, producer_version},
                   {ort::Model::kDomain, domain},
                   {ort::Model::kModelVersion, model_.model_version.value_or(0)},
                   {ort::Model::kDocString, doc_string},
                   {ort::Model::kGraph, graph},
                   {ort::Model::kGraphDocString, graph_doc_string},
                   {ort::Model::kMetadata, metadata}});
}

void OrtFileWriter::Write() {
  const Place model = AddModel();
  const Place operators = AddOperators();
  const Place version = AddName(Format("{}", ort::kNewestVersion));
  const Place file = AddTable({{ort::File::kVersion, version},
                               {ort::File::kModel, model},
                               {ort::File::kOperators, operators}});
  if (HasRoom(0)) builder_.Finish(file, ort::kIdentifier);
}

// The bytes of the weights, at least so many of which the file will have.
size_t WeightBytes(const Graph& graph) {
  size_t bytes = 0;
  for (size_t i = 0; i < graph.value_count(); ++i) {
    const Value& value = graph.value(static_cast<ValueId>(i)).initializer;
    if (value.is_tensor()) bytes += value.tensor().bytes();
  }
  return bytes;
}

// Of ai.onnx, at all versions. The operators with bodies that depend on types are not among them.
constexpr std::string_view kReplaced[] = {"HardSwish", "Mish", "SwiGLU", "Swish"};

bool IsReplaced(const Node& node) {
  return node.domain.empty() &&
         std::find(std::begin(kReplaced), std::end(kReplaced), node.op_type) != std::end(kReplaced);
}

// Makes it a Cast if its type is known.
void ReplaceCastLike(Graph& graph, NodeId id, int32_t opset) {
  Node& node = graph.node(id);
  if (node.op_type != "CastLike" || !node.domain.empty() || !node.has_input(1)) return;
  const DataType type = graph.value(node.inputs[1]).type.element_type;
  if (type == DataType::kUndefined) return;
  node.SetAttribute("to", static_cast<int64_t>(type));
  graph.SetInput(id, 1, ValueId::kNone);
  node.inputs.resize(1);
  node.op_type = "Cast";
  node.opset = opset;
  node.schema = FindSchema("", node.op_type, opset);
}

Status ReplaceIn(Graph& graph, int32_t opset) {
  const size_t first_new = graph.node_capacity();
  for (size_t i = 0; i < first_new; ++i) {
    const Node* const node = graph.FindNode(static_cast<NodeId>(i));
    if (node == nullptr) continue;
    for (Graph* const subgraph : node->Subgraphs()) {
      TENON_RETURN_IF_ERROR(ReplaceIn(*subgraph, opset));
    }
  }
  TENON_RETURN_IF_ERROR(
      ExpandOperators(graph, [](const Graph&, const Node& node) { return !IsReplaced(node); }));
  const size_t end = graph.node_capacity();
  for (size_t i = 0; i < end; ++i) {
    const auto id = static_cast<NodeId>(i);
    Node* const node = graph.FindNode(id);
    if (node == nullptr) continue;
    // The bodies are of one version or another; they mean the same in all.
    if (i >= first_new) {
      node->opset = opset;
      node->schema = FindSchema(node->domain, node->op_type, opset);
    }
    ReplaceCastLike(graph, id, opset);
  }
  return OkStatus();
}

}  // namespace

Status ReplaceForOrt(Model& model) {
  const auto import = model.opsets.find("");
  return import == model.opsets.end() ? OkStatus() : ReplaceIn(*model.graph, import->second);
}

Status WriteOrtModel(const Model& model, FunctionRef<Status(std::span<const std::byte>)> use) {
  // Room for the weights from the start: otherwise the builder would copy them several times.
  constexpr size_t kRest = size_t{1} << 16;
  const size_t weights = WeightBytes(*model.graph);
  FlatBufferBuilder builder(std::min<size_t>(weights, kMostBytes) + kRest);
  OrtFileWriter writer(model, builder);
  if (writer.HasRoom(weights)) writer.Write();
  TENON_RETURN_IF_ERROR(writer.status());
  return use(std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize())));
}

}  // namespace tenon
