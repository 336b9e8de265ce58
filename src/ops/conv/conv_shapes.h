// Attributes and shapes of convolutions, for NCHW and the blocked layout.
#pragma once

#include "ir/shape_context.h"
#include "kernels/conv/conv_general.h"
#include "kernels/elementwise/activation.h"
#include "ops/conv/window.h"
#include "tensor/tensor.h"

namespace tenon {

// Conv-11, and com.microsoft FusedConv-1: activation(Conv(X, W, B) + Z).
struct ConvAttrs : WindowAttrs {
  int64_t group = 1;
  // FusedConv's; see FusedActivation.
  std::string activation;
  std::vector<float> activation_params;
  static constexpr auto Fields() {
    using A = ConvAttrs;
    return std::tuple_cat(WindowAttrs::Fields(),
                          std::tuple(Field("group", &A::group), Field("activation", &A::activation),
                                     Field("activation_params", &A::activation_params)));
  }
};

// The kernel sizes: the weights' dimensions from 2 on, which kernel_shape may not contradict.
// Errors: UnknownShape() if they are not known; kInvalidArgument.
Result<Shape> KernelShapeOf(const WindowAttrs& attrs, const SymbolicShape& weights);

// Fails unless the group count divides the channels.
Status CheckGroup(int64_t group, const Dim& channels, size_t input);

// Fails if the bias, input `input`, is present and not of shape [channels].
Status CheckConvBias(const ShapeContext& context, const Dim& channels, size_t input = 2);

// [N, M, spatial...] of a convolution of `x`, [N, C, spatial...], with input 1. Checks all inputs
// but Z. Errors: UnknownShape(), kInvalidArgument, kNotImplemented.
// `most`: of spatial axes.
Result<SymbolicShape> ConvOutput(const ConvAttrs& attrs, const SymbolicShape& x,
                                 const ShapeContext& context, size_t most = kMaxWindowRank);

// The same of weights `w`, which are in any input; looks at no other.
Result<SymbolicShape> ConvOutput(const ConvAttrs& attrs, const SymbolicShape& x,
                                 const SymbolicShape& w, size_t most = kMaxWindowRank);

// The kernels' description of a convolution of `x`, [N, C, spatial...], into `y`.
kernels::ConvGeneralShape GeneralConvShape(const Window& window, const Shape& x, const Shape& y,
                                           int64_t group);

// Fails if input 3, the residual, is present and contradicts `y`.
Status CheckConvResidual(const ShapeContext& context, const SymbolicShape& y);

}  // namespace tenon
