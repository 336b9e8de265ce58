#include "kernels/elementwise/quantized_softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/quantized_softmax.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/dispatch.h"
#include "kernels/elementwise/int8_table.h"
#include "kernels/elementwise/quantized_values-inl.h"
#include "kernels/partial-inl.h"

#ifndef TENON_KERNELS_QUANTIZED_SOFTMAX_ONCE
#define TENON_KERNELS_QUANTIZED_SOFTMAX_ONCE
namespace tenon::kernels {
struct QuantizedSoftmaxTable {
  uint8_t (*distances)(const uint8_t* x, size_t n, uint8_t flip, uint8_t* y);
  void (*columns)(const QuantizedSoftmax& softmax, const uint8_t* x, size_t n, size_t stride,
                  size_t columns, uint8_t* y);
};
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using IntTag = hn::RebindToSigned<FloatTag>;

// Writes the distances of the elements from the greatest, which it returns.
uint8_t Distances(const uint8_t* x, size_t n, uint8_t flip, uint8_t* y) {
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  const auto flips = hn::Set(d, flip);
  const auto at = [&](size_t i) HWY_ATTR {
    const size_t rest = n - i;
    return hn::Xor(rest >= lanes ? hn::LoadU(d, x + i) : LoadPartial(d, x + i, rest, flip), flips);
  };
  auto greatest = hn::Zero(d);
  for (size_t i = 0; i < n; i += lanes) greatest = hn::Max(greatest, at(i));
  uint8_t each[HWY_MAX_BYTES];
  hn::StoreU(greatest, d, each);
  uint8_t most = 0;
  for (size_t k = 0; k < lanes; ++k) most = std::max(most, each[k]);
  greatest = hn::Set(d, most);
  for (size_t i = 0; i < n; i += lanes) {
    StoreUpTo(hn::Sub(greatest, at(i)), d, y + i, n - i);
  }
  return most;
}

template <class T>
void ColumnsOf(const QuantizedSoftmax& softmax, const uint8_t* x, size_t n, size_t stride,
               size_t columns, T* y) {
  const FloatTag df;
  const hn::Rebind<uint8_t, FloatTag> db;
  const hn::Rebind<T, FloatTag> dt;
  const size_t lanes = hn::Lanes(df);
  const auto flips = hn::Set(db, softmax.flip);
  const ByteRounder<T> rounder(softmax.y_zero_point);
  for (size_t column = 0; column < columns; column += lanes) {
    const size_t count = std::min(lanes, columns - column);
    const auto at = [&](size_t i) HWY_ATTR {
      return hn::Xor(LoadUpTo(db, x + i * stride + column, count), flips);
    };
    auto greatest = at(0);
    for (size_t i = 1; i < n; ++i) greatest = hn::Max(greatest, at(i));
    const auto power = [&](size_t i) HWY_ATTR {
      const auto distance = hn::PromoteTo(IntTag(), hn::Sub(greatest, at(i)));
      return hn::GatherIndex(df, softmax.powers.data(), distance);
    };
    auto sum = hn::Zero(df);
    for (size_t i = 0; i < n; ++i) sum = hn::Add(sum, power(i));
    const auto scale = hn::Mul(sum, hn::Set(df, softmax.y_scale));
    for (size_t i = 0; i < n; ++i) {
      StoreUpTo(rounder.Round(hn::Div(power(i), scale)), dt, y + i * stride + column, count);
    }
  }
}

void Columns(const QuantizedSoftmax& softmax, const uint8_t* x, size_t n, size_t stride,
             size_t columns, uint8_t* y) {
  if (softmax.y_type == QuantizedType::kInt8) {
    ColumnsOf(softmax, x, n, stride, columns, reinterpret_cast<int8_t*>(y));
  } else {
    ColumnsOf(softmax, x, n, stride, columns, y);
  }
}

}  // namespace

const QuantizedSoftmaxTable kQuantizedSoftmaxTable = {&Distances, &Columns};

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {
namespace {

const QuantizedSoftmaxTable& Table() {
  return TENON_SELECT_TABLE(QuantizedSoftmaxTable, kQuantizedSoftmaxTable);
}

}  // namespace

QuantizedSoftmax::QuantizedSoftmax(float x_scale, QuantizedType x_type, float y_scale,
                                   int32_t y_zero_point, QuantizedType y_type)
    : flip(x_type == QuantizedType::kInt8 ? 0x80 : 0),
      y_scale(y_scale),
      y_zero_point(y_zero_point),
      y_type(y_type) {
  for (size_t i = 0; i < powers.size(); ++i) {
    powers[i] = std::exp(-static_cast<float>(i) * x_scale);
  }
  // The sum is 1 at least, so that these are no result's half step.
  distances = powers.size();
  while (distances > 1 && powers[distances - 1] < 0.49f * y_scale) --distances;
}

void SoftmaxQuantizedLine(const QuantizedSoftmax& softmax, const uint8_t* x, size_t n, uint8_t* y) {
  Table().distances(x, n, softmax.flip, y);
  constexpr size_t kSums = 8;
  float sums[kSums] = {};
  size_t i = 0;
  for (; i + kSums <= n; i += kSums) {
    for (size_t k = 0; k < kSums; ++k) sums[k] += softmax.powers[y[i + k]];
  }
  for (; i < n; ++i) sums[0] += softmax.powers[y[i]];
  float sum = 0;
  for (const float part : sums) sum += part;
  // The result for each distance.
  const float scale = sum * softmax.y_scale;
  std::array<uint8_t, 256> results;
  results.fill(static_cast<uint8_t>(softmax.y_zero_point));
  Quantize(softmax.powers.data(), softmax.distances, {&scale, &softmax.y_zero_point, false},
           softmax.y_type, results.data());
  LookUpInt8(results.data(), y, n, y);
}

void SoftmaxQuantizedColumns(const QuantizedSoftmax& softmax, const uint8_t* x, size_t n,
                             size_t stride, size_t columns, uint8_t* y) {
  Table().columns(softmax, x, n, stride, columns, y);
}

}  // namespace tenon::kernels
#endif
