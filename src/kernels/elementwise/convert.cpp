#include "kernels/elementwise/convert.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/elementwise/convert_float.h"

namespace tenon::kernels {
namespace {

struct Bool {
  uint8_t value;
};

// The C++ type of a CastType; 16-bit floats have none and are converted through float.
template <CastType type>
auto TypeOf() {
  if constexpr (type == CastType::kFloat) return float{};
  if constexpr (type == CastType::kDouble) return double{};
  if constexpr (type == CastType::kInt8) return int8_t{};
  if constexpr (type == CastType::kInt16) return int16_t{};
  if constexpr (type == CastType::kInt32) return int32_t{};
  if constexpr (type == CastType::kInt64) return int64_t{};
  if constexpr (type == CastType::kUint8) return uint8_t{};
  if constexpr (type == CastType::kUint16) return uint16_t{};
  if constexpr (type == CastType::kUint32) return uint32_t{};
  if constexpr (type == CastType::kUint64) return uint64_t{};
  if constexpr (type == CastType::kBool) return Bool{};
}

// The result for a number that does not fit is unspecified, so that a cast is one instruction.
template <class To, class From>
__attribute__((no_sanitize("float-cast-overflow"))) To Convert(From x) {
  if constexpr (std::is_same_v<From, Bool>) {
    return Convert<To>(x.value);
  } else if constexpr (std::is_same_v<To, Bool>) {
    return Bool{x != 0};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && sizeof(To) < 4) {
    return static_cast<To>(static_cast<int32_t>(x));
  } else if constexpr (std::is_floating_point_v<From> && std::is_same_v<To, uint32_t>) {
    return static_cast<To>(static_cast<int64_t>(x));
  } else {
    return static_cast<To>(x);
  }
}

template <class From, class To>
void Cast(const void* x, void* y, size_t n) {
  const From* from = static_cast<const From*>(x);
  To* to = static_cast<To*>(y);
  for (size_t i = 0; i < n; ++i) to[i] = Convert<To>(from[i]);
}

template <size_t kSize>
void Copy(const void* x, void* y, size_t n) {
  if (n > 0) std::memcpy(y, x, n * kSize);
}

constexpr size_t kBuiltInTypes = static_cast<size_t>(CastType::kBool) + 1;

template <size_t kIndex>
constexpr CastFunction BuiltInCast() {
  using From = decltype(TypeOf<static_cast<CastType>(kIndex / kBuiltInTypes)>());
  using To = decltype(TypeOf<static_cast<CastType>(kIndex % kBuiltInTypes)>());
  return std::is_same_v<From, To> ? &Copy<sizeof(From)> : &Cast<From, To>;
}
template <size_t... kIndex>
constexpr auto MakeBuiltInCasts(std::index_sequence<kIndex...>) {
  return std::array<CastFunction, sizeof...(kIndex)>{BuiltInCast<kIndex>()...};
}
constexpr auto kBuiltInCasts =
    MakeBuiltInCasts(std::make_index_sequence<kBuiltInTypes * kBuiltInTypes>());

constexpr size_t kSizes[kCastTypeCount] = {4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 2};

// Converts through floats on the stack, some of them at a time.
template <CastType from, CastType to>
void CastThroughFloat(const void* x, void* y, size_t n) {
  const CastFunction first = FindCast(from, CastType::kFloat);
  const CastFunction second = FindCast(CastType::kFloat, to);
  const auto* in = static_cast<const uint8_t*>(x);
  auto* out = static_cast<uint8_t*>(y);
  float buffer[256];
  for (size_t i = 0; i < n; i += std::size(buffer)) {
    const size_t count = std::min(std::size(buffer), n - i);
    first(in + i * kSizes[static_cast<size_t>(from)], buffer, count);
    second(buffer, out + i * kSizes[static_cast<size_t>(to)], count);
  }
}

template <CastType half, size_t... kIndex>
constexpr auto MakeFromHalf(std::index_sequence<kIndex...>) {
  return std::array<CastFunction, sizeof...(kIndex)>{
      &CastThroughFloat<half, static_cast<CastType>(kIndex)>...};
}
template <CastType half, size_t... kIndex>
constexpr auto MakeToHalf(std::index_sequence<kIndex...>) {
  return std::array<CastFunction, sizeof...(kIndex)>{
      &CastThroughFloat<static_cast<CastType>(kIndex), half>...};
}
using AllTypes = std::make_index_sequence<kCastTypeCount>;
// [0] float16, [1] bfloat16.
constexpr std::array kFromHalf = {MakeFromHalf<CastType::kFloat16>(AllTypes()),
                                  MakeFromHalf<CastType::kBfloat16>(AllTypes())};
constexpr std::array kToHalf = {MakeToHalf<CastType::kFloat16>(AllTypes()),
                                MakeToHalf<CastType::kBfloat16>(AllTypes())};

}  // namespace

CastFunction FindCast(CastType from, CastType to) {
  const size_t i = static_cast<size_t>(from), j = static_cast<size_t>(to);
  if (const CastFunction function = FindFloatCast(from, to)) return function;
  if (i >= kBuiltInTypes && i == j) return &Copy<2>;
  if (i >= kBuiltInTypes) return kFromHalf[i - kBuiltInTypes][j];
  if (j >= kBuiltInTypes) return kToHalf[j - kBuiltInTypes][i];
  return kBuiltInCasts[i * kBuiltInTypes + j];
}

void Float16ToFloat(const uint16_t* x, float* y, size_t n) {
  FindFloatCast(CastType::kFloat16, CastType::kFloat)(x, y, n);
}
void FloatToFloat16(const float* x, uint16_t* y, size_t n) {
  FindFloatCast(CastType::kFloat, CastType::kFloat16)(x, y, n);
}
void Bfloat16ToFloat(const uint16_t* x, float* y, size_t n) {
  FindFloatCast(CastType::kBfloat16, CastType::kFloat)(x, y, n);
}
void FloatToBfloat16(const float* x, uint16_t* y, size_t n) {
  FindFloatCast(CastType::kFloat, CastType::kBfloat16)(x, y, n);
}

}  // namespace tenon::kernels
