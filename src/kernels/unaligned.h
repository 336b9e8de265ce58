// Floats in memory that need not be aligned for them, as a model file has them.
#pragma once

#include <cstring>

namespace tenon::kernels {

inline float LoadUnaligned(const float* from) {
  float value;
  std::memcpy(&value, static_cast<const void*>(from), sizeof(value));
  return value;
}

}  // namespace tenon::kernels
