// What the devices of a provider differ in, for planning.
#pragma once

#include <cstddef>
#include <string_view>

#include "graph.h"

namespace codegen {

struct Operator;

struct Target {
  // The provider's operator for a node; null if there is none.
  const Operator* (*find)(const Node& node) = nullptr;
  // What each program begins with: kernels are written in OpenCL C.
  std::string_view prelude = {};
  size_t max_group_size = 0;  // items of a work group
  // Items of a work group that handles one row of a reduction or normalization.
  size_t row_group_size = 64;
};

}  // namespace codegen
