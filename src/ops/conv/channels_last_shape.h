// Shapes of images with the channels before, and after, the spatial axes.
#pragma once

#include "ir/dim.h"
#include "tensor/shape.h"

namespace tenon {

// [N, C, spatial...] of [N, spatial..., C].
inline SymbolicShape ChannelsFirst(const SymbolicShape& x) {
  SymbolicShape y = {x[0], x[x.rank() - 1]};
  for (size_t i = 1; i + 1 < x.rank(); ++i) y.Append(x[i]);
  return y;
}
inline Shape ChannelsFirst(const Shape& x) {
  Shape y = x;
  y[1] = x.back();
  for (size_t i = 2; i < x.rank(); ++i) y[i] = x[i - 1];
  return y;
}

// [N, spatial..., C] of [N, C, spatial...].
inline SymbolicShape ChannelsLast(const SymbolicShape& x) {
  SymbolicShape y = {x[0]};
  for (size_t i = 2; i < x.rank(); ++i) y.Append(x[i]);
  y.Append(x[1]);
  return y;
}

}  // namespace tenon
