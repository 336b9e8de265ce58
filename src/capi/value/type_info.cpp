// OrtTypeInfo and its kinds: descriptions of types.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/value/element_type.h"

namespace tenon::capi {
namespace {

// The handle of a kind of type, null if the type is of another.
template <class Handle>
OrtStatus* Cast(const OrtTypeInfo* type_info, std::initializer_list<Value::Kind> kinds,
                const Handle** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(type_info);
    TENON_RETURN_IF_NULL(out);
    const ValueType* const type = Unwrap(type_info);
    const bool fits = std::find(kinds.begin(), kinds.end(), type->kind) != kinds.end();
    *out = fits ? Wrap<Handle>(type) : nullptr;
    return OkStatus();
  });
}

template <class Handle>
OrtStatus* GetHeld(const Handle* info, OrtTypeInfo** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(info);
    TENON_RETURN_IF_NULL(out);
    const ValueType* const type = Unwrap(info);
    *out = NewHandle<OrtTypeInfo>(type->held ? *type->held : ValueType());
    return OkStatus();
  });
}

// Dimensions of a description; none if the rank is unknown.
std::span<const Dim> DimsOf(const ValueType& type) {
  if (!type.shape) return {};
  return type.shape->dims();
}

}  // namespace

OrtStatus* GetTypeInfo(const OrtValue* value, OrtTypeInfo** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(value);
    TENON_RETURN_IF_NULL(out);
    *out = NewHandle<OrtTypeInfo>(ValueType::Of(*Unwrap(value)));
    return OkStatus();
  });
}

OrtStatus* GetTensorTypeAndShape(const OrtValue* value, OrtTensorTypeAndShapeInfo** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(value);
    TENON_RETURN_IF_NULL(out);
    const Value& object = *Unwrap(value);
    if (!object.is_tensor() && object.kind() != Value::Kind::kSparseTensor) {
      return InvalidArgument("expected a tensor, got a {}", ValueKindName(object.kind()));
    }
    *out = NewHandle<OrtTensorTypeAndShapeInfo>(ValueType::Of(object));
    return OkStatus();
  });
}

OrtStatus* GetOnnxTypeFromTypeInfo(const OrtTypeInfo* type_info, ONNXType* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(type_info);
    TENON_RETURN_IF_NULL(out);
    switch (Unwrap(type_info)->kind) {
      case Value::Kind::kNone:
        *out = ONNX_TYPE_UNKNOWN;
        break;
      case Value::Kind::kTensor:
        *out = ONNX_TYPE_TENSOR;
        break;
      case Value::Kind::kSequence:
        *out = ONNX_TYPE_SEQUENCE;
        break;
      case Value::Kind::kMap:
        *out = ONNX_TYPE_MAP;
        break;
      case Value::Kind::kOptional:
        *out = ONNX_TYPE_OPTIONAL;
        break;
      case Value::Kind::kSparseTensor:
        *out = ONNX_TYPE_SPARSETENSOR;
        break;
      case Value::Kind::kOpaque:
        *out = ONNX_TYPE_OPAQUE;
        break;
    }
    return OkStatus();
  });
}

OrtStatus* GetDenotationFromTypeInfo(const OrtTypeInfo* type_info, const char** const denotation,
                                     size_t* len) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(type_info);
    TENON_RETURN_IF_NULL(denotation);
    TENON_RETURN_IF_NULL(len);
    *denotation = Unwrap(type_info)->denotation.c_str();
    *len = Unwrap(type_info)->denotation.size();
    return OkStatus();
  });
}

OrtStatus* CastTypeInfoToTensorInfo(const OrtTypeInfo* type_info,
                                    const OrtTensorTypeAndShapeInfo** out) noexcept {
  return Cast(type_info, {Value::Kind::kTensor, Value::Kind::kSparseTensor}, out);
}

OrtStatus* CastTypeInfoToSequenceTypeInfo(const OrtTypeInfo* type_info,
                                          const OrtSequenceTypeInfo** out) noexcept {
  return Cast(type_info, {Value::Kind::kSequence}, out);
}

OrtStatus* CastTypeInfoToMapTypeInfo(const OrtTypeInfo* type_info,
                                     const OrtMapTypeInfo** out) noexcept {
  return Cast(type_info, {Value::Kind::kMap}, out);
}

OrtStatus* CastTypeInfoToOptionalTypeInfo(const OrtTypeInfo* type_info,
                                          const OrtOptionalTypeInfo** out) noexcept {
  return Cast(type_info, {Value::Kind::kOptional}, out);
}

OrtStatus* GetSequenceElementType(const OrtSequenceTypeInfo* sequence_type_info,
                                  OrtTypeInfo** type_info) noexcept {
  return GetHeld(sequence_type_info, type_info);
}

OrtStatus* GetOptionalContainedTypeInfo(const OrtOptionalTypeInfo* optional_type_info,
                                        OrtTypeInfo** out) noexcept {
  return GetHeld(optional_type_info, out);
}

OrtStatus* GetMapValueType(const OrtMapTypeInfo* map_type_info, OrtTypeInfo** type_info) noexcept {
  return GetHeld(map_type_info, type_info);
}

OrtStatus* GetMapKeyType(const OrtMapTypeInfo* map_type_info,
                         ONNXTensorElementDataType* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(map_type_info);
    TENON_RETURN_IF_NULL(out);
    *out = ToElementType(Unwrap(map_type_info)->element_type);
    return OkStatus();
  });
}

OrtStatus* CreateTensorTypeAndShapeInfo(OrtTensorTypeAndShapeInfo** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(out);
    *out = NewHandle<OrtTensorTypeAndShapeInfo>(ValueType::Tensor(DataType::kUndefined));
    return OkStatus();
  });
}

OrtStatus* SetTensorElementType(OrtTensorTypeAndShapeInfo* info,
                                ONNXTensorElementDataType type) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(info);
    TENON_ASSIGN_OR_RETURN(Unwrap(info)->element_type, FromElementType(type));
    return OkStatus();
  });
}

OrtStatus* SetDimensions(OrtTensorTypeAndShapeInfo* info, const int64_t* dim_values,
                         size_t dim_count) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(info);
    TENON_RETURN_IF_NULL_ARRAY(dim_values, dim_count);
    SymbolicShape shape;
    for (size_t axis = 0; axis < dim_count; ++axis) {
      if (dim_values[axis] < -1) {
        return InvalidArgument("dim_values must be -1 (symbolic dimension) or larger.");
      }
      shape.Append(dim_values[axis] < 0 ? Dim::Unknown() : Dim(dim_values[axis]));
    }
    Unwrap(info)->shape = std::move(shape);
    return OkStatus();
  });
}

OrtStatus* SetSymbolicDimensions(OrtTensorTypeAndShapeInfo* info, const char** dim_params,
                                 size_t dim_params_length) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(info);
    TENON_RETURN_IF_NULL_ARRAY(dim_params, dim_params_length);
    ValueType& type = *Unwrap(info);
    if (dim_params_length != DimsOf(type).size()) {
      return InvalidArgument("expected a name for each of {} dimensions, got {}",
                             DimsOf(type).size(), dim_params_length);
    }
    for (size_t axis = 0; axis < dim_params_length; ++axis) {
      const char* const name = dim_params[axis];
      if (name == nullptr || *name == '\0') continue;
      (*type.shape)[axis] = Dim::Symbol(name);
    }
    return OkStatus();
  });
}

OrtStatus* GetTensorElementType(const OrtTensorTypeAndShapeInfo* info,
                                ONNXTensorElementDataType* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(info);
    TENON_RETURN_IF_NULL(out);
    *out = ToElementType(Unwrap(info)->element_type);
    return OkStatus();
  });
}

bool TensorTypeAndShape_HasShape(const OrtTensorTypeAndShapeInfo* info) noexcept {
  return info != nullptr && Unwrap(info)->shape.has_value();
}

OrtStatus* GetDimensionsCount(const OrtTensorTypeAndShapeInfo* info, size_t* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(info);
    TENON_RETURN_IF_NULL(out);
    *out = DimsOf(*Unwrap(info)).size();
    return OkStatus();
  });
}

OrtStatus* GetDimensions(const OrtTensorTypeAndShapeInfo* info, int64_t* dim_values,
                         size_t dim_values_length) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(info);
    TENON_RETURN_IF_NULL_ARRAY(dim_values, dim_values_length);
    const std::span<const Dim> dims = DimsOf(*Unwrap(info));
    for (size_t axis = 0; axis < std::min(dims.size(), dim_values_length); ++axis) {
      dim_values[axis] = dims[axis].number().value_or(-1);
    }
    return OkStatus();
  });
}

OrtStatus* GetSymbolicDimensions(const OrtTensorTypeAndShapeInfo* info, const char** dim_params,
                                 size_t dim_params_length) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(info);
    TENON_RETURN_IF_NULL_ARRAY(dim_params, dim_params_length);
    const std::span<const Dim> dims = DimsOf(*Unwrap(info));
    for (size_t axis = 0; axis < std::min(dims.size(), dim_params_length); ++axis) {
      const std::string_view name = dims[axis].symbol_name();
      // A name is a complete std::string of the dimension, so it ends in a null character.
      dim_params[axis] = name.empty() ? "" : name.data();
    }
    return OkStatus();
  });
}

OrtStatus* GetTensorShapeElementCount(const OrtTensorTypeAndShapeInfo* info, size_t* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(info);
    TENON_RETURN_IF_NULL(out);
    Shape shape;
    for (const Dim& dim : DimsOf(*Unwrap(info))) {
      if (!dim.is_number())
        return Fail("the dimensions of {} are not all known", Unwrap(info)->ToString());
      shape.Append(dim.value());
    }
    const Result<int64_t> count = shape.CheckedNumElements();
    if (!count) return Fail("{}", count.error().message());
    *out = static_cast<size_t>(*count);
    return OkStatus();
  });
}

void ReleaseTypeInfo(OrtTypeInfo* input) noexcept { delete Unwrap(input); }
void ReleaseTensorTypeAndShapeInfo(OrtTensorTypeAndShapeInfo* input) noexcept {
  delete Unwrap(input);
}
void ReleaseMapTypeInfo(OrtMapTypeInfo* input) noexcept { delete Unwrap(input); }
void ReleaseSequenceTypeInfo(OrtSequenceTypeInfo* input) noexcept { delete Unwrap(input); }

}  // namespace tenon::capi
