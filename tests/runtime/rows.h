// Rows of floats as values of sessions, and back.
#pragma once

#include <span>
#include <vector>

#include "tensor/value.h"

namespace tenon {

using Floats = std::vector<float>;

inline Tensor Row(const Floats& values) {
  return Tensor::Of<float>({static_cast<int64_t>(values.size())}, std::span<const float>(values));
}

inline Floats ValuesOf(const Value& value) {
  const auto values = value.tensor().values<float>();
  return Floats(values.begin(), values.end());
}

}  // namespace tenon
