// Direct convolution in NCHW16c of inputs and weights that are rounded to bfloat16, with sums in
// float32, for processors with instructions for it. Tasks, scratch memory and epilogue are those of
// conv_blocked.h. The whole input is rounded first, once for all tasks.
#pragma once

#include <cstddef>

#include "kernels/conv/conv_blocked_args.h"
#include "kernels/conv/conv_shape.h"

namespace tenon::kernels {

// Whether ConvBlocked can compute the shape faster in this form here. Nothing else below may be
// called where no shape is faster.
bool ConvBlockedBf16Worthwhile(const Conv2dShape& shape);

// A pair of neighbouring channels takes the place of a float: rounded inputs are
// [N][C / 16][H][W][8] pairs. The size counts floats. The tasks of rounding may run in any order,
// on any threads.
size_t RoundedConvInputSize(const Conv2dShape& shape);
size_t RoundConvInputTaskCount(const Conv2dShape& shape);
// in: NCHW16c; the lanes past the real channels may hold anything. rounded: needs no alignment.
void RunRoundConvInputTask(const Conv2dShape& shape, const float* in, size_t task, float* rounded);

// Rounds `floats` packed weights (PackConvWeights), a multiple of 32, to half as many pairs,
// [O / 16][I / 16][kernel_height][kernel_width][8 pairs of i][16 o].
void RoundConvWeights(const float* packed, size_t floats, float* rounded);

// args.in and args.weights are rounded; args.pack writes rounded blocks.
void RunConvBlockedBf16Task(const ConvBlockedArgs& args, size_t task, void* scratch);

}  // namespace tenon::kernels
