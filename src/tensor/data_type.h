// The element types of ONNX tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "base/status.h"

namespace tenon {

// The numbers of TensorProto.DataType, which the C ABI's ONNXTensorElementDataType shares.
enum class DataType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBfloat16 = 16,
  kFloat8e4m3fn = 17,
  kFloat8e4m3fnuz = 18,
  kFloat8e5m2 = 19,
  kFloat8e5m2fnuz = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4e2m1 = 23,
  kFloat8e8m0 = 24,
  kUint2 = 25,
  kInt2 = 26,
  kFloat6e2m3 = 27,
  kFloat6e3m2 = 28,
};
inline constexpr int kDataTypeCount = 29;

// The name in ONNX type strings, e.g. "float" or "int64"; "undefined" for anything unknown.
std::string_view DataTypeName(DataType type);
// Inverse of DataTypeName; kUndefined for an unknown name.
DataType DataTypeFromName(std::string_view name);
// Whether `value`, a number from a file, is one of the element types above (kUndefined is not).
bool IsDataType(int64_t value);

// Bits per element: 2, 4 and 6 for the packed types, 8 * sizeof(std::string) for strings.
size_t DataTypeBits(DataType type);
// Bytes of `count` elements; packed types are padded to whole bytes at the end of the tensor.
// Fails if the number does not fit, or count is negative.
Result<size_t> DataTypeBytes(DataType type, int64_t count);

inline bool IsSubByte(DataType type) { return DataTypeBits(type) < 8; }

// A set of element types, one bit each.
class TypeSet {
 public:
  constexpr TypeSet() = default;
  constexpr TypeSet(std::initializer_list<DataType> types) {
    for (DataType type : types) bits_ |= Bit(type);
  }
  constexpr bool Contains(DataType type) const { return (bits_ & Bit(type)) != 0; }
  constexpr TypeSet operator|(TypeSet other) const { return TypeSet(bits_ | other.bits_); }
  constexpr bool operator==(const TypeSet&) const = default;
  constexpr uint64_t bits() const { return bits_; }

 private:
  explicit constexpr TypeSet(uint64_t bits) : bits_(bits) {}
  static constexpr uint64_t Bit(DataType type) { return uint64_t{1} << static_cast<int>(type); }
  uint64_t bits_ = 0;
};

inline constexpr TypeSet kFloat32Only = {DataType::kFloat};
inline constexpr TypeSet kFloats = {DataType::kFloat, DataType::kDouble, DataType::kFloat16,
                                    DataType::kBfloat16};
inline constexpr TypeSet kSignedInts = {DataType::kInt8, DataType::kInt16, DataType::kInt32,
                                        DataType::kInt64};
inline constexpr TypeSet kUnsignedInts = {DataType::kUint8, DataType::kUint16, DataType::kUint32,
                                          DataType::kUint64};
inline constexpr TypeSet kInts = kSignedInts | kUnsignedInts;
inline constexpr TypeSet kNumbers = kFloats | kInts;
inline constexpr TypeSet kIndices = {DataType::kInt32, DataType::kInt64};
inline constexpr TypeSet kFixedSize =
    kNumbers | TypeSet{DataType::kBool, DataType::kComplex64, DataType::kComplex128};
inline constexpr TypeSet kAnyTensor =
    kFixedSize |
    TypeSet{DataType::kString,     DataType::kFloat8e4m3fn,   DataType::kFloat8e4m3fnuz,
            DataType::kFloat8e5m2, DataType::kFloat8e5m2fnuz, DataType::kUint4,
            DataType::kInt4,       DataType::kFloat4e2m1,     DataType::kFloat8e8m0,
            DataType::kUint2,      DataType::kInt2,           DataType::kFloat6e2m3,
            DataType::kFloat6e3m2};

}  // namespace tenon
