#include "kernels/elementwise/quantized_binary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/quantized_binary.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/dispatch.h"
#include "kernels/elementwise/quantized_values-inl.h"
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

template <class T, class F>
HWY_INLINE void CombineWith(const QuantizedOperand& a, const QuantizedOperand& b, size_t n,
                            float scale, int32_t zero_point, T* y, F&& f) {
  const FloatTag df;
  const hn::Rebind<T, FloatTag> dt;
  const Values<T> of_a(a), of_b(b);
  const ByteRounder<T> rounder(zero_point);
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
