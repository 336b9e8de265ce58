// Shape inference that knows images with their channels last, too.
#pragma once

#include "ir/shape_context.h"

namespace tenon::webnn {

// The functions of the operators' rows, and for nodes of domain com.ms.internal.nhwc those of the
// standard's operators, which see the channels as axis 1.
const ShapeFunctionTable& ShapeFunctions();

}  // namespace tenon::webnn
