// Elements as memory: operators that only move elements are compiled once per element size.
#pragma once

#include <cstdint>
#include <string>

#include "tensor/data_type.h"
#include "tensor/small_floats.h"

namespace tenon {

// An element of 16 bytes, as of complex128.
struct Words128 {
  uint64_t words[2];
};

// The element types that VisitElement knows: all but the packed ones.
inline constexpr TypeSet kWholeByteTypes =
    kFixedSize | TypeSet{DataType::kString,         DataType::kFloat8e4m3fn,
                         DataType::kFloat8e4m3fnuz, DataType::kFloat8e5m2,
                         DataType::kFloat8e5m2fnuz, DataType::kFloat8e8m0};

// Calls visit(T()) where T is copied like the elements: an unsigned integer of their size, Words128
// or std::string. `type` must be one of kWholeByteTypes.
template <class Visit>
decltype(auto) VisitElement(DataType type, Visit&& visit) {
  if (type == DataType::kString) return visit(std::string());
  switch (DataTypeBits(type)) {
    case 8:
      return visit(uint8_t());
    case 16:
      return visit(uint16_t());
    case 32:
      return visit(uint32_t());
    case 64:
      return visit(uint64_t());
    default:
      return visit(Words128());
  }
}

// Calls visit(T()) with the C++ type that holds elements of one of kNumbers or bool; Float16 and
// Bfloat16 included.
template <class Visit>
decltype(auto) VisitNumber(DataType type, Visit&& visit) {
  switch (type) {
    case DataType::kDouble:
      return visit(double());
    case DataType::kFloat16:
      return visit(Float16());
    case DataType::kBfloat16:
      return visit(Bfloat16());
    case DataType::kInt8:
      return visit(int8_t());
    case DataType::kInt16:
      return visit(int16_t());
    case DataType::kInt32:
      return visit(int32_t());
    case DataType::kInt64:
      return visit(int64_t());
    case DataType::kUint8:
      return visit(uint8_t());
    case DataType::kUint16:
      return visit(uint16_t());
    case DataType::kUint32:
      return visit(uint32_t());
    case DataType::kUint64:
      return visit(uint64_t());
    case DataType::kBool:
      return visit(bool());
    default:
      return visit(float());
  }
}

// The type for arithmetic on T: float for the 16-bit floats, else T itself.
template <class T>
struct ArithmeticOf {
  using Type = T;
};
template <>
struct ArithmeticOf<Float16> {
  using Type = float;
};
template <>
struct ArithmeticOf<Bfloat16> {
  using Type = float;
};
template <class T>
typename ArithmeticOf<T>::Type Widen(T value) {
  return static_cast<typename ArithmeticOf<T>::Type>(value);
}

// How many elements or rows of `bytes` bytes each task of a copying loop should handle.
inline size_t CopyGrain(size_t bytes) {
  constexpr size_t kTaskBytes = 64 * 1024;  // some microseconds, enough to outweigh a task's start
  return bytes >= kTaskBytes ? 1 : kTaskBytes / (bytes == 0 ? 1 : bytes);
}

}  // namespace tenon
