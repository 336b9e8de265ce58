#include "ir/quantized_patterns.h"

#include "ir/graph.h"

namespace tenon {
namespace {

bool IsInt8(DataType type) { return type == DataType::kInt8 || type == DataType::kUint8; }

// Whether the zero point is absent or a constant.
bool IsKnownZero(const Match& match, const OperandNames& names) {
  return match[names.zero] == ValueId::kNone || match.constant(names.zero);
}

}  // namespace

Pattern Dequantized(const OperandNames& names) {
  return Op("DequantizeLinear", {Any(names.integers), Constant(names.scale), Maybe(names.zero)})
      .As(names.node)
      .Shared();
}

Pattern Quantized(const Pattern& x) {
  return Op("QuantizeLinear", {x, Constant(kY.scale), Maybe(kY.zero)});
}

bool IsOneFloat(const Tensor* scale) {
  return scale && scale->type() == DataType::kFloat && scale->size() == 1;
}

// It may be unknown for a value that a rule made; the zero point then tells.
DataType TypeOf(const Match& match, const OperandNames& names) {
  const Tensor* zero = match.constant(names.zero);
  return zero ? zero->type() : match.type(names.integers).element_type;
}

bool HasOneScale(const Match& match, const OperandNames& names) {
  if (!IsOneFloat(match.constant(names.scale)) || !IsKnownZero(match, names)) return false;
  const Tensor* zero = match.constant(names.zero);
  return IsInt8(TypeOf(match, names)) && (!zero || zero->size() == 1);
}

bool HasLineScales(const Match& match, const OperandNames& names, size_t axis) {
  const Tensor* integers = match.graph().StoredConstantOf(match[names.integers]);
  const Tensor* scales = match.constant(names.scale);
  if (!integers || !IsInt8(integers->type()) || scales->type() != DataType::kFloat ||
      !IsKnownZero(match, names) || axis >= integers->rank()) {
    return false;
  }
  const Tensor* zero = match.constant(names.zero);
  if (zero && zero->size() != scales->size()) return false;
  if (scales->size() == 1) return true;
  const Result<size_t> along =
      NormalizeAxis(match.node(names.node).GetInt("axis", 1), integers->rank());
  return scales->rank() == 1 && along && *along == axis &&
         scales->size() == integers->shape()[axis];
}

ValueId ZeroOf(Replacement& r, const OperandNames& names) {
  const ValueId zero = r[names.zero];
  return zero != ValueId::kNone ? zero : r.Constant("zero_point", Int8Scalar(TypeOf(r, names), 0));
}

double ScalarOrZero(const Match& match, std::string_view name) {
  return match.constant(name) ? match.scalar(name) : 0;
}

Tensor Int8Scalar(DataType type, int value) {
  if (type == DataType::kInt8) return Tensor::Of<int8_t>({}, {static_cast<int8_t>(value)});
  return Tensor::Of<uint8_t>({}, {static_cast<uint8_t>(value)});
}

bool QuantizesToInt8(const Match& match) {
  const Tensor* zero = match.constant(kY.zero);
  return IsOneFloat(match.constant(kY.scale)) && IsKnownZero(match, kY) &&
         (!zero || zero->size() == 1) && IsInt8(OutputType(match));
}

DataType OutputType(const Match& match) { return match.output_type().element_type; }

ValueId OutputZero(Replacement& r) {
  const ValueId zero = r[kY.zero];
  return zero != ValueId::kNone ? zero : r.Constant("zero_point", Int8Scalar(OutputType(r), 0));
}

}  // namespace tenon
