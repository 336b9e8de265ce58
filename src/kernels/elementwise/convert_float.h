// The casts from and to float that are compiled for every target.
#pragma once

#include "kernels/elementwise/cast_type.h"

namespace tenon::kernels {

// Null for other casts.
CastFunction FindFloatCast(CastType from, CastType to);

}  // namespace tenon::kernels
