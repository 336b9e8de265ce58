// Maps ONNX's element types to the kernels'.
#pragma once

#include "base/status.h"
#include "kernels/elementwise/elementwise.h"
#include "tensor/data_type.h"

namespace tenon {

// Bool counts as uint8. Error: kNotImplemented for types without arithmetic.
inline Result<kernels::ElementType> ElementTypeOf(DataType type) {
  switch (type) {
    case DataType::kFloat:
      return kernels::ElementType::kFloat;
    case DataType::kDouble:
      return kernels::ElementType::kDouble;
    case DataType::kInt8:
      return kernels::ElementType::kInt8;
    case DataType::kInt16:
      return kernels::ElementType::kInt16;
    case DataType::kInt32:
      return kernels::ElementType::kInt32;
    case DataType::kInt64:
      return kernels::ElementType::kInt64;
    case DataType::kUint8:
    case DataType::kBool:
      return kernels::ElementType::kUint8;
    case DataType::kUint16:
      return kernels::ElementType::kUint16;
    case DataType::kUint32:
      return kernels::ElementType::kUint32;
    case DataType::kUint64:
      return kernels::ElementType::kUint64;
    default:
      return NotImplemented("element type {}", DataTypeName(type));
  }
}

}  // namespace tenon
