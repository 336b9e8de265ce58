#include "ops/fusion/quantized_operands.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "ir/graph.h"
#include "ops/fusion/fuse_epilogue.h"

namespace tenon {
namespace {

bool IsInt8(DataType type) { return type == DataType::kInt8 || type == DataType::kUint8; }

// Whether the zero point is absent or a constant.
bool IsKnownZero(const Match& match, const OperandNames& names) {
  return match[names.zero] == ValueId::kNone || match.constant(names.zero);
}

struct Int8Range {
  int min, max;
};
Int8Range RangeOf(DataType type) {
  return type == DataType::kInt8 ? Int8Range{-128, 127} : Int8Range{0, 255};
}

// The integer of a bound, which saturates.
int BoundOf(const Match& match, double bound) {
  const Int8Range range = RangeOf(OutputType(match));
  const double rounded =
      std::nearbyint(bound / match.scalar(kY.scale)) + ScalarOrZero(match, kY.zero);
  return static_cast<int>(
      std::clamp(rounded, static_cast<double>(range.min), static_cast<double>(range.max)));
}

struct Bounds {
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
};

// Of the activation; nothing if it is not a bound.
std::optional<Bounds> BoundsOf(const Match& match) {
  if (!match.FindNode("activation")) return Bounds{};
  const std::optional<kernels::ActivationSpec> spec = KnownActivation(match);
  if (spec && spec->op == UnaryOp::kRelu) return Bounds{.low = 0};
  if (spec && spec->op == UnaryOp::kClip) return Bounds{spec->alpha, spec->beta};
  return std::nullopt;
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

std::vector<Pattern> QuantizedOrActivated(const Pattern& x) {
  std::vector<Pattern> patterns = {Quantized(x)};
  for (const Pattern& activated : ActivationsOf(x)) patterns.push_back(Quantized(activated));
  return patterns;
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

bool QuantizesOrBounds(const Match& match) {
  return QuantizesToInt8(match) && BoundsOf(match).has_value();
}

ValueId Bounded(Replacement& r, ValueId y) {
  const Bounds bounds = *BoundsOf(r);
  const int low = BoundOf(r, bounds.low), high = BoundOf(r, bounds.high);
  const Int8Range range = RangeOf(OutputType(r));
  if (low == range.min && high == range.max) return y;
  return r.Op("Clip", {y, r.Constant("min", Int8Scalar(OutputType(r), low)),
                       r.Constant("max", Int8Scalar(OutputType(r), high))});
}

}  // namespace tenon
