#include "array.h"

#include <onnxruntime_cxx_api.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "text.h"

namespace tenon::cli {
namespace {

#define ELEMENT(Name) ONNX_TENSOR_ELEMENT_DATA_TYPE_##Name
constexpr ElementType kElementTypes[] = {
    {ELEMENT(FLOAT), "float", 4, "f4"},
    {ELEMENT(DOUBLE), "double", 8, "f8"},
    {ELEMENT(FLOAT16), "float16", 2, "f2"},
    {ELEMENT(INT8), "int8", 1, "i1"},
    {ELEMENT(INT16), "int16", 2, "i2"},
    {ELEMENT(INT32), "int32", 4, "i4"},
    {ELEMENT(INT64), "int64", 8, "i8"},
    {ELEMENT(UINT8), "uint8", 1, "u1"},
    {ELEMENT(UINT16), "uint16", 2, "u2"},
    {ELEMENT(UINT32), "uint32", 4, "u4"},
    {ELEMENT(UINT64), "uint64", 8, "u8"},
    {ELEMENT(BOOL), "bool", 1, "b1"},
    {ELEMENT(COMPLEX64), "complex64", 8, "c8"},
    {ELEMENT(COMPLEX128), "complex128", 16, "c16"},
    // NumPy has no such types. Files hold them as bytes without a type, as the ml_dtypes package
    // does.
    {ELEMENT(BFLOAT16), "bfloat16", 2, "V2"},
    {ELEMENT(FLOAT8E4M3FN), "float8e4m3fn", 1, "V1"},
    {ELEMENT(FLOAT8E4M3FNUZ), "float8e4m3fnuz", 1, "V1"},
    {ELEMENT(FLOAT8E5M2), "float8e5m2", 1, "V1"},
    {ELEMENT(FLOAT8E5M2FNUZ), "float8e5m2fnuz", 1, "V1"},
    {ELEMENT(STRING), "string", 0, nullptr},
    {ELEMENT(UINT4), "uint4", 0, nullptr},
    {ELEMENT(INT4), "int4", 0, nullptr},
};
constexpr ElementType kUndefined = {ELEMENT(UNDEFINED), "undefined", 0, nullptr};

// Calls `body` with a null pointer to the C++ type of `type`; false if it is not in the list.
template <class Body>
bool WithType(ONNXTensorElementDataType type, const Body& body) {
  switch (type) {
    case ELEMENT(FLOAT):
      body(static_cast<float*>(nullptr));
      return true;
    case ELEMENT(DOUBLE):
      body(static_cast<double*>(nullptr));
      return true;
    case ELEMENT(FLOAT16):
      body(static_cast<Ort::Float16_t*>(nullptr));
      return true;
    case ELEMENT(BFLOAT16):
      body(static_cast<Ort::BFloat16_t*>(nullptr));
      return true;
    case ELEMENT(INT8):
      body(static_cast<int8_t*>(nullptr));
      return true;
    case ELEMENT(INT16):
      body(static_cast<int16_t*>(nullptr));
      return true;
    case ELEMENT(INT32):
      body(static_cast<int32_t*>(nullptr));
      return true;
    case ELEMENT(INT64):
      body(static_cast<int64_t*>(nullptr));
      return true;
    case ELEMENT(UINT8):
      body(static_cast<uint8_t*>(nullptr));
      return true;
    case ELEMENT(UINT16):
      body(static_cast<uint16_t*>(nullptr));
      return true;
    case ELEMENT(UINT32):
      body(static_cast<uint32_t*>(nullptr));
      return true;
    case ELEMENT(UINT64):
      body(static_cast<uint64_t*>(nullptr));
      return true;
    case ELEMENT(BOOL):
      body(static_cast<bool*>(nullptr));
      return true;
    default:
      return false;
  }
}

template <class T>
double ToDouble(T value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(value);
  } else {
    return value.ToFloat();
  }
}

template <class T>
T FromDouble(double value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else if constexpr (std::is_integral_v<T>) {
    // The limits of 64-bit types round up as doubles, so they are compared and not used for
    // clamping.
    const double rounded = std::nearbyint(value);
    if (!(rounded > static_cast<double>(std::numeric_limits<T>::min()))) {
      return std::numeric_limits<T>::min();
    }
    if (rounded >= static_cast<double>(std::numeric_limits<T>::max())) {
      return std::numeric_limits<T>::max();
    }
    return static_cast<T>(rounded);
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else {
    return T(static_cast<float>(value));
  }
}

}  // namespace

const ElementType& ElementTypeOf(ONNXTensorElementDataType id) {
  for (const ElementType& type : kElementTypes) {
    if (type.id == id) return type;
  }
  return kUndefined;
}

const ElementType* FindElementType(const std::string& descr) {
  for (const ElementType& type : kElementTypes) {
    if (type.descr != nullptr && descr == type.descr) return &type;
  }
  return nullptr;
}

const ElementType& FindNamedElementType(std::string_view name) {
  for (const ElementType& type : kElementTypes) {
    if (type.name == name) return type;
  }
  return kUndefined;
}

bool IsFloatingPoint(ONNXTensorElementDataType id) {
  return id == ELEMENT(FLOAT) || id == ELEMENT(DOUBLE) || id == ELEMENT(FLOAT16) ||
         id == ELEMENT(BFLOAT16);
}

bool IsNumber(ONNXTensorElementDataType id) {
  return WithType(id, [](auto*) {});
}

double ReadNumber(ONNXTensorElementDataType type, const void* data, size_t i) {
  double number = 0;
  WithType(type, [&](auto* tag) {
    std::remove_pointer_t<decltype(tag)> element;
    std::memcpy(&element, static_cast<const std::byte*>(data) + i * sizeof(element),
                sizeof(element));
    number = ToDouble(element);
  });
  return number;
}

void WriteNumber(ONNXTensorElementDataType type, void* data, size_t i, double value) {
  WithType(type, [&](auto* tag) {
    const auto element = FromDouble<std::remove_pointer_t<decltype(tag)>>(value);
    std::memcpy(static_cast<std::byte*>(data) + i * sizeof(element), &element, sizeof(element));
  });
}

size_t ElementCount(const std::vector<int64_t>& shape) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 16;  // of the largest elements
  int64_t count = 1;
  for (const int64_t dim : shape) {
    if (dim < 0) Fail("{} is no shape", ShapeText(shape));
    if (dim > 0 && count > kMost / dim) Fail("shape {} is too large", ShapeText(shape));
    count *= dim;
  }
  return static_cast<size_t>(count);
}

Array MakeArray(ONNXTensorElementDataType type, std::vector<int64_t> shape) {
  Array array{type, std::move(shape), {}, {}};
  array.bytes.resize(ElementCount(array.shape) * ElementTypeOf(type).bytes);
  return array;
}

}  // namespace tenon::cli
