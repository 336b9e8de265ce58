#include "ops/fusion/quantized_operands.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "ir/graph.h"
#include "ops/fusion/fuse_epilogue.h"

namespace tenon {
namespace {

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

// The elements of a float constant, dequantized or not, of rank 1.
std::optional<std::vector<double>> KnownFloats(const Graph& graph, ValueId id) {
  const Tensor* stored = graph.ConstantOf(id);
  std::vector<double> values;
  if (stored && stored->type() == DataType::kFloat && stored->rank() == 1) {
    for (const float value : stored->values<float>()) values.push_back(value);
    return values;
  }
  const NodeId producer = graph.value(id).producer;
  if (stored || producer == NodeId::kNone) return std::nullopt;
  const Node& node = graph.node(producer);
  if (node.op_type != "DequantizeLinear" || !node.domain.empty()) return std::nullopt;
  const Tensor* integers = graph.ConstantOf(node.inputs[0]);
  const Tensor* scales = graph.ConstantOf(node.inputs[1]);
  if (!integers || integers->type() != DataType::kInt32 || integers->rank() != 1 || !scales ||
      scales->type() != DataType::kFloat ||
      (scales->size() != 1 && scales->size() != integers->size())) {
    return std::nullopt;
  }
  const Tensor* zero = node.has_input(2) ? graph.ConstantOf(node.inputs[2]) : nullptr;
  if (node.has_input(2)) {
    if (!zero || zero->type() != DataType::kInt32) return std::nullopt;
    const auto zeros = zero->values<int32_t>();
    if (std::any_of(zeros.begin(), zeros.end(), [](int32_t z) { return z != 0; })) {
      return std::nullopt;
    }
  }
  for (int64_t i = 0; i < integers->size(); ++i) {
    const double scale = scales->data<float>()[scales->size() > 1 ? i : 0];
    values.push_back(integers->data<int32_t>()[i] * scale);
  }
  return values;
}

}  // namespace

std::vector<Pattern> QuantizedOrActivated(const Pattern& x) {
  std::vector<Pattern> patterns = {Quantized(x)};
  for (const Pattern& activated : ActivationsOf(x)) patterns.push_back(Quantized(activated));
  return patterns;
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

std::optional<std::vector<int32_t>> IntegerBias(const Match& match, int64_t channels,
                                                double factor) {
  const auto values = KnownFloats(match.graph(), match["bias"]);
  if (!values || values->size() != static_cast<size_t>(channels)) return std::nullopt;
  const double a_scale = factor * match.scalar(kA.scale);
  const Tensor& b_scales = *match.constant(kB.scale);
  constexpr double kMost = std::numeric_limits<int32_t>::max(), kMostProduct = 255.0 * 255.0;
  const int64_t depth = match.graph().StoredConstantOf(match[kB.integers])->size() / channels;
  const double limit = kMost - std::min(kMost / 2, static_cast<double>(depth) * kMostProduct);
  const double negligible = match.scalar(kY.scale) / 1024;  // 0 if results are floats
  std::vector<int32_t> bias;
  for (size_t i = 0; i < values->size(); ++i) {
    const double b_scale = b_scales.data<float>()[b_scales.size() > 1 ? i : 0];
    const double rounded = std::nearbyint((*values)[i] / (a_scale * b_scale));
    const bool fits = std::abs(rounded) <= limit;
    const double lost = (std::abs(rounded) - limit) * a_scale * b_scale;
    if (!fits && !(lost <= negligible)) return std::nullopt;  // NaN, too
    bias.push_back(static_cast<int32_t>(fits ? rounded : std::copysign(limit, rounded)));
  }
  return bias;
}

bool HasIntegerBias(const Match& match, int64_t channels, double factor) {
  return match["bias"] == ValueId::kNone || IntegerBias(match, channels, factor).has_value();
}

}  // namespace tenon
