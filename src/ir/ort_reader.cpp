#include "ir/ort_reader.h"

#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <protozero/pbf_writer.hpp>
#include <unordered_map>
#include <vector>

#include "ir/message_writers.h"
#include "ir/model_format.h"
#include "ir/ort_tables.h"

namespace tenon {
namespace {

using flatbuffers::Table;
using flatbuffers::uoffset_t;
using Text = flatbuffers::String;
template <class T>
using List = flatbuffers::Vector<T>;
template <class T>
using ListOf = List<flatbuffers::Offset<T>>;

// What a field holds, and what becomes of it in the message.
enum class Kind : uint8_t {
  kInt8,      // a number, as the following
  kInt32,     //
  kInt64,     //
  kFloat,     //
  kText,      // bytes
  kTexts,     // bytes, for each
  kInts,      // packed numbers
  kFloats,    // packed numbers
  kElements,  // external data, with the position of these bytes
  kExternal,  // an error: it is a position in another file
  kTable,     // a message
  kTables,    // a message for each
  kPart,      // the fields of a table become fields of this message
  kForm,      // a message; another field says of which table
};

enum class TableId : uint8_t {
  kFile,
  kModel,
  kOpset,
  kEntry,
  kGraph,
  kNode,
  kAttribute,
  kTensor,
  kSparseTensor,
  kValue,
  kType,
  kTensorType,
  kSequenceType,
  kMapType,
  kShape,
  kDim,
  kDimSize,
};

// Of a field that is read with its table, if at all.
constexpr int kNoField = 0;

struct FieldRule {
  template <class MessageField>
  constexpr FieldRule(uint16_t field_number, Kind field_kind, MessageField in_message,
                      TableId field_table = {})
      : field(field_number),
        kind(field_kind),
        number(static_cast<uint8_t>(in_message)),
        table(field_table) {}

  uint16_t field;
  Kind kind;
  uint8_t number;  // of the message's field
  TableId table;   // of kTable, kTables and kPart
};

constexpr FieldRule kFileRules[] = {
    {ort::File::kVersion, Kind::kText, kNoField},
    {ort::File::kModel, Kind::kTable, kNoField, TableId::kModel},
};
constexpr FieldRule kModelRules[] = {
    {ort::Model::kIrVersion, Kind::kInt64, ModelField::kIrVersion},
    {ort::Model::kOpsets, Kind::kTables, ModelField::kOpsetImport, TableId::kOpset},
    {ort::Model::kProducerName, Kind::kText, ModelField::kProducerName},
    {ort::Model::kProducerVersion, Kind::kText, ModelField::kProducerVersion},
    {ort::Model::kDomain, Kind::kText, ModelField::kDomain},
    {ort::Model::kModelVersion, Kind::kInt64, ModelField::kModelVersion},
    {ort::Model::kDocString, Kind::kText, ModelField::kDocString},
    {ort::Model::kGraph, Kind::kTable, ModelField::kGraph, TableId::kGraph},
    {ort::Model::kGraphDocString, Kind::kText, kNoField},
    {ort::Model::kMetadata, Kind::kTables, ModelField::kMetadata, TableId::kEntry},
};
constexpr FieldRule kOpsetRules[] = {
    {ort::Opset::kDomain, Kind::kText, OpsetField::kDomain},
    {ort::Opset::kVersion, Kind::kInt64, OpsetField::kVersion},
};
constexpr FieldRule kEntryRules[] = {
    {ort::Entry::kKey, Kind::kText, EntryField::kKey},
    {ort::Entry::kValue, Kind::kText, EntryField::kValue},
};
constexpr FieldRule kGraphRules[] = {
    {ort::Graph::kInitializers, Kind::kTables, GraphField::kInitializer, TableId::kTensor},
    {ort::Graph::kValues, Kind::kTables, GraphField::kValueInfo, TableId::kValue},
    {ort::Graph::kNodes, Kind::kTables, GraphField::kNode, TableId::kNode},
    {ort::Graph::kInputs, Kind::kTexts, kNoField},
    {ort::Graph::kOutputs, Kind::kTexts, kNoField},
    {ort::Graph::kSparseInitializers, Kind::kTables, GraphField::kSparseInitializer,
     TableId::kSparseTensor},
};
constexpr FieldRule kNodeRules[] = {
    {ort::Node::kName, Kind::kText, NodeField::kName},
    {ort::Node::kDocString, Kind::kText, NodeField::kDocString},
    {ort::Node::kDomain, Kind::kText, NodeField::kDomain},
    {ort::Node::kOpType, Kind::kText, NodeField::kOpType},
    {ort::Node::kKind, Kind::kInt32, kNoField},
    {ort::Node::kInputs, Kind::kTexts, NodeField::kInput},
    {ort::Node::kOutputs, Kind::kTexts, NodeField::kOutput},
    {ort::Node::kAttributes, Kind::kTables, NodeField::kAttribute, TableId::kAttribute},
};
constexpr FieldRule kAttributeRules[] = {
    {ort::Attribute::kName, Kind::kText, AttributeField::kName},
    {ort::Attribute::kDocString, Kind::kText, AttributeField::kDocString},
    {ort::Attribute::kType, Kind::kInt32, AttributeField::kType},
    {ort::Attribute::kFloat, Kind::kFloat, AttributeField::kFloat},
    {ort::Attribute::kInt, Kind::kInt64, AttributeField::kInt},
    {ort::Attribute::kString, Kind::kText, AttributeField::kString},
    {ort::Attribute::kTensor, Kind::kTable, AttributeField::kTensor, TableId::kTensor},
    {ort::Attribute::kGraph, Kind::kTable, AttributeField::kGraph, TableId::kGraph},
    {ort::Attribute::kFloats, Kind::kFloats, AttributeField::kFloats},
    {ort::Attribute::kInts, Kind::kInts, AttributeField::kInts},
    {ort::Attribute::kStrings, Kind::kTexts, AttributeField::kStrings},
    {ort::Attribute::kTensors, Kind::kTables, AttributeField::kTensors, TableId::kTensor},
    {ort::Attribute::kGraphs, Kind::kTables, AttributeField::kGraphs, TableId::kGraph},
};
constexpr FieldRule kTensorRules[] = {
    {ort::Tensor::kName, Kind::kText, TensorField::kName},
    {ort::Tensor::kDocString, Kind::kText, TensorField::kDocString},
    {ort::Tensor::kDims, Kind::kInts, TensorField::kDims},
    {ort::Tensor::kType, Kind::kInt32, TensorField::kDataType},
    {ort::Tensor::kElements, Kind::kElements, TensorField::kExternalData},
    {ort::Tensor::kStrings, Kind::kTexts, TensorField::kStringData},
    {ort::Tensor::kExternalOffset, Kind::kExternal, TensorField::kExternalData},
};
constexpr FieldRule kSparseTensorRules[] = {
    {ort::SparseTensor::kValues, Kind::kTable, SparseTensorField::kValues, TableId::kTensor},
    {ort::SparseTensor::kIndices, Kind::kTable, SparseTensorField::kIndices, TableId::kTensor},
    {ort::SparseTensor::kDims, Kind::kInts, SparseTensorField::kDims},
};
constexpr FieldRule kValueRules[] = {
    {ort::Value::kName, Kind::kText, ValueInfoField::kName},
    {ort::Value::kDocString, Kind::kText, ValueInfoField::kDocString},
    {ort::Value::kType, Kind::kTable, ValueInfoField::kType, TableId::kType},
};
constexpr FieldRule kTypeRules[] = {
    {ort::Type::kDenotation, Kind::kText, TypeField::kDenotation},
    {ort::Type::kKind, Kind::kInt8, kNoField},
    {ort::Type::kForm, Kind::kForm, kNoField},
};
constexpr FieldRule kTensorTypeRules[] = {
    {ort::TensorType::kElementType, Kind::kInt32, TensorTypeField::kElementType},
    {ort::TensorType::kShape, Kind::kTable, TensorTypeField::kShape, TableId::kShape},
};
constexpr FieldRule kSequenceTypeRules[] = {
    {ort::SequenceType::kElement, Kind::kTable, HolderTypeField::kElementType, TableId::kType},
};
constexpr FieldRule kMapTypeRules[] = {
    {ort::MapType::kKeyType, Kind::kInt32, MapTypeField::kKeyType},
    {ort::MapType::kElement, Kind::kTable, MapTypeField::kValueType, TableId::kType},
};
constexpr FieldRule kShapeRules[] = {
    {ort::Shape::kDims, Kind::kTables, ShapeField::kDim, TableId::kDim},
};
constexpr FieldRule kDimRules[] = {
    {ort::Dim::kSize, Kind::kPart, kNoField, TableId::kDimSize},
    {ort::Dim::kDenotation, Kind::kText, DimField::kDenotation},
};
constexpr FieldRule kDimSizeRules[] = {
    {ort::DimSize::kKind, Kind::kInt8, kNoField},
    {ort::DimSize::kNumber, Kind::kInt64, kNoField},
    {ort::DimSize::kSymbol, Kind::kText, kNoField},
};

struct TableRules {
  std::string_view title;  // as in messages
  bool has_name;           // as the first field
  std::span<const FieldRule> fields;
};
// By TableId.
constexpr TableRules kTableRules[] = {
    {"file", false, kFileRules},
    {"model", false, kModelRules},
    {"opset import", false, kOpsetRules},
    {"metadata", false, kEntryRules},
    {"graph", false, kGraphRules},
    {"node", true, kNodeRules},
    {"attribute", true, kAttributeRules},
    {"tensor", true, kTensorRules},
    {"sparse tensor", false, kSparseTensorRules},
    {"value", true, kValueRules},
    {"type", false, kTypeRules},
    {"tensor type", false, kTensorTypeRules},
    {"sequence type", false, kSequenceTypeRules},
    {"map type", false, kMapTypeRules},
    {"shape", false, kShapeRules},
    {"dimension", false, kDimRules},
    {"size of a dimension", false, kDimSizeRules},
};

const TableRules& RulesOf(TableId id) { return kTableRules[static_cast<size_t>(id)]; }

// The position of a field's own position in the vtable.
constexpr flatbuffers::voffset_t PlaceOf(uint16_t field) {
  return static_cast<flatbuffers::voffset_t>((2 + field) * sizeof(flatbuffers::voffset_t));
}

// What the field points to; null if it is absent.
template <class T>
const T* Find(const Table& table, uint16_t field) {
  return table.GetPointer<const T*>(PlaceOf(field));
}

std::string_view TextIn(const Table& table, uint16_t field) {
  const Text* const text = Find<Text>(table, field);
  return text == nullptr ? std::string_view() : text->string_view();
}

// The table, and the message's field, of a type's form.
struct FormRule {
  TableId table;
  TypeField number;
};
std::optional<FormRule> FormOf(const Table& type) {
  switch (type.GetField<uint8_t>(PlaceOf(ort::Type::kKind), ort::Type::kNone)) {
    case ort::Type::kTensor:
      return FormRule{TableId::kTensorType, TypeField::kTensor};
    case ort::Type::kSequence:
      return FormRule{TableId::kSequenceType, TypeField::kSequence};
    case ort::Type::kMap:
      return FormRule{TableId::kMapType, TypeField::kMap};
    default:
      return std::nullopt;
  }
}

// Verifies that all that is read from a root on lies within the bytes. In files that a writer
// makes, every table, text and list has four bytes of its own, and so has every entry of a list of
// them. Files in which more are reached, because many refer to the same ones, are refused: reading
// them could take any time.
class OrtVerifier {
 public:
  explicit OrtVerifier(std::span<const std::byte> bytes)
      : base_(reinterpret_cast<const uint8_t*>(bytes.data())),
        visits_left_(bytes.size() / sizeof(uoffset_t)),
        verifier_(base_, bytes.size(), kMostLevels, std::numeric_limits<uoffset_t>::max()) {}

  // Error: kFail naming the innermost table that is wrong, and its position.
  Result<const Table*> Root() {
    const uoffset_t distance = verifier_.VerifyOffset(0);
    const auto* const table = reinterpret_cast<const Table*>(base_ + distance);
    if (distance != 0 && Verify(*table, TableId::kFile)) return table;
    if (visits_left_ == 0) {
      return Fail("the {} at byte {} refers to more tables than the file has: some are shared",
                  wrong_title_, wrong_position_);
    }
    return Fail("the {} at byte {} is damaged: it refers to bytes outside the file", wrong_title_,
                wrong_position_);
  }

 private:
  // A subgraph takes three levels, and the type of a sequence two.
  static constexpr uoffset_t kMostLevels = 128;

  bool Verify(const Table& table, TableId id) {
    const TableRules& rules = RulesOf(id);
    bool is_right = Visit() && table.VerifyTableStart(verifier_);
    for (size_t i = 0; is_right && i < rules.fields.size(); ++i) {
      is_right = Verify(table, rules.fields[i]);
    }
    if (is_right) return verifier_.EndTable();
    if (wrong_position_ == 0) {
      wrong_position_ = PositionOf(&table);
      wrong_title_ = rules.title;
    }
    return false;
  }

  bool Verify(const Table& table, const FieldRule& rule) {
    const uint8_t* const place = table.GetAddressOf(PlaceOf(rule.field));
    if (place == nullptr) return true;
    switch (rule.kind) {
      case Kind::kInt8:
        return VerifyNumber(place, sizeof(int8_t));
      case Kind::kInt32:
      case Kind::kFloat:
        return VerifyNumber(place, sizeof(int32_t));
      case Kind::kInt64:
      case Kind::kExternal:
        return VerifyNumber(place, sizeof(int64_t));
      default:
        break;
    }
    if (rule.kind == Kind::kForm) {
      const std::optional<FormRule> form = FormOf(table);
      return !form || VerifyTarget(place, Kind::kTable, form->table);
    }
    return VerifyTarget(place, rule.kind, rule.table);
  }

  bool VerifyTarget(const uint8_t* place, Kind kind, TableId id) {
    const uoffset_t distance = verifier_.VerifyOffset(PositionOf(place));
    if (distance == 0 || !Visit()) return false;
    const uint8_t* const target = place + distance;
    switch (kind) {
      case Kind::kText:
        return verifier_.VerifyString(reinterpret_cast<const Text*>(target));
      case Kind::kElements:
        return verifier_.VerifyVectorOrString(target, sizeof(uint8_t));
      case Kind::kFloats:
        return verifier_.VerifyVectorOrString(target, sizeof(float));
      case Kind::kInts:
        return verifier_.VerifyVectorOrString(target, sizeof(int64_t));
      case Kind::kTexts:
        return VerifyList(target, Kind::kText, id);
      case Kind::kTables:
        return VerifyList(target, Kind::kTable, id);
      default:
        return Verify(*reinterpret_cast<const Table*>(target), id);
    }
  }

  bool VerifyList(const uint8_t* target, Kind kind, TableId id) {
    if (!verifier_.VerifyVectorOrString(target, sizeof(uoffset_t))) return false;
    const auto& list = *reinterpret_cast<const ListOf<Table>*>(target);
    for (uoffset_t i = 0; i < list.size(); ++i) {
      if (!VerifyTarget(list.Data() + i * sizeof(uoffset_t), kind, id)) return false;
    }
    return true;
  }

  bool VerifyNumber(const uint8_t* place, size_t size) {
    return PositionOf(place) % size == 0 && verifier_.Verify(PositionOf(place), size);
  }

  bool Visit() { return visits_left_ > 0 && --visits_left_ > 0; }

  size_t PositionOf(const void* place) const {
    return static_cast<size_t>(static_cast<const uint8_t*>(place) - base_);
  }

  const uint8_t* base_;
  size_t visits_left_;
  flatbuffers::Verifier verifier_;
  std::string_view wrong_title_ = RulesOf(TableId::kFile).title;
  size_t wrong_position_ = 0;
};

// Writes tables that have been verified as messages.
class Transcriber {
 public:
  explicit Transcriber(std::span<const std::byte> bytes)
      : base_(reinterpret_cast<const uint8_t*>(bytes.data())),
        elements_left_(bytes.size()),
        limit_(kLeastLimit + kMostGrowth * bytes.size()) {}

  Result<std::string> Transcribe(const Table& model) {
    graph_doc_string_ = TextIn(model, ort::Model::kGraphDocString);
    TENON_RETURN_IF_ERROR(AddFields(model, TableId::kModel));
    return std::move(out_);
  }

 private:
  // Of the result. A file has each name once, and the message has it for every use.
  static constexpr uint64_t kLeastLimit = uint64_t{64} << 20;
  static constexpr uint64_t kMostGrowth = 16;

  Status AddFields(const Table& table, TableId id);
  Status AddField(const Table& table, const FieldRule& rule);
  Status AddMessage(uint32_t number, const Table& table, TableId id);
  Status AddTexts(uint32_t number, const ListOf<Text>& texts);
  Status AddElements(const List<uint8_t>& elements);
  // Adds what only one table has.
  Status AddRest(const Table& table, TableId id);
  Status AddDeclarations(const Table& graph);
  void AddDimSize(const Table& size);

  // Messages are delimited in this way, rather than by builders, as these drop empty ones.
  size_t BeginMessage(uint32_t number);
  void EndMessage(size_t begin);

  Status CheckRoom() const {
    if (out_.size() <= limit_) return OkStatus();
    return Fail("the names and attributes have more bytes than the file can hold");
  }
  protozero::pbf_writer Writer() { return protozero::pbf_writer(out_); }

  const uint8_t* base_;
  uint64_t elements_left_;
  uint64_t limit_;
  std::string_view graph_doc_string_;  // until the main graph has it
  std::string out_;
};

// The length of a message is filled in later, in this many bytes: enough for 32 bits.
constexpr size_t kLengthBytes = 5;

size_t Transcriber::BeginMessage(uint32_t number) {
  constexpr uint32_t kLengthDelimited = 2;
  protozero::add_varint_to_buffer(&out_, number << 3 | kLengthDelimited);
  out_.append(kLengthBytes, '\0');
  return out_.size();
}

void Transcriber::EndMessage(size_t begin) {
  uint64_t length = out_.size() - begin;
  for (size_t i = begin - kLengthBytes; i < begin; ++i) {
    const bool is_last = i + 1 == begin;
    out_[i] = static_cast<char>((length & 0x7f) | (is_last ? 0 : 0x80));
    length >>= 7;
  }
}

Status Transcriber::AddMessage(uint32_t number, const Table& table, TableId id) {
  const size_t begin = BeginMessage(number);
  Status status = AddFields(table, id);
  EndMessage(begin);
  if (status.ok() || !RulesOf(id).has_name) return status;
  return std::move(status).WithContext(
      Format("{} '{}'", RulesOf(id).title, TextIn(table, ort::Node::kName)));
}

Status Transcriber::AddFields(const Table& table, TableId id) {
  TENON_RETURN_IF_ERROR(CheckRoom());
  if (id == TableId::kGraph && !graph_doc_string_.empty()) {
    Writer().add_bytes(static_cast<uint32_t>(GraphField::kDocString), graph_doc_string_.data(),
                       graph_doc_string_.size());
    graph_doc_string_ = {};
  }
  for (const FieldRule& rule : RulesOf(id).fields) {
    if (!table.CheckField(PlaceOf(rule.field))) continue;
    TENON_RETURN_IF_ERROR(AddField(table, rule));
  }
  return AddRest(table, id);
}

Status Transcriber::AddField(const Table& table, const FieldRule& rule) {
  const flatbuffers::voffset_t place = PlaceOf(rule.field);
  if (rule.kind == Kind::kPart) return AddFields(*Find<Table>(table, rule.field), rule.table);
  if (rule.number == kNoField) return OkStatus();
  switch (rule.kind) {
    case Kind::kInt32:
      Writer().add_int32(rule.number, table.GetField<int32_t>(place, 0));
      break;
    case Kind::kInt64:
      Writer().add_int64(rule.number, table.GetField<int64_t>(place, 0));
      break;
    case Kind::kFloat:
      Writer().add_float(rule.number, table.GetField<float>(place, 0));
      break;
    case Kind::kText: {
      const std::string_view text = TextIn(table, rule.field);
      Writer().add_bytes(rule.number, text.data(), text.size());
      break;
    }
    case Kind::kTexts:
      return AddTexts(rule.number, *Find<ListOf<Text>>(table, rule.field));
    case Kind::kInts: {
      const auto& list = *Find<List<int64_t>>(table, rule.field);
      std::vector<int64_t> numbers(list.size());  // the list need not be aligned for them
      std::copy_n(list.Data(), list.size() * sizeof(int64_t),
                  reinterpret_cast<uint8_t*>(numbers.data()));
      Writer().add_packed_int64(rule.number, numbers.begin(), numbers.end());
      break;
    }
    case Kind::kFloats: {
      const auto& list = *Find<List<float>>(table, rule.field);
      Writer().add_bytes(rule.number, reinterpret_cast<const char*>(list.Data()),
                         list.size() * sizeof(float));
      break;
    }
    case Kind::kElements:
      return AddElements(*Find<List<uint8_t>>(table, rule.field));
    case Kind::kExternal:
      if (table.GetField<int64_t>(place, -1) < 0) break;
      return Fail("the elements are in another file, whose name the ORT format does not store");
    case Kind::kTable:
      return AddMessage(rule.number, *Find<Table>(table, rule.field), rule.table);
    case Kind::kTables:
      for (const Table* const entry : *Find<ListOf<Table>>(table, rule.field)) {
        TENON_RETURN_IF_ERROR(AddMessage(rule.number, *entry, rule.table));
      }
      break;
    default:
      break;  // added with the rest of its table
  }
  return OkStatus();
}

Status Transcriber::AddTexts(uint32_t number, const ListOf<Text>& texts) {
  for (const Text* const text : texts) {
    Writer().add_bytes(number, text->data(), text->size());
    TENON_RETURN_IF_ERROR(CheckRoom());
  }
  return OkStatus();
}

Status Transcriber::AddElements(const List<uint8_t>& elements) {
  if (elements.size() > elements_left_) {
    return Fail("the tensors have more bytes than the file: some share their elements");
  }
  elements_left_ -= elements.size();
  const ExternalLocation location = {
      std::string(kOrtElements), static_cast<uint64_t>(elements.data() - base_), elements.size()};
  MessageBuilder<TensorField> message(out_);
  WriteLocation(location, elements.size(), message);
  return OkStatus();
}

Status Transcriber::AddRest(const Table& table, TableId id) {
  if (id == TableId::kGraph) return AddDeclarations(table);
  if (id == TableId::kDimSize) AddDimSize(table);
  if (id == TableId::kNode) {
    const auto kind = table.GetField<int32_t>(PlaceOf(ort::Node::kKind), ort::Node::kOperator);
    if (kind != ort::Node::kFused) return OkStatus();
    return NotImplemented("is fused: only the provider that made it can run it");
  }
  if (id == TableId::kType) {
    const std::optional<FormRule> form = FormOf(table);
    if (!form || !table.CheckField(PlaceOf(ort::Type::kForm))) return OkStatus();
    return AddMessage(static_cast<uint32_t>(form->number), *Find<Table>(table, ort::Type::kForm),
                      form->table);
  }
  return OkStatus();
}

void Transcriber::AddDimSize(const Table& size) {
  const auto kind = size.GetField<int8_t>(PlaceOf(ort::DimSize::kKind), ort::DimSize::kIsUnknown);
  if (kind == ort::DimSize::kIsNumber) {
    Writer().add_int64(static_cast<uint32_t>(DimField::kValue),
                       size.GetField<int64_t>(PlaceOf(ort::DimSize::kNumber), 0));
  } else if (kind == ort::DimSize::kIsSymbol) {
    const std::string_view name = TextIn(size, ort::DimSize::kSymbol);
    Writer().add_bytes(static_cast<uint32_t>(DimField::kParam), name.data(), name.size());
  }
}

// The inputs and outputs, which are names of values.
Status Transcriber::AddDeclarations(const Table& graph) {
  const auto* const values = Find<ListOf<Table>>(graph, ort::Graph::kValues);
  std::unordered_map<std::string_view, size_t> places;
  for (uoffset_t i = 0; values != nullptr && i < values->size(); ++i) {
    places.emplace(TextIn(*values->Get(i), ort::Value::kName), size_t{i});
  }
  const auto declare = [&](uint16_t field, GraphField number) -> Status {
    const auto* const names = Find<ListOf<Text>>(graph, field);
    if (names == nullptr) return OkStatus();
    for (const Text* const name : *names) {
      const auto place = places.find(name->string_view());
      if (place == places.end()) {
        return Fail("the file does not describe the value '{}', an input or output of its graph",
                    name->string_view());
      }
      const Table& value = *values->Get(static_cast<uoffset_t>(place->second));
      TENON_RETURN_IF_ERROR(AddMessage(static_cast<uint32_t>(number), value, TableId::kValue));
    }
    return OkStatus();
  };
  TENON_RETURN_IF_ERROR(declare(ort::Graph::kInputs, GraphField::kInput));
  return declare(ort::Graph::kOutputs, GraphField::kOutput);
}

Status CheckVersion(std::string_view text) {
  int version = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, version);
  const bool is_known = error == std::errc() && stop == end && version <= ort::kNewestVersion;
  if (is_known && version >= 1) return OkStatus();
  return Fail("the file has version '{}' of the ORT format; the newest supported one is {}", text,
              ort::kNewestVersion);
}

}  // namespace

Result<std::string> OrtModelMessage(std::span<const std::byte> bytes) {
  if (!HasOrtIdentifier(bytes)) {
    return Fail("expected the identifier {} of the ORT format at byte {}", ort::kIdentifier,
                sizeof(uoffset_t));
  }
  if (bytes.size() > std::numeric_limits<int32_t>::max()) {
    return Fail("the file has {} bytes; one in the ORT format has less than 2 GiB", bytes.size());
  }
  TENON_ASSIGN_OR_RETURN(const Table* const file, OrtVerifier(bytes).Root());
  TENON_RETURN_IF_ERROR(CheckVersion(TextIn(*file, ort::File::kVersion)));
  const Table* const model = Find<Table>(*file, ort::File::kModel);
  if (model == nullptr) return Fail("the file has no model");
  return Transcriber(bytes).Transcribe(*model);
}

}  // namespace tenon
