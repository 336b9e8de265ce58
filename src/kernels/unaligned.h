// Numbers in memory that may be unaligned, as in a model file.
#pragma once

#include <cstring>

namespace tenon::kernels {

template <class T>
T LoadUnaligned(const T* from) {
  T value;
  std::memcpy(&value, static_cast<const void*>(from), sizeof(value));
  return value;
}

}  // namespace tenon::kernels
