// LRN-13: local response normalization across channels.
#pragma once

#include <cstddef>

namespace tenon::kernels {

struct LrnParameters {
  size_t size;  // channels in the window, at least 1
  float alpha;
  float beta;
  float bias;  // positive, so that the base of the power is
};

// y = x / (bias + alpha / size * sum of x^2 over the window)^beta. x and y are [batch, channels, n]
// and do not overlap. Relative error below 2e-6 for beta <= 1. Tasks [begin, end) of
// LrnTasks(batch, n), which are independent, are done; may be called from several threads at once.
size_t LrnTasks(size_t batch, size_t n);
void Lrn(const float* x, float* y, size_t channels, size_t n, const LrnParameters& parameters,
         size_t begin, size_t end);

}  // namespace tenon::kernels
