// ONNXTensorElementDataType and DataType. The ABI numbers the three newest types in another order
// than ONNX does; float6, which the ABI lacks, keeps ONNX's numbers (tenon_c_api.h).
#pragma once

#include <onnxruntime_c_api.h>

#include "base/status.h"
#include "capi/boundary/arguments.h"
#include "tensor/data_type.h"

namespace tenon::capi {

inline ONNXTensorElementDataType ToElementType(DataType type) {
  switch (type) {
    case DataType::kFloat8e8m0:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0;
    case DataType::kUint2:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2;
    case DataType::kInt2:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2;
    default:
      return static_cast<ONNXTensorElementDataType>(type);
  }
}

// kUndefined for ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED. Error: a number that is not an element
// type.
inline Result<DataType> FromElementType(const ONNXTensorElementDataType& type) {
  const int number = type;
  switch (number) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0:
      return DataType::kFloat8e8m0;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2:
      return DataType::kUint2;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2:
      return DataType::kInt2;
    default:
      break;
  }
  if (number < 0 || number >= kDataTypeCount) {
    return InvalidArgument("there is no element type {}", number);
  }
  return static_cast<DataType>(number);
}

}  // namespace tenon::capi
