// Convolution with 3x3 kernels of stride 1 by Winograd's minimal filtering, in NCHW16c (see
// conv_shape.h): F(4x4, 3x3) needs a quarter of the multiplications, F(2x2, 3x3) four ninths.
//
// Results differ from the direct sum by roundings of the transforms: by at most some 1e-5 of the
// outputs' standard deviation for F(4x4), 3e-6 for F(2x2). An infinity or NaN in the input makes
// all outputs of the tiles that read it NaN.
#pragma once

#include <cstddef>

#include "kernels/conv/conv_epilogue.h"
#include "kernels/conv/conv_shape.h"
#include "kernels/conv/conv_weights.h"
#include "kernels/conv/winograd_tile.h"

namespace tenon::kernels {

// Supports 3x3 kernels of stride 1, without dilation, in one group; any padding, and any taps over
// frames.
bool ConvWinogradSupports(const Conv2dShape& shape);

// The tile that is fastest for the shape, or kNone if the direct convolution is.
WinogradTile ChooseWinogradTile(const Conv2dShape& shape);
inline bool WinogradWorthwhile(const Conv2dShape& shape) {
  return ChooseWinogradTile(shape) != WinogradTile::kNone;
}

// Weights OIHW, or OI[taps over frames]HW, to [O / 16][positions][taps][I / 16][16 i][16 o], in
// floats. `tile` must not be kNone.
// Packed block by block, in any order and on any threads, as in conv_weights.h.
size_t PackedWinogradWeightsSize(const Conv2dShape& shape, WinogradTile tile);
void PackWinogradWeights(const Conv2dShape& shape, WinogradTile tile, const float* weights,
                         size_t block, float* packed);

// Buffers as in ConvBlockedArgs, except the weights. With several taps over frames, the lanes of
// `in` past the real channels must be zero.
struct ConvWinogradArgs {
  Conv2dShape shape;
  WinogradTile tile;
  const float* in;       // NCHW16c
  const float* weights;  // as PackWinogradWeights wrote them; null: `pack` writes them
  float* out;            // NCHW16c
  ConvEpilogue epilogue;
  const PackConvBlock* pack = nullptr;
  size_t threads = 1;  // for which the work is divided into tasks; the results do not depend on it
};

// The tasks may run at once, each with scratch of its own of
// ConvWinogradScratchSize bytes, aligned to 64. With packed weights that is up to some 2 MiB. If
// they are not packed before, each task computes all pixels of some blocks of output channels,
// whose weights it packs into its scratch; results are the same.
size_t ConvWinogradTaskCount(const Conv2dShape& shape, WinogradTile tile, bool packed_weights,
                             size_t threads);
size_t ConvWinogradScratchSize(const Conv2dShape& shape, WinogradTile tile, bool packed_weights,
                               size_t threads);
void RunConvWinogradTask(const ConvWinogradArgs& args, size_t task, void* scratch);

}  // namespace tenon::kernels
