// Reads AttributeProto.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "ir/attribute.h"
#include "ir/read_context.h"

namespace tenon {

// Makes a graph from a serialized GraphProto.
using SubgraphReader = std::function<Result<std::unique_ptr<Graph>>(std::string_view)>;

// The type may be absent, as before IR version 2: it is then that of the field with a value.
// Errors: kInvalidProtobuf; kInvalidGraph if type and value do not match; those of tensors, types
// and subgraphs. A reference to a function's attribute is an error unless allowed.
Result<Attribute> ReadAttributeProto(std::string_view bytes, bool allow_reference,
                                     const SubgraphReader& read_subgraph, ReadContext& context);

}  // namespace tenon
