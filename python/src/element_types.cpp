#include "element_types.h"

#include <cstring>
#include <iterator>

namespace tenon::python {
namespace {

// In the order of ONNXTensorElementDataType, then those of tenon_c_api.h.
constexpr ElementType kElementTypes[] = {
    {"undefined", nullptr, 0, false, 0},  {"float", "f", 4, true, 32},
    {"uint8", "B", 1, true, 8},           {"int8", "b", 1, true, 8},
    {"uint16", "H", 2, true, 16},         {"int16", "h", 2, true, 16},
    {"int32", "i", 4, true, 32},          {"int64", "q", 8, true, 64},
    {"string", nullptr, 0, false, 0},     {"bool", "?", 1, true, 8},
    {"float16", "e", 2, true, 16},        {"double", "d", 8, true, 64},
    {"uint32", "I", 4, true, 32},         {"uint64", "Q", 8, true, 64},
    {"complex64", "Zf", 8, true, 64},     {"complex128", "Zd", 16, true, 128},
    {"bfloat16", "H", 2, false, 16},      {"float8e4m3fn", "B", 1, false, 8},
    {"float8e4m3fnuz", "B", 1, false, 8}, {"float8e5m2", "B", 1, false, 8},
    {"float8e5m2fnuz", "B", 1, false, 8}, {"uint4", "B", 1, false, 4},
    {"int4", "B", 1, false, 4},           {"float4e2m1", "B", 1, false, 4},
    {"uint2", "B", 1, false, 2},          {"int2", "B", 1, false, 2},
    {"float8e8m0", "B", 1, false, 8},     {"float6e2m3", "B", 1, false, 6},
    {"float6e3m2", "B", 1, false, 6},
};
static_assert(std::size(kElementTypes) == TENON_TENSOR_ELEMENT_DATA_TYPE_FLOAT6E3M2 + 1);
static_assert(sizeof(long) == 4 || sizeof(long) == 8);

constexpr auto kLong =
    sizeof(long) == 8 ? ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 : ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32;
constexpr auto kUnsignedLong =
    sizeof(long) == 8 ? ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64 : ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32;

}  // namespace

const ElementType& Describe(ONNXTensorElementDataType type) {
  const auto index = static_cast<size_t>(type);
  return kElementTypes[index < std::size(kElementTypes) ? index : 0];
}

ONNXTensorElementDataType ElementTypeByName(std::string_view name) {
  for (size_t i = 1; i < std::size(kElementTypes); ++i) {
    if (name == kElementTypes[i].name) return static_cast<ONNXTensorElementDataType>(i);
  }
  return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

ONNXTensorElementDataType ElementTypeByFormat(const char* format) {
  if (std::strcmp(format, "l") == 0) return kLong;
  if (std::strcmp(format, "L") == 0) return kUnsignedLong;
  for (size_t i = 1; i < std::size(kElementTypes); ++i) {
    const ElementType& type = kElementTypes[i];
    if (type.is_native && std::strcmp(format, type.format) == 0) {
      return static_cast<ONNXTensorElementDataType>(i);
    }
  }
  return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

}  // namespace tenon::python
