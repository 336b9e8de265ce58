// The element types that the kernels do arithmetic on.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::kernels {

enum class ElementType : uint8_t {
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
};
inline constexpr size_t kElementTypeCount = static_cast<size_t>(ElementType::kUint64) + 1;

// In bytes.
constexpr size_t SizeOf(ElementType type) {
  constexpr uint8_t kSizes[kElementTypeCount] = {4, 8, 1, 2, 4, 8, 1, 2, 4, 8};
  return kSizes[static_cast<size_t>(type)];
}

}  // namespace tenon::kernels
