// Pooling of planes in NCHW: [planes][depth][height][width], where a plane is one channel of one
// image. MaxPool, AveragePool, LpPool and the global forms, for rank 1 to 3.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::kernels {

enum class PlanarPoolKind : uint8_t {
  kMax,                   // of the window's elements inside the input; -inf if there are none
  kAverage,               // of the window's elements inside the input; NaN if there are none
  kAverageIncludingPads,  // pads count as zeros: count_include_pad of AveragePool
  kLp,                    // (sum |x|^p)^(1/p) of the window's elements
};

// One dimension. Missing leading dimensions have the defaults.
struct PoolDim {
  size_t in = 1;
  size_t out = 1;
  size_t kernel = 1;
  size_t stride = 1;
  size_t dilation = 1;
  size_t pad_begin = 0;
  size_t pad_end = 0;  // limits what kAverageIncludingPads counts
};

struct PoolPlanarArgs {
  PlanarPoolKind kind = PlanarPoolKind::kMax;
  size_t planes = 0;
  PoolDim dims[3];  // depth, height, width
  double p = 2;     // of kLp; positive
  const float* in = nullptr;
  float* out = nullptr;
  // For kMax: the index in `in` of each maximum (the first of equals), or -1 if the window is
  // empty; may be null. MaxPool's storage order 1 counts the elements of a plane with the first
  // dimension fastest.
  int64_t* indices = nullptr;
  bool column_major_indices = false;
};

// Work is divided into tasks by shape alone; they may run at once and need no scratch memory.
size_t PoolPlanarTaskCount(const PoolPlanarArgs& args);
void RunPoolPlanarTask(const PoolPlanarArgs& args, size_t task);

}  // namespace tenon::kernels
