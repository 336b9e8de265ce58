#include "kernels/normalization.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/normalization.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "kernels/dispatch.h"
#include "kernels/partial-inl.h"
#include "kernels/row_sums-inl.h"

#ifndef TENON_KERNELS_NORMALIZATION_ONCE
#define TENON_KERNELS_NORMALIZATION_ONCE
namespace tenon::kernels {
struct NormalizationTable {
  void (*layer_norm)(const NormalizationInput& input, float* y, size_t rows, size_t n,
                     const NormalizationParameters& parameters);
  void (*rms_norm)(const NormalizationInput& input, float* y, size_t rows, size_t n,
                   const NormalizationParameters& parameters);
  void (*statistics)(const float* x, size_t rows, size_t n, float epsilon, float* mean,
                     float* inv_std);
  void (*affine_row)(const float* x, float* y, size_t n, float scale, float shift);
  void (*affine_columns)(const float* x, float* y, size_t n, const float* scale,
                         const float* shift);
};
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

float MeanOf(const float* x, size_t n) {
  const V sum = SumOfTerms(D(), x, n, [](V v, size_t) HWY_ATTR { return v; });
  return hn::GetLane(sum) / static_cast<float>(n);
}

// The mean of (x - center)^2.
float MeanSquareOf(const float* x, size_t n, float center) {
  const V c = hn::Set(D(), center);
  const V sum = SumOfTerms(D(), x, n, [&](V v, size_t) HWY_ATTR {
    const V difference = hn::Sub(v, c);
    return hn::Mul(difference, difference);
  });
  return hn::GetLane(sum) / static_cast<float>(n);
}

// y[i] = f(i, count) for whole vectors of count == Lanes and for the tail.
template <class F>
HWY_INLINE void StoreEach(float* y, size_t n, const F& f) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(f([d, i](const float* p) HWY_ATTR { return hn::LoadU(d, p + i); }), d, y + i);
  }
  if (i < n) {
    const size_t rest = n - i;
    const V v = f([d, i, rest](const float* p) HWY_ATTR { return LoadPartial(d, p + i, rest); });
    StorePartial(v, d, y + i, rest);
  }
}

// t = x + skip + bias, if given; returns the address of t.
const float* AddSkip(const NormalizationInput& input, float* y, size_t row, size_t n) {
  const float* x = input.x + row * n;
  if (!input.skip && !input.bias) {
    if (input.sum && input.sum != input.x) std::copy(x, x + n, input.sum + row * n);
    return x;
  }
  const float* skip = input.skip ? input.skip + row * n : nullptr;
  const float* bias = input.bias;
  float* t = input.sum ? input.sum + row * n : y;
  if (skip && bias) {
    StoreEach(t, n, [=](const auto& load) HWY_ATTR {
      return hn::Add(hn::Add(load(x), load(skip)), load(bias));
    });
  } else {
    const float* addend = skip ? skip : bias;
    StoreEach(t, n, [=](const auto& load) HWY_ATTR { return hn::Add(load(x), load(addend)); });
  }
  return t;
}

// y = (t - mean) inv_std gamma + beta.
void NormalizeRow(const float* t, float* y, size_t n, float mean, float inv_std, const float* gamma,
                  const float* beta) {
  const D d;
  const V m = hn::Set(d, mean);
  const V s = hn::Set(d, inv_std);
  if (gamma && beta) {
    StoreEach(y, n, [&](const auto& load) HWY_ATTR {
      return hn::MulAdd(hn::Mul(hn::Sub(load(t), m), s), load(gamma), load(beta));
    });
  } else if (gamma) {
    StoreEach(y, n, [&](const auto& load) HWY_ATTR {
      return hn::Mul(hn::Mul(hn::Sub(load(t), m), s), load(gamma));
    });
  } else if (beta) {
    StoreEach(y, n, [&](const auto& load) HWY_ATTR {
      return hn::MulAdd(hn::Sub(load(t), m), s, load(beta));
    });
  } else {
    StoreEach(y, n, [&](const auto& load) HWY_ATTR { return hn::Mul(hn::Sub(load(t), m), s); });
  }
}

void LayerNormRows(const NormalizationInput& input, float* y, size_t rows, size_t n,
                   const NormalizationParameters& parameters) {
  for (size_t row = 0; row < rows; ++row) {
    const float* t = AddSkip(input, y + row * n, row, n);
    const float mean = MeanOf(t, n);
    const float inv_std = 1 / std::sqrt(MeanSquareOf(t, n, mean) + parameters.epsilon);
    NormalizeRow(t, y + row * n, n, mean, inv_std, parameters.gamma, parameters.beta);
    if (parameters.mean) parameters.mean[row] = mean;
    if (parameters.inv_std) parameters.inv_std[row] = inv_std;
  }
}

void RmsNormRows(const NormalizationInput& input, float* y, size_t rows, size_t n,
                 const NormalizationParameters& parameters) {
  for (size_t row = 0; row < rows; ++row) {
    const float* t = AddSkip(input, y + row * n, row, n);
    const float inv_std = 1 / std::sqrt(MeanSquareOf(t, n, 0) + parameters.epsilon);
    NormalizeRow(t, y + row * n, n, 0, inv_std, parameters.gamma, parameters.beta);
    if (parameters.inv_std) parameters.inv_std[row] = inv_std;
  }
}

void Statistics(const float* x, size_t rows, size_t n, float epsilon, float* mean, float* inv_std) {
  for (size_t row = 0; row < rows; ++row) {
    mean[row] = MeanOf(x + row * n, n);
    inv_std[row] = 1 / std::sqrt(MeanSquareOf(x + row * n, n, mean[row]) + epsilon);
  }
}

void AffineRow(const float* x, float* y, size_t n, float scale, float shift) {
  const V vscale = hn::Set(D(), scale);
  const V vshift = hn::Set(D(), shift);
  StoreEach(y, n, [&](const auto& load) HWY_ATTR { return hn::MulAdd(load(x), vscale, vshift); });
}

void AffineColumns(const float* x, float* y, size_t n, const float* scale, const float* shift) {
  StoreEach(y, n, [=](const auto& load) HWY_ATTR {
    return hn::MulAdd(load(x), load(scale), load(shift));
  });
}

const NormalizationTable kNormalizationTable = {&LayerNormRows, &RmsNormRows, &Statistics,
                                                &AffineRow, &AffineColumns};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {
namespace {

const NormalizationTable& Table() {
  return TENON_SELECT_TABLE(NormalizationTable, kNormalizationTable);
}

}  // namespace

void LayerNorm(const NormalizationInput& input, float* y, size_t rows, size_t n,
               const NormalizationParameters& parameters) {
  Table().layer_norm(input, y, rows, n, parameters);
}

void RmsNorm(const NormalizationInput& input, float* y, size_t rows, size_t n,
             const NormalizationParameters& parameters) {
  Table().rms_norm(input, y, rows, n, parameters);
}

void RowStatistics(const float* x, size_t rows, size_t n, float epsilon, float* mean,
                   float* inv_std) {
  Table().statistics(x, rows, n, epsilon, mean, inv_std);
}

void ScaleShiftRows(const float* x, float* y, size_t begin, size_t end, size_t n, size_t channels,
                    const float* scale, const float* shift) {
  const auto affine_row = Table().affine_row;
  for (size_t row = begin; row < end; ++row) {
    const size_t c = row % channels;
    affine_row(x + row * n, y + row * n, n, scale[c], shift[c]);
  }
}

void ScaleShiftColumns(const float* x, float* y, size_t rows, size_t channels, const float* scale,
                       const float* shift) {
  const auto affine_columns = Table().affine_columns;
  for (size_t row = 0; row < rows; ++row) {
    affine_columns(x + row * channels, y + row * channels, channels, scale, shift);
  }
}

void GroupNorm(const float* x, float* y, size_t begin, size_t end, const GroupNormSizes& sizes,
               const float* gamma, const float* beta, float epsilon) {
  const size_t group_size = sizes.channels_per_group * sizes.n;
  for (size_t group = begin; group < end; ++group) {
    float mean, inv_std;
    Table().statistics(x + group * group_size, 1, group_size, epsilon, &mean, &inv_std);
    for (size_t i = 0; i < sizes.channels_per_group; ++i) {
      const size_t offset = group * group_size + i * sizes.n;
      const size_t own = sizes.ScaleOf(group, i);
      const float scale = gamma[own] * inv_std;
      Table().affine_row(x + offset, y + offset, sizes.n, scale, beta[own] - mean * scale);
    }
  }
}

size_t NormalizationGrain(size_t n) { return n == 0 ? 1 : std::max<size_t>(1, 16384 / n); }

}  // namespace tenon::kernels
#endif
