// Element-wise operators on contiguous runs. Broadcasting calls these for its inner runs: see
// kernels/elementwise/broadcast.h.
//
// All functions may be called from several threads at once. An output may be one of the inputs
// (the same pointer), but not overlap one otherwise. An element's bits do not depend on where in
// the run it lies, so a run may be split anywhere.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/element_type.h"

namespace tenon::kernels {

// Operators of ONNX with one float input, and fused forms. NaN gives NaN except for
// ThresholdedRelu. Errors in ULP are those of math-inl.h.
enum class UnaryOp : uint8_t {
  kAbs,
  kNeg,
  kSign,  // -1, 0, 1
  kFloor,
  kCeil,
  kRound,  // half to even
  kSqrt,
  kSquare,
  kReciprocal,
  kRsqrt,  // 1 / sqrt(x)
  kExp,
  kExpm1,
  kLog,
  kLog1p,
  kErf,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kTanh,
  kAsinh,
  kAcosh,
  kAtanh,
  kSigmoid,
  kHardSigmoid,  // clamp(a x + b, 0, 1)
  kHardSwish,
  kRelu,
  kLeakyRelu,        // a x below 0
  kThresholdedRelu,  // x above a, else 0
  kElu,              // a (exp(x) - 1) below 0
  kSelu,             // b x, b a (exp(x) - 1) below 0
  kCelu,             // a (exp(x / a) - 1) below 0
  kSoftplus,
  kSoftsign,
  kGelu,      // x Phi(x), by erf
  kGeluTanh,  // its approximation by tanh
  kSilu,      // x sigmoid(x)
  kSwish,     // x sigmoid(a x)
  kMish,
  kClip,  // min(b, max(a, x))
};
inline constexpr size_t kUnaryOpCount = static_cast<size_t>(UnaryOp::kClip) + 1;

// y[i] = op(x[i]) for i in [0, n). a and b are the operator's parameters where the list of
// operators names them; others ignore them.
using UnaryFunction = void (*)(const float* x, float* y, size_t n, float a, float b);
UnaryFunction FindUnary(UnaryOp op);

// Operators with two inputs of one type. Integers wrap around; an integer divided by 0, and the
// remainder of that, is 0.
enum class BinaryOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,   // integers: towards zero
  kMod,   // sign of the divisor, as in Python
  kFmod,  // sign of the dividend, as in C
  kPow,
  kMax,    // NaN where either input is NaN
  kMin,    // likewise
  kPRelu,  // x, slope: slope x below 0
  // Results are bytes, 0 or 1.
  kEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
};
inline constexpr size_t kBinaryOpCount = static_cast<size_t>(BinaryOp::kGreaterOrEqual) + 1;
constexpr bool IsComparison(BinaryOp op) { return op >= BinaryOp::kEqual; }

// y[i] = op(a[i], b[i]) for i in [0, n); a scalar operand points to its one element.
using BinaryFunction = void (*)(const void* a, const void* b, void* y, size_t n);
struct BinaryFunctions {
  BinaryFunction vector_vector;
  BinaryFunction scalar_vector;
  BinaryFunction vector_scalar;
};
BinaryFunctions FindBinary(BinaryOp op, ElementType type);

// Logic on bytes that are 0 or 1.
enum class LogicalOp : uint8_t { kAnd, kOr, kXor };
BinaryFunctions FindLogical(LogicalOp op);
void LogicalNot(const uint8_t* x, uint8_t* y, size_t n);

// y[i] = condition[i] ? a[i] : b[i] on elements of `size` bytes: 1, 2, 4, 8 or 16. Strides, in
// elements, are 1, or 0 for a scalar. Condition bytes are 0 or not.
struct WhereStrides {
  size_t condition;
  size_t a;
  size_t b;
};
void Where(const uint8_t* condition, const void* a, const void* b, void* y, size_t n, size_t size,
           const WhereStrides& strides);

// Elements that one task should handle: enough work to outweigh its start.
size_t ElementwiseGrain(UnaryOp op);
size_t ElementwiseGrain(BinaryOp op);

}  // namespace tenon::kernels
