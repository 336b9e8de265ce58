// Rounding quotients to bytes, for the kernels of quantized values: included once per target.
#if defined(TENON_KERNELS_QUANTIZED_VALUES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_KERNELS_QUANTIZED_VALUES_INL_H_
#undef TENON_KERNELS_QUANTIZED_VALUES_INL_H_
#else
#define TENON_KERNELS_QUANTIZED_VALUES_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Whether quotients of sums and products of numbers with these scales stay far from the limits.
inline bool AreModerate(std::initializer_list<float> scales) {
  constexpr float kMost = 1 << 30;
  return std::all_of(scales.begin(), scales.end(),
                     [](float scale) { return scale > 1 / kMost && scale < kMost; });
}

// x / divisor as the division rounds it, without a division: the remainder of a first quotient
// corrects it (Markstein 1990). The numbers must be far from overflow and underflow.
class Divisor {
 public:
  using FloatTag = hn::ScalableTag<float>;
  using FloatVec = hn::Vec<FloatTag>;

  explicit Divisor(float divisor)
      : divisor_(hn::Set(FloatTag(), divisor)), inverse_(hn::Set(FloatTag(), 1 / divisor)) {}

  HWY_INLINE FloatVec Divide(FloatVec x) const {
    const FloatVec first = hn::Mul(x, inverse_);
    return hn::MulAdd(hn::NegMulAdd(first, divisor_, x), inverse_, first);
  }

 private:
  const FloatVec divisor_, inverse_;
};

// Integers as bytes of T: rounds numbers to integers, ties to even, and adds the zero point.
template <class T>
class ByteRounder {
 public:
  using FloatTag = hn::ScalableTag<float>;
  using FloatVec = hn::Vec<FloatTag>;
  using IntTag = hn::RebindToSigned<FloatTag>;

  explicit ByteRounder(int32_t zero_point)
      : least_(Bound(std::numeric_limits<T>::min(), zero_point)),
        greatest_(Bound(std::numeric_limits<T>::max(), zero_point)),
        offset_(hn::Set(IntTag(), kSignBit - zero_point)) {}

  // NaN becomes the least, and so do numbers below it; others beyond the greatest become that.
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

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
