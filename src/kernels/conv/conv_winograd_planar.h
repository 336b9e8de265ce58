// Convolution with 3x3 kernels of stride 1 by Winograd's minimal filtering (conv_winograd.h), in
// NCHW or NC[frames]HW, and with weights that are packed in each run, as training needs it.
#pragma once

#include "kernels/conv/conv_epilogue.h"
#include "kernels/conv/conv_shape.h"
#include "kernels/conv/conv_steps.h"
#include "kernels/conv/winograd_tile.h"

namespace tenon::kernels {

// The tile that makes the convolution fastest, all copies included, or kNone if products with
// gathered inputs are faster.
WinogradTile ChoosePlanarWinogradTile(const Conv2dShape& shape);

// Buffers need no alignment and may not overlap.
struct ConvWinogradPlanarArgs {
  Conv2dShape shape;
  WinogradTile tile;     // not kNone
  const float* in;       // [batch][in_channels][frames.in][in_height][in_width]
  const float* weights;  // [out_channels][in_channels][frames.kernel][3][3], or if `of_transpose`
                         // is set, which excludes frames, [in_channels][out_channels][3][3] with
                         // the taps in reverse order: those of the convolution whose input gradient
                         // this is
  bool of_transpose = false;
  float* out;             // [batch][out_channels][frames.out][out_height][out_width]
  ConvEpilogue epilogue;  // its residual in NCHW, too
};

ConvSteps ConvWinogradPlanarSteps(const Conv2dShape& shape, WinogradTile tile);
size_t ConvWinogradPlanarTaskCount(const ConvWinogradPlanarArgs& args, size_t step);
// Memory as ConvSteps says; all steps of a convolution have the same `shared`.
void RunConvWinogradPlanarTask(const ConvWinogradPlanarArgs& args, size_t step, size_t task,
                               float* shared, float* scratch);

}  // namespace tenon::kernels
