// Operators that combine elements: reductions, positions of extremes, running sums.
#include <numeric>

#include "webnn/emission.h"

namespace tenon::webnn {
namespace {

// Axes are an attribute in early versions, later an input. No axes means all or, with
// noop_with_empty_axes, none.
Status EmitReduce(NodeContext& context) {
  ProgramBuilder& builder = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  const size_t rank = builder.RankOf(x);
  TENON_ASSIGN_OR_RETURN(Numbers axes, context.IntegersOr(1, "axes"));
  for (int64_t& axis : axes) {
    TENON_ASSIGN_OR_RETURN(axis, context.Axis(axis, rank));
  }
  const bool does_nothing = axes.empty() && context.node().GetInt("noop_with_empty_axes", 0) != 0;
  if (does_nothing) return NotImplemented("WebNN reduces all axes where none are given");
  if (axes.empty()) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  const bool keeps_axes = context.node().GetInt("keepdims", 1) != 0;
  TENON_ASSIGN_OR_RETURN(const Operand y, builder.Reduce(context.method(), x, axes, keeps_axes));
  return context.SetOutput(0, y);
}

// ArgMax, ArgMin: the first of equal elements.
Status EmitArg(NodeContext& context) {
  if (context.node().GetInt("select_last_index", 0) != 0) {
    return NotImplemented("WebNN gives the first of equal elements");
  }
  ProgramBuilder& builder = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const int64_t axis,
                         context.Axis(context.node().GetInt("axis", 0), builder.RankOf(x)));
  const bool keeps_axis = context.node().GetInt("keepdims", 1) != 0;
  TENON_ASSIGN_OR_RETURN(const Shape shape, context.OutputShape(0));
  const DataType type = context.OperandType(0);
  TENON_ASSIGN_OR_RETURN(const Operand y, builder.Call(context.method(), {{"input", x}, {"", axis}},
                                                       {{"keepDimensions", keeps_axis},
                                                        {"outputDataType", OperandTypeName(type)}},
                                                       {type, shape}));
  return context.SetOutput(0, y);
}

Status EmitCumSum(NodeContext& context) {
  ProgramBuilder& builder = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const double wanted, context.Number(1));
  TENON_ASSIGN_OR_RETURN(const int64_t axis,
                         context.Axis(static_cast<int64_t>(wanted), builder.RankOf(x)));
  TENON_ASSIGN_OR_RETURN(const Operand y,
                         builder.Call("cumulativeSum", {{"input", x}, {"", axis}},
                                      {{"exclusive", context.node().GetInt("exclusive", 0) != 0},
                                       {"reversed", context.node().GetInt("reverse", 0) != 0}},
                                      {builder.TypeOf(x), builder.ShapeOf(x)}));
  return context.SetOutput(0, y);
}

constexpr std::string_view kAxes = "constant axes; some where noop_with_empty_axes is set";

constexpr Row kRows[] = {
    {"ArgMax", EmitArg, "argMax", "the first of equal elements"},
    {"ArgMin", EmitArg, "argMin", "the first of equal elements"},
    {"CumSum", EmitCumSum, "cumulativeSum", "constant axis"},
    {"ReduceL1", EmitReduce, "reduceL1", kAxes},
    {"ReduceL2", EmitReduce, "reduceL2", kAxes},
    {"ReduceLogSum", EmitReduce, "reduceLogSum", kAxes},
    {"ReduceLogSumExp", EmitReduce, "reduceLogSumExp", kAxes},
    {"ReduceMax", EmitReduce, "reduceMax", kAxes},
    {"ReduceMean", EmitReduce, "reduceMean", kAxes},
    {"ReduceMin", EmitReduce, "reduceMin", kAxes},
    {"ReduceProd", EmitReduce, "reduceProduct", kAxes},
    {"ReduceSum", EmitReduce, "reduceSum", kAxes},
    {"ReduceSumSquare", EmitReduce, "reduceSumSquare", kAxes},
};

}  // namespace

TENON_WEBNN_FAMILY(Reduction, kRows);

}  // namespace tenon::webnn
