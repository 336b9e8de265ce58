// ArgMax and ArgMin of a contiguous row of floats.
#pragma once

#include <cstddef>

namespace tenon::kernels {

// The first or last index of the greatest or least of x[0, n), n > 0. NaN counts as the extreme.
size_t ArgExtremeOfRow(const float* x, size_t n, bool min, bool select_last_index);

}  // namespace tenon::kernels
