// com.tenon FusedElements: several element-wise operators of floats in one pass over tiles that fit
// the L1 cache. Its steps compute one value each, in order; the last one is the output.
//
// Inputs are broadcast to the output's shape. The dimensions of each, without those of 1 at its
// ends, are neighbouring dimensions of the output.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "kernels/elementwise/elementwise.h"
#include "ops/framework/attributes.h"

namespace tenon {

struct FusedElementsAttrs {
  // Of each step: the name of a function of base/unary_functions.inc, or of a binary operator.
  std::vector<std::string> functions;
  // Two for each step: i is input i of the node, and the number of inputs plus j is what step j
  // computed. The second one of unary functions is -1.
  std::vector<int64_t> operands;
  // Two for each step: the parameters of its function.
  std::vector<float> parameters;

  static constexpr auto Fields() {
    using A = FusedElementsAttrs;
    return std::tuple(Field("functions", &A::functions), Field("operands", &A::operands),
                      Field("parameters", &A::parameters));
  }
};

// The binary operator that a step may have, by ONNX's name.
std::optional<kernels::BinaryOp> FindFusedBinary(std::string_view name);

}  // namespace tenon
