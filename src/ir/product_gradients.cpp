// The gradients of products, determinants and convolutions.
#include <algorithm>
#include <array>
#include <string>

#include "ir/gradient_rules.h"

namespace tenon {
namespace {

// ---- products -----------------------------------------------------------------------------------

// With the last two axes exchanged; the rank is at least 2.
ValueId Turned(Builder& b, ValueId x, int64_t rank) {
  std::vector<int64_t> order = AxesBetween(0, rank);
  std::swap(order[static_cast<size_t>(rank - 1)], order[static_cast<size_t>(rank - 2)]);
  return Transposed(b, x, std::move(order));
}

// y = a b: da = dy b', dc = a' dy. A vector is a row on the left, a column on the right.
Result<Gradients> MatMul(Builder& b, const Inputs& in) {
  TENON_ASSIGN_OR_RETURN(const int64_t left_rank, RankOf(b, in, in.x(0)));
  TENON_ASSIGN_OR_RETURN(const int64_t right_rank, RankOf(b, in, in.x(1)));
  ValueId a = in.x(0), c = in.x(1), dy = in.dy();
  if (right_rank == 1) c = Unsqueezed(b, c, 1), dy = Unsqueezed(b, dy, -1);
  if (left_rank == 1) a = Unsqueezed(b, a, 0), dy = Unsqueezed(b, dy, -2);
  const ValueId da = b.Op("MatMul", {dy, Turned(b, c, std::max<int64_t>(right_rank, 2))});
  const ValueId dc = b.Op("MatMul", {Turned(b, a, std::max<int64_t>(left_rank, 2)), dy});
  const auto reduced = [&](ValueId gradient, ValueId matrix, ValueId operand) {
    const bool has_batch = left_rank > 2 || right_rank > 2;
    const ValueId sum = has_batch ? b.SumTo(gradient, matrix, nullptr) : gradient;
    return matrix == operand ? sum : b.Op("Reshape", {sum, b.Op("Shape", {operand})});
  };
  return Gradients{reduced(da, a, in.x(0)), reduced(dc, c, in.x(1))};
}

// y = alpha A B + beta C, A and B perhaps transposed.
Result<Gradients> Gemm(Builder& b, const Inputs& in) {
  const float alpha = in.node.GetFloat("alpha", 1);
  const bool swaps_a = in.node.GetInt("transA", 0) != 0, swaps_b = in.node.GetInt("transB", 0) != 0;
  const auto product = [&](ValueId left, bool swaps_left, ValueId right, bool swaps_right) {
    return b.Op("Gemm", {left, right},
                Attributes(Attribute("alpha", alpha), Int("transA", swaps_left),
                           Int("transB", swaps_right)));
  };
  const ValueId a = in.x(0), c = in.x(1), dy = in.dy();
  Gradients all;
  all.push_back(swaps_a ? product(c, swaps_b, dy, true) : product(dy, false, c, !swaps_b));
  all.push_back(swaps_b ? product(dy, true, a, swaps_a) : product(a, !swaps_a, dy, false));
  if (in.x(2) != ValueId::kNone) {
    const ValueId scaled = Mul(b, dy, b.Scalar(in.node.GetFloat("beta", 1), dy));
    all.push_back(SumTo(b, in, scaled, in.x(2)));
  }
  return all;
}

// Of groups of rows. Where b has a matrix for each group, y = a b, or a b'. Where it has rows, y
// has a matrix for each group: a' b.
Result<Gradients> GroupedMatMul(Builder& b, const Inputs& in) {
  const ValueId a = in.x(0), c = in.x(1), dy = in.dy();
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, c));
  const bool swaps = in.node.GetInt("transB", 0) != 0;
  const auto product = [&](ValueId left, ValueId right, bool swaps_right) {
    return b.Op("GroupedMatMul", {left, right, in.x(2)}, Attributes(Int("transB", swaps_right)),
                kMicrosoft);
  };
  if (rank == 2) return Gradients{product(c, dy, true), product(a, dy, false)};
  return Gradients{product(dy, c, !swaps), swaps ? product(dy, a, false) : product(a, dy, false)};
}

// y = a w' + bias, where w is unpacked stripe by stripe in both directions.
Result<Gradients> MatMulNBits(Builder& b, const Inputs& in) {
  constexpr size_t kScales = 2, kZeroPoints = 3, kBias = 5;
  for (const size_t i : {kScales, kZeroPoints}) {
    if (in.x(i) == ValueId::kNone || !in.Needs(in.x(i))) continue;
    return NotImplemented("{} has no gradient yet for its input {}", in.node.Describe(), i);
  }
  std::vector<ValueId> inputs = in.node.inputs;
  inputs[0] = in.dy();
  inputs.resize(std::min(inputs.size(), kBias));
  Gradients all(kBias, ValueId::kNone);
  all[0] = b.Op("MatMulNBitsGrad", inputs, AttributesBut(in.node), kTenon);
  if (in.x(kBias) != ValueId::kNone) all.push_back(SumTo(b, in, in.dy(), in.x(kBias)));
  return all;
}

// The letters of one term of Einsum's equation; kEllipsis stands for "...".
using Labels = std::string;
constexpr char kEllipsis = '.';

bool Has(const Labels& labels, char label) { return labels.find(label) != Labels::npos; }

// The labels of an output that the equation does not give: the axes of "...", and the letters that
// occur once, in their order.
Labels ImplicitOutput(const std::string& inputs) {
  Labels letters;
  for (const char c : inputs) {
    const bool is_letter = c != ',' && c != kEllipsis;
    if (is_letter && std::count(inputs.begin(), inputs.end(), c) == 1) letters += c;
  }
  std::sort(letters.begin(), letters.end());
  return Has(inputs, kEllipsis) ? kEllipsis + letters : letters;
}

// The terms of the inputs, then that of the output.
std::vector<Labels> TermsOf(const Node& node) {
  std::string equation;
  for (const char c : node.GetString("equation", "")) {
    const bool is_again = c == kEllipsis && !equation.empty() && equation.back() == kEllipsis;
    if (c != ' ' && !is_again) equation += c;
  }
  const size_t arrow = equation.find("->");
  if (arrow == std::string::npos) {
    equation += "," + ImplicitOutput(equation);
  } else {
    equation.replace(arrow, 2, ",");
  }
  std::vector<Labels> terms(1);
  for (const char c : equation) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  return terms;
}

// The equation of terms that are separated by commas.
Attribute Equation(const std::string& inputs, const Labels& output) {
  std::string text;
  for (const char c : inputs + "->" + output) {
    if (c == kEllipsis) text += "..";
    text += c;
  }
  return Attribute("equation", std::move(text));
}

// The gradient of operand i: the product of the other operands and dy, in its labels. Labels that
// are in no other term were summed alone; along them it is repeated.
Result<ValueId> EinsumOperand(Builder& b, const Inputs& in, std::span<const Labels> terms,
                              size_t i) {
  const Labels& own = terms[i];
  const size_t last = terms.size() - 1;
  std::string others;
  std::vector<ValueId> factors;
  for (size_t k = 0; k <= last; ++k) {
    if (k == i) continue;
    if (!factors.empty()) others += ',';
    others += terms[k];
    factors.push_back(k == last ? in.dy() : in.x(k));
  }
  const bool has_ellipsis = Has(own, kEllipsis);
  const bool is_summed =
      std::any_of(own.begin(), own.end(), [&](char label) { return !Has(others, label); });
  int64_t ellipsis = 0;  // its axes, where they matter
  if (is_summed && has_ellipsis) {
    TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, in.x(i)));
    ellipsis = rank + 1 - static_cast<int64_t>(own.size());
  }
  // The axes of "..." that the operand lacks come first, and are summed in the end.
  Labels shared;
  if (Has(others, kEllipsis) && !has_ellipsis) shared += kEllipsis;
  std::vector<int64_t> alone;  // from the end
  int64_t rest = static_cast<int64_t>(own.size()) + (has_ellipsis ? ellipsis - 1 : 0);
  for (const char label : own) {
    const int64_t count = label == kEllipsis ? ellipsis : 1;
    if (Has(others, label)) {
      shared += label;
    } else {
      for (int64_t k = 0; k < count; ++k) alone.push_back(k - rest);
    }
    rest -= count;
  }
  ValueId gradient = b.Op("Einsum", factors, Attributes(Equation(others, shared)));
  if (!alone.empty()) {
    gradient = b.Op("Unsqueeze", {gradient, b.Integers(alone)});
    gradient = b.Op("Expand", {gradient, b.Op("Shape", {in.x(i)})});
  }
  return b.SumTo(gradient, in.x(i), nullptr);
}

// An identity matrix that ties two axes of an input, as the diagonal of these does.
struct Tie {
  size_t input;
  int64_t axis;  // negative if "..." comes before it
  Labels labels;
};

// Gives the axes of diagonals labels of their own. Error: kNotImplemented if there are not enough.
Result<std::vector<Tie>> TieDiagonals(const Node& node, std::vector<Labels>& terms) {
  std::string unused = "zyxwvutsrqponmlkjihgfedcbaZYXWVUTSRQPONMLKJIHGFEDCBA";
  for (const Labels& term : terms) {
    for (const char label : term) {
      unused.erase(std::remove(unused.begin(), unused.end(), label), unused.end());
    }
  }
  std::vector<Tie> ties;
  for (size_t i = 0; i + 1 < terms.size(); ++i) {
    for (size_t axis = 0; axis < terms[i].size(); ++axis) {
      char& label = terms[i][axis];
      const Labels before = terms[i].substr(0, axis);
      if (!Has(before, label)) continue;
      if (unused.empty()) {
        return NotImplemented("{} has no gradient yet: it has too many labels", node.Describe());
      }
      const size_t from_end = Has(before, kEllipsis) ? terms[i].size() : 0;
      ties.push_back({i, static_cast<int64_t>(axis) - static_cast<int64_t>(from_end),
                      Labels{label, unused.back()}});
      label = unused.back();
      unused.pop_back();
    }
  }
  return ties;
}

// The same product without diagonals, of the inputs and the matrices of `ties`.
Result<Gradients> EinsumOfTies(Builder& b, const Inputs& in, const std::vector<Labels>& terms,
                               const std::vector<Tie>& ties) {
  return OfComposition(b, in, [&](const std::vector<ValueId>& inputs) {
    std::vector<ValueId> factors = inputs;
    std::string labels = terms[0];
    for (size_t i = 1; i < inputs.size(); ++i) labels += "," + terms[i];
    for (const Tie& tie : ties) {
      const ValueId x = inputs[tie.input], size = SizeOf(b, x, tie.axis);
      const ValueId square = b.Op("Expand", {b.Scalar(0, x), Joined(b, {size, size}, 0)});
      factors.push_back(b.Op("EyeLike", {square}));
      labels += "," + tie.labels;
    }
    return Gradients{b.Op("Einsum", factors, Attributes(Equation(labels, terms.back())))};
  });
}

Result<Gradients> Einsum(Builder& b, const Inputs& in) {
  std::vector<Labels> terms = TermsOf(in.node);
  if (terms.size() != in.node.inputs.size() + 1) {
    return InvalidGraph("{}: the equation has {} terms for {} inputs", in.node.Describe(),
                        terms.size() - 1, in.node.inputs.size());
  }
  TENON_ASSIGN_OR_RETURN(const std::vector<Tie> ties, TieDiagonals(in.node, terms));
  if (!ties.empty()) return EinsumOfTies(b, in, terms, ties);
  Gradients all;
  for (size_t i = 0; i + 1 < terms.size(); ++i) {
    TENON_ASSIGN_OR_RETURN(all.emplace_back(), EinsumOperand(b, in, terms, i));
  }
  return all;
}

// ---- determinants -------------------------------------------------------------------------------

// dX = dy y X^-T, so a matrix without an inverse is an error of Inverse.
Result<Gradients> Det(Builder& b, const Inputs& in) {
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, in.x(0)));
  const ValueId inverse = b.Op("Inverse", {in.x(0)}, {}, kMicrosoft);
  const ValueId slope =
      b.Op("Unsqueeze", {Mul(b, in.dy(), in.y()), b.Integers(std::array<int64_t, 2>{-2, -1})});
  return Gradients{Mul(b, slope, Turned(b, inverse, rank))};
}

// dX = -Y' dY Y'
Result<Gradients> Inverse(Builder& b, const Inputs& in) {
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, in.x(0)));
  const ValueId turned = Turned(b, in.y(), rank);
  const ValueId product = b.Op("MatMul", {b.Op("MatMul", {turned, in.dy()}), turned});
  return Gradients{b.Op("Neg", {product})};
}

// ---- convolutions -------------------------------------------------------------------------------

enum Side : size_t { kOfX, kOfW, kOfBias };

// What of ConvGrad's results: dX, dW or dB.
ValueId ConvKernel(Builder& b, const Node& conv, ValueId dy, ValueId x, ValueId w, Side side) {
  return b.Ops("ConvGrad", std::array{dy, x, w}, side + 1, AttributesBut(conv), kMicrosoft)[side];
}

Result<Gradients> Conv(Builder& b, const Inputs& in) {
  return b.Ops("ConvGrad", std::array{in.dy(), in.x(0), in.x(1)}, in.node.inputs.size(),
               AttributesBut(in.node), kMicrosoft);
}

// ConvGrad again: dX is linear in dY and W, dW in dY and X, dB in dY.
Result<Gradients> ConvGradient(Builder& b, const Inputs& in) {
  const ValueId dy = in.x(0), x = in.x(1), w = in.x(2);
  const auto given = [&](size_t i) {
    return i < in.output_gradients.size() ? in.output_gradients[i] : ValueId::kNone;
  };
  const auto plus = [&](ValueId& sum, ValueId term) {
    sum = sum == ValueId::kNone ? term : Add(b, sum, term);
  };
  Gradients all(3, ValueId::kNone);
  if (given(kOfX) != ValueId::kNone) {
    plus(all[0], b.Op("Conv", {given(kOfX), w}, AttributesBut(in.node)));
    plus(all[2], ConvKernel(b, in.node, dy, given(kOfX), w, kOfW));
  }
  if (given(kOfW) != ValueId::kNone) {
    plus(all[0], b.Op("Conv", {x, given(kOfW)}, AttributesBut(in.node)));
    plus(all[1], ConvKernel(b, in.node, dy, x, given(kOfW), kOfX));
  }
  if (given(kOfBias) != ValueId::kNone) {
    TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, x));
    const ValueId bias = b.Op("Unsqueeze", {given(kOfBias), b.Integers(AxesBetween(1, rank - 1))});
    plus(all[0], b.Op("Expand", {bias, b.Op("Shape", {dy})}));
  }
  return all;
}

// What X makes of itself in ConvTranspose without pads, of which a given or a SAME output is a
// part: dY with zeros around it.
ValueId WithCutPads(Builder& b, const Inputs& in, int64_t rank) {
  const auto list = [&](const char* name, int64_t otherwise) {
    std::vector<int64_t> numbers = in.node.GetInts(name);
    numbers.resize(static_cast<size_t>(rank - 2), otherwise);
    return b.Integers(numbers);
  };
  const auto sizes = [&](ValueId value) { return Sizes(b, value, 2, rank); };
  const ValueId one = b.IntegerScalar(1), zero = b.IntegerScalar(0);
  const ValueId extent = Add(b, Mul(b, Sub(b, sizes(in.x(1)), one), list("dilations", 1)), one);
  const ValueId whole = Add(b, Mul(b, Sub(b, sizes(in.x(0)), one), list("strides", 1)), extent);
  const ValueId missing = Add(b, Sub(b, whole, sizes(in.dy())), list("output_padding", 0));
  const ValueId total = Where(b, b.Op("Less", {missing, zero}), zero, missing);
  const ValueId half = Div(b, total, b.IntegerScalar(2));
  const bool is_upper = in.node.GetString("auto_pad", "NOTSET") == "SAME_UPPER";
  const ValueId begin = is_upper ? half : Sub(b, total, half), end = Sub(b, total, begin);
  const ValueId none = b.Integers(std::array<int64_t, 2>{0, 0});
  return b.Op("Pad", {in.dy(), Joined(b, {none, begin, none, end}, 0)});
}

// The convolution that it transposes, whose X is dY.
Result<Gradients> ConvTranspose(Builder& b, const Inputs& in) {
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, in.x(0)));
  const std::string_view auto_pad = in.node.GetString("auto_pad", "NOTSET");
  const bool is_plain = auto_pad.empty() || auto_pad == "NOTSET" || auto_pad == "VALID";
  ValueId dy = in.dy();
  const bool is_cut = !is_plain || in.node.FindAttribute("output_shape") != nullptr;
  if (is_cut) dy = WithCutPads(b, in, rank);
  const auto attributes = [&] {
    return is_cut ? AttributesBut(in.node, {"auto_pad", "output_padding", "output_shape", "pads"})
                  : AttributesBut(in.node, {"output_padding"});
  };
  const ValueId dw =
      b.Ops("ConvGrad", std::array{in.x(0), dy, in.x(1)}, kOfW + 1, attributes(), kMicrosoft)[kOfW];
  Gradients all = {b.Op("Conv", {dy, in.x(1)}, attributes()), dw};
  if (in.x(2) != ValueId::kNone) {
    std::vector<int64_t> axes = AxesBetween(2, rank);
    axes.insert(axes.begin(), 0);
    all.push_back(SumOver(b, in.dy(), axes, false));
  }
  return all;
}

constexpr NamedGradientRule kRules[] = {
    {"Conv", Conv},
    {"ConvGrad", ConvGradient, 1, kMicrosoft},
    {"ConvTranspose", ConvTranspose},
    {"Det", Det},
    {"Einsum", Einsum},
    {"Gemm", Gemm, 7},
    {"GroupedMatMul", GroupedMatMul, 1, kMicrosoft},
    {"Inverse", Inverse, 1, kMicrosoft},
    {"MatMul", MatMul},
    {"MatMulNBits", MatMulNBits, 1, kMicrosoft},
};

}  // namespace

std::span<const NamedGradientRule> ProductGradients() { return kRules; }

}  // namespace tenon
