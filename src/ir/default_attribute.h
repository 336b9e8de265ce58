// Attributes that a node leaves to their defaults.
#pragma once

#include "ir/attribute.h"
#include "ir/schema.h"

namespace tenon {

// The attribute with its default value.
Attribute DefaultOf(const OpAttribute& formal);

}  // namespace tenon
