// The gradients of single operators, each as a graph of operators of the standard.
#include <algorithm>
#include <array>
#include <numeric>

#include "ir/gradient.h"

namespace tenon {
namespace {

using Gradients = std::vector<ValueId>;
using Builder = GradientBuilder;
using Inputs = GradientInputs;

Attribute Int(std::string name, int64_t value) { return Attribute(std::move(name), value); }

template <class... T>
std::vector<Attribute> Attributes(T&&... attributes) {
  std::vector<Attribute> all;
  (all.push_back(std::forward<T>(attributes)), ...);
  return all;
}

ValueId Mul(Builder& b, ValueId x, ValueId y) { return b.Op("Mul", {x, y}); }

// ---- element by element -------------------------------------------------------------------------

Result<Gradients> Identity(Builder&, const Inputs& in) { return Gradients{in.dy()}; }

Result<Gradients> Nothing(Builder&, const Inputs&) { return Gradients{}; }

// The gradient of an operand that was broadcast to the output.
ValueId SumTo(Builder& b, const Inputs& in, ValueId gradient, ValueId operand) {
  return b.SumTo(gradient, operand, b.ShapeOf(in.y()));
}

// Add, Sum: each operand gets the gradient.
Result<Gradients> Sum(Builder& b, const Inputs& in) {
  Gradients all;
  for (const ValueId x : in.node.inputs) all.push_back(SumTo(b, in, in.dy(), x));
  return all;
}

Result<Gradients> Sub(Builder& b, const Inputs& in) {
  return Gradients{SumTo(b, in, in.dy(), in.x(0)), SumTo(b, in, b.Op("Neg", {in.dy()}), in.x(1))};
}

Result<Gradients> Product(Builder& b, const Inputs& in) {
  return Gradients{SumTo(b, in, Mul(b, in.dy(), in.x(1)), in.x(0)),
                   SumTo(b, in, Mul(b, in.dy(), in.x(0)), in.x(1))};
}

// y = a / c: da = dy / c, dc = -y dy / c.
Result<Gradients> Div(Builder& b, const Inputs& in) {
  const ValueId ratio = b.Op("Div", {in.dy(), in.x(1)});
  return Gradients{SumTo(b, in, ratio, in.x(0)),
                   SumTo(b, in, b.Op("Neg", {Mul(b, ratio, in.y())}), in.x(1))};
}

// y = a^c: da = c a^(c - 1) dy, which is 0 where c is, and dc = ln(a) y dy, which is 0 where y
// stays 0 for other c: at a = 0 and c >= 0. It is NaN where a is negative, because y has no
// derivative.
Result<Gradients> Pow(Builder& b, const Inputs& in) {
  const ValueId a = in.x(0), c = b.Op("CastLike", {in.x(1), a});
  const ValueId less = b.Op("Sub", {c, b.Scalar(1, a)});
  const ValueId zero = b.Scalar(0, a);
  const ValueId slope = Mul(b, c, b.Op("Pow", {a, less}));
  const ValueId da = Mul(b, in.dy(), b.Op("Where", {b.Op("Equal", {c, zero}), zero, slope}));
  const ValueId is_flat =
      b.Op("And", {b.Op("Equal", {a, zero}), b.Op("Not", {b.Op("Less", {c, zero})})});
  const ValueId logarithm = b.Op("Where", {is_flat, zero, b.Op("Log", {a})});
  const ValueId dc = Mul(b, in.dy(), Mul(b, in.y(), logarithm));
  return Gradients{SumTo(b, in, da, a), b.Op("CastLike", {SumTo(b, in, dc, in.x(1)), in.x(1)})};
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

Result<Gradients> Relu(Builder& b, const Inputs& in) {
  const ValueId zero = b.Scalar(0, in.x(0));
  return Gradients{b.Op("Where", {b.Op("Greater", {in.x(0), zero}), in.dy(), zero})};
}

// y (1 - y) dy
Result<Gradients> Sigmoid(Builder& b, const Inputs& in) {
  const ValueId slope = b.Op("Sub", {in.y(), Mul(b, in.y(), in.y())});
  return Gradients{Mul(b, in.dy(), slope)};
}

// (1 - y^2) dy
Result<Gradients> Tanh(Builder& b, const Inputs& in) {
  return Gradients{b.Op("Sub", {in.dy(), Mul(b, in.dy(), Mul(b, in.y(), in.y()))})};
}

Result<Gradients> Where(Builder& b, const Inputs& in) {
  const ValueId zero = b.Scalar(0, in.y());
  return Gradients{ValueId::kNone, SumTo(b, in, b.Op("Where", {in.x(0), in.dy(), zero}), in.x(1)),
                   SumTo(b, in, b.Op("Where", {in.x(0), zero, in.dy()}), in.x(2))};
}

Result<Gradients> Cast(Builder& b, const Inputs& in) {
  return Gradients{b.Op("CastLike", {in.dy(), in.x(0)})};
}

// ---- shapes -------------------------------------------------------------------------------------

// Reshape, Squeeze, Unsqueeze, Flatten.
Result<Gradients> Reshape(Builder& b, const Inputs& in) {
  return Gradients{b.Op("Reshape", {in.dy(), b.Op("Shape", {in.x(0)})})};
}

Result<Gradients> Expand(Builder& b, const Inputs& in) {
  return Gradients{SumTo(b, in, in.dy(), in.x(0))};
}

Result<Gradients> Transpose(Builder& b, const Inputs& in) {
  const std::vector<int64_t> permutation = in.node.GetInts("perm");
  if (permutation.empty()) return Gradients{b.Op("Transpose", {in.dy()})};  // reversed, and back
  std::vector<int64_t> inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) {
    const auto axis = static_cast<size_t>(permutation[i]);
    if (axis >= inverse.size()) return InvalidGraph("perm has entry {}", permutation[i]);
    inverse[axis] = static_cast<int64_t>(i);
  }
  return Gradients{b.Op("Transpose", {in.dy()}, Attributes(Attribute("perm", std::move(inverse))))};
}

// ---- reductions ---------------------------------------------------------------------------------

// The gradient of a sum, repeated along the axes that were reduced.
ValueId Repeated(Builder& b, const Inputs& in) {
  ValueId kept = in.dy();
  const std::vector<int64_t> axes = in.node.GetInts("axes");
  if (in.node.GetInt("keepdims", 1) == 0) {
    if (in.x(1) != ValueId::kNone) {
      kept = b.Op("Unsqueeze", {kept, in.x(1)});
    } else if (!axes.empty()) {
      kept = b.Op("Unsqueeze", {kept, b.Integers(axes)});
    }  // else all were: a scalar
  }
  return b.Op("Expand", {kept, b.Op("Shape", {in.x(0)})});
}

Result<Gradients> ReduceSum(Builder& b, const Inputs& in) { return Gradients{Repeated(b, in)}; }

Result<Gradients> ReduceMean(Builder& b, const Inputs& in) {
  const ValueId x = in.x(0);
  // The counts themselves may exceed the range of float16.
  const auto count = [&](ValueId value) {
    const auto type = static_cast<int64_t>(DataType::kDouble);
    return b.Op("Cast", {b.Op("Size", {value})}, Attributes(Int("to", type)));
  };
  const ValueId share = b.Op("CastLike", {b.Op("Div", {count(in.y()), count(x)}), x});
  return Gradients{Mul(b, Repeated(b, in), share)};
}

// The axes along which Softmax and LogSoftmax add up: one, but before opset 13 all from it on.
Result<std::vector<int64_t>> SummedAxes(Builder& b, const Inputs& in) {
  if (in.node.opset >= 13) return std::vector{in.node.GetInt("axis", -1)};
  const SymbolicShape* const shape = b.ShapeOf(in.x(0));
  if (shape == nullptr) {
    return NotImplemented("{}-{} has no gradient yet if the rank of its input is unknown",
                          in.node.op_type, in.node.opset);
  }
  const auto rank = static_cast<int64_t>(shape->rank());
  const int64_t axis = in.node.GetInt("axis", 1);
  std::vector<int64_t> axes;
  for (int64_t i = axis < 0 ? axis + rank : axis; i < rank; ++i) axes.push_back(i);
  return axes;
}

// The sum along these axes, of size 1. Without axes, when each element is alone, it is the value.
ValueId SumOver(Builder& b, ValueId value, const std::vector<int64_t>& axes) {
  return axes.empty() ? value : b.Op("ReduceSum", {value, b.Integers(axes)});
}

// y = softmax(x): dx = y (dy - sum(y dy)).
Result<Gradients> Softmax(Builder& b, const Inputs& in) {
  TENON_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, SummedAxes(b, in));
  const ValueId product = Mul(b, in.y(), in.dy());
  const ValueId sum = SumOver(b, product, axes);
  return Gradients{b.Op("Sub", {product, Mul(b, in.y(), sum)})};
}

// y = x - log(sum(exp(x))): dx = dy - exp(y) sum(dy).
Result<Gradients> LogSoftmax(Builder& b, const Inputs& in) {
  TENON_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, SummedAxes(b, in));
  const ValueId sum = SumOver(b, in.dy(), axes);
  return Gradients{b.Op("Sub", {in.dy(), Mul(b, b.Op("Exp", {in.y()}), sum)})};
}

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

struct NamedRule {
  std::string_view op_type;
  GradientRule rule;
  int32_t since = 1;  // earlier versions mean something else
};

constexpr NamedRule kRules[] = {
    {"Abs", Abs},
    {"Add", Sum, 7},
    {"ArgMax", Nothing},
    {"ArgMin", Nothing},
    {"Cast", Cast},
    {"CastLike", Cast},
    {"Ceil", Nothing},
    {"Cos", Cos},
    {"Div", Div, 7},
    {"Equal", Nothing},
    {"Exp", Exp},
    {"Expand", Expand},
    {"Flatten", Reshape},
    {"Floor", Nothing},
    {"Gemm", Gemm, 7},
    {"Greater", Nothing},
    {"GreaterOrEqual", Nothing},
    {"Identity", Identity},
    {"Less", Nothing},
    {"LessOrEqual", Nothing},
    {"Log", Log},
    {"LogSoftmax", LogSoftmax},
    {"MatMul", MatMul},
    {"Mul", Product, 7},
    {"Neg", Neg},
    {"NonZero", Nothing},
    {"Not", Nothing},
    {"Pow", Pow, 7},
    {"Reciprocal", Reciprocal},
    {"ReduceMean", ReduceMean},
    {"ReduceSum", ReduceSum},
    {"Relu", Relu},
    {"Reshape", Reshape},
    {"Round", Nothing},
    {"Shape", Nothing},
    {"Sigmoid", Sigmoid},
    {"Sign", Nothing},
    {"Sin", Sin},
    {"Size", Nothing},
    {"Softmax", Softmax},
    {"Sqrt", Sqrt},
    {"Squeeze", Reshape},
    {"Sub", Sub, 7},
    {"Sum", Sum, 8},
    {"Tanh", Tanh},
    {"Transpose", Transpose},
    {"Unsqueeze", Reshape},
    {"Where", Where},
};

}  // namespace

GradientRule FindGradientRule(const Node& node) {
  if (!node.domain.empty()) return nullptr;
  const auto found =
      std::find_if(std::begin(kRules), std::end(kRules),
                   [&](const NamedRule& known) { return known.op_type == node.op_type; });
  return found != std::end(kRules) && node.opset >= found->since ? found->rule : nullptr;
}

}  // namespace tenon
