// Convolution of int8 and uint8 with 32-bit sums in NCHW: ConvInteger-10 and QLinearConv-10.
//
//   S = Conv(X - x_zero, W - w_zero) + bias, modulo 2^32; pads count as x_zero
//
// It is a product of the weights with gathered inputs, for rank 1 to 3 and any groups. Tasks are as
// in kernels/gemm/gemm_int8.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/conv/conv_int8_args.h"

namespace tenon::kernels {

// Whether the active target convolves bytes faster than floats. AVX2 multiplies as many floats as
// 16-bit integers at once, and Winograd's filtering saves products of floats.
bool ConvolvesBytesFaster();

// Bytes of packed weights; a multiple of 64.
size_t PackedInt8ConvWeightsSize(const ConvGeneralShape& shape);
// weights: [out_channels][in_channels / groups][kernel dims]. packed: aligned to 64.
void PackInt8ConvWeights(const ConvGeneralShape& shape, const uint8_t* weights, bool is_signed,
                         std::byte* packed);

size_t Int8ConvTaskCount(const ConvGeneralShape& shape);
size_t Int8ConvScratchSize(const ConvGeneralShape& shape);
// scratch: aligned to 64, with any content.
void RunInt8ConvTask(const Int8ConvArgs& args, size_t task, std::byte* scratch);

}  // namespace tenon::kernels
