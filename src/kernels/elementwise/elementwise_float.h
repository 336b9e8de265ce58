// The float half of elementwise.h's binary operators, chosen by FindBinary.
#pragma once

#include "kernels/elementwise/elementwise.h"

namespace tenon::kernels {

BinaryFunctions FindFloatBinary(BinaryOp op);

}  // namespace tenon::kernels
