// Element-wise operators on contiguous runs. Broadcasting calls these for its inner runs: see
// kernels/elementwise/broadcast.h.
//
// All functions may be called from several threads at once. An output may be one of the inputs
// (the same pointer), but not overlap one otherwise. An element's bits do not depend on where in
// the run it lies, so a run may be split anywhere.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/unary_functions.h"
#include "kernels/element_type.h"

namespace tenon::kernels {

// y[i] = op(x[i]). a and b are the operator's parameters; operators without parameters ignore them.
class UnaryFunction {
 public:
  // Computes `rows` rows of n elements that begin `stride` elements apart, in x and in y.
  using Rows = void (*)(const float* x, float* y, size_t stride, size_t rows, size_t n, float a,
                        float b);

  UnaryFunction(Rows rows) : rows_(rows) {}  // NOLINT(google-explicit-constructor)
  // Computes y[i] for i in [0, n).
  void operator()(const float* x, float* y, size_t n, float a, float b) const {
    rows_(x, y, n, 1, n, a, b);
  }
  // Computes in place.
  void OverRows(float* x, size_t stride, size_t rows, size_t n, float a, float b) const {
    rows_(x, x, stride, rows, n, a, b);
  }

 private:
  Rows rows_;
};
UnaryFunction FindUnary(UnaryOp op);

// Like UnaryFunction, on doubles. y may be x.
void ApplyInDouble(UnaryOp op, const double* x, double* y, size_t n, double a, double b);

// Operators with two inputs of one type. Integers wrap around; for integers, a / 0 and the
// remainder of a / 0 are 0.
enum class BinaryOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,   // integers: rounds towards zero
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
// elements, are 1, or 0 for a scalar. A condition byte is true if it is not 0.
struct WhereStrides {
  size_t condition;
  size_t a;
  size_t b;
};
void Where(const uint8_t* condition, const void* a, const void* b, void* y, size_t n, size_t size,
           const WhereStrides& strides);

// How many elements one task should handle so that its work outweighs its start.
size_t ElementwiseGrain(UnaryOp op);
size_t ElementwiseGrain(BinaryOp op);

}  // namespace tenon::kernels
