// Activations other than a clamp, for results in NCHW16c that are still in L1.
#pragma once

#include <cstddef>

#include "kernels/elementwise/activation.h"

namespace tenon::kernels {

// Applies the activation to [pixels][16] floats in place and zeroes the lanes whose mask is zero
// (see ConvTile::masks).
using BlockActivation = void (*)(const ActivationSpec& activation, const float* mask, size_t pixels,
                                 float* data);

// For the target in use; null if the clamp of EpilogueClamp is the whole activation.
BlockActivation SelectBlockActivation(const ActivationSpec& activation);

}  // namespace tenon::kernels
