// Softmax-13 and LogSoftmax-13 on dense float arrays. x and y are one array or do not overlap.
// Relative error of Softmax below 1e-6; an infinite maximum, and a row with only -inf, give NaN as
// the standard's formula does. Functions may be called from several threads at once.
#pragma once

#include <cstddef>

namespace tenon::kernels {

struct SoftmaxOptions {
  bool log = false;  // log(softmax(t)) instead of softmax(t)
  // The input of softmax: t = scale x + mask.
  float scale = 1;
  const float* mask = nullptr;  // null: none
  size_t mask_stride = 0;       // elements between the mask rows of consecutive rows of x; may be 0
  float* log_sums = nullptr;    // receives log(sum(exp(t))) of each row unless null
};

// Over the last axis: x and y are [rows, n]. Rows are independent, so any range of them is a task.
void SoftmaxRows(const float* x, float* y, size_t rows, size_t n, const SoftmaxOptions& options);

// The number of rows of n elements that makes a task of reasonable size.
size_t SoftmaxGrain(size_t n);

// Over the middle axis: x and y are [outer, n, inner]. Tasks [begin, end) of
// SoftmaxMiddleTasks(outer, inner), which are independent, are done.
size_t SoftmaxMiddleTasks(size_t outer, size_t inner);
void SoftmaxMiddle(const float* x, float* y, size_t n, size_t inner, bool log, size_t begin,
                   size_t end);

}  // namespace tenon::kernels
