// Shape inference that also handles channels-last images (NHWC).
#pragma once

#include "ir/shape_context.h"

namespace tenon::webnn {

// The functions of the operators' rows. Nodes of domain com.ms.internal.nhwc have those of the
// standard's operators, with the channels as axis 1.
const ShapeFunctionTable& ShapeFunctions();

}  // namespace tenon::webnn
