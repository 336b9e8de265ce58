// Tensors as the command holds them between files and sessions.
#pragma once

#include <onnxruntime_c_api.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::cli {

struct ElementType {
  ONNXTensorElementDataType id;
  const char* name;   // ONNX's: "float", "int64"
  size_t bytes;       // 0: not addressable one by one (strings, packed types)
  const char* descr;  // NumPy's, as in .npy files; null if .npy has none
};

// For any number that a library may return; unknown types have the name "undefined".
const ElementType& ElementTypeOf(ONNXTensorElementDataType id);

// The type with this .npy description (without byte order); null if there is none.
const ElementType* FindElementType(const std::string& descr);

// The type with this name of ONNX; the one of unknown types if there is none.
const ElementType& FindNamedElementType(std::string_view name);

bool IsFloatingPoint(ONNXTensorElementDataType id);
// Whether ReadNumber and WriteNumber know the type: real numbers of up to 64 bits and booleans.
bool IsNumber(ONNXTensorElementDataType id);

// Element `i` of an array whose type satisfies IsNumber.
double ReadNumber(ONNXTensorElementDataType type, const void* data, size_t i);
// Stores the nearest number that the type has; integers are clamped.
void WriteNumber(ONNXTensorElementDataType type, void* data, size_t i, double value);

struct Array {
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;      // row-major, native byte order
  std::vector<std::string> strings;  // instead of bytes for strings
};

// The number of elements. Throws Error if it does not fit.
size_t ElementCount(const std::vector<int64_t>& shape);

// Zeros of a type that satisfies IsNumber.
Array MakeArray(ONNXTensorElementDataType type, std::vector<int64_t> shape);

}  // namespace tenon::cli
