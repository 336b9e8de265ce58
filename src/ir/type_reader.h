// Reads TypeProto.
#pragma once

#include <string_view>

#include "base/status.h"
#include "ir/type.h"
#include "ir/wire_reader.h"

namespace tenon {

// A dimension without a value, or with a negative one, is unknown. Errors: kInvalidProtobuf,
// kInvalidGraph for unknown element types and types nested too deep, kNotImplemented for opaque
// types.
Result<ValueType> ReadTypeProto(std::string_view bytes, WireErrors& errors);

}  // namespace tenon
