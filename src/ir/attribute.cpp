#include "ir/attribute.h"

#include <iterator>

namespace tenon {

AttributeType Attribute::type() const {
  return reference.empty() ? static_cast<AttributeType>(held.index()) : referenced_type;
}

std::string_view AttributeTypeName(AttributeType type) {
  constexpr std::string_view kNames[] = {"undefined",      "float",   "int",    "string",
                                         "tensor",         "graph",   "floats", "ints",
                                         "strings",        "tensors", "graphs", "sparse_tensor",
                                         "sparse_tensors", "type",    "types"};
  const auto index = static_cast<size_t>(type);
  return index < std::size(kNames) ? kNames[index] : kNames[0];
}

}  // namespace tenon
