// All operators that the CPU provider runs. The rows are the only list.
#pragma once

#include <span>

#include "ops/framework/op_row.h"

namespace tenon {

// Every family's rows.
std::span<const std::span<const OpRow>> OpFamilies();

// The row for `op_type` at opset version `opset` of `domain` with the greatest since <= opset,
// among those that take element type `type` (kUndefined: any). Null if there is none.
const OpRow* FindOpRow(std::string_view domain, std::string_view op_type, int32_t opset,
                       DataType type);

// Whether there is such a row for any version.
bool HasOpRow(std::string_view domain, std::string_view op_type,
              DataType type = DataType::kUndefined);

// The element type that decides which of its operator's rows a node of `graph` has; kUndefined if
// it is unknown or the operator has no row.
DataType TypeOfRow(const Graph& graph, const Node& node);

// The row for a node of `graph`, whose types have been inferred.
const OpRow* FindOpRow(const Graph& graph, const Node& node);

// Shape functions by the same rows.
const ShapeFunctionTable& OpShapeFunctions();

}  // namespace tenon
