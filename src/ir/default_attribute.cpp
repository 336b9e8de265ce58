#include "ir/default_attribute.h"

#include <string>
#include <vector>

#include "ir/graph.h"

namespace tenon {

Attribute DefaultOf(const OpAttribute& formal) {
  Attribute attribute(std::string(formal.name), {});
  switch (formal.type) {
    case AttributeType::kFloat:
      attribute.held = formal.default_float;
      break;
    case AttributeType::kInt:
      attribute.held = formal.default_int;
      break;
    case AttributeType::kString:
      attribute.held = std::string(formal.default_string);
      break;
    case AttributeType::kFloats:
      attribute.held =
          std::vector<float>(formal.default_floats.begin(), formal.default_floats.end());
      break;
    case AttributeType::kInts:
      attribute.held = std::vector<int64_t>(formal.default_ints.begin(), formal.default_ints.end());
      break;
    case AttributeType::kStrings:
      attribute.held =
          std::vector<std::string>(formal.default_strings.begin(), formal.default_strings.end());
      break;
    default:
      break;
  }
  return attribute;
}

}  // namespace tenon
