// The channel-blocked layout in graphs. A blocked value is a tensor [N, ceil(C / 16), H, W, 16]
// that stands for [N, C, H, W] (NCHW16c of kernels/conv/conv_shape.h). C itself is not in the
// shape: operators that need it have an attribute `channels` or see it from their weights.
//
// Operators of domain com.tenon, all on floats:
//   NchwcReorderInput(X)    [N, C, H, W] to blocked
//   NchwcReorderOutput(X)   the inverse; attribute `channels`
//   NchwcConv(X, W, B, Z)   FusedConv with X and Z blocked; X may also be [N, C, H, W]; W is a
//                           constant as in Conv, without the factors of ops/conv/weights_scale.h
//   NchwcMaxPool(X), NchwcAveragePool(X), NchwcGlobalAveragePool(X)   with `channels`
// Element-wise operators and Concat along axis 1 work on blocked values directly. The lanes past C
// may hold anything but infinities and NaN.
#pragma once

#include <string_view>

#include "base/status.h"
#include "ir/dim.h"
#include "kernels/conv/conv_shape.h"
#include "ops/conv/window.h"

namespace tenon {

constexpr std::string_view kNchwcDomain = "com.tenon";

// The blocked form of [N, C, H, W].
SymbolicShape BlockedShape(const SymbolicShape& nchw);

// [N, channels, H, W] of a blocked input 0. Error: kInvalidArgument if it is not a blocked value
// with so many channels.
Result<SymbolicShape> NchwShape(const SymbolicShape& blocked, const Dim& channels);

// Sizes of a window with two dimensions over H and W of `x` = [N, C, H, W], giving `y` likewise.
kernels::Conv2dShape WindowShape2d(const Window& window, const Shape& x, const Shape& y);

}  // namespace tenon
