// The gradients of QuantizeLinear and DequantizeLinear. Rounding passes them straight through where
// the result is in the range of its type, as PyTorch's fake quantization does.
#include <cmath>

#include "ir/gradient_rules.h"

namespace tenon {
namespace {

// How the scales of a node, which its zero points are like, belong to the elements of x.
class ScaleAxes {
 public:
  // Error: kNotImplemented if ranks are unknown.
  static Result<ScaleAxes> Of(Builder& b, const Inputs& in) {
    ScaleAxes axes(b, in);
    axes.block_ = in.node.GetInt("block_size", 0);
    TENON_ASSIGN_OR_RETURN(const int64_t scale_rank, RankOf(b, in, in.x(1)));
    axes.is_one_ = axes.block_ == 0 && (scale_rank == 0 || (*b.ShapeOf(in.x(1)))[0] == Dim(1));
    if (axes.is_one_) return axes;
    TENON_ASSIGN_OR_RETURN(axes.rank_, RankOf(b, in, in.x(0)));
    const int64_t axis = in.node.GetInt("axis", 1);
    axes.axis_ = axis < 0 ? axis + axes.rank_ : axis;
    return axes;
  }

  // A number for each scale, to be broadcast to x.
  ValueId Spread(ValueId numbers) const {
    if (is_one_) return numbers;
    if (block_ == 0) return AlongAxis(b_, numbers, axis_, rank_);
    return b_.Op("Gather", {numbers, Blocks()}, Attributes(Int("axis", axis_)));
  }

  // The sums for each scale of numbers in the shape of x.
  ValueId Collected(ValueId numbers) const {
    const ValueId scale = in_.x(1);
    if (is_one_) return b_.SumTo(numbers, scale, nullptr);
    if (block_ == 0) {
      std::vector<int64_t> others = AxesBetween(0, rank_);
      others.erase(others.begin() + axis_);
      return SumOver(b_, numbers, others, false);
    }
    const ValueId places =
        b_.Op("Expand", {AlongAxis(b_, Blocks(), axis_, rank_), b_.Op("Shape", {numbers})});
    return b_.Op("ScatterElements", {b_.CastTo(b_.Filled(0, scale), numbers), places, numbers},
                 Attributes(Int("axis", axis_), Attribute("reduction", std::string("add"))));
  }

 private:
  ScaleAxes(Builder& b, const Inputs& in) : b_(b), in_(in) {}

  // The block of each place along the axis.
  ValueId Blocks() const { return Div(b_, Numbers(b_, in_.x(0), axis_), b_.IntegerScalar(block_)); }

  Builder& b_;
  const Inputs& in_;
  int64_t block_ = 0, axis_ = 0, rank_ = 0;
  bool is_one_ = false;
};

// y = (x - zero_point) scale
Result<Gradients> DequantizeLinear(Builder& b, const Inputs& in) {
  TENON_ASSIGN_OR_RETURN(const ScaleAxes axes, ScaleAxes::Of(b, in));
  const ValueId scale = in.x(1), dy = b.CastTo(in.dy(), scale);
  ValueId steps = b.CastTo(in.x(0), scale);
  if (in.x(2) != ValueId::kNone) {
    steps = Sub(b, steps, axes.Spread(b.CastTo(in.x(2), scale)));
  }
  return Gradients{Mul(b, dy, axes.Spread(scale)), axes.Collected(Mul(b, dy, steps))};
}

// y = x / scale + zero_point, rounded, if that is in the range of its type, else an end of it.
Result<Gradients> QuantizeLinear(Builder& b, const Inputs& in) {
  const DataType type = b.graph().value(in.y()).type.element_type;
  constexpr TypeSet kSigned = {DataType::kInt2, DataType::kInt4, DataType::kInt8, DataType::kInt16};
  constexpr TypeSet kUnsigned = {DataType::kUint2, DataType::kUint4, DataType::kUint8,
                                 DataType::kUint16};
  const bool is_signed = kSigned.Contains(type);
  if (!is_signed && !kUnsigned.Contains(type)) {
    return NotImplemented("{} has no gradient yet for {}", in.node.Describe(), DataTypeName(type));
  }
  TENON_ASSIGN_OR_RETURN(const ScaleAxes axes, ScaleAxes::Of(b, in));
  const double count = std::ldexp(1.0, static_cast<int>(DataTypeBits(type)));
  const double low = is_signed ? -count / 2 : 0, high = low + count - 1;
  const ValueId x = in.x(0), dy = b.CastTo(in.dy(), x);
  const ValueId scale = axes.Spread(b.CastTo(in.x(1), x)), ratio = Div(b, x, scale);
  ValueId level = b.Op("Round", {ratio});
  if (in.x(2) != ValueId::kNone) level = Add(b, level, axes.Spread(b.CastTo(in.x(2), x)));
  const ValueId is_beyond = b.Op(
      "Or", {b.Op("Less", {level, b.Scalar(low, x)}), b.Op("Greater", {level, b.Scalar(high, x)})});
  const ValueId dx = Where(b, is_beyond, b.Scalar(0, x), Div(b, dy, scale));
  return Gradients{dx, b.CastTo(axes.Collected(b.Op("Neg", {Mul(b, dx, ratio)})), in.x(1))};
}

constexpr NamedGradientRule kRules[] = {
    {"DequantizeLinear", DequantizeLinear, 10},
    {"DequantizeLinear", DequantizeLinear, 1, kMicrosoft},
    {"QuantizeLinear", QuantizeLinear, 10},
    {"QuantizeLinear", QuantizeLinear, 1, kMicrosoft},
};

}  // namespace

std::span<const NamedGradientRule> QuantizedGradients() { return kRules; }

}  // namespace tenon
