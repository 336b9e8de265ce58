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

}  // namespace tenon
