// Pooling in NCHW16c (see conv_shape.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/conv/conv_shape.h"

namespace tenon::kernels {

enum class PoolKind : uint8_t {
  kMax,                   // of the window's pixels inside the input; -inf if there are none
  kAverage,               // of the window's pixels inside the input; NaN if there are none
  kAverageIncludingPads,  // of the window's pixels, pads as zeros: count_include_pad of AveragePool
};

// in_channels == out_channels; `groups` is not read. Any kernel, stride, dilation and padding; an
// average over the whole image is GlobalAveragePool. Buffers need no alignment and may not overlap.
// Lanes past the real channels may hold anything in `in`; `out` gets zeros there. MaxPool either
// ignores a NaN or passes it on.
struct PoolBlockedArgs {
  Conv2dShape shape;
  size_t pad_bottom = 0;  // kAverageIncludingPads counts pixels up to here, and not beyond, if
  size_t pad_right = 0;   // ceil_mode lets windows begin inside and reach beyond
  PoolKind kind = PoolKind::kMax;
  const float* in = nullptr;  // NCHW16c
  float* out = nullptr;       // NCHW16c
};

// Work is divided into tasks by shape alone; they may run at once and need no scratch memory.
size_t PoolBlockedTaskCount(const Conv2dShape& shape);
void RunPoolBlockedTask(const PoolBlockedArgs& args, size_t task);

}  // namespace tenon::kernels
