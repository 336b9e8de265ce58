#include "tensor/data_type.h"

#include <limits>
#include <string>

namespace tenon {
namespace {

struct TypeFacts {
  std::string_view name;
  size_t bits;
};

constexpr TypeFacts kFacts[kDataTypeCount] = {
    {"undefined", 0},      {"float", 32},     {"uint8", 8},
    {"int8", 8},           {"uint16", 16},    {"int16", 16},
    {"int32", 32},         {"int64", 64},     {"string", 8 * sizeof(std::string)},
    {"bool", 8},           {"float16", 16},   {"double", 64},
    {"uint32", 32},        {"uint64", 64},    {"complex64", 64},
    {"complex128", 128},   {"bfloat16", 16},  {"float8e4m3fn", 8},
    {"float8e4m3fnuz", 8}, {"float8e5m2", 8}, {"float8e5m2fnuz", 8},
    {"uint4", 4},          {"int4", 4},       {"float4e2m1", 4},
    {"float8e8m0", 8},     {"uint2", 2},      {"int2", 2},
    {"float6e2m3", 6},     {"float6e3m2", 6},
};

const TypeFacts& Facts(DataType type) {
  const auto index = static_cast<int32_t>(type);
  return kFacts[index > 0 && index < kDataTypeCount ? index : 0];
}

}  // namespace

std::string_view DataTypeName(DataType type) { return Facts(type).name; }

DataType DataTypeFromName(std::string_view name) {
  for (int i = 1; i < kDataTypeCount; ++i) {
    if (kFacts[i].name == name) return static_cast<DataType>(i);
  }
  return DataType::kUndefined;
}

bool IsDataType(int64_t value) { return value > 0 && value < kDataTypeCount; }

size_t DataTypeBits(DataType type) { return Facts(type).bits; }

Result<size_t> DataTypeBytes(DataType type, int64_t count) {
  // In 64 bits, since size_t may have 32.
  const uint64_t bits = DataTypeBits(type);
  constexpr auto kMaxBits = static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) - 7;
  constexpr auto kMaxBytes = static_cast<uint64_t>(std::numeric_limits<ptrdiff_t>::max());
  const bool fits = count >= 0 && (bits == 0 || static_cast<uint64_t>(count) <= kMaxBits / bits);
  const uint64_t bytes = fits ? (static_cast<uint64_t>(count) * bits + 7) / 8 : 0;
  if (!fits || bytes > kMaxBytes) {
    return InvalidArgument("{} elements of type {} do not fit into memory", count,
                           DataTypeName(type));
  }
  return static_cast<size_t>(bytes);
}

}  // namespace tenon
