// Attributes of convolutions, as fusions read them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace tenon {

// The attribute's `count` values, or so many of `fallback` if it has none. No values if their
// number is another one, or if one is negative or above the greatest int32: errors, which the
// operator itself finds.
inline std::vector<int64_t> WindowValues(const Node& node, std::string_view attribute, size_t count,
                                         int64_t fallback) {
  std::vector<int64_t> values = node.GetInts(attribute);
  if (values.empty()) values.assign(count, fallback);
  const bool are_plausible = std::all_of(values.begin(), values.end(), [](int64_t v) {
    return v >= 0 && v <= std::numeric_limits<int32_t>::max();
  });
  if (values.size() != count || !are_plausible) values.clear();
  return values;
}

}  // namespace tenon
