// Integer arithmetic on sizes, checked if the operands come from a model, a file or a caller.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tenon {

// The exact sum or product, or nullopt if T cannot hold it.
template <std::integral T>
constexpr std::optional<T> CheckedAdd(T a, T b) {
  T sum{};
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

template <std::integral T>
constexpr std::optional<T> CheckedMul(T a, T b) {
  T product{};
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// The product of all factors; 1 for none. Nullopt if a factor is negative or T cannot hold the
// product. A zero makes the product 0 even if the factors before it overflow: a tensor with an
// empty dimension has no elements, however large the others are.
template <std::integral T>
constexpr std::optional<T> CheckedProduct(std::span<const T> factors) {
  std::optional<T> product = T{1};
  bool has_zero = false;
  for (const T factor : factors) {
    if constexpr (std::signed_integral<T>) {
      if (factor < 0) return std::nullopt;
    }
    if (factor == 0) has_zero = true;
    if (product) product = CheckedMul(*product, factor);
  }
  return has_zero ? std::optional<T>(T{0}) : product;
}

// ceil(a / b) for a >= 0 and b > 0; no intermediate result overflows.
template <std::integral T>
constexpr T CeilDiv(T a, T b) {
  return static_cast<T>(a / b + (a % b != 0));
}

// The smallest multiple of `multiple` that is not below `a`, for a >= 0 and multiple > 0. The
// result must fit. For unchecked sizes, use CheckedRoundUp.
template <std::integral T>
constexpr T RoundUp(T a, T multiple) {
  return static_cast<T>(CeilDiv(a, multiple) * multiple);
}

template <std::integral T>
constexpr std::optional<T> CheckedRoundUp(T a, T multiple) {
  return CheckedMul(CeilDiv(a, multiple), multiple);
}

}  // namespace tenon
