// Changes of layout between NCHW and NCHW16c (see conv_shape.h). Buffers need no
// alignment and may not overlap.
#pragma once

#include <cstddef>

#include "kernels/conv/conv_shape.h"

namespace tenon::kernels {

struct ReorderArgs {
  size_t batch;
  size_t channels;
  size_t pixels;  // height * width
  const float* in;
  float* out;
};

// NCHW to NCHW16c, zeroing the lanes past the last channel. One task is one block of channels of
// one image; tasks may run at once.
size_t ReorderTaskCount(const ReorderArgs& args);
void RunReorderToBlockedTask(const ReorderArgs& args, size_t task);

// NCHW16c to NCHW, with the same tasks.
void RunReorderToPlanarTask(const ReorderArgs& args, size_t task);

}  // namespace tenon::kernels
