#include <cmath>
#include <concepts>
#include <limits>
#include <type_traits>

#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/elementwise_float.h"

// Compiled for the baseline alone: these types are rarely hot, and a copy of all their loops for
// every target would be half a megabyte of code.
#include "kernels/elementwise/binary_loops-inl.h"

namespace tenon::kernels {
namespace {

using namespace HWY_NAMESPACE;  // NOLINT(build/namespaces): the loops of the one target here

// Integers are computed as unsigned numbers, at least as wide as int, that wrap around.
template <class T>
struct WrappingType {
  using type = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
};
template <>
struct WrappingType<double> {
  using type = double;
};
template <class T>
using Wrapping = typename WrappingType<T>::type;

struct AddOp {
  template <class T>
  static T Apply(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};
struct SubOp {
  template <class T>
  static T Apply(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
};
struct MulOp {
  template <class T>
  static T Apply(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};
struct DivOp {
  template <class T>
  static T Apply(T a, T b) {
    if constexpr (std::integral<T>) {
      if (b == 0) return 0;
      // The least number divided by -1 traps.
      if (std::is_signed_v<T> && b == static_cast<T>(-1)) return SubOp::Apply<T>(0, a);
    }
    return static_cast<T>(a / b);
  }
};
struct FmodOp {
  template <class T>
  static T Apply(T a, T b) {
    if constexpr (std::integral<T>) {
      if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) return 0;
      return static_cast<T>(a % b);
    } else {
      return std::fmod(a, b);
    }
  }
};
struct ModOp {
  template <class T>
  static T Apply(T a, T b) {
    const T r = FmodOp::Apply(a, b);
    return r != 0 && (r < 0) != (b < 0) ? AddOp::Apply(r, b) : r;
  }
};
struct PowOp {
  template <class T>
  static T Apply(T a, T b) {
    if constexpr (std::integral<T>) {
      if (b < 0) {
        if (a == 1) return 1;
        return a == static_cast<T>(-1) ? (b & 1 ? a : static_cast<T>(1)) : static_cast<T>(0);
      }
      T power = 1;
      for (; b != 0; b = static_cast<T>(b >> 1)) {
        if (b & 1) power = MulOp::Apply(power, a);
        a = MulOp::Apply(a, a);
      }
      return power;
    } else {
      return std::pow(a, b);
    }
  }
};
struct MaxOp {
  template <class T>
  static T Apply(T a, T b) {
    return a > b || a != a ? a : b;
  }
};
struct MinOp {
  template <class T>
  static T Apply(T a, T b) {
    return a < b || a != a ? a : b;
  }
};
struct PReluOp {
  template <class T>
  static T Apply(T x, T slope) {
    return x < 0 ? MulOp::Apply(x, slope) : x;
  }
};

struct AndOp {
  static uint8_t Apply(uint8_t a, uint8_t b) { return a & b; }
};
struct OrOp {
  static uint8_t Apply(uint8_t a, uint8_t b) { return a | b; }
};
struct XorOp {
  static uint8_t Apply(uint8_t a, uint8_t b) { return a ^ b; }
};

template <class Op, class T, class R = T>
constexpr BinaryFunctions kLoops = BinaryLoops<Op, T, R>::kFunctions;
template <class Op, class T, class R = uint8_t>
constexpr BinaryFunctions kCommutative = CommutativeLoops<Op, T, R>::kFunctions;
template <class Op, class T>
constexpr BinaryFunctions kSwapped = SwappedLoops<Op, T>::kFunctions;

// clang-format off
#define TENON_BINARY_ROW(T)                                                                \
  {kLoops<AddOp, T>, kLoops<SubOp, T>, kLoops<MulOp, T>, kLoops<DivOp, T>,                 \
   kLoops<ModOp, T>, kLoops<FmodOp, T>, kLoops<PowOp, T>, kLoops<MaxOp, T>,                \
   kLoops<MinOp, T>, kLoops<PReluOp, T>, kCommutative<EqualOp, T>,                      \
   kLoops<LessOp, T, uint8_t>, kLoops<LessOrEqualOp, T, uint8_t>,                          \
   kSwapped<LessOp, T>, kSwapped<LessOrEqualOp, T>}
// clang-format on

// In the order of ElementType, less kFloat, and BinaryOp.
constexpr BinaryFunctions kBinaryTable[kElementTypeCount - 1][kBinaryOpCount] = {
    TENON_BINARY_ROW(double),   TENON_BINARY_ROW(int8_t),   TENON_BINARY_ROW(int16_t),
    TENON_BINARY_ROW(int32_t),  TENON_BINARY_ROW(int64_t),  TENON_BINARY_ROW(uint8_t),
    TENON_BINARY_ROW(uint16_t), TENON_BINARY_ROW(uint32_t), TENON_BINARY_ROW(uint64_t)};
#undef TENON_BINARY_ROW

// In the order of LogicalOp.
constexpr BinaryFunctions kLogicalTable[] = {
    kCommutative<AndOp, uint8_t>, kCommutative<OrOp, uint8_t>, kCommutative<XorOp, uint8_t>};

}  // namespace

BinaryFunctions FindBinary(BinaryOp op, ElementType type) {
  if (type == ElementType::kFloat) return FindFloatBinary(op);
  return kBinaryTable[static_cast<size_t>(type) - 1][static_cast<size_t>(op)];
}

BinaryFunctions FindLogical(LogicalOp op) { return kLogicalTable[static_cast<size_t>(op)]; }

size_t ElementwiseGrain(BinaryOp op) {
  const bool slow = op == BinaryOp::kPow || op == BinaryOp::kMod || op == BinaryOp::kFmod;
  return slow ? 4096 : 32768;
}

}  // namespace tenon::kernels
