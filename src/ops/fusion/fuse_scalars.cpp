// Multiplications and additions of scalars that follow each other, as in the normalization of a
// picture: (x / 255 - mean) / deviation is a product and a sum.
//
// The constants are combined in double and rounded once. No rule makes an error larger than those
// of the operations that it replaces: terms of unlike signs stay apart, because x + 2^23 - 2^23 is
// a way to round x.
#include <cmath>

#include "ir/graph.h"
#include "ir/scalar.h"
#include "ops/fusion/fusion.h"

namespace tenon {
namespace {

Pattern Scaled(Pattern x, std::string_view factor) {
  return OpOf({"Mul", "Div"}, {std::move(x), Scalar(factor)});
}

Pattern Shifted(Pattern x, std::string_view term) {
  return OpOf({"Add", "Sub"}, {std::move(x), Scalar(term)});
}

// What `node` multiplies by, or adds.
double FactorOf(const Node& node, double constant) {
  return node.op_type == "Div" ? 1 / constant : constant;
}
double TermOf(const Node& node, double constant) {
  return node.op_type == "Sub" ? -constant : constant;
}

// Whether a product with it, and with others like it, neither overflows nor loses digits.
bool IsModerate(double factor) {
  const double magnitude = std::abs(factor);
  return magnitude >= 0x1p-40 && magnitude <= 0x1p40;
}

bool IsWide(const Match& match) {
  const DataType type = match.output_type().element_type;
  return type == DataType::kFloat || type == DataType::kDouble;
}

double InnerFactor(const Match& match) { return FactorOf(match.node("scale"), match.scalar("a")); }
double MiddleTerm(const Match& match) { return TermOf(match.node("shift"), match.scalar("b")); }
double OuterFactor(const Match& match) { return FactorOf(match.root(), match.scalar("c")); }
double OuterTerm(const Match& match) { return TermOf(match.root(), match.scalar("c")); }

bool CanScaleOnce(const Match& match) {
  const double inner = InnerFactor(match), outer = OuterFactor(match);
  return IsWide(match) && IsModerate(inner) && IsModerate(outer) && IsModerate(inner * outer);
}

bool CanShiftOnce(const Match& match) {
  return IsWide(match) && MiddleTerm(match) * OuterTerm(match) > 0;
}

bool CanScaleTerm(const Match& match) {
  return CanScaleOnce(match) && IsModerate(MiddleTerm(match) * OuterFactor(match));
}

// op_type(x, value), with a constant of the root's type.
ValueId WithScalar(Replacement& r, std::string op_type, ValueId x, double value) {
  Result<Tensor> constant = MakeScalar(r.output_type().element_type, value);
  if (!constant) return ValueId::kNone;
  return r.Op(std::move(op_type), {x, r.Constant("scalar", std::move(*constant))});
}

ValueId ScaleOnce(Replacement& r) {
  return WithScalar(r, "Mul", r["x"], InnerFactor(r) * OuterFactor(r));
}

ValueId ShiftOnce(Replacement& r) {
  return WithScalar(r, "Add", r["x"], MiddleTerm(r) + OuterTerm(r));
}

ValueId ScaleTerm(Replacement& r) {
  const ValueId product = ScaleOnce(r);
  if (product == ValueId::kNone) return product;
  r.TakeShape(product, r.root().outputs[0]);
  return WithScalar(r, "Add", product, MiddleTerm(r) * OuterFactor(r));
}

}  // namespace

std::vector<Fusion> ScalarFusions() {
  const Pattern x = Any("x");
  const Pattern scaled = Scaled(x, "a").As("scale");
  return {
      {"", "Mul", {"scale scale", Scaled(scaled, "c"), CanScaleOnce, ScaleOnce}},
      {"",
       "Add",
       {"shift shift", Shifted(Shifted(x, "b").As("shift"), "c"), CanShiftOnce, ShiftOnce}},
      {"",
       "Add",
       {"scale shift scale", Scaled(Shifted(scaled, "b").As("shift"), "c"), CanScaleTerm,
        ScaleTerm}},
  };
}

}  // namespace tenon
