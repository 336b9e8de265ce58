// The reductions.
#pragma once

#include <cstdint>

namespace tenon::kernels {

// Max and Min give NaN where an element is NaN. Over nothing, sums are 0, the product is 1, Max is
// the type's least value or -inf, Min its greatest or inf, and Mean of floats is NaN (of integers,
// 0). Integers wrap around; L2, LogSum and LogSumExp of integers are rounded towards zero.
enum class ReduceOp : uint8_t {
  kSum,
  kMean,
  kMax,
  kMin,
  kProd,
  kSumSquare,
  kL1,
  kL2,
  kLogSum,
  kLogSumExp,
};

}  // namespace tenon::kernels
