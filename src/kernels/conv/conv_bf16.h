// Convolution and its gradients in NCHW, for rank 1 and 2 and one group, by products of bfloat16
// numbers (gemm_bf16.h) with gathered inputs. What is multiplied is rounded to such numbers, sums
// are in float32.
#pragma once

#include <cstddef>

#include "kernels/conv/conv_general_args.h"
#include "kernels/conv/conv_steps.h"

namespace tenon::kernels {

enum class ConvProduct {
  kOutput,          // y from x and w
  kInputGradient,   // dx from dy and w
  kWeightGradient,  // dw from dy and x
};

// Whether this processor has such products, and they are faster than conv_general.h and the files
// beside it. Nothing else below may be called where they are not.
bool ConvBf16Worthwhile(const ConvGeneralShape& shape);

// Buffers need no alignment and may not overlap. Those that the product does not use may be null.
struct ConvBf16Args {
  ConvProduct product;
  ConvGeneralShape shape;  // of the convolution; at least one image and one output pixel
  const float* x;          // [batch][in_channels][in dims]
  const float* w;          // [out_channels][in_channels][kernel dims]
  const float* dy;         // [batch][out_channels][out dims]
  float* result;
  ConvEpilogue epilogue;  // of an output; without a residual
};

ConvSteps ConvBf16Steps(const ConvBf16Args& args);
size_t ConvBf16TaskCount(const ConvBf16Args& args, size_t step);
// Memory as ConvSteps says; both steps have the same `shared`.
void RunConvBf16Task(const ConvBf16Args& args, size_t step, size_t task, std::byte* shared,
                     std::byte* scratch);

}  // namespace tenon::kernels
