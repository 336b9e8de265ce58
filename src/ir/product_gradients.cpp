// The gradients of products, determinants and convolutions.
#include <array>
#include <numeric>
#include <set>

#include "ir/gradient_rules.h"

namespace tenon {
namespace {

// ---- products -----------------------------------------------------------------------------------

// Swaps the last two axes; the rank is at least 2.
ValueId Transposed(Builder& b, ValueId x, size_t rank) {
  std::vector<int64_t> permutation(rank);
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation[rank - 1], permutation[rank - 2]);
  return b.Op("Transpose", {x}, Attributes(Attribute("perm", std::move(permutation))));
}

// y = a b: da = dy b', dc = a' dy. A vector is a row on the left, a column on the right.
Result<Gradients> MatMul(Builder& b, const Inputs& in) {
  const SymbolicShape* left = b.ShapeOf(in.x(0));
  const SymbolicShape* right = b.ShapeOf(in.x(1));
  if (left == nullptr || right == nullptr) {
    return NotImplemented("the gradient of {} needs the ranks of its inputs", in.node.Describe());
  }
  const size_t left_rank = left->rank(), right_rank = right->rank();
  ValueId a = in.x(0), c = in.x(1), dy = in.dy();
  const auto insert = [&](ValueId x, int64_t axis) {
    return b.Op("Unsqueeze", {x, b.Integers(std::array<int64_t, 1>{axis})});
  };
  if (right_rank == 1) c = insert(c, 1), dy = insert(dy, -1);
  if (left_rank == 1) a = insert(a, 0), dy = insert(dy, -2);
  const ValueId da = b.Op("MatMul", {dy, Transposed(b, c, std::max<size_t>(right_rank, 2))});
  const ValueId dc = b.Op("MatMul", {Transposed(b, a, std::max<size_t>(left_rank, 2)), dy});
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

// The labels of one term of Einsum's equation; "..." is one label.
using Labels = std::vector<std::string>;

// Error: kInvalidGraph for an equation without an arrow: it is not in the form that inference
// gives.
Result<std::vector<Labels>> TermsOf(const Node& node) {
  std::string equation;
  for (const char c : node.GetString("equation", "")) {
    if (c != ' ') equation += c;
  }
  const size_t arrow = equation.find("->");
  if (arrow == std::string::npos) {
    return NotImplemented("{}: '{}' has no gradient yet without an arrow", node.Describe(),
                          equation);
  }
  equation.replace(arrow, 2, ",");
  std::vector<Labels> terms(1);
  for (size_t i = 0; i < equation.size(); ++i) {
    if (equation[i] == ',') {
      terms.emplace_back();
    } else if (equation[i] == '.') {
      terms.back().push_back("...");
      i += 2;
    } else {
      terms.back().emplace_back(1, equation[i]);
    }
  }
  return terms;
}

std::string TextOf(const Labels& labels) {
  std::string text;
  for (const std::string& label : labels) text += label;
  return text;
}

// The gradient of operand i: the product of the other operands and dy, in its labels. Labels that
// are in no other term were summed alone; along them it is repeated.
Result<ValueId> EinsumOperand(Builder& b, const Inputs& in, std::span<const Labels> terms,
                              size_t i) {
  const std::set<std::string> own(terms[i].begin(), terms[i].end());
  if (own.size() != terms[i].size()) {
    return NotImplemented("{} has no gradient yet: it takes a diagonal of input {}",
                          in.node.Describe(), i);
  }
  const size_t last = terms.size() - 1;
  std::set<std::string> others;
  std::string equation;
  std::vector<ValueId> factors;
  for (size_t k = 0; k <= last; ++k) {
    if (k == i) continue;
    others.insert(terms[k].begin(), terms[k].end());
    equation += (equation.empty() ? "" : ",") + TextOf(terms[k]);
    factors.push_back(k == last ? in.dy() : in.x(k));
  }
  if (others.count("...") > 0 && own.count("...") == 0) {
    return NotImplemented("{} has no gradient yet: input {} has no '...'", in.node.Describe(), i);
  }
  Labels shared;
  std::vector<int64_t> alone;
  for (size_t axis = 0; axis < terms[i].size(); ++axis) {
    const std::string& label = terms[i][axis];
    if (others.count(label) > 0) {
      shared.push_back(label);
    } else if (label == "...") {
      return NotImplemented("{} has no gradient yet: '...' is summed", in.node.Describe());
    } else {
      alone.push_back(static_cast<int64_t>(axis));
    }
  }
  ValueId gradient =
      b.Op("Einsum", factors, Attributes(Attribute("equation", equation + "->" + TextOf(shared))));
  if (alone.empty()) return b.SumTo(gradient, in.x(i), nullptr);
  if (own.count("...") > 0) {
    return NotImplemented("{} has no gradient yet: an axis beside '...' is summed",
                          in.node.Describe());
  }
  gradient = b.Op("Unsqueeze", {gradient, b.Integers(alone)});
  return b.Op("Expand", {gradient, b.Op("Shape", {in.x(i)})});
}

Result<Gradients> Einsum(Builder& b, const Inputs& in) {
  TENON_ASSIGN_OR_RETURN(const std::vector<Labels> terms, TermsOf(in.node));
  if (terms.size() != in.node.inputs.size() + 1) {
    return InvalidGraph("{}: the equation has {} terms for {} inputs", in.node.Describe(),
                        terms.size() - 1, in.node.inputs.size());
  }
  Gradients all;
  for (size_t i = 0; i + 1 < terms.size(); ++i) {
    TENON_ASSIGN_OR_RETURN(all.emplace_back(), EinsumOperand(b, in, terms, i));
  }
  return all;
}

// ---- determinants -------------------------------------------------------------------------------

// With the last two axes exchanged.
ValueId Turned(Builder& b, ValueId x, int64_t rank) {
  std::vector<int64_t> order = AxesBetween(0, rank);
  std::swap(order[static_cast<size_t>(rank - 1)], order[static_cast<size_t>(rank - 2)]);
  return Transposed(b, x, std::move(order));
}

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
ValueId ConvKernel(Builder& b, const Node& conv, ValueId dy, ValueId x, ValueId w, Side side,
                   std::initializer_list<std::string_view> left_out = {}) {
  return b.Ops("ConvGrad", std::array{dy, x, w}, side + 1, AttributesBut(conv, left_out),
               kMicrosoft)[side];
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

// The convolution that it transposes, whose X is dY.
Result<Gradients> ConvTranspose(Builder& b, const Inputs& in) {
  const std::string_view auto_pad = in.node.GetString("auto_pad", "NOTSET");
  const bool is_plain = auto_pad.empty() || auto_pad == "NOTSET" || auto_pad == "VALID";
  if (!is_plain || in.node.FindAttribute("output_shape") != nullptr) {
    return NotImplemented("{} has no gradient yet with auto_pad or output_shape",
                          in.node.Describe());
  }
  constexpr std::string_view kOwn = "output_padding";
  const ValueId dx = b.Op("Conv", {in.dy(), in.x(1)}, AttributesBut(in.node, {kOwn}));
  Gradients all = {dx, ConvKernel(b, in.node, in.x(0), in.dy(), in.x(1), kOfW, {kOwn})};
  if (in.x(2) != ValueId::kNone) {
    TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, in.x(0)));
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
    {"Inverse", Inverse, 1, kMicrosoft},
    {"MatMul", MatMul},
};

}  // namespace

std::span<const NamedGradientRule> ProductGradients() { return kRules; }

}  // namespace tenon
