// OrtValue: creating values and reading them.
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/value/allocator.h"
#include "capi/value/element_type.h"
#include "capi/value/tensor_arguments.h"

namespace tenon::capi {
namespace {

ONNXType KindOf(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kTensor:
      return ONNX_TYPE_TENSOR;
    case Value::Kind::kSequence:
      return ONNX_TYPE_SEQUENCE;
    case Value::Kind::kMap:
      return ONNX_TYPE_MAP;
    case Value::Kind::kOptional:
      return ONNX_TYPE_OPTIONAL;
    case Value::Kind::kSparseTensor:
      return ONNX_TYPE_SPARSETENSOR;
    case Value::Kind::kOpaque:
      return ONNX_TYPE_OPAQUE;
    case Value::Kind::kNone:
      break;
  }
  return ONNX_TYPE_UNKNOWN;
}

// Without values, a sequence whose type follows from its use.
Result<Value> MakeSequence(std::span<const OrtValue* const> in) {
  auto sequence = std::make_shared<Sequence>();
  if (in.empty()) return Value(std::move(sequence));
  const Value::Kind kind = Unwrap(in[0])->kind();
  if (kind != Value::Kind::kTensor && kind != Value::Kind::kMap) {
    return InvalidArgument("a sequence holds tensors or maps, got a {}", ValueKindName(kind));
  }
  if (kind == Value::Kind::kTensor) sequence->element_type = Unwrap(in[0])->tensor().type();
  for (size_t i = 0; i < in.size(); ++i) {
    const Value& value = *Unwrap(in[i]);
    if (value.kind() != kind ||
        (kind == Value::Kind::kTensor && value.tensor().type() != sequence->element_type)) {
      return InvalidArgument("value {} of the sequence is of another type than the first", i);
    }
    sequence->elements.push_back(value);
  }
  return Value(std::move(sequence));
}

Result<Value> MakeMap(std::span<const OrtValue* const> in) {
  if (in.size() != 2) return InvalidArgument("a map is made of 2 values, got {}", in.size());
  auto map = std::make_shared<Map>();
  Tensor* const parts[] = {&map->keys, &map->values};
  for (size_t i = 0; i < in.size(); ++i) {
    TENON_ASSIGN_OR_RETURN(const Tensor* const tensor, TensorOf(in[i]));
    if (tensor->rank() != 1) {
      return InvalidArgument("keys and values of a map have rank 1, got {}", tensor->shape());
    }
    TENON_ASSIGN_OR_RETURN(*parts[i], tensor->Clone());
  }
  if (map->keys.size() != map->values.size()) {
    return InvalidArgument("a map with {} keys needs as many values, got {}", map->keys.size(),
                           map->values.size());
  }
  if (map->keys.type() != DataType::kInt64 && map->keys.type() != DataType::kString) {
    return InvalidArgument("keys of a map are int64 or string, got {}",
                           DataTypeName(map->keys.type()));
  }
  return Value(std::move(map));
}

}  // namespace

OrtStatus* CreateTensorAsOrtValue(OrtAllocator* allocator, const int64_t* shape, size_t shape_len,
                                  ONNXTensorElementDataType type, OrtValue** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(allocator);
    TENON_RETURN_IF_NULL_ARRAY(shape, shape_len);
    TENON_RETURN_IF_NULL(out);
    TENON_ASSIGN_OR_RETURN(const DataType data_type, FromElementType(type));
    if (data_type == DataType::kUndefined) return InvalidArgument("type must be defined");
    TENON_ASSIGN_OR_RETURN(
        Tensor tensor,
        Tensor::Allocate(data_type, Shape(std::span(shape, shape_len)), FromClient(allocator)));
    *out = NewHandle<OrtValue>(std::move(tensor));
    return OkStatus();
  });
}

OrtStatus* CreateTensorWithDataAsOrtValue(const OrtMemoryInfo* info, void* p_data,
                                          size_t p_data_len, const int64_t* shape, size_t shape_len,
                                          ONNXTensorElementDataType type, OrtValue** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(info);
    TENON_RETURN_IF_NULL(out);
    TENON_ASSIGN_OR_RETURN(
        Tensor tensor, ViewOf(*Unwrap(info), p_data, p_data_len, shape, shape_len, type, nullptr));
    *out = NewHandle<OrtValue>(std::move(tensor));
    return OkStatus();
  });
}

OrtStatus* CreateTensorWithDataAndDeleterAsOrtValue(OrtAllocator* deleter, void* p_data,
                                                    size_t p_data_len, const int64_t* shape,
                                                    size_t shape_len,
                                                    ONNXTensorElementDataType type,
                                                    OrtValue** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(deleter);
    TENON_RETURN_IF_NULL(out);
    const MemoryInfo& memory = *Unwrap(deleter->Info(deleter));
    // Checked first: after a failure the caller must still own the memory.
    TENON_RETURN_IF_ERROR(ViewOf(memory, p_data, p_data_len, shape, shape_len, type, nullptr));
    auto handle = std::make_unique<Value>();
    std::shared_ptr<void> owner(p_data, [deleter](void* data) { deleter->Free(deleter, data); });
    TENON_ASSIGN_OR_RETURN(
        *handle, ViewOf(memory, p_data, p_data_len, shape, shape_len, type, std::move(owner)));
    *out = Wrap<OrtValue>(handle.release());
    return OkStatus();
  });
}

void ReleaseValue(OrtValue* input) noexcept { delete Unwrap(input); }

OrtStatus* IsTensor(const OrtValue* value, int* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(value);
    TENON_RETURN_IF_NULL(out);
    *out = Unwrap(value)->is_tensor() ? 1 : 0;
    return OkStatus();
  });
}

OrtStatus* IsSparseTensor(const OrtValue* value, int* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(value);
    TENON_RETURN_IF_NULL(out);
    *out = Unwrap(value)->kind() == Value::Kind::kSparseTensor ? 1 : 0;
    return OkStatus();
  });
}

OrtStatus* HasValue(const OrtValue* value, int* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(value);
    TENON_RETURN_IF_NULL(out);
    const Value& object = *Unwrap(value);
    const bool is_empty = !object.has_value() || (object.kind() == Value::Kind::kOptional &&
                                                  !object.optional().value.has_value());
    *out = is_empty ? 0 : 1;
    return OkStatus();
  });
}

OrtStatus* GetValueType(const OrtValue* value, ONNXType* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(value);
    TENON_RETURN_IF_NULL(out);
    *out = KindOf(*Unwrap(value));
    return OkStatus();
  });
}

OrtStatus* GetTensorMutableData(OrtValue* value, void** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(out);
    TENON_ASSIGN_OR_RETURN(Tensor* const tensor, TensorOf(value));
    *out = tensor->raw();
    return OkStatus();
  });
}

OrtStatus* GetTensorData(const OrtValue* value, const void** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(out);
    TENON_ASSIGN_OR_RETURN(const Tensor* const tensor, TensorOf(value));
    *out = tensor->raw();
    return OkStatus();
  });
}

OrtStatus* GetTensorSizeInBytes(const OrtValue* ort_value, size_t* size) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(size);
    TENON_ASSIGN_OR_RETURN(const Tensor* const tensor, TensorOf(ort_value));
    if (tensor->type() == DataType::kString) {
      return InvalidArgument("a string tensor has no size in bytes");
    }
    *size = tensor->bytes();
    return OkStatus();
  });
}

OrtStatus* GetTensorMemoryInfo(const OrtValue* value, const OrtMemoryInfo** mem_info) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(mem_info);
    TENON_RETURN_IF_NULL(value);
    const Value& object = *Unwrap(value);
    if (object.kind() == Value::Kind::kSparseTensor) {
      *mem_info = Wrap<OrtMemoryInfo>(&object.sparse().values.memory());
      return OkStatus();
    }
    TENON_ASSIGN_OR_RETURN(const Tensor* const tensor, TensorOf(value));
    *mem_info = Wrap<OrtMemoryInfo>(&tensor->memory());
    return OkStatus();
  });
}

OrtStatus* GetTensorElementTypeAndShapeDataReference(const OrtValue* value,
                                                     ONNXTensorElementDataType* elem_type,
                                                     const int64_t** shape_data,
                                                     size_t* shape_data_count) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(elem_type);
    TENON_RETURN_IF_NULL(shape_data);
    TENON_RETURN_IF_NULL(shape_data_count);
    TENON_RETURN_IF_NULL(value);
    const Shape* shape = nullptr;
    if (Unwrap(value)->kind() == Value::Kind::kSparseTensor) {
      const SparseTensor& sparse = Unwrap(value)->sparse();
      *elem_type = ToElementType(sparse.values.type());
      shape = &sparse.dense_shape;
    } else {
      TENON_ASSIGN_OR_RETURN(const Tensor* const tensor, TensorOf(value));
      *elem_type = ToElementType(tensor->type());
      shape = &tensor->shape();
    }
    *shape_data = shape->rank() == 0 ? nullptr : shape->data();
    *shape_data_count = shape->rank();
    return OkStatus();
  });
}

OrtStatus* TensorAt(OrtValue* value, const int64_t* location_values, size_t location_values_count,
                    void** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL_ARRAY(location_values, location_values_count);
    TENON_RETURN_IF_NULL(out);
    TENON_ASSIGN_OR_RETURN(Tensor* const tensor, TensorOf(value));
    if (tensor->type() == DataType::kString || IsSubByte(tensor->type())) {
      return InvalidArgument(
          "an element of a {} tensor has no address: this does not support sub-byte packed types "
          "and strings",
          DataTypeName(tensor->type()));
    }
    if (location_values_count != tensor->rank()) {
      return InvalidArgument(
          "location dimensions do not match shape size: expected {} indices for shape {}, got {}",
          tensor->rank(), tensor->shape(), location_values_count);
    }
    size_t element = 0;
    for (size_t axis = 0; axis < tensor->rank(); ++axis) {
      const int64_t index = location_values[axis];
      const int64_t size = tensor->shape()[axis];
      if (index < 0 || index >= size) {
        return InvalidArgument("invalid location range: index {} at axis {} of shape {}", index,
                               axis, tensor->shape());
      }
      element = element * static_cast<size_t>(size) + static_cast<size_t>(index);
    }
    *out = static_cast<std::byte*>(tensor->raw()) + element * DataTypeBits(tensor->type()) / 8;
    return OkStatus();
  });
}

OrtStatus* GetValueCount(const OrtValue* value, size_t* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(value);
    TENON_RETURN_IF_NULL(out);
    const Value& object = *Unwrap(value);
    if (object.kind() == Value::Kind::kSequence) {
      *out = object.sequence().elements.size();
    } else if (object.kind() == Value::Kind::kMap) {
      *out = 2;
    } else {
      return InvalidArgument("expected a sequence or map, got a {}", ValueKindName(object.kind()));
    }
    return OkStatus();
  });
}

OrtStatus* GetValue(const OrtValue* value, int index, OrtAllocator* allocator,
                    OrtValue** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(value);
    TENON_RETURN_IF_NULL(allocator);
    TENON_RETURN_IF_NULL(out);
    size_t count = 0;
    TENON_RETURN_IF_ERROR(TakeOrtStatus(GetValueCount(value, &count)));
    const Status is_there = CheckIndex(static_cast<size_t>(index), count, "elements");
    // ONNX Runtime's code.
    if (!is_there.ok()) return Status(StatusCode::kRuntimeException, is_there.message());
    const Value& object = *Unwrap(value);
    const Value element = object.kind() == Value::Kind::kSequence
                              ? object.sequence().elements[index]
                              : Value(index == 0 ? object.map().keys : object.map().values);
    if (!element.is_tensor()) {
      *out = NewHandle<OrtValue>(element);
      return OkStatus();
    }
    TENON_ASSIGN_OR_RETURN(Tensor copy, CopyTensor(element.tensor(), allocator));
    *out = NewHandle<OrtValue>(std::move(copy));
    return OkStatus();
  });
}

OrtStatus* CreateValue(const OrtValue* const* in, size_t num_values, ONNXType value_type,
                       OrtValue** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL_ARRAY(in, num_values);
    TENON_RETURN_IF_NULL(out);
    for (size_t i = 0; i < num_values; ++i) {
      if (in[i] == nullptr) return InvalidArgument("in[{}] must not be null", i);
    }
    const std::span values(in, num_values);
    const int kind = value_type;
    if (kind == ONNX_TYPE_SEQUENCE) {
      TENON_ASSIGN_OR_RETURN(Value sequence, MakeSequence(values));
      *out = NewHandle<OrtValue>(std::move(sequence));
    } else if (kind == ONNX_TYPE_MAP) {
      TENON_ASSIGN_OR_RETURN(Value map, MakeMap(values));
      *out = NewHandle<OrtValue>(std::move(map));
    } else if (kind == ONNX_TYPE_OPTIONAL && values.size() <= 1) {
      // An optional with a value is that value.
      *out = NewHandle<OrtValue>(values.empty() ? Value(std::make_shared<Optional>())
                                                : *Unwrap(values[0]));
    } else {
      return InvalidArgument("a value of kind {} cannot be made of others", kind);
    }
    return OkStatus();
  });
}

}  // namespace tenon::capi
