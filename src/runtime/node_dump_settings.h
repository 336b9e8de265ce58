// What the environment asks to see of the nodes that run: partial-execution TX-72 to TX-76.
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
  // Whether values go to files, one each, instead of the output.
  bool into_files = false;
  std::string folder;       // "" or ending in '/'
  std::string file_suffix;  // before ".tensorproto"
  // Tensors of more elements are shown without their middle; 0: none is.
  size_t snippet_threshold = 200;
  // How many elements remain at each end of an axis.
  size_t snippet_edge_items = 3;

  // By the variables ORT_DEBUG_NODE_IO_*, of which `variable` gives the value, or null; an empty
  // one counts as not set. Nothing if none of them is set. Errors: kInvalidArgument naming the
  // variable for a value that it does not take, for data of all nodes into files without
  // confirmation, and for a destination that this build does not have.
  static Result<std::optional<NodeDumpSettings>> Read(
      FunctionRef<const char*(const char* name)> variable);

  bool shows_values() const { return input_data || output_data || statistics; }
};

}  // namespace tenon
