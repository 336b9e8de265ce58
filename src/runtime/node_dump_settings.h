// Which nodes' values the environment asks to see: partial-execution, TX-72 to TX-76.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>

#include "base/function_ref.h"
#include "base/status.h"

namespace tenon {

struct NodeDumpSettings {
  using Names = std::set<std::string, std::less<>>;

  bool shapes = true;
  bool placement = true;
  bool input_data = false;
  bool output_data = false;
  bool statistics = false;
  // The nodes to show; empty: all.
  Names names, op_types;
  // Whether each value goes to a file of its own instead of the output.
  bool into_files = false;
  std::string folder;       // "" or ending in '/'
  std::string file_suffix;  // before ".tensorproto"
  // Tensors with more elements than this are shown without their middle; 0: all are shown whole.
  size_t snippet_threshold = 200;
  // How many elements remain at each end of an axis.
  size_t snippet_edge_items = 3;

  // Reads the variables ORT_DEBUG_NODE_IO_*. `variable` returns a variable's value, or null; an
  // empty value counts as not set. Returns nothing if none is set. Errors: kInvalidArgument naming
  // the variable for a value that it does not take, for data of all nodes into files without
  // confirmation, and for a destination that this build does not have.
  static Result<std::optional<NodeDumpSettings>> Read(
      FunctionRef<const char*(const char* name)> variable);

  bool shows_values() const { return input_data || output_data || statistics; }
};

}  // namespace tenon
