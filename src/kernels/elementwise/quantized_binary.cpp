#include "kernels/elementwise/quantized_binary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/quantized_binary.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <type_traits>

#include "kernels/dispatch.h"
#include "kernels/partial-inl.h"

#ifndef TENON_KERNELS_QUANTIZED_BINARY_ONCE
#define TENON_KERNELS_QUANTIZED_BINARY_ONCE
namespace tenon::kernels {
struct QuantizedBinaryTable {
  void (*combine)(QuantizedBinaryOp op, const QuantizedOperand& a, const QuantizedOperand& b,
                  size_t n, float scale, int32_t zero_point, QuantizedType type, void* y);
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
using FloatVec = hn::Vec<FloatTag>;

// An operand's elements as floats.
template <class T>
class Values {
 public:
  explicit Values(const QuantizedOperand& operand)
      : data_(static_cast<const T*>(operand.data)),
        is_one_(operand.is_one),
        scale_(hn::Set(FloatTag(), operand.scale)),
        zero_point_(hn::Set(IntTag(), operand.zero_point)),
        one_(is_one_ ? ValueOf(hn::Set(IntTag(), *data_)) : hn::Zero(FloatTag())) {}

  HWY_INLINE FloatVec At(size_t i) const {
    if (is_one_) return one_;
    return ValueOf(hn::PromoteTo(IntTag(), hn::LoadU(hn::Rebind<T, FloatTag>(), data_ + i)));
  }
  HWY_INLINE FloatVec Last(size_t i, size_t count) const {
    if (is_one_) return one_;
    const hn::Rebind<T, FloatTag> dt;
    return ValueOf(hn::PromoteTo(IntTag(), LoadPartial(dt, data_ + i, count)));
  }

 private:
  HWY_INLINE FloatVec ValueOf(hn::Vec<IntTag> stored) const {
    return hn::Mul(hn::ConvertTo(FloatTag(), hn::Sub(stored, zero_point_)), scale_);
  }

  const T* const data_;
  const bool is_one_;
  const FloatVec scale_;
  const hn::Vec<IntTag> zero_point_;
  const FloatVec one_;
};

// x / divisor as the division rounds it, without a division: the remainder of a first quotient
// corrects it (Markstein 1990). The numbers must be far from overflow and underflow.
class Divisor {
 public:
  explicit Divisor(float divisor)
      : divisor_(hn::Set(FloatTag(), divisor)), inverse_(hn::Set(FloatTag(), 1 / divisor)) {}

  HWY_INLINE FloatVec Divide(FloatVec x) const {
    const FloatVec first = hn::Mul(x, inverse_);
    return hn::MulAdd(hn::NegMulAdd(first, divisor_, x), inverse_, first);
  }

 private:
  const FloatVec divisor_, inverse_;
};

// Whether quotients of sums and products of numbers with these scales stay far from the limits.
bool AreModerate(std::initializer_list<float> scales) {
  constexpr float kMost = 1 << 30;
  return std::all_of(scales.begin(), scales.end(),
                     [](float scale) { return scale > 1 / kMost && scale < kMost; });
}

// Integers as bytes of T: rounds numbers near 0 to integers and adds the zero point.
template <class T>
class Rounder {
 public:
  explicit Rounder(int32_t zero_point)
      : least_(Bound(std::numeric_limits<T>::min(), zero_point)),
        greatest_(Bound(std::numeric_limits<T>::max(), zero_point)),
        offset_(hn::Set(IntTag(), kSignBit - zero_point)) {}

  // NaN becomes the least.
  HWY_INLINE hn::Vec<hn::Rebind<T, FloatTag>> Round(FloatVec v) const {
    const FloatTag df;
    const hn::Rebind<uint8_t, FloatTag> db;
    const auto bounded = hn::Min(hn::Max(v, least_), greatest_);
    // A sum of this size has no bits for a fraction, and ends in the integer's bits.
    const auto sum = hn::BitCast(IntTag(), hn::Add(bounded, hn::Set(df, 12582912.0f)));
    const auto integers = hn::Sub(sum, hn::Add(offset_, hn::Set(IntTag(), 0x4b400000)));
    const auto bytes = hn::U8FromU32(hn::BitCast(hn::RebindToUnsigned<IntTag>(), integers));
    return hn::BitCast(hn::Rebind<T, FloatTag>(),
                       std::is_signed_v<T> ? hn::Xor(bytes, hn::Set(db, 0x80)) : bytes);
  }

 private:
  static constexpr int32_t kSignBit = std::is_signed_v<T> ? -128 : 0;
  static FloatVec Bound(int32_t limit, int32_t zero_point) {
    return hn::Set(FloatTag(), static_cast<float>(limit - zero_point));
  }

  const FloatVec least_, greatest_;
  const hn::Vec<IntTag> offset_;
};

template <class T, class F>
HWY_INLINE void CombineWith(const QuantizedOperand& a, const QuantizedOperand& b, size_t n,
                            float scale, int32_t zero_point, T* y, F&& f) {
  const FloatTag df;
  const hn::Rebind<T, FloatTag> dt;
  const Values<T> of_a(a), of_b(b);
  const Rounder<T> rounder(zero_point);
  const auto combine = [&](auto&& divide) HWY_ATTR {
    size_t i = 0;
    for (; i + hn::Lanes(df) <= n; i += hn::Lanes(df)) {
      hn::StoreU(rounder.Round(divide(f(of_a.At(i), of_b.At(i)))), dt, y + i);
    }
    if (i == n) return;
    const size_t rest = n - i;
    const auto v = divide(f(of_a.Last(i, rest), of_b.Last(i, rest)));
    StorePartial(rounder.Round(v), dt, y + i, rest);
  };
  if (HWY_NATIVE_FMA && AreModerate({a.scale, b.scale, scale})) {
    const Divisor divisor(scale);
    combine([&](FloatVec v) HWY_ATTR { return divisor.Divide(v); });
  } else {
    const auto divisor = hn::Set(df, scale);
    combine([&](FloatVec v) HWY_ATTR { return hn::Div(v, divisor); });
  }
}

template <class T>
void CombineAs(QuantizedBinaryOp op, const QuantizedOperand& a, const QuantizedOperand& b, size_t n,
               float scale, int32_t zero_point, T* y) {
  if (op == QuantizedBinaryOp::kAdd) {
    CombineWith(a, b, n, scale, zero_point, y,
                [](FloatVec u, FloatVec v) HWY_ATTR { return hn::Add(u, v); });
  } else {
    CombineWith(a, b, n, scale, zero_point, y,
                [](FloatVec u, FloatVec v) HWY_ATTR { return hn::Mul(u, v); });
  }
}

void Combine(QuantizedBinaryOp op, const QuantizedOperand& a, const QuantizedOperand& b, size_t n,
             float scale, int32_t zero_point, QuantizedType type, void* y) {
  if (type == QuantizedType::kInt8) {
    CombineAs(op, a, b, n, scale, zero_point, static_cast<int8_t*>(y));
  } else {
    CombineAs(op, a, b, n, scale, zero_point, static_cast<uint8_t*>(y));
  }
}

}  // namespace

const QuantizedBinaryTable kQuantizedBinaryTable = {&Combine};

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {

void CombineQuantized(QuantizedBinaryOp op, const QuantizedOperand& a, const QuantizedOperand& b,
                      size_t n, float scale, int32_t zero_point, QuantizedType type, void* y) {
  if (n == 0) return;
  TENON_SELECT_TABLE(QuantizedBinaryTable, kQuantizedBinaryTable)
      .combine(op, a, b, n, scale, zero_point, type, y);
}

}  // namespace tenon::kernels
#endif
