// What rules for quantized operators share: patterns of operands and results, their scales and zero
// points.
#pragma once

#include <string_view>

#include "ir/rewrite.h"

namespace tenon {

// The names in a pattern of a quantized operand.
struct OperandNames {
  std::string_view node, integers, scale, zero;
};
inline constexpr OperandNames kA = {"dequantize a", "a", "a scale", "a zero"};
inline constexpr OperandNames kB = {"dequantize b", "b", "b scale", "b zero"};
inline constexpr OperandNames kY = {"", "", "y scale", "y zero"};

// A DequantizeLinear with a constant scale, and a QuantizeLinear of `x` with one.
Pattern Dequantized(const OperandNames& names);
Pattern Quantized(const Pattern& x);

// Whether a scale is there, and is one float.
bool IsOneFloat(const Tensor* scale);
// The type of an operand's integers.
DataType TypeOf(const Match& match, const OperandNames& names);
// Whether the operand has int8 or uint8 elements with one scale.
bool HasOneScale(const Match& match, const OperandNames& names);
// Whether the operand is a constant of such elements, with one scale or with one for each index of
// `axis`.
bool HasLineScales(const Match& match, const OperandNames& names, size_t axis);
// The zero point of the operand, which may have to be made.
ValueId ZeroOf(Replacement& r, const OperandNames& names);
// Of a constant, or 0 if there is none.
double ScalarOrZero(const Match& match, std::string_view name);
// A scalar of type int8 or uint8.
Tensor Int8Scalar(DataType type, int value);

// Whether the root is a QuantizeLinear to int8 or uint8 with one scale.
bool QuantizesToInt8(const Match& match);
DataType OutputType(const Match& match);
ValueId OutputZero(Replacement& r);

}  // namespace tenon
