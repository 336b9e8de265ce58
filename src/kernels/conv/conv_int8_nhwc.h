// Convolution of int8 and uint8 in NHWC: the core of QLinearConv with its channels last.
//
//   y = saturate(round((Conv(X - x_zero, W) + bias) * scale) + zero_point); pads count as x_zero
//
// Neighbouring channels are neighbours in memory, as instructions that multiply and add up want
// them: a convolution reads its input where it lies, with AVX-512's dot products or AVX2. With
// AVX2, weights whose sums of two would saturate often are multiplied by inputs that are widened
// once for all output channels, and Winograd's filtering saves products of 3 x 3 kernels. The
// weights, less their zero point, are int8. Outputs are int8 or uint8. Tasks are as in
// kernels/gemm/gemm_int8.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/conv/conv_int8_args.h"

namespace tenon::kernels {

// Whether there is a kernel for the shape; nothing else below may be called otherwise. The batch
// and the sizes of the images do not matter, the depth must be 1.
bool HasInt8NhwcConv(const ConvGeneralShape& shape);

// Bytes of packed weights; a multiple of 64.
size_t PackedInt8NhwcWeightsSize(const ConvGeneralShape& shape);
// Tasks that pack weights; they may run in any order and at once.
size_t PackInt8NhwcWeightsTaskCount(const ConvGeneralShape& shape);
// weights: [out_channels][in_channels / groups][height][width], uint8 with the zero point 128, or
// int8. packed: aligned to 64.
void RunPackInt8NhwcWeightsTask(const ConvGeneralShape& shape, const uint8_t* weights,
                                bool is_signed, size_t task, std::byte* packed);

size_t Int8NhwcConvTaskCount(const ConvGeneralShape& shape);
size_t Int8NhwcConvScratchSize(const ConvGeneralShape& shape);
// args.in: [batch][height][width][in_channels]; args.out likewise; args.packed_weights: as
// the tasks above wrote them. Zero points of weights are not read. scratch: aligned to 64, with
// any content.
void RunInt8NhwcConvTask(const Int8ConvArgs& args, size_t task, std::byte* scratch);

}  // namespace tenon::kernels
