// Gradients of Softmax-13, LogSoftmax-13, LayerNormalization-17, RMSNormalization-23 and
// BatchNormalization-15 in training mode on dense float arrays. Sums over a row are taken in
// blocks, so their error does not grow with n. Functions may be called from several threads at
// once.
#pragma once

#include <cstddef>

namespace tenon::kernels {

// Along the middle axis of dy, y and dx, [outer, n, inner], where y is the forward result. Tasks
// [begin, end) of SoftmaxGradientTasks(outer, inner), which are independent, are done.
//   dx = (dy - sum(dy y)) y, with `log` dx = dy - exp(y) sum(dy)
// dx may be dy or y.
size_t SoftmaxGradientTasks(size_t outer, size_t inner);
// The number of tasks that make a task of reasonable size.
size_t SoftmaxGradientGrain(size_t n, size_t inner);
void SoftmaxGradient(const float* dy, const float* y, float* dx, size_t n, size_t inner, bool log,
                     size_t begin, size_t end);

// Rows of dy and x, [rows, n], that were normalized: z = (x - mean) inv_std, y = z gamma + beta.
struct NormalizationGradientArgs {
  size_t n = 0;
  const float* dy = nullptr;
  const float* x = nullptr;
  const float* gamma = nullptr;    // [n]
  const float* mean = nullptr;     // [rows]; null: none was subtracted
  const float* inv_std = nullptr;  // [rows]
  float* dx = nullptr;             // [rows, n], may be null, dy or x
};

// Sets dx of the rows [begin, end), and the sums over these rows of dy z, into gamma_sums, and of
// dy, into beta_sums; each is [n] or null.
void NormalizationGradient(const NormalizationGradientArgs& args, size_t begin, size_t end,
                           float* gamma_sums, float* beta_sums);

// Channels of dy and x, [batch, channels, size], that were normalized: z = (x - mean) inv_std with
// the statistics of x, y = z gamma + beta.
struct BatchNormalizationGradientArgs {
  size_t batch = 0;
  size_t channels = 0;
  size_t size = 0;
  const float* dy = nullptr;
  const float* x = nullptr;
  const float* gamma = nullptr;  // [channels], as are those below
  const float* mean = nullptr;
  const float* inv_std = nullptr;
  float* dx = nullptr;       // [batch, channels, size], may be null, dy or x
  float* d_gamma = nullptr;  // may be null, as d_beta may be
  float* d_beta = nullptr;
};

// Sets the gradients of the channels [begin, end).
void BatchNormalizationGradient(const BatchNormalizationGradientArgs& args, size_t begin,
                                size_t end);

}  // namespace tenon::kernels
