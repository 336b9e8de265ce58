// Convolution with 3x3 kernels of stride 1 by Winograd's minimal filtering, in NCHW16c (see
// conv_shape.h): F(4x4, 3x3) needs a quarter of the multiplications, F(2x2, 3x3) four ninths.
//
// Results differ from the direct sum by roundings of the transforms: relative to the deviation of
// the outputs by some 1e-5 at most for F(4x4), 3e-6 for F(2x2). An infinity or NaN in the input
// makes NaN of all outputs of the tiles that it touches.
#pragma once

#include <cstddef>

#include "kernels/conv/conv_epilogue.h"
#include "kernels/conv/conv_shape.h"
#include "kernels/conv/winograd_tile.h"

namespace tenon::kernels {

// 3x3, stride 1, no dilation, one group; any padding.
bool ConvWinogradSupports(const Conv2dShape& shape);

// The tile that is fastest for the shape, or kNone if the direct convolution is.
WinogradTile ChooseWinogradTile(const Conv2dShape& shape);
inline bool WinogradWorthwhile(const Conv2dShape& shape) {
  return ChooseWinogradTile(shape) != WinogradTile::kNone;
}

// Weights OIHW to [O / 16][positions][I / 16][16 i][16 o], in floats. `tile` is not kNone. Packed
// block by block and from anywhere, as in conv_weights.h.
size_t PackedWinogradWeightsSize(const Conv2dShape& shape, WinogradTile tile);
void PackWinogradWeights(const Conv2dShape& shape, WinogradTile tile, const float* weights,
                         size_t block, float* packed);

// Buffers as of ConvBlockedArgs, but for the weights.
struct ConvWinogradArgs {
  Conv2dShape shape;
  WinogradTile tile;
  const float* in;       // NCHW16c
  const float* weights;  // of PackWinogradWeights
  float* out;            // NCHW16c
  ConvEpilogue epilogue;
};

// The work falls into tasks by shape alone; they may run at once, each with a scratch of its own of
// ConvWinogradScratchSize bytes (up to some 2 MiB), aligned to 64.
size_t ConvWinogradTaskCount(const Conv2dShape& shape, WinogradTile tile);
size_t ConvWinogradScratchSize(const Conv2dShape& shape, WinogradTile tile);
void RunConvWinogradTask(const ConvWinogradArgs& args, size_t task, void* scratch);

}  // namespace tenon::kernels
