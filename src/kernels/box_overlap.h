// Finds boxes that overlap too much: the inner loop of NonMaxSuppression.
#pragma once

#include <cstddef>

namespace tenon::kernels {

// A box by its corners, and (high_y - low_y) (high_x - low_x).
struct Box {
  float low_y, low_x, high_y, high_x, area;
};

// Boxes, with one array for each of their numbers.
struct BoxArrays {
  float* low_y;
  float* low_x;
  float* high_y;
  float* high_x;
  float* area;
  void Set(size_t i, const Box& box) const {
    low_y[i] = box.low_y;
    low_x[i] = box.low_x;
    high_y[i] = box.high_y;
    high_x[i] = box.high_x;
    area[i] = box.area;
  }
  Box Get(size_t i) const { return {low_y[i], low_x[i], high_y[i], high_x[i], area[i]}; }
};

// Whether the intersection of `box` and one of the first `count` boxes is more than `threshold` of
// their union. Boxes whose area is not above 0, or NaN, overlap nothing.
bool OverlapsAny(const Box& box, const BoxArrays& boxes, size_t count, float threshold);

}  // namespace tenon::kernels
