#include "ir/message_writers.h"

#include "base/arithmetic.h"
#include "tensor/allocator.h"

namespace tenon {
namespace {

// Messages in this file that may be empty are built bottom-up as strings: a builder drops an empty
// message, but an unknown dimension is an empty message, and so is a scalar's shape.
std::string DimMessage(const Dim& dim, const std::string& denotation) {
  std::string bytes;
  MessageBuilder<DimField> message(bytes);
  if (dim.is_number()) {
    message.add_int64(DimField::kValue, dim.value());
  } else if (!dim.is_unknown()) {
    message.add_string(DimField::kParam, dim.ToString());
  }
  WriteText(denotation, message, DimField::kDenotation);
  return bytes;
}

std::string ShapeMessage(const ValueType& type) {
  std::string bytes;
  MessageBuilder<ShapeField> message(bytes);
  const SymbolicShape& shape = *type.shape;
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    const bool has_denotation = axis < type.dim_denotations.size();
    message.add_message(ShapeField::kDim,
                        DimMessage(shape[axis], has_denotation ? type.dim_denotations[axis] : ""));
  }
  return bytes;
}

std::string TensorTypeMessage(const ValueType& type) {
  std::string bytes;
  MessageBuilder<TensorTypeField> message(bytes);
  message.add_enum(TensorTypeField::kElementType, static_cast<int32_t>(type.element_type));
  if (type.shape) message.add_message(TensorTypeField::kShape, ShapeMessage(type));
  return bytes;
}

std::string HolderTypeMessage(const ValueType& type) {
  std::string bytes;
  MessageBuilder<HolderTypeField> message(bytes);
  if (type.held) message.add_message(HolderTypeField::kElementType, TypeMessage(*type.held));
  return bytes;
}

std::string MapTypeMessage(const ValueType& type) {
  std::string bytes;
  MessageBuilder<MapTypeField> message(bytes);
  message.add_enum(MapTypeField::kKeyType, static_cast<int32_t>(type.element_type));
  if (type.held) message.add_message(MapTypeField::kValueType, TypeMessage(*type.held));
  return bytes;
}

void WriteTypeAndShape(const std::string& name, const Tensor& tensor,
                       MessageBuilder<TensorField>& message) {
  message.add_packed_int64(TensorField::kDims, tensor.shape().begin(), tensor.shape().end());
  message.add_enum(TensorField::kDataType, static_cast<int32_t>(tensor.type()));
  WriteText(name, message, TensorField::kName);
}

Status CountBytes(uint64_t bytes, WriteContext& context) {
  context.tensor_bytes += bytes;
  if (context.tensor_bytes <= kMaxMessageBytes) return OkStatus();
  return InvalidArgument(
      "the tensors have more than 2 GiB, which no ONNX file can hold: write them as external data");
}

}  // namespace

uint64_t ExternalDataFile::Append(std::span<const std::byte> bytes) {
  static constexpr std::byte kPadding[Allocator::kAlignment] = {};
  // Small tensors only get what their elements need, like those that onnxruntime writes.
  constexpr uint64_t kForElements = 8;
  constexpr size_t kSmall = 4096;
  const uint64_t offset =
      RoundUp<uint64_t>(size, bytes.size() < kSmall ? kForElements : Allocator::kAlignment);
  if (offset > size) parts.emplace_back(kPadding, offset - size);
  parts.push_back(bytes);
  size = offset + bytes.size();
  return offset;
}

std::string TypeMessage(const ValueType& type) {
  std::string bytes;
  MessageBuilder<TypeField> message(bytes);
  switch (type.kind) {
    case Value::Kind::kTensor:
      message.add_message(TypeField::kTensor, TensorTypeMessage(type));
      break;
    case Value::Kind::kSparseTensor:
      message.add_message(TypeField::kSparseTensor, TensorTypeMessage(type));
      break;
    case Value::Kind::kSequence:
      message.add_message(TypeField::kSequence, HolderTypeMessage(type));
      break;
    case Value::Kind::kOptional:
      message.add_message(TypeField::kOptional, HolderTypeMessage(type));
      break;
    case Value::Kind::kMap:
      message.add_message(TypeField::kMap, MapTypeMessage(type));
      break;
    case Value::Kind::kOpaque:
    case Value::Kind::kNone:
      break;
  }
  WriteText(type.denotation, message, TypeField::kDenotation);
  return bytes;
}

void WriteLocation(const ExternalLocation& location, size_t bytes,
                   MessageBuilder<TensorField>& message) {
  WriteEntries({{"location", location.file},
                {"offset", Format("{}", location.offset)},
                {"length", Format("{}", location.length.value_or(bytes))}},
               message, TensorField::kExternalData);
  message.add_enum(TensorField::kDataLocation, kExternalLocation);
}

Status WriteTensor(const std::string& name, const Tensor& tensor, WriteContext& context,
                   MessageBuilder<TensorField>& message) {
  WriteTypeAndShape(name, tensor, message);
  if (tensor.type() != DataType::kString) {
    TENON_RETURN_IF_ERROR(CountBytes(tensor.bytes(), context));
    message.add_bytes(TensorField::kRawData, static_cast<const char*>(tensor.raw()),
                      tensor.bytes());
    return OkStatus();
  }
  for (const std::string& text : tensor.values<std::string>()) {
    TENON_RETURN_IF_ERROR(CountBytes(text.size(), context));
    message.add_bytes(TensorField::kStringData, text);
  }
  return OkStatus();
}

Status WriteInitializer(const std::string& name, const Tensor& tensor, WriteContext& context,
                        MessageBuilder<TensorField>& message) {
  if (context.place != nullptr && *context.place) {
    TENON_ASSIGN_OR_RETURN(const std::optional<ExternalLocation> location,
                           (*context.place)(name, tensor));
    if (!location) return WriteTensor(name, tensor, context, message);
    WriteTypeAndShape(name, tensor, message);
    WriteLocation(*location, tensor.bytes(), message);
    return OkStatus();
  }
  ExternalDataFile* file = context.external_data;
  const bool is_external =
      file != nullptr && tensor.bytes() >= file->threshold && tensor.type() != DataType::kString;
  if (!is_external) return WriteTensor(name, tensor, context, message);
  WriteTypeAndShape(name, tensor, message);
  const uint64_t offset =
      file->Append({static_cast<const std::byte*>(tensor.raw()), tensor.bytes()});
  WriteLocation({file->name, offset, std::nullopt}, tensor.bytes(), message);
  return OkStatus();
}

Status WriteSparseTensor(const std::string& name, const SparseTensor& tensor, WriteContext& context,
                         MessageBuilder<SparseTensorField>& message) {
  {
    MessageBuilder<TensorField> values(message, SparseTensorField::kValues);
    TENON_RETURN_IF_ERROR(WriteTensor(name, tensor.values, context, values));
  }
  {
    MessageBuilder<TensorField> indices(message, SparseTensorField::kIndices);
    TENON_RETURN_IF_ERROR(WriteTensor("", tensor.indices, context, indices));
  }
  message.add_packed_int64(SparseTensorField::kDims, tensor.dense_shape.begin(),
                           tensor.dense_shape.end());
  return OkStatus();
}

}  // namespace tenon
