// Normalization of dense float rows by their own mean and variance, or by given constants. Sums are
// taken in blocks, so their error does not grow with n; variances are of the differences from the
// mean, in a second pass. Rows are independent: any range of them is a task. Functions may be
// called from several threads at once.
#pragma once

#include <cstddef>

namespace tenon::kernels {

// The input: rows of t = x + skip + bias; x and skip are [rows, n], bias is [n].
struct NormalizationInput {
  const float* x;
  const float* skip = nullptr;  // may be null
  const float* bias = nullptr;  // may be null
  float* sum = nullptr;         // receives t unless null; may be x or skip
};

struct NormalizationParameters {
  float epsilon;
  const float* gamma = nullptr;  // [n]; 1 if null
  const float* beta = nullptr;   // [n]; 0 if null
  float* mean = nullptr;         // [rows], may be null; LayerNorm only
  float* inv_std = nullptr;      // [rows], may be null
};

// LayerNormalization-17: y = (t - mean(t)) inv_std gamma + beta, inv_std = 1 / sqrt(var(t) +
// epsilon). y is [rows, n]; it may be x, skip or sum.
void LayerNorm(const NormalizationInput& input, float* y, size_t rows, size_t n,
               const NormalizationParameters& parameters);

// RMSNormalization-23: the same without the mean, inv_std = 1 / sqrt(mean(t^2) + epsilon).
void RmsNorm(const NormalizationInput& input, float* y, size_t rows, size_t n,
             const NormalizationParameters& parameters);

// mean and inv_std, each [rows], of x, [rows, n].
void RowStatistics(const float* x, size_t rows, size_t n, float epsilon, float* mean,
                   float* inv_std);

// y = scale[c] x + shift[c] for the rows [begin, end) of x and y, [rows, n], with channel
// c = row % channels: inference of BatchNormalization-15 on NCHW. y may be x.
void ScaleShiftRows(const float* x, float* y, size_t begin, size_t end, size_t n, size_t channels,
                    const float* scale, const float* shift);

// y = scale[c] x + shift[c] for x and y, [rows, channels]: the same on NHWC or on a matrix.
void ScaleShiftColumns(const float* x, float* y, size_t rows, size_t channels, const float* scale,
                       const float* shift);

// GroupNormalization-21 on NCHW; InstanceNormalization-22 is one channel a group. x and y are
// [batch, groups, channels_per_group, n]; the groups [begin, end) of all batch * groups are done.
// gamma and beta are [groups * channels_per_group], or, as before version 21, [groups]. y may be x.
struct GroupNormSizes {
  size_t groups;
  size_t channels_per_group;
  size_t n;
  bool scales_groups = false;

  // The element of gamma and beta for channel `i` of a group of the batch.
  size_t ScaleOf(size_t group, size_t i) const {
    const size_t own = group % groups;
    return scales_groups ? own : own * channels_per_group + i;
  }
};
void GroupNorm(const float* x, float* y, size_t begin, size_t end, const GroupNormSizes& sizes,
               const float* gamma, const float* beta, float epsilon);

// The number of rows of n elements that makes a task of reasonable size.
size_t NormalizationGrain(size_t n);

}  // namespace tenon::kernels
