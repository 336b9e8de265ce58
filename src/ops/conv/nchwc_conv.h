// The method of a convolution in the blocked layout, which the layout pass also needs.
#pragma once

#include <optional>

#include "kernels/conv/conv_shape.h"
#include "ops/conv/conv_shapes.h"

namespace tenon {

enum class NchwcMethod { kDirect, kWinograd, kDepthwise, kGrouped, kStem };

// The fastest method that supports the shape, or nothing. `is_planar`: the input is [N, C, H, W].
std::optional<NchwcMethod> ChooseNchwcMethod(const kernels::Conv2dShape& shape, bool is_planar);

// The sizes of the convolution of `x` = [N, C, H, W] with weights of shape `w`. Unknown sizes get
// typical values. Nothing if the attributes or shapes are wrong or C is unknown.
std::optional<kernels::Conv2dShape> TypicalConvShape(const ConvAttrs& attrs, const SymbolicShape& x,
                                                     const Shape& w);

}  // namespace tenon
