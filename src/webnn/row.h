// How an operator is written into builder programs: one row, with the function that writes its
// calls.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"
#include "ir/graph.h"

namespace tenon::webnn {

class NodeContext;

// A node is claimed if it can be written into a separate program; a node that cannot be written
// stays on the CPU. So each restriction is checked only once, where the call is written.
struct Row {
  std::string_view op;
  // Writes the node's calls. Errors: kNotImplemented, with the limit of WebNN or of the context.
  Status (*emit)(NodeContext& context);
  // The builder method, or the first of several, for the table of the documentation and for rows
  // that share `emit`.
  std::string_view method;
  // The conditions besides the limits of the context; "" if there are none.
  std::string_view restrictions = "";
  std::string_view domain = "";
  // Only moves elements (WB-50).
  bool is_move = false;
  // Also supports channels-last images (NHWC).
  bool takes_channels_last = false;
};

// Every family's rows.
std::span<const std::span<const Row>> Families();

// Null for an operator that has no row.
const Row* FindRow(std::string_view domain, std::string_view op);
// The row of a node, whichever form its images have.
const Row* FindRow(const Node& node);

// Defines a family: the rows of one file. families.inc lists it.
#define TENON_WEBNN_FAMILY(name, rows)               \
  extern const std::span<const Row> k##name##Family; \
  const std::span<const Row> k##name##Family = rows

}  // namespace tenon::webnn
