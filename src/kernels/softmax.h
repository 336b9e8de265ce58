// Softmax-13 and LogSoftmax-13 on dense arrays. x and y are one array or do not overlap. Relative
// error of Softmax below 1e-6 in float, 1e-14 in double; an infinite maximum, and a row with only
// -inf, give NaN as the standard's formula does. Functions may be called from several threads at
// once.
#pragma once

#include <cstddef>
#include <limits>

namespace tenon::kernels {

// Over the last axis: x and y are [rows, n]. Rows are independent, so any range of them is a task.
// log: log(softmax(x)) instead of softmax(x).
void SoftmaxRows(const float* x, float* y, size_t rows, size_t n, bool log);
void SoftmaxRows(const double* x, double* y, size_t rows, size_t n, bool log);

// A softmax whose row comes in parts.
struct SoftmaxState {
  float max = -std::numeric_limits<float>::infinity();  // so far, of the softmax's input t
  float sum = 0;                                        // so far, of exp(t - max)

  bool is_new() const { return max == -std::numeric_limits<float>::infinity() && sum == 0; }
};
// Takes the next n elements: x = exp(t - max) where t = scale x + mask, or scale x if that is null.
// Returns the factor of what earlier parts gave: exp(their max - max). As long as all elements are
// -inf, x = 0.
float SoftmaxPart(float* x, size_t n, float scale, const float* mask, SoftmaxState* state);

// y *= factor, n elements.
void ScaleRow(float* y, size_t n, float factor);

// The number of rows of n elements that makes a task of reasonable size.
size_t SoftmaxGrain(size_t n);

// Over the middle axis: x and y are [outer, n, inner]. Tasks [begin, end) of
// SoftmaxMiddleTasks(outer, inner), which are independent, are done.
size_t SoftmaxMiddleTasks(size_t outer, size_t inner);
void SoftmaxMiddle(const float* x, float* y, size_t n, size_t inner, bool log, size_t begin,
                   size_t end);
void SoftmaxMiddle(const double* x, double* y, size_t n, size_t inner, bool log, size_t begin,
                   size_t end);

// Columns of a task: their maxima and sums, and a dozen rows of them, stay in L1.
inline constexpr size_t kSoftmaxColumns = 256;

}  // namespace tenon::kernels
