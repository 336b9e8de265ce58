// Convolution of bytes where each group has one input channel; of conv_bytes.cpp alone.
#pragma once

#include "kernels/conv_bytes.h"

namespace tenon::kernels {

// Whether the functions below serve it: planes, and kernels whose sums floats hold exactly.
bool IsByteDepthwise(const ConvGeneralShape& shape);

// Bytes of scratch memory for one plane; a multiple of 64.
size_t ByteDepthwiseScratchSize(const ConvGeneralShape& shape);

// Output channel `channel` of one picture. weights: [kernel taps], less their zero point.
void RunByteDepthwisePlane(const ByteConvArgs& args, size_t picture, size_t channel,
                           const float* weights, std::byte* scratch);

}  // namespace tenon::kernels
