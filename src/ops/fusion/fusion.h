// Fusions of the CPU provider: rules that turn several nodes into one that has a kernel.
//
// Besides operators of the standard, the replacements are
//   com.microsoft FusedConv: Conv with inputs X, W, B (optional), Z (optional, of the output's
//     shape) and attributes `activation` and `activation_params`: activation(Conv(X, W, B) + Z).
//   com.microsoft SkipLayerNormalization: LayerNormalization(input + skip) over the last axis.
//   com.tenon FusedMatMul: inputs A, B, bias [n] (optional), residual (optional, of the output's
//     shape), attributes `alpha` (1), `transA`, `transB` (0; they swap the last two axes of A and
//     B), `activation` and `activation_params`: activation(alpha A x B + bias + residual).
//   com.tenon QLinearActivation: inputs X, X_scale, X_zero_point, Y_scale, Y_zero_point, attributes
//     `activation` (none: X is only quantized anew) and `activation_params`:
//     quantize(activation(dequantize(X))).
//   com.tenon DynamicFakeQuantize: X as DynamicQuantizeLinear and DequantizeLinear round it.
// and the quantized operators of com.microsoft. An activation is a function of
// base/unary_functions.inc with the trait kFused; its parameters are in the order of its entry.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "ir/pass_runner.h"
#include "ir/rewrite.h"

namespace tenon {

// A rule, and the operator for which it needs a kernel.
struct Fusion {
  std::string_view domain;
  std::string_view op_type;
  Rule rule;
  // Whether that operator's kernels are known by the type of the root's output.
  bool is_typed_by_output = true;
};

std::vector<Fusion> ActivationFusions();     // fuse_activations.cpp
std::vector<Fusion> NormalizationFusions();  // fuse_normalizations.cpp
std::vector<Fusion> AttentionFusions();      // fuse_attention.cpp
// What can be folded into a convolution's weights, and what follows it: fuse_conv.cpp.
std::vector<Fusion> ConvFoldings();
std::vector<Fusion> ConvFusions();
std::vector<Fusion> NchwcConvFusions();
std::vector<Fusion> ConvSumFusions();         // fuse_conv_sum.cpp
std::vector<Fusion> ConvTransposeRewrites();  // fuse_conv_transpose.cpp
std::vector<Fusion> MatMulFusions();          // fuse_matmul.cpp
std::vector<Fusion> ScalarFusions();          // fuse_scalars.cpp
// Of values between DequantizeLinear and QuantizeLinear.
std::vector<Fusion> QuantizedProductFusions();        // fuse_quantized_products.cpp
std::vector<Fusion> QuantizedConvTransposeFusions();  // fuse_quantized_conv_transpose.cpp
std::vector<Fusion> QuantizedElementFusions();        // fuse_quantized_elements.cpp
// Of dynamically quantized images: fuse_dynamic_conv.cpp.
std::vector<Fusion> DynamicConvFusions();
// Of weights with scales for blocks: fuse_block_quantized.cpp.
std::vector<Fusion> BlockQuantizedFusions();
// Of dequantized values, with results that are not quantized: fuse_quantized_products.cpp.
std::vector<Fusion> IntegerProductFusions();

// Whether there is a kernel of an operator for an element type; for any if it is kUndefined.
using HasKernel =
    std::function<bool(std::string_view domain, std::string_view op_type, DataType type)>;

// Rules that are one pass (PassRunner) of this name.
struct FusionPass {
  std::string_view name;
  RuleSet rules;
};

// The fusions that have a kernel, to be applied one after the other. A rule fires only where its
// operator has a kernel for the type of the output, unless that does not matter.
std::vector<FusionPass> MakeFusions(const HasKernel& has_kernel);

// Applies all fusions for which the registry has a row to the nodes of `provider` in `graph` and
// its subgraphs. Types must have been inferred; those of new inner values are not inferred. Error:
// that of `passes`.
Status FuseNodes(Graph& graph, int32_t provider, PassRunner& passes);

// The same for what follows convolutions in the blocked layout (ops/conv/nchwc.h), among which are
// scales and shifts that became convolutions there. Returns the number of changes.
size_t FuseNchwcNodes(Graph& graph, int32_t provider);

// The same for the fusions of quantized operators, which come before the others.
size_t FuseQuantizedNodes(Graph& graph, int32_t provider);

}  // namespace tenon
