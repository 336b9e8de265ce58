#include "kernels/row_gradient.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/row_gradient.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/dispatch.h"
#include "kernels/math-inl.h"
#include "kernels/partial-inl.h"
#include "kernels/row_sums-inl.h"

#ifndef TENON_KERNELS_ROW_GRADIENT_CPP_
#define TENON_KERNELS_ROW_GRADIENT_CPP_
namespace tenon::kernels {

struct RowGradientTable {
  decltype(&SoftmaxGradient) softmax;
  decltype(&NormalizationGradient) normalization;
  decltype(&BatchNormalizationGradient) batch_normalization;
};

inline constexpr size_t kGradientColumns = 64;  // of a task, where the middle axis is not the last

}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using V = hn::Vec<Tag>;

HWY_INLINE V Load(const float* p, size_t n) { return LoadUpTo(Tag(), p, n); }
HWY_INLINE void Store(V v, float* p, size_t n) { StoreUpTo(v, Tag(), p, n); }

HWY_INLINE V SoftmaxElement(V dy, V y, V sum, bool log) {
  return log ? hn::NegMulAdd(Exp(Tag(), y), sum, dy) : hn::Mul(hn::Sub(dy, sum), y);
}

void SoftmaxRow(const float* dy, const float* y, float* dx, size_t n, bool log) {
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  const V sum = SumOfTerms(
      d, dy, n, [&](V v, size_t i) HWY_ATTR { return log ? v : hn::Mul(v, Load(y + i, n - i)); });
  for (size_t i = 0; i < n; i += lanes) {
    Store(SoftmaxElement(Load(dy + i, n - i), Load(y + i, n - i), sum, log), dx + i, n - i);
  }
}

// Columns [0, count) of [n, inner].
void SoftmaxColumns(const float* dy, const float* y, float* dx, size_t n, size_t inner,
                    size_t count, bool log) {
  constexpr size_t kBlock = 64;  // rows whose sum is taken in one go
  const Tag d;
  const size_t lanes = hn::Lanes(d);
  for (size_t c = 0; c < count; c += lanes) {
    const size_t left = count - c;
    V sum = hn::Zero(d);
    for (size_t first = 0; first < n; first += kBlock) {
      V part = hn::Zero(d);
      for (size_t i = first; i < std::min(n, first + kBlock); ++i) {
        const V v = Load(dy + i * inner + c, left);
        part = log ? hn::Add(part, v) : hn::MulAdd(v, Load(y + i * inner + c, left), part);
      }
      sum = hn::Add(sum, part);
    }
    for (size_t i = 0; i < n; ++i) {
      const size_t at = i * inner + c;
      Store(SoftmaxElement(Load(dy + at, left), Load(y + at, left), sum, log), dx + at, left);
    }
  }
}

void Softmax(const float* dy, const float* y, float* dx, size_t n, size_t inner, bool log,
             size_t begin, size_t end) {
  const size_t blocks = (inner + kGradientColumns - 1) / kGradientColumns;
  for (size_t task = begin; task < end; ++task) {
    if (inner == 1) {
      SoftmaxRow(dy + task * n, y + task * n, dx + task * n, n, log);
      continue;
    }
    const size_t column = task % blocks * kGradientColumns;
    const size_t at = task / blocks * n * inner + column;
    SoftmaxColumns(dy + at, y + at, dx + at, n, inner, std::min(kGradientColumns, inner - column),
                   log);
  }
}

void Normalization(const NormalizationGradientArgs& args, size_t begin, size_t end,
                   float* gamma_sums, float* beta_sums) {
  const Tag d;
  const size_t lanes = hn::Lanes(d), n = args.n;
  if (gamma_sums) std::fill_n(gamma_sums, n, 0.0f);
  if (beta_sums) std::fill_n(beta_sums, n, 0.0f);
  const V share = hn::Set(d, 1.0f / static_cast<float>(n));
  for (size_t row = begin; row < end; ++row) {
    const float* dy = args.dy + row * n;
    const float* x = args.x + row * n;
    const V mean = hn::Set(d, args.mean ? args.mean[row] : 0.0f);
    const V inv_std = hn::Set(d, args.inv_std[row]);
    const auto normalized = [&](size_t i) HWY_ATTR {
      return hn::Mul(hn::Sub(Load(x + i, n - i), mean), inv_std);
    };
    // The means of dz and dz z, with dz = dy gamma.
    V mean_dz = hn::Zero(d), mean_dz_z = mean_dz;
    if (args.dx) {
      const auto dz = [&](V v, size_t i)
                          HWY_ATTR { return hn::Mul(v, Load(args.gamma + i, n - i)); };
      if (args.mean) mean_dz = hn::Mul(share, SumOfTerms(d, dy, n, dz));
      const auto dz_z = [&](V v, size_t i) HWY_ATTR { return hn::Mul(dz(v, i), normalized(i)); };
      mean_dz_z = hn::Mul(share, SumOfTerms(d, dy, n, dz_z));
    }
    for (size_t i = 0; i < n; i += lanes) {
      const V v = Load(dy + i, n - i), z = normalized(i);
      if (gamma_sums) {
        Store(hn::MulAdd(v, z, Load(gamma_sums + i, n - i)), gamma_sums + i, n - i);
      }
      if (beta_sums) Store(hn::Add(v, Load(beta_sums + i, n - i)), beta_sums + i, n - i);
      if (args.dx) {
        const V centred = hn::Sub(hn::Mul(v, Load(args.gamma + i, n - i)), mean_dz);
        Store(hn::Mul(inv_std, hn::NegMulAdd(z, mean_dz_z, centred)), args.dx + row * n + i, n - i);
      }
    }
  }
}

void BatchNormalization(const BatchNormalizationGradientArgs& args, size_t begin, size_t end) {
  const Tag d;
  const size_t lanes = hn::Lanes(d), n = args.size;
  const auto count = static_cast<double>(args.batch * n);
  for (size_t channel = begin; channel < end; ++channel) {
    const V mean = hn::Set(d, args.mean[channel]);
    double sum = 0, product = 0;  // of dy, and of dy (x - mean)
    for (size_t image = 0; image < args.batch; ++image) {
      const size_t at = (image * args.channels + channel) * n;
      const float* x = args.x + at;
      sum += hn::GetLane(SumOfTerms(d, args.dy + at, n, [](V v, size_t) HWY_ATTR { return v; }));
      product += hn::GetLane(SumOfTerms(d, args.dy + at, n, [&](V v, size_t i) HWY_ATTR {
        return hn::Mul(v, hn::Sub(Load(x + i, n - i), mean));
      }));
    }
    const double inv_std = args.inv_std[channel];
    if (args.d_beta) args.d_beta[channel] = static_cast<float>(sum);
    if (args.d_gamma) args.d_gamma[channel] = static_cast<float>(product * inv_std);
    if (args.dx == nullptr) continue;
    // dx = gamma inv_std (dy - mean(dy) - (x - mean) inv_std^2 mean(dy (x - mean)))
    const V factor = hn::Set(d, static_cast<float>(args.gamma[channel] * inv_std));
    const V mean_dy = hn::Set(d, static_cast<float>(sum / count));
    const V slope = hn::Set(d, static_cast<float>(product / count * inv_std * inv_std));
    for (size_t image = 0; image < args.batch; ++image) {
      const size_t at = (image * args.channels + channel) * n;
      for (size_t i = 0; i < n; i += lanes) {
        const V distance = hn::Sub(Load(args.x + at + i, n - i), mean);
        const V centred = hn::Sub(Load(args.dy + at + i, n - i), mean_dy);
        Store(hn::Mul(factor, hn::NegMulAdd(distance, slope, centred)), args.dx + at + i, n - i);
      }
    }
  }
}

const RowGradientTable kRowGradientTable = {&Softmax, &Normalization, &BatchNormalization};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {

size_t SoftmaxGradientTasks(size_t outer, size_t inner) {
  return outer * ((inner + kGradientColumns - 1) / kGradientColumns);
}

size_t SoftmaxGradientGrain(size_t n, size_t inner) {
  return 1 + 16384 / std::max<size_t>(1, n * std::min(inner, kGradientColumns));
}

void SoftmaxGradient(const float* dy, const float* y, float* dx, size_t n, size_t inner, bool log,
                     size_t begin, size_t end) {
  TENON_SELECT_TABLE(RowGradientTable, kRowGradientTable)
      .softmax(dy, y, dx, n, inner, log, begin, end);
}

void NormalizationGradient(const NormalizationGradientArgs& args, size_t begin, size_t end,
                           float* gamma_sums, float* beta_sums) {
  TENON_SELECT_TABLE(RowGradientTable, kRowGradientTable)
      .normalization(args, begin, end, gamma_sums, beta_sums);
}

void BatchNormalizationGradient(const BatchNormalizationGradientArgs& args, size_t begin,
                                size_t end) {
  TENON_SELECT_TABLE(RowGradientTable, kRowGradientTable).batch_normalization(args, begin, end);
}

}  // namespace tenon::kernels
#endif
