// What the devices of a provider differ in, for planning.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "graph.h"

namespace codegen {

struct Operator;
struct Tensor;
class Planner;

struct Target {
  // The provider's operator for a node; null if there is none.
  const Operator* (*find)(const Node& node) = nullptr;
  // What each program begins with. Kernels are written in OpenCL C, with KERNEL, GLOBAL and LOCAL,
  // which it defines, for the qualifiers.
  std::string_view prelude = {};
  size_t max_group_size = 0;       // items of a work group
  size_t group_size = 64;          // of kernels with one item per element
  size_t elements_per_item = 1;    // of element-wise kernels over large tensors
  size_t row_group_size = 64;      // of kernels with one work group per row: for short rows
  size_t max_row_group_size = 64;  // the same, for long rows
  bool holds_rows = false;         // registers are many: kernels read short rows once
  bool has_vectors = false;        // the prelude has EIGHT: see ExpressionWriter
  void* context = nullptr;         // the provider's own, for its lowerings
  // `sum` + `other` by the step that makes `sum`; null if that cannot do it. May be null.
  std::shared_ptr<Tensor> (*add)(Planner& planner, const std::shared_ptr<Tensor>& sum,
                                 const std::shared_ptr<Tensor>& other) = nullptr;
};

}  // namespace codegen
