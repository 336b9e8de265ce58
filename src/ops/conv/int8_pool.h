// Pools of planes of bytes, as floats: these have kernels, and hold every byte.
#pragma once

#include "kernels/conv/pool_planar.h"
#include "ops/framework/quantized_int8.h"

namespace tenon {

// A pool without indices of input 0 into output 0, with the dimensions of `args`, whose pointers
// are not used.
Status PoolBytes(const kernels::PoolPlanarArgs& args, const ByteQuantization& of_x,
                 const ByteQuantization& of_y, KernelContext& context);

}  // namespace tenon
