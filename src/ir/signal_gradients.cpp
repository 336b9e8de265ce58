// The gradients of Fourier transforms.
#include <vector>

#include "ir/gradient_rules.h"

namespace tenon {
namespace {

constexpr int32_t kFirstWithAxisAsInput = 20;  // of DFT

// The axis of a transform, not negative: as one integer in one dimension, and, where it is an
// attribute, as a number.
struct SignalAxis {
  ValueId value;
  int64_t number = 0;
};

SignalAxis AxisOf(Builder& b, const Inputs& in, int64_t rank) {
  if (in.node.opset < kFirstWithAxisAsInput) {
    const int64_t axis = in.node.GetInt("axis", 1), number = axis < 0 ? axis + rank : axis;
    return {Integer(b, number), number};
  }
  const ValueId one = Integer(b, 1);
  if (in.x(2) == ValueId::kNone) return {Integer(b, rank - 2)};
  const ValueId axis = b.CastTo(b.Op("Reshape", {in.x(2), one}), one);
  const ValueId is_negative = b.Op("Less", {axis, Integer(b, 0)});
  return {Where(b, is_negative, Add(b, axis, Integer(b, rank)), axis)};
}

ValueId TransformOf(Builder& b, ValueId x, ValueId length, const SignalAxis& axis, bool is_inverse,
                    bool is_onesided) {
  std::vector<Attribute> attributes =
      Attributes(Int("inverse", is_inverse), Int("onesided", is_onesided));
  if (b.opset() >= kFirstWithAxisAsInput) {
    return b.Op("DFT", {x, length, b.Op("Squeeze", {axis.value})}, std::move(attributes));
  }
  attributes.push_back(Int("axis", axis.number));
  return b.Op("DFT", {x, length}, std::move(attributes));
}

// A list with another number at one place.
ValueId Replaced(Builder& b, ValueId list, ValueId place, ValueId number) {
  return b.Op("ScatterElements", {list, place, number});
}

// y = A x for the matrix A of a transform, so dx = A^H dy: the transform in the other direction,
// without the division that the inverse has, or with it.
Result<Gradients> Dft(Builder& b, const Inputs& in) {
  const ValueId x = in.x(0);
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, x));
  const SignalAxis axis = AxisOf(b, in, rank);
  const bool is_inverse = in.node.GetInt("inverse", 0) != 0;
  const bool is_onesided = in.node.GetInt("onesided", 0) != 0;
  const bool to_real = is_inverse && is_onesided;
  const auto along = [&](ValueId value) {
    return b.Op("Gather", {b.Op("Shape", {value}), axis.value});
  };
  const ValueId one = Integer(b, 1), two = Integer(b, 2), size = along(x);
  ValueId length = size;  // of the transform
  if (in.x(1) != ValueId::kNone) {
    length = b.CastTo(b.Op("Reshape", {in.x(1), one}), size);
  } else if (to_real) {
    length = Mul(b, two, Sub(b, size, one));
  }
  // Half a spectrum is continued by zeros.
  ValueId dx = TransformOf(b, in.dy(), b.Op("Squeeze", {length}), axis, !is_inverse, to_real);
  const ValueId count = b.CastTo(length, x), found = along(dx);
  dx = is_inverse ? Div(b, dx, count) : Mul(b, dx, count);
  if (to_real) {
    // All but the first and the middle stand for two numbers.
    const ValueId place = NumbersTo(b, b.Op("Squeeze", {found}));
    const ValueId is_first = b.Op("Equal", {place, Integer(b, 0)});
    const ValueId is_middle = b.Op("Equal", {Mul(b, place, two), length});
    const ValueId factor =
        Where(b, b.Op("Or", {is_first, is_middle}), b.Scalar(1, x), b.Scalar(2, x));
    const ValueId ones = b.Integers(std::vector<int64_t>(static_cast<size_t>(rank), 1));
    dx = Mul(b, dx, b.Op("Reshape", {factor, Replaced(b, ones, axis.value, found)}));
  }
  // x was cut or continued by zeros to the length; a real one has no imaginary parts.
  const ValueId zeros = b.Integers(std::vector<int64_t>(static_cast<size_t>(2 * rank - 1), 0));
  const ValueId parts = Joined(b, {zeros, Sub(b, SizeOf(b, x, rank - 1), two)}, 0);
  const ValueId pads =
      Replaced(b, parts, Add(b, axis.value, Integer(b, rank)), Sub(b, size, found));
  return Gradients{b.Op("Pad", {dx, pads})};
}

// [batch, frames, bins, 2]: DFT of frames, which overlap.
Result<Gradients> Stft(Builder& b, const Inputs& in) {
  enum Input : size_t { kSignal, kStep, kWindow, kLength };
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, in.x(kSignal)));
  return OfComposition(b, in, [&](const std::vector<ValueId>& inputs) {
    const auto input = [&](size_t i) { return i < inputs.size() ? inputs[i] : ValueId::kNone; };
    const ValueId signal = inputs[kSignal], one = Integer(b, 1);
    const auto integer = [&](ValueId value) {
      return b.CastTo(b.Op("Reshape", {value, one}), one);
    };
    const ValueId length = input(kLength) != ValueId::kNone   ? integer(inputs[kLength])
                           : input(kWindow) != ValueId::kNone ? SizeOf(b, inputs[kWindow], 0)
                                                              : SizeOf(b, signal, 1);
    const ValueId scalar_length = b.Op("Squeeze", {length});
    const ValueId starts = Mul(b, Numbers(b, in.y(), 1), integer(inputs[kStep]));
    const ValueId places = Add(b, Unsqueezed(b, starts, 1), NumbersTo(b, scalar_length));
    ValueId frames = b.Op("Gather", {signal, places}, Attributes(Int("axis", 1)));
    if (rank == 2) frames = Unsqueezed(b, frames, -1);
    if (input(kWindow) != ValueId::kNone) {
      frames = Mul(b, frames, Unsqueezed(b, inputs[kWindow], -1));
    }
    const bool is_onesided = in.node.GetInt("onesided", 1) != 0;
    return Gradients{TransformOf(b, frames, scalar_length, {Integer(b, 2), 2}, false, is_onesided)};
  });
}

constexpr NamedGradientRule kRules[] = {
    {"DFT", Dft, 17},
    {"STFT", Stft, 17},
};

}  // namespace

std::span<const NamedGradientRule> SignalGradients() { return kRules; }

}  // namespace tenon
