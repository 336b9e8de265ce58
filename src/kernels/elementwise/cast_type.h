// The source and target types of casts; see convert.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::kernels {

enum class CastType : uint8_t {
  kFloat,
  kDouble,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kBool,      // bytes, 0 or 1
  kFloat16,   // IEEE binary16 in uint16_t
  kBfloat16,  // upper half of a float in uint16_t
};
inline constexpr size_t kCastTypeCount = static_cast<size_t>(CastType::kBfloat16) + 1;

using CastFunction = void (*)(const void* x, void* y, size_t n);

}  // namespace tenon::kernels
