#include "kernels/elementwise/quantize.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/quantize.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "kernels/dispatch.h"
#include "kernels/elementwise/quantized_values-inl.h"
#include "kernels/min_max-inl.h"
#include "kernels/partial-inl.h"

#ifndef TENON_KERNELS_QUANTIZE_ONCE
#define TENON_KERNELS_QUANTIZE_ONCE
namespace tenon::kernels {
struct QuantizeTable {
  void (*quantize)(const float* x, size_t n, const QuantizationRun& run, QuantizedType type,
                   void* y);
  void (*dequantize)(const void* x, size_t n, const QuantizationRun& run, QuantizedType type,
                     float* y);
  FloatRange (*range)(const float* x, size_t n);
};
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using IntTag = hn::Rebind<int32_t, FloatTag>;

// The scales and zero points of the vector at `i`, of which `count` lanes are used.
struct Parameters {
  hn::Vec<FloatTag> scale;
  hn::Vec<IntTag> zero_point;

  HWY_INLINE Parameters(const QuantizationRun& run, size_t i, size_t count) {
    const FloatTag df;
    const IntTag di;
    zero_point = hn::Zero(di);
    if (run.per_element) {
      scale = LoadPartial(df, run.scales + i, count, 1.0f);
      if (run.zero_points) zero_point = LoadPartial(di, run.zero_points + i, count);
    } else {
      scale = hn::Set(df, *run.scales);
      if (run.zero_points) zero_point = hn::Set(di, *run.zero_points);
    }
  }
};

template <class D, class T>
HWY_INLINE hn::Vec<D> LoadSome(D d, const T* p, size_t count) {
  return count == hn::Lanes(d) ? hn::LoadU(d, p) : LoadPartial(d, p, count);
}

template <class D, class T>
HWY_INLINE void StoreSome(hn::Vec<D> v, D d, T* p, size_t count) {
  if (count == hn::Lanes(d)) {
    hn::StoreU(v, d, p);
  } else {
    StorePartial(v, d, p, count);
  }
}

// Quantizes whole vectors to bytes, without divisions; returns how many elements.
template <class T>
size_t QuantizeWhole(const float* HWY_RESTRICT x, size_t n, float scale, int32_t zero_point,
                     T* HWY_RESTRICT y) {
  const FloatTag df;
  const hn::Rebind<T, FloatTag> dt;
  const ByteRounder<T> rounder(zero_point);
  const Divisor divisor(scale);
  // Far numbers have the bytes of these, but their remainders would be none. NaN becomes the least.
  const auto least = hn::Set(df, -1000 * scale), greatest = hn::Set(df, 1000 * scale);
  size_t i = 0;
  for (; i + hn::Lanes(df) <= n; i += hn::Lanes(df)) {
    const auto near = MinOrSecond(MaxOrSecond(hn::LoadU(df, x + i), least), greatest);
    hn::StoreU(rounder.Round(divisor.Divide(near)), dt, y + i);
  }
  return i;
}

template <class T>
void QuantizeTo(const float* HWY_RESTRICT x, size_t n, const QuantizationRun& run,
                T* HWY_RESTRICT y) {
  const FloatTag df;
  const IntTag di;
  const hn::Rebind<T, FloatTag> dt;
  if constexpr (sizeof(T) == 1) {
    if (HWY_NATIVE_FMA && !run.per_element && AreModerate({*run.scales})) {
      const int32_t zero_point = run.zero_points ? *run.zero_points : 0;
      const size_t done = QuantizeWhole(x, n, *run.scales, zero_point, y);
      x += done;
      n -= done;
      y += done;
      if (n == 0) return;
    }
  }
  const auto least = hn::Set(di, std::numeric_limits<T>::min());
  const auto greatest = hn::Set(di, std::numeric_limits<T>::max());
  Parameters p(run, 0, std::min(n, hn::Lanes(df)));
  for (size_t i = 0; i < n; i += hn::Lanes(df)) {
    const size_t count = std::min(n - i, hn::Lanes(df));
    if (run.per_element) p = Parameters(run, i, count);
    auto v = hn::Div(LoadSome(df, x + i, count), p.scale);
    // The bounds are integers, so rounding keeps the quotient between them. NaN becomes the lower
    // bound.
    v = hn::Max(v, hn::ConvertTo(df, hn::Sub(least, p.zero_point)));
    v = hn::Min(v, hn::ConvertTo(df, hn::Sub(greatest, p.zero_point)));
    StoreSome(hn::DemoteTo(dt, hn::Add(hn::NearestInt(v), p.zero_point)), dt, y + i, count);
  }
}

template <class T>
void DequantizeFrom(const T* HWY_RESTRICT x, size_t n, const QuantizationRun& run,
                    float* HWY_RESTRICT y) {
  const FloatTag df;
  const IntTag di;
  const hn::Rebind<T, FloatTag> dt;
  Parameters p(run, 0, std::min(n, hn::Lanes(df)));
  for (size_t i = 0; i < n; i += hn::Lanes(df)) {
    const size_t count = std::min(n - i, hn::Lanes(df));
    if (run.per_element) p = Parameters(run, i, count);
    const auto stored = LoadSome(dt, x + i, count);
    hn::Vec<IntTag> v;
    if constexpr (sizeof(T) == 4) {
      v = stored;
    } else {
      v = hn::PromoteTo(di, stored);
    }
    StoreSome(hn::Mul(hn::ConvertTo(df, hn::Sub(v, p.zero_point)), p.scale), df, y + i, count);
  }
}

void QuantizeOnTarget(const float* x, size_t n, const QuantizationRun& run, QuantizedType type,
                      void* y) {
  switch (type) {
    case QuantizedType::kUint8:
      return QuantizeTo(x, n, run, static_cast<uint8_t*>(y));
    case QuantizedType::kInt8:
      return QuantizeTo(x, n, run, static_cast<int8_t*>(y));
    case QuantizedType::kUint16:
      return QuantizeTo(x, n, run, static_cast<uint16_t*>(y));
    default:
      return QuantizeTo(x, n, run, static_cast<int16_t*>(y));
  }
}

void DequantizeOnTarget(const void* x, size_t n, const QuantizationRun& run, QuantizedType type,
                        float* y) {
  switch (type) {
    case QuantizedType::kUint8:
      return DequantizeFrom(static_cast<const uint8_t*>(x), n, run, y);
    case QuantizedType::kInt8:
      return DequantizeFrom(static_cast<const int8_t*>(x), n, run, y);
    case QuantizedType::kUint16:
      return DequantizeFrom(static_cast<const uint16_t*>(x), n, run, y);
    case QuantizedType::kInt16:
      return DequantizeFrom(static_cast<const int16_t*>(x), n, run, y);
    default:
      return DequantizeFrom(static_cast<const int32_t*>(x), n, run, y);
  }
}

FloatRange RangeOnTarget(const float* x, size_t n) {
  const FloatTag df;
  constexpr size_t kChains = 4;  // as many as hide the latency
  hn::Vec<FloatTag> least[kChains], greatest[kChains];
  for (size_t c = 0; c < kChains; ++c) least[c] = greatest[c] = hn::Zero(df);
  const size_t lanes = hn::Lanes(df);
  size_t i = 0;
  for (; i + kChains * lanes <= n; i += kChains * lanes) {
    for (size_t c = 0; c < kChains; ++c) {
      const auto v = hn::LoadU(df, x + i + c * lanes);
      least[c] = hn::Min(v, least[c]);
      greatest[c] = hn::Max(v, greatest[c]);
    }
  }
  for (; i < n; i += lanes) {
    const auto v = LoadPartial(df, x + i, std::min(n - i, lanes));
    least[0] = hn::Min(v, least[0]);
    greatest[0] = hn::Max(v, greatest[0]);
  }
  for (size_t c = 1; c < kChains; ++c) {
    least[0] = hn::Min(least[0], least[c]);
    greatest[0] = hn::Max(greatest[0], greatest[c]);
  }
  return {hn::GetLane(hn::MinOfLanes(df, least[0])), hn::GetLane(hn::MaxOfLanes(df, greatest[0]))};
}

}  // namespace

const QuantizeTable kQuantizeTable = {&QuantizeOnTarget, &DequantizeOnTarget, &RangeOnTarget};

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {
namespace {

const QuantizeTable& Table() { return TENON_SELECT_TABLE(QuantizeTable, kQuantizeTable); }

}  // namespace

void Quantize(const float* x, size_t n, const QuantizationRun& run, QuantizedType type, void* y) {
  if (n == 0) return;  // without elements there may be no scale to read
  Table().quantize(x, n, run, type, y);
}

void Dequantize(const void* x, size_t n, const QuantizationRun& run, QuantizedType type, float* y) {
  if (n == 0) return;
  Table().dequantize(x, n, run, type, y);
}

FloatRange RangeWithZero(const float* x, size_t n) { return Table().range(x, n); }

}  // namespace tenon::kernels
#endif
