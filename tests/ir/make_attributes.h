// Attributes for nodes in tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/attribute.h"

namespace tenon {

// Attributes for a node: MakeAttributes(Attr("axis", int64_t{1}), ...). T is a type that an
// attribute may have.
template <class T>
Attribute Attr(std::string name, T value);

template <class... A>
std::vector<Attribute> MakeAttributes(A... attributes) {
  std::vector<Attribute> list;
  (list.push_back(std::move(attributes)), ...);
  return list;
}

}  // namespace tenon
