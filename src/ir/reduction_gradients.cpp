// The gradients of reductions and of softmax.
#include "ir/gradient_rules.h"

namespace tenon {
namespace {

// A reduced value, repeated along the axes that were reduced.
ValueId Repeated(Builder& b, const Inputs& in, ValueId reduced) {
  const std::vector<int64_t> axes = in.node.GetInts("axes");
  if (in.node.GetInt("keepdims", 1) == 0) {
    if (in.x(1) != ValueId::kNone) {
      reduced = b.Op("Unsqueeze", {reduced, in.x(1)});
    } else if (!axes.empty()) {
      reduced = b.Op("Unsqueeze", {reduced, b.Integers(axes)});
    }  // else all were: a scalar
  }
  return b.Op("Expand", {reduced, b.Op("Shape", {in.x(0)})});
}

// The sum of a value in the shape of x along the axes that the node reduces.
ValueId SumLike(Builder& b, const Inputs& in, ValueId value) {
  std::vector<ValueId> inputs = {value};
  const std::vector<int64_t> axes = in.node.GetInts("axes");
  if (in.x(1) != ValueId::kNone) {
    inputs.push_back(in.x(1));
  } else if (!axes.empty()) {
    inputs.push_back(b.Integers(axes));
  }
  return b.Op("ReduceSum", inputs,
              Attributes(Int("keepdims", in.node.GetInt("keepdims", 1)),
                         Int("noop_with_empty_axes", in.node.GetInt("noop_with_empty_axes", 0))));
}

Result<Gradients> ReduceSum(Builder& b, const Inputs& in) {
  return Gradients{Repeated(b, in, in.dy())};
}

Result<Gradients> ReduceMean(Builder& b, const Inputs& in) {
  const ValueId x = in.x(0);
  // The counts themselves may exceed the range of float16.
  const auto count = [&](ValueId value) {
    const auto type = static_cast<int64_t>(DataType::kDouble);
    return b.Op("Cast", {b.Op("Size", {value})}, Attributes(Int("to", type)));
  };
  const ValueId share = b.CastTo(Div(b, count(in.y()), count(x)), x);
  return Gradients{Mul(b, Repeated(b, in, in.dy()), share)};
}

// ReduceMax, ReduceMin: elements that are equal share the gradient, as in PyTorch.
Result<Gradients> ReduceExtreme(Builder& b, const Inputs& in) {
  const ValueId is_chosen = b.CastTo(b.Op("Equal", {in.x(0), Repeated(b, in, in.y())}), in.x(0));
  const ValueId share = Div(b, in.dy(), SumLike(b, in, is_chosen));
  return Gradients{Mul(b, is_chosen, Repeated(b, in, share))};
}

Result<Gradients> ReduceL1(Builder& b, const Inputs& in) {
  return Gradients{Mul(b, b.Op("Sign", {in.x(0)}), Repeated(b, in, in.dy()))};
}

// The slope is x / y, or 0 where all x are.
Result<Gradients> ReduceL2(Builder& b, const Inputs& in) {
  const ValueId zero = b.Scalar(0, in.y());
  const ValueId ratio = Where(b, b.Op("Equal", {in.y(), zero}), zero, Div(b, in.dy(), in.y()));
  return Gradients{Mul(b, in.x(0), Repeated(b, in, ratio))};
}

Result<Gradients> ReduceSumSquare(Builder& b, const Inputs& in) {
  return Gradients{Mul(b, Times(b, in.x(0), 2), Repeated(b, in, in.dy()))};
}

// The product of the other elements: y / x, but where just one x is 0, it alone has a slope.
Result<Gradients> ReduceProd(Builder& b, const Inputs& in) {
  const ValueId x = in.x(0), zero = b.Scalar(0, x), one = b.Scalar(1, x);
  const ValueId is_zero = b.Op("Equal", {x, zero});
  const ValueId filled = Where(b, is_zero, one, x);
  std::vector<ValueId> inputs = in.node.inputs;
  inputs[0] = filled;
  const ValueId product =
      Repeated(b, in, Mul(b, in.dy(), b.Op("ReduceProd", inputs, AttributesBut(in.node))));
  const ValueId zeros = Repeated(b, in, SumLike(b, in, b.CastTo(is_zero, x)));
  const ValueId others = Sub(b, zeros, b.CastTo(is_zero, x));
  return Gradients{Where(b, b.Op("Equal", {others, zero}), Div(b, product, filled), zero)};
}

Result<Gradients> ReduceLogSum(Builder& b, const Inputs& in) {
  return Gradients{Repeated(b, in, Div(b, in.dy(), b.Op("Exp", {in.y()})))};
}

Result<Gradients> ReduceLogSumExp(Builder& b, const Inputs& in) {
  const ValueId share = b.Op("Exp", {Sub(b, in.x(0), Repeated(b, in, in.y()))});
  return Gradients{Mul(b, share, Repeated(b, in, in.dy()))};
}

// ---- softmax ------------------------------------------------------------------------------------

constexpr int32_t kFirstSoftmaxOfOneAxis = 13;

// The axes along which Softmax and LogSoftmax add up: one, but before opset 13 all from it on.
Result<std::vector<int64_t>> SummedAxes(Builder& b, const Inputs& in) {
  if (in.node.opset >= kFirstSoftmaxOfOneAxis) return std::vector{in.node.GetInt("axis", -1)};
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, in.x(0)));
  const int64_t axis = in.node.GetInt("axis", 1);
  return AxesBetween(axis < 0 ? axis + rank : axis, rank);
}

bool HasSoftmaxKernel(const Builder& b, const Inputs& in) {
  return in.node.opset >= kFirstSoftmaxOfOneAxis && b.MayUseKernels(in.x(0));
}

ValueId SoftmaxKernel(Builder& b, const Inputs& in, const char* op_type) {
  return b.Op(op_type, {in.dy(), in.y()}, Attributes(Int("axis", in.node.GetInt("axis", -1))),
              kMicrosoft);
}

// y = softmax(x): dx = y (dy - sum(y dy)).
Result<Gradients> Softmax(Builder& b, const Inputs& in) {
  if (HasSoftmaxKernel(b, in)) return Gradients{SoftmaxKernel(b, in, "SoftmaxGrad_13")};
  TENON_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, SummedAxes(b, in));
  const ValueId product = Mul(b, in.y(), in.dy());
  return Gradients{Sub(b, product, Mul(b, in.y(), SumOver(b, product, axes)))};
}

// y = x - log(sum(exp(x))): dx = dy - exp(y) sum(dy).
Result<Gradients> LogSoftmax(Builder& b, const Inputs& in) {
  if (HasSoftmaxKernel(b, in)) return Gradients{SoftmaxKernel(b, in, "LogSoftmaxGrad_13")};
  TENON_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, SummedAxes(b, in));
  return Gradients{Sub(b, in.dy(), Mul(b, b.Op("Exp", {in.y()}), SumOver(b, in.dy(), axes)))};
}

constexpr NamedGradientRule kRules[] = {
    {"LogSoftmax", LogSoftmax},
    {"ReduceL1", ReduceL1},
    {"ReduceL2", ReduceL2},
    {"ReduceLogSum", ReduceLogSum},
    {"ReduceLogSumExp", ReduceLogSumExp},
    {"ReduceMax", ReduceExtreme},
    {"ReduceMean", ReduceMean},
    {"ReduceMin", ReduceExtreme},
    {"ReduceProd", ReduceProd},
    {"ReduceSum", ReduceSum},
    {"ReduceSumSquare", ReduceSumSquare},
    {"Softmax", Softmax},
};

}  // namespace

std::span<const NamedGradientRule> ReductionGradients() { return kRules; }

}  // namespace tenon
