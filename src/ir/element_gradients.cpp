// The gradients of functions of one element of each input, as graphs of the standard's operators.
#include <cmath>

#include "ir/gradient_rules.h"

namespace tenon {
namespace {

Result<Gradients> Identity(Builder&, const Inputs& in) { return Gradients{in.dy()}; }

// Functions whose values are constant between steps, or do not depend on the elements.
Result<Gradients> Nothing(Builder&, const Inputs& in) {
  return Gradients(in.node.inputs.size(), ValueId::kNone);
}

// Add, Sum: each operand gets the gradient.
Result<Gradients> Sums(Builder& b, const Inputs& in) {
  Gradients all;
  for (const ValueId x : in.node.inputs) all.push_back(SumTo(b, in, in.dy(), x));
  return all;
}

Result<Gradients> Difference(Builder& b, const Inputs& in) {
  return Gradients{SumTo(b, in, in.dy(), in.x(0)), SumTo(b, in, b.Op("Neg", {in.dy()}), in.x(1))};
}

Result<Gradients> Product(Builder& b, const Inputs& in) {
  return Gradients{SumTo(b, in, Mul(b, in.dy(), in.x(1)), in.x(0)),
                   SumTo(b, in, Mul(b, in.dy(), in.x(0)), in.x(1))};
}

// y = a / c: da = dy / c, dc = -y dy / c.
Result<Gradients> Ratio(Builder& b, const Inputs& in) {
  const ValueId ratio = b.Op("Div", {in.dy(), in.x(1)});
  return Gradients{SumTo(b, in, ratio, in.x(0)),
                   SumTo(b, in, b.Op("Neg", {Mul(b, ratio, in.y())}), in.x(1))};
}

// y = a^c: da = c a^(c - 1) dy, which is 0 where c is, and dc = ln(a) y dy, which is 0 where y
// stays 0 for other c: at a = 0 and c >= 0. It is NaN where a is negative, because y has no
// derivative.
Result<Gradients> Pow(Builder& b, const Inputs& in) {
  const ValueId a = in.x(0), c = b.CastTo(in.x(1), a);
  const ValueId less = b.Op("Sub", {c, b.Scalar(1, a)});
  const ValueId zero = b.Scalar(0, a);
  const ValueId slope = Mul(b, c, b.Op("Pow", {a, less}));
  const ValueId da = Mul(b, in.dy(), b.Op("Where", {b.Op("Equal", {c, zero}), zero, slope}));
  const ValueId is_flat =
      b.Op("And", {b.Op("Equal", {a, zero}), b.Op("Not", {b.Op("Less", {c, zero})})});
  const ValueId logarithm = b.Op("Where", {is_flat, zero, b.Op("Log", {a})});
  const ValueId dc = Mul(b, in.dy(), Mul(b, in.y(), logarithm));
  return Gradients{SumTo(b, in, da, a), b.CastTo(SumTo(b, in, dc, in.x(1)), in.x(1))};
}

Result<Gradients> Neg(Builder& b, const Inputs& in) { return Gradients{b.Op("Neg", {in.dy()})}; }

Result<Gradients> Abs(Builder& b, const Inputs& in) {
  return Gradients{Mul(b, in.dy(), b.Op("Sign", {in.x(0)}))};
}

Result<Gradients> Reciprocal(Builder& b, const Inputs& in) {
  return Gradients{b.Op("Neg", {Mul(b, in.dy(), Mul(b, in.y(), in.y()))})};
}

Result<Gradients> Exp(Builder& b, const Inputs& in) { return Gradients{Mul(b, in.dy(), in.y())}; }

Result<Gradients> Log(Builder& b, const Inputs& in) {
  return Gradients{b.Op("Div", {in.dy(), in.x(0)})};
}

Result<Gradients> Sqrt(Builder& b, const Inputs& in) {
  return Gradients{b.Op("Div", {in.dy(), b.Op("Add", {in.y(), in.y()})})};
}

Result<Gradients> Sin(Builder& b, const Inputs& in) {
  return Gradients{Mul(b, in.dy(), b.Op("Cos", {in.x(0)}))};
}

Result<Gradients> Cos(Builder& b, const Inputs& in) {
  return Gradients{b.Op("Neg", {Mul(b, in.dy(), b.Op("Sin", {in.x(0)}))})};
}

Result<Gradients> Choice(Builder& b, const Inputs& in) {
  const ValueId zero = b.Scalar(0, in.y());
  return Gradients{ValueId::kNone, SumTo(b, in, b.Op("Where", {in.x(0), in.dy(), zero}), in.x(1)),
                   SumTo(b, in, b.Op("Where", {in.x(0), zero, in.dy()}), in.x(2))};
}

// Cast, and CastLike, whose second input gives its type alone.
Result<Gradients> Cast(Builder& b, const Inputs& in) {
  return Gradients{b.CastTo(in.dy(), in.x(0)), ValueId::kNone};
}

// ---- trigonometry, and other slopes that are functions of x ------------------------------------

Result<Gradients> Tan(Builder& b, const Inputs& in) {
  return Gradients{Mul(b, in.dy(), Plus(b, Square(b, in.y()), 1))};
}

// 1 - x^2
ValueId OneLessSquare(Builder& b, ValueId x) { return Sub(b, b.Scalar(1, x), Square(b, x)); }

Result<Gradients> Asin(Builder& b, const Inputs& in) {
  return Gradients{Div(b, in.dy(), b.Op("Sqrt", {OneLessSquare(b, in.x(0))}))};
}

Result<Gradients> Acos(Builder& b, const Inputs& in) {
  return Gradients{b.Op("Neg", {Div(b, in.dy(), b.Op("Sqrt", {OneLessSquare(b, in.x(0))}))})};
}

Result<Gradients> Atan(Builder& b, const Inputs& in) {
  return Gradients{Div(b, in.dy(), Plus(b, Square(b, in.x(0)), 1))};
}

Result<Gradients> Sinh(Builder& b, const Inputs& in) {
  return Gradients{Mul(b, in.dy(), b.Op("Cosh", {in.x(0)}))};
}

Result<Gradients> Cosh(Builder& b, const Inputs& in) {
  return Gradients{Mul(b, in.dy(), b.Op("Sinh", {in.x(0)}))};
}

Result<Gradients> Asinh(Builder& b, const Inputs& in) {
  return Gradients{Div(b, in.dy(), b.Op("Sqrt", {Plus(b, Square(b, in.x(0)), 1)}))};
}

Result<Gradients> Acosh(Builder& b, const Inputs& in) {
  return Gradients{Div(b, in.dy(), b.Op("Sqrt", {Plus(b, Square(b, in.x(0)), -1)}))};
}

Result<Gradients> Atanh(Builder& b, const Inputs& in) {
  return Gradients{Div(b, in.dy(), OneLessSquare(b, in.x(0)))};
}

// 2 / sqrt(pi) exp(-x^2)
Result<Gradients> Erf(Builder& b, const Inputs& in) {
  const ValueId bell = b.Op("Exp", {b.Op("Neg", {Square(b, in.x(0))})});
  return Gradients{Mul(b, in.dy(), Times(b, bell, M_2_SQRTPI))};
}

// ---- several operands ---------------------------------------------------------------------------

Result<Gradients> Mean(Builder& b, const Inputs& in) {
  const ValueId share = Times(b, in.dy(), 1.0 / static_cast<double>(in.node.inputs.size()));
  Gradients all;
  for (const ValueId x : in.node.inputs) all.push_back(SumTo(b, in, share, x));
  return all;
}

// Max, Min: operands that are equal share the gradient, as in PyTorch.
Result<Gradients> Extreme(Builder& b, const Inputs& in) {
  Gradients is_chosen;
  ValueId count = ValueId::kNone;
  for (const ValueId x : in.node.inputs) {
    is_chosen.push_back(b.CastTo(b.Op("Equal", {x, in.y()}), in.y()));
    count = count == ValueId::kNone ? is_chosen[0] : Add(b, count, is_chosen.back());
  }
  const ValueId share = Div(b, in.dy(), count);
  Gradients all;
  for (size_t i = 0; i < is_chosen.size(); ++i) {
    all.push_back(SumTo(b, in, Mul(b, share, is_chosen[i]), in.x(i)));
  }
  return all;
}

// Mod of floats: y = a - c trunc(a / c).
Result<Gradients> Mod(Builder& b, const Inputs& in) {
  const ValueId ratio = Div(b, in.x(0), in.x(1));
  const ValueId whole = Mul(b, b.Op("Sign", {ratio}), b.Op("Floor", {b.Op("Abs", {ratio})}));
  return Gradients{SumTo(b, in, in.dy(), in.x(0)),
                   SumTo(b, in, b.Op("Neg", {Mul(b, in.dy(), whole)}), in.x(1))};
}

// Clip: the gradient where x is inside, which its bounds are; a bound has it where x is beyond.
Result<Gradients> Clip(Builder& b, const Inputs& in) {
  constexpr int32_t kFirstWithBoundsAsInputs = 11;
  const ValueId x = in.x(0), zero = b.Scalar(0, x);
  ValueId low = in.x(1), high = in.x(2);
  if (in.node.opset < kFirstWithBoundsAsInputs) {
    const auto bound = [&](const char* name) {
      return in.node.FindAttribute(name) ? b.Scalar(in.node.GetFloat(name, 0), x) : ValueId::kNone;
    };
    low = bound("min"), high = bound("max");
  }
  Gradients all = {in.dy(), ValueId::kNone, ValueId::kNone};
  const auto split = [&](ValueId is_beyond, size_t bound) {
    all[bound] =
        b.Op("ReduceSum", {Where(b, is_beyond, all[0], zero)}, Attributes(Int("keepdims", 0)));
    all[0] = Where(b, is_beyond, zero, all[0]);
  };
  // The upper bound comes last, so that it counts where it is below the lower one.
  const ValueId raised = low == ValueId::kNone ? x : b.Op("Max", {x, low});
  if (high != ValueId::kNone) split(b.Op("Greater", {raised, high}), 2);
  if (low != ValueId::kNone) split(b.Op("Less", {x, low}), 1);
  if (in.node.opset < kFirstWithBoundsAsInputs) all.resize(1);
  return all;
}

constexpr NamedGradientRule kRules[] = {
    {"Abs", Abs},
    {"Acos", Acos},
    {"Acosh", Acosh},
    {"Add", Sums, 7},
    {"Asin", Asin},
    {"Asinh", Asinh},
    {"Atan", Atan},
    {"Atanh", Atanh},
    {"Cast", Cast},
    {"CastLike", Cast},
    {"Bernoulli", Nothing},
    {"Ceil", Nothing},
    {"Clip", Clip, 6},
    {"Cos", Cos},
    {"Cosh", Cosh},
    {"Div", Ratio, 7},
    {"Erf", Erf},
    {"Exp", Exp},
    {"EyeLike", Nothing},
    {"Floor", Nothing},
    {"Hardmax", Nothing},
    {"Identity", Identity},
    {"Log", Log},
    {"Max", Extreme, 8},
    {"Mean", Mean, 8},
    {"Min", Extreme, 8},
    {"Mod", Mod},
    {"Mul", Product, 7},
    {"Neg", Neg},
    {"Pow", Pow, 7},
    {"RandomNormalLike", Nothing},
    {"RandomUniformLike", Nothing},
    {"Reciprocal", Reciprocal},
    {"Round", Nothing},
    {"Sign", Nothing},
    {"Sin", Sin},
    {"Sinh", Sinh},
    {"Sqrt", Sqrt},
    {"Sub", Difference, 7},
    {"Sum", Sums, 8},
    {"Tan", Tan},
    {"Where", Choice},
};

}  // namespace

std::span<const NamedGradientRule> ElementGradients() { return kRules; }

}  // namespace tenon
