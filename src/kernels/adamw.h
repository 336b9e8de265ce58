// A step of AdamW on dense float arrays.
#pragma once

#include <cstddef>

namespace tenon::kernels {

// The numbers of one step. For each element with gradient g, weight w and moments m and v:
//   m = alpha m + (1 - alpha) g
//   v = beta v + (1 - beta) g^2
//   w = (decay_before w - rate m / (sqrt(v) root + epsilon)) decay_after
struct AdamWStep {
  float alpha = 0, beta = 0, epsilon = 0;
  float rate = 0;
  float root = 1;
  float decay_before = 1, decay_after = 1;
};

// The arrays have n elements each and do not overlap. May be called from several threads at once.
void UpdateAdamW(const AdamWStep& step, const float* g, float* w, float* m, float* v, size_t n);

}  // namespace tenon::kernels
