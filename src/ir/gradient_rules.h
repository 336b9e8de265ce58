// What the rules of gradients share, and their families.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "ir/gradient.h"

namespace tenon {

using Gradients = std::vector<ValueId>;
using Builder = GradientBuilder;
using Inputs = GradientInputs;

inline constexpr const char* kMicrosoft = "com.microsoft";
inline constexpr const char* kTenon = "com.tenon";

struct NamedGradientRule {
  std::string_view op_type;
  GradientRule rule;
  int32_t since = 1;  // earlier versions mean something else
  std::string_view domain = "";
};

// Functions of one element of each input, which may be broadcast.
std::span<const NamedGradientRule> ElementGradients();
// Functions that bend one value, with parameters.
std::span<const NamedGradientRule> ActivationGradients();
// Operators that move elements, and those that pick some.
std::span<const NamedGradientRule> ShapeGradients();
// Reductions, and softmax.
std::span<const NamedGradientRule> ReductionGradients();
// Products and convolutions.
std::span<const NamedGradientRule> ProductGradients();
// Pools, and other windows that move over images.
std::span<const NamedGradientRule> PoolGradients();
// Normalizations, Dropout and losses.
std::span<const NamedGradientRule> LayerGradients();
// Operators that are computed again by simpler ones.
std::span<const NamedGradientRule> ComposedGradients();
// Attention, and what passes a state from token to token.
std::span<const NamedGradientRule> AttentionGradients();
std::span<const NamedGradientRule> StateGradients();
// Operators with subgraphs.
std::span<const NamedGradientRule> ControlGradients();
// Operators that resize images, and those that take samples at positions that are computed.
std::span<const NamedGradientRule> ImageGradients();
std::span<const NamedGradientRule> SampledGradients();
// Fourier transforms.
std::span<const NamedGradientRule> SignalGradients();
// QuantizeLinear and DequantizeLinear.
std::span<const NamedGradientRule> QuantizedGradients();
// LSTM, GRU and RNN.
std::span<const NamedGradientRule> RecurrentGradients();

// An attribute that is an integer. As most are, calls are shorter with it than with an Attribute.
struct Int {
  const char* name;
  int64_t value;
  Int(const char* given_name, int64_t given) : name(given_name), value(given) {}
  operator Attribute() const;  // NOLINT(google-explicit-constructor)
};

std::vector<Attribute> Attributes(Int first);
std::vector<Attribute> Attributes(Int first, Int second);
std::vector<Attribute> Attributes(Attribute first);
std::vector<Attribute> Attributes(Attribute first, Attribute second);
std::vector<Attribute> Attributes(Attribute first, Attribute second, Attribute third);
// Copies of the attributes of `node`, without those named.
std::vector<Attribute> AttributesBut(const Node& node,
                                     std::initializer_list<std::string_view> left_out = {});

ValueId Add(Builder& b, ValueId x, ValueId y);
ValueId Sub(Builder& b, ValueId x, ValueId y);
ValueId Mul(Builder& b, ValueId x, ValueId y);
ValueId Div(Builder& b, ValueId x, ValueId y);
ValueId Square(Builder& b, ValueId x);
ValueId Where(Builder& b, ValueId condition, ValueId x, ValueId y);

// `value * factor`, and `value + term`, with a number in the type of `value`.
ValueId Times(Builder& b, ValueId value, double factor);
ValueId Plus(Builder& b, ValueId value, double term);

// The gradient of an operand that was broadcast to the output.
ValueId SumTo(Builder& b, const Inputs& in, ValueId gradient, ValueId operand);

// One integer in one dimension.
ValueId Integer(Builder& b, int64_t value);

// The value in the shape of `like`.
ValueId ReshapeLike(Builder& b, ValueId value, ValueId like);

// The sum along these axes, which stay with size 1, or do not. Without axes, when each element is
// alone, it is the value.
ValueId SumOver(Builder& b, ValueId value, std::span<const int64_t> axes, bool keeps = true);
// The mean along these axes, which stay with size 1.
ValueId MeanOver(Builder& b, ValueId value, std::span<const int64_t> axes);

// The whole numbers of [begin, end).
std::vector<int64_t> AxesBetween(int64_t begin, int64_t end);

// Values joined along an axis.
ValueId Joined(Builder& b, std::span<const ValueId> parts, int64_t axis);
ValueId Joined(Builder& b, std::initializer_list<ValueId> parts, int64_t axis);
ValueId Transposed(Builder& b, ValueId value, std::vector<int64_t> order);
ValueId Unsqueezed(Builder& b, ValueId value, int64_t axis);

// The size of an axis as one integer in one dimension, and those of the axes [first, last).
ValueId SizeOf(Builder& b, ValueId value, int64_t axis);
ValueId Sizes(Builder& b, ValueId value, int64_t first, int64_t last);
// 0, 1, 2 ... up to a scalar, or as many as an axis of the value has.
ValueId NumbersTo(Builder& b, ValueId count);
ValueId Numbers(Builder& b, ValueId value, int64_t axis);
// [size] as [1..., size, 1...], which is broadcast along `axis` of `rank`.
ValueId AlongAxis(Builder& b, ValueId value, int64_t axis, int64_t rank);

// The gradients of the inputs, if `compute` makes the outputs, or the first ones, of copies of
// them: a Gradient of their own differentiates what it adds. Error: kNotImplemented, naming the
// operator, if an output that it does not make has a gradient.
Result<Gradients> OfComposition(
    Builder& b, const Inputs& in,
    FunctionRef<std::vector<ValueId>(const std::vector<ValueId>& inputs)> compute);

// The rank of a value. Error: kNotImplemented, naming the operator, if it is unknown.
Result<int64_t> RankOf(const Builder& b, const Inputs& in, ValueId value);

// Error: kNotImplemented if an output from `first` on has a gradient.
Status CheckOnlyFirst(const Inputs& in, size_t first = 1);
// Error: kNotImplemented if the node has the input `i`, of which `name` tells what it is.
Status CheckWithout(Builder& b, const Inputs& in, size_t i, const char* name);

}  // namespace tenon
