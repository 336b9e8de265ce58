// The element types of ONNX as Python sees them.
#pragma once

#include <tenon_c_api.h>

#include <string_view>

namespace tenon::python {

struct ElementType {
  const char* name;    // as in "tensor(float)"
  const char* format;  // of the buffer protocol; null for strings
  int size_bytes;      // of an item of `format`
  // NumPy's own types. The others are types of ml_dtypes, which the buffer protocol shows as
  // integers.
  bool is_native;
  int bits;  // of an element; fewer than 8 are packed
};

// The row of a type; that of ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED for numbers out of range.
const ElementType& Describe(ONNXTensorElementDataType type);

// The type with this name, or UNDEFINED.
ONNXTensorElementDataType ElementTypeByName(std::string_view name);

// The native type with this format of the buffer protocol, or UNDEFINED: strings, structures and
// foreign byte orders have none.
ONNXTensorElementDataType ElementTypeByFormat(const char* format);

}  // namespace tenon::python
