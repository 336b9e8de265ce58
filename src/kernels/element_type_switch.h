// From an ElementType known at run time to a type known at compile time.
#pragma once

#include "kernels/element_type.h"

namespace tenon::kernels {

// Calls f.template operator()<T>() with the C++ type of `type`.
template <class F>
void WithElementType(ElementType type, F&& f) {
  switch (type) {
    case ElementType::kFloat:
      return f.template operator()<float>();
    case ElementType::kDouble:
      return f.template operator()<double>();
    case ElementType::kInt8:
      return f.template operator()<int8_t>();
    case ElementType::kInt16:
      return f.template operator()<int16_t>();
    case ElementType::kInt32:
      return f.template operator()<int32_t>();
    case ElementType::kInt64:
      return f.template operator()<int64_t>();
    case ElementType::kUint8:
      return f.template operator()<uint8_t>();
    case ElementType::kUint16:
      return f.template operator()<uint16_t>();
    case ElementType::kUint32:
      return f.template operator()<uint32_t>();
    case ElementType::kUint64:
      return f.template operator()<uint64_t>();
  }
}

}  // namespace tenon::kernels
