#include "graph.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_map>

namespace codegen {

DataType FromOnnx(ONNXTensorElementDataType type) {
  switch (type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
      return DataType::kFloat;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16:
      return DataType::kFloat16;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16:
      return DataType::kBFloat16;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
      return DataType::kInt64;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32:
      return DataType::kInt32;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL:
      return DataType::kBool;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8:
      return DataType::kInt8;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8:
      return DataType::kUInt8;
    default:
      return DataType::kNone;
  }
}

bool IsFloat(DataType type) {
  return type == DataType::kFloat || type == DataType::kFloat16 || type == DataType::kBFloat16;
}

size_t SizeOf(DataType type) {
  switch (type) {
    case DataType::kFloat16:
    case DataType::kBFloat16:
      return 2;
    case DataType::kInt64:
      return 8;
    case DataType::kBool:
    case DataType::kInt8:
    case DataType::kUInt8:
      return 1;
    default:
      return 4;
  }
}

const char* NameOf(DataType type) {
  switch (type) {
    case DataType::kInt64:
      return "long";
    case DataType::kInt32:
      return "int";
    case DataType::kBool:
    case DataType::kUInt8:
      return "uchar";
    case DataType::kInt8:
      return "char";
    default:
      return "float";
  }
}

const char* StoredNameOf(DataType type) {
  return type == DataType::kFloat16    ? "half"
         : type == DataType::kBFloat16 ? "ushort"
                                       : NameOf(type);
}

int64_t ElementCount(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  return count;
}

std::optional<std::vector<int64_t>> HostTensor::Integers() const {
  if (IsFloat(type) || type == DataType::kNone) return std::nullopt;
  std::vector<int64_t> values(bytes.size() / SizeOf(type));
  for (size_t i = 0; i < values.size(); ++i) {
    if (type == DataType::kInt64) {
      std::memcpy(&values[i], bytes.data() + i * 8, 8);
    } else if (type == DataType::kInt32) {
      int32_t value = 0;
      std::memcpy(&value, bytes.data() + i * 4, 4);
      values[i] = value;
    } else if (type == DataType::kBool) {
      values[i] = bytes[i] != std::byte{0};
    } else {
      const auto bits = static_cast<uint8_t>(bytes[i]);
      values[i] = type == DataType::kInt8 ? static_cast<int8_t>(bits) : bits;
    }
  }
  return values;
}

namespace {

// The value of a float16 with these bits.
float FromHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const auto fraction = static_cast<float>(bits & 1023);
  float magnitude = 0;
  if (exponent == 31) {
    magnitude = fraction == 0 ? std::numeric_limits<float>::infinity()
                              : std::numeric_limits<float>::quiet_NaN();
  } else {
    magnitude =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  }
  return bits >> 15 != 0 ? -magnitude : magnitude;
}

template <class T, class Other>
T ValueOr(const Node& node, std::string_view attribute, Other&& absent) {
  const auto it = node.attributes.find(attribute);
  if (it != node.attributes.end()) {
    if (const T* value = std::get_if<T>(&it->second)) return *value;
  }
  return std::forward<Other>(absent);
}

Status ReadTensor(const OrtValue* value, HostTensor& tensor) {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  PLUGIN_RETURN_IF_ERROR(FromOrt(ort->GetTensorTypeAndShape(value, &info)));
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  size_t rank = 0;
  Status status = FromOrt(ort->GetTensorElementType(info, &type));
  if (status.ok()) status = FromOrt(ort->GetDimensionsCount(info, &rank));
  tensor.shape.resize(rank);
  if (status.ok()) status = FromOrt(ort->GetDimensions(info, tensor.shape.data(), rank));
  ort->ReleaseTensorTypeAndShapeInfo(info);
  PLUGIN_RETURN_IF_ERROR(status);
  tensor.type = FromOnnx(type);
  const void* data = nullptr;
  size_t size = 0;
  PLUGIN_RETURN_IF_ERROR(FromOrt(ort->GetTensorSizeInBytes(value, &size)));
  PLUGIN_RETURN_IF_ERROR(FromOrt(ort->GetTensorData(value, &data)));
  const auto* const bytes = static_cast<const std::byte*>(data);
  tensor.bytes.assign(bytes, bytes + size);
  return Status();
}

// Attributes of variable size: asks for it first.
template <class T>
Status ReadMany(const OrtOpAttr* attribute, OrtOpAttrType type, T& elements) {
  size_t size = 0;
  // Fails, since there is no room, and says how much is needed.
  if (OrtStatus* status = ort->ReadOpAttr(attribute, type, nullptr, 0, &size)) {
    ort->ReleaseStatus(status);
  }
  elements.resize(size / sizeof(elements[0]));
  if (size == 0) return Status();
  return FromOrt(ort->ReadOpAttr(attribute, type, elements.data(), size, &size));
}

Status ReadAttribute(const OrtOpAttr* attribute, Node& node) {
  const char* name = nullptr;
  OrtOpAttrType type = ORT_OP_ATTR_UNDEFINED;
  PLUGIN_RETURN_IF_ERROR(FromOrt(ort->OpAttr_GetName(attribute, &name)));
  PLUGIN_RETURN_IF_ERROR(FromOrt(ort->OpAttr_GetType(attribute, &type)));
  size_t size = 0;
  AttributeValue value;
  switch (type) {
    case ORT_OP_ATTR_INT:
      PLUGIN_RETURN_IF_ERROR(FromOrt(
          ort->ReadOpAttr(attribute, type, &value.emplace<int64_t>(), sizeof(int64_t), &size)));
      break;
    case ORT_OP_ATTR_FLOAT:
      PLUGIN_RETURN_IF_ERROR(
          FromOrt(ort->ReadOpAttr(attribute, type, &value.emplace<float>(), sizeof(float), &size)));
      break;
    case ORT_OP_ATTR_INTS:
      PLUGIN_RETURN_IF_ERROR(ReadMany(attribute, type, value.emplace<std::vector<int64_t>>()));
      break;
    case ORT_OP_ATTR_FLOATS:
      PLUGIN_RETURN_IF_ERROR(ReadMany(attribute, type, value.emplace<std::vector<float>>()));
      break;
    case ORT_OP_ATTR_STRING: {
      auto& text = value.emplace<std::string>();
      PLUGIN_RETURN_IF_ERROR(ReadMany(attribute, type, text));
      text.resize(std::strlen(text.c_str()));  // some runtimes count the terminating zero
      break;
    }
    case ORT_OP_ATTR_TENSOR: {
      OrtValue* tensor = nullptr;
      PLUGIN_RETURN_IF_ERROR(FromOrt(ort->OpAttr_GetTensorAttributeAsOrtValue(attribute, &tensor)));
      const Status status = ReadTensor(tensor, value.emplace<HostTensor>());
      ort->ReleaseValue(tensor);
      PLUGIN_RETURN_IF_ERROR(status);
      break;
    }
    default:
      node.has_unread_attributes = true;
      return Status();
  }
  node.attributes.emplace(name, std::move(value));
  return Status();
}

// `count` objects of `owner`. Some runtimes refuse an array of none.
template <class T, class Owner, class Get>
Result<std::vector<const T*>> ReadArray(const Owner* owner, size_t count, Get get) {
  std::vector<const T*> objects(count);
  if (count > 0) PLUGIN_RETURN_IF_ERROR(FromOrt(get(owner, objects.data(), count)));
  return objects;
}

// Reads one graph; values are told apart by name.
class GraphReader {
 public:
  explicit GraphReader(bool with_constants) : with_constants_(with_constants) {}

  Status Read(const OrtGraph* source) {
    size_t count = 0;
    PLUGIN_RETURN_IF_ERROR(FromOrt(ort->Graph_GetNumNodes(source, &count)));
    PLUGIN_ASSIGN_OR_RETURN(const auto nodes,
                            ReadArray<OrtNode>(source, count, ort->Graph_GetNodes));
    for (const OrtNode* node : nodes) PLUGIN_RETURN_IF_ERROR(ReadNode(node));
    PLUGIN_RETURN_IF_ERROR(FromOrt(ort->Graph_GetNumOutputs(source, &count)));
    PLUGIN_ASSIGN_OR_RETURN(const auto outputs,
                            ReadArray<OrtValueInfo>(source, count, ort->Graph_GetOutputs));
    for (const OrtValueInfo* output : outputs) {
      PLUGIN_ASSIGN_OR_RETURN(const int id, ValueOf(output));
      graph.outputs.push_back(id);
    }
    return Status();
  }

  Graph graph;

 private:
  Status ReadNode(const OrtNode* source) {
    Node node;
    const char* text = nullptr;
    PLUGIN_RETURN_IF_ERROR(FromOrt(ort->Node_GetName(source, &text)));
    node.name = text;
    PLUGIN_RETURN_IF_ERROR(FromOrt(ort->Node_GetOperatorType(source, &text)));
    node.type = text;
    PLUGIN_RETURN_IF_ERROR(FromOrt(ort->Node_GetDomain(source, &text)));
    node.domain = std::string_view(text) == "ai.onnx" ? "" : text;
    PLUGIN_RETURN_IF_ERROR(FromOrt(ort->Node_GetSinceVersion(source, &node.since)));
    size_t count = 0;
    PLUGIN_RETURN_IF_ERROR(FromOrt(ort->Node_GetNumSubgraphs(source, &count)));
    node.has_subgraphs = count > 0;
    PLUGIN_RETURN_IF_ERROR(FromOrt(ort->Node_GetNumInputs(source, &count)));
    PLUGIN_ASSIGN_OR_RETURN(const auto values,
                            ReadArray<OrtValueInfo>(source, count, ort->Node_GetInputs));
    for (const OrtValueInfo* value : values) {
      PLUGIN_ASSIGN_OR_RETURN(const int id, ValueOf(value));
      node.inputs.push_back(id);
      if (id >= 0) ++graph.values[static_cast<size_t>(id)].consumers;
    }
    PLUGIN_RETURN_IF_ERROR(FromOrt(ort->Node_GetNumOutputs(source, &count)));
    PLUGIN_ASSIGN_OR_RETURN(const auto results,
                            ReadArray<OrtValueInfo>(source, count, ort->Node_GetOutputs));
    for (const OrtValueInfo* value : results) {
      PLUGIN_ASSIGN_OR_RETURN(const int id, ValueOf(value));
      node.outputs.push_back(id);
    }
    if (!node.has_subgraphs) {
      PLUGIN_RETURN_IF_ERROR(FromOrt(ort->Node_GetNumAttributes(source, &count)));
      PLUGIN_ASSIGN_OR_RETURN(const auto attributes,
                              ReadArray<OrtOpAttr>(source, count, ort->Node_GetAttributes));
      for (const OrtOpAttr* attribute : attributes) {
        if (attribute) PLUGIN_RETURN_IF_ERROR(ReadAttribute(attribute, node));
      }
    }
    graph.nodes.push_back(std::move(node));
    return Status();
  }

  // The number of a value; -1 for one that is absent.
  Result<int> ValueOf(const OrtValueInfo* source) {
    if (!source) return -1;
    const char* name = nullptr;
    PLUGIN_RETURN_IF_ERROR(FromOrt(ort->GetValueInfoName(source, &name)));
    if (*name == '\0') return -1;
    const auto [it, is_new] = ids_.emplace(name, static_cast<int>(graph.values.size()));
    if (!is_new) return it->second;
    ValueInfo value;
    value.name = name;
    PLUGIN_RETURN_IF_ERROR(ReadType(source, value));
    PLUGIN_RETURN_IF_ERROR(
        FromOrt(ort->ValueInfo_IsConstantInitializer(source, &value.is_constant)));
    if (value.is_constant && with_constants_) {
      const OrtValue* data = nullptr;
      PLUGIN_RETURN_IF_ERROR(FromOrt(ort->ValueInfo_GetInitializerValue(source, &data)));
      PLUGIN_RETURN_IF_ERROR(ReadTensor(data, value.constant.emplace()));
    }
    graph.values.push_back(std::move(value));
    return it->second;
  }

  static Status ReadType(const OrtValueInfo* source, ValueInfo& value) {
    const OrtTypeInfo* type = nullptr;
    PLUGIN_RETURN_IF_ERROR(FromOrt(ort->GetValueInfoTypeInfo(source, &type)));
    ONNXType kind = ONNX_TYPE_UNKNOWN;
    if (type) PLUGIN_RETURN_IF_ERROR(FromOrt(ort->GetOnnxTypeFromTypeInfo(type, &kind)));
    if (kind != ONNX_TYPE_TENSOR) return Status();
    const OrtTensorTypeAndShapeInfo* tensor = nullptr;
    PLUGIN_RETURN_IF_ERROR(FromOrt(ort->CastTypeInfoToTensorInfo(type, &tensor)));
    ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    PLUGIN_RETURN_IF_ERROR(FromOrt(ort->GetTensorElementType(tensor, &element)));
    value.type = FromOnnx(element);
    if (!ort->TensorTypeAndShape_HasShape(tensor)) return Status();
    size_t rank = 0;
    PLUGIN_RETURN_IF_ERROR(FromOrt(ort->GetDimensionsCount(tensor, &rank)));
    value.shape.emplace(rank);
    return FromOrt(ort->GetDimensions(tensor, value.shape->data(), rank));
  }

  bool with_constants_;
  std::unordered_map<std::string, int> ids_;
};

Result<std::vector<std::string>> Names(const std::vector<const OrtValueInfo*>& values) {
  std::vector<std::string> names;
  for (const OrtValueInfo* value : values) {
    const char* name = "";
    if (value) PLUGIN_RETURN_IF_ERROR(FromOrt(ort->GetValueInfoName(value, &name)));
    names.emplace_back(name);
  }
  return names;
}

}  // namespace

std::optional<float> HostTensor::Float() const {
  if (!IsFloat(type) || bytes.size() != SizeOf(type)) return std::nullopt;
  if (type != DataType::kFloat) {
    uint16_t bits = 0;
    std::memcpy(&bits, bytes.data(), sizeof(bits));
    if (type == DataType::kFloat16) return FromHalf(bits);
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
  float value = 0;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

int64_t Node::Int(std::string_view attribute, int64_t absent) const {
  return ValueOr<int64_t>(*this, attribute, absent);
}

float Node::Float(std::string_view attribute, float absent) const {
  return ValueOr<float>(*this, attribute, absent);
}

std::string Node::String(std::string_view attribute, std::string absent) const {
  return ValueOr<std::string>(*this, attribute, std::move(absent));
}

std::vector<int64_t> Node::Ints(std::string_view attribute, std::vector<int64_t> absent) const {
  return ValueOr<std::vector<int64_t>>(*this, attribute, std::move(absent));
}

int Graph::Find(std::string_view name) const {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

Result<Graph> ReadGraph(const OrtGraph* graph, bool with_constants) {
  GraphReader reader(with_constants);
  PLUGIN_RETURN_IF_ERROR(reader.Read(graph));
  return std::move(reader.graph);
}

Result<std::vector<std::string>> InputNames(const OrtNode* node) {
  size_t count = 0;
  PLUGIN_RETURN_IF_ERROR(FromOrt(ort->Node_GetNumInputs(node, &count)));
  PLUGIN_ASSIGN_OR_RETURN(const auto values,
                          ReadArray<OrtValueInfo>(node, count, ort->Node_GetInputs));
  return Names(values);
}

Result<std::vector<std::string>> OutputNames(const OrtNode* node) {
  size_t count = 0;
  PLUGIN_RETURN_IF_ERROR(FromOrt(ort->Node_GetNumOutputs(node, &count)));
  PLUGIN_ASSIGN_OR_RETURN(const auto values,
                          ReadArray<OrtValueInfo>(node, count, ort->Node_GetOutputs));
  return Names(values);
}

}  // namespace codegen
