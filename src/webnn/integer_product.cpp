// MatMulInteger and ConvInteger. WebNN only multiplies floats: the factors, minus their zero
// points, are exact as floats, and so are sums below 2^24. Larger sums are rounded as sums of
// floats are.
#include "webnn/images.h"

namespace tenon::webnn {
namespace {

// Input `i` minus its zero point, input `i + 2`, as floats. A zero point with one element for each
// row or column has its axis at `axis`, -1 for the last.
Result<Operand> Centered(NodeContext& context, size_t i, int64_t axis) {
  ProgramBuilder& b = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand given, context.Input(i));
  TENON_ASSIGN_OR_RETURN(const Operand x, b.Cast(given, DataType::kFloat));
  if (!context.HasInput(i + 2)) return x;
  TENON_ASSIGN_OR_RETURN(const Operand given_zero, context.Input(i + 2));
  TENON_ASSIGN_OR_RETURN(Operand zero, b.Cast(given_zero, DataType::kFloat));
  if (b.RankOf(zero) == 1 && b.ShapeOf(zero)[0] != 1) {
    const auto rank = static_cast<int64_t>(b.RankOf(x));
    Shape spread(static_cast<size_t>(rank), 1);
    spread[static_cast<size_t>(axis < 0 ? rank + axis : axis)] = b.ShapeOf(zero)[0];
    TENON_ASSIGN_OR_RETURN(zero, b.Reshape(zero, spread));
  } else if (b.RankOf(zero) > 1 && b.RankOf(zero) != b.RankOf(x)) {
    return NotImplemented("a zero point of shape {}", b.ShapeOf(zero));
  }
  return b.Binary("sub", x, zero);
}

Status EmitMatMulInteger(NodeContext& context) {
  ProgramBuilder& b = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, Centered(context, 0, -2));
  TENON_ASSIGN_OR_RETURN(const Operand y, Centered(context, 1, -1));
  if (b.RankOf(x) < 2 || b.RankOf(y) < 2) return NotImplemented("vectors");
  TENON_ASSIGN_OR_RETURN(const Shape shape, context.OutputShape(0));
  TENON_ASSIGN_OR_RETURN(const Operand product,
                         b.Call("matmul", {{"a", x}, {"b", y}}, {}, {DataType::kFloat, shape}));
  return context.SetOutput(0, product);
}

Status EmitConvInteger(NodeContext& context) {
  ProgramBuilder& b = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, Centered(context, 0, 1));
  TENON_ASSIGN_OR_RETURN(const Operand w, Centered(context, 1, 0));
  const Shape in = b.ShapeOf(x), weights = b.ShapeOf(w);
  if (in.rank() != 4) return NotImplemented("WebNN has two spatial axes");
  const Numbers kernel(weights.begin() + 2, weights.end());
  TENON_ASSIGN_OR_RETURN(const WindowOptions window,
                         WindowOf(context, kernel, SpatialSizes(context, in)));
  TENON_ASSIGN_OR_RETURN(const Shape shape, context.OutputShape(0));
  TENON_ASSIGN_OR_RETURN(const Operand y, b.Call("conv2d", {{"input", x}, {"filter", w}},
                                                 {{"padding", window.padding},
                                                  {"strides", window.strides},
                                                  {"dilations", window.dilations},
                                                  {"groups", context.node().GetInt("group", 1)}},
                                                 {DataType::kFloat, shape}));
  return context.SetOutput(0, y);
}

constexpr Row kRows[] = {
    {"ConvInteger", EmitConvInteger, "conv2d", "two spatial axes; sums above 2^24 are rounded"},
    {"MatMulInteger", EmitMatMulInteger, "matmul", "matrices; sums above 2^24 are rounded"},
};

}  // namespace

TENON_WEBNN_FAMILY(IntegerProduct, kRows);

}  // namespace tenon::webnn
