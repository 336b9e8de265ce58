// Products of matrices.
#include "webnn/emission.h"

namespace tenon::webnn {
namespace {

// Vectors become matrices with one row, as the first factor, or one column.
Status EmitMatMul(NodeContext& context) {
  ProgramBuilder& builder = context.builder();
  TENON_ASSIGN_OR_RETURN(Operand a, context.Input(0));
  TENON_ASSIGN_OR_RETURN(Operand b, context.Input(1));
  TENON_ASSIGN_OR_RETURN(const Shape shape, context.OutputShape(0));
  const bool a_is_vector = builder.RankOf(a) == 1;
  const bool b_is_vector = builder.RankOf(b) == 1;
  if (a_is_vector) {
    TENON_ASSIGN_OR_RETURN(a, builder.Reshape(a, Shape({1, builder.ShapeOf(a)[0]})));
  }
  if (b_is_vector) {
    TENON_ASSIGN_OR_RETURN(b, builder.Reshape(b, Shape({builder.ShapeOf(b)[0], 1})));
  }
  Shape full = shape;
  if (a_is_vector || b_is_vector) {
    full = Shape();
    const size_t batch = shape.rank() - (a_is_vector ? 0 : 1) - (b_is_vector ? 0 : 1);
    for (size_t i = 0; i < batch; ++i) full.Append(shape[i]);
    full.Append(a_is_vector ? 1 : shape[batch]);
    full.Append(b_is_vector ? 1 : shape.back());
  }
  TENON_ASSIGN_OR_RETURN(
      Operand y, builder.Call("matmul", {{"a", a}, {"b", b}}, {}, {builder.TypeOf(a), full}));
  if (!(full == shape)) {
    TENON_ASSIGN_OR_RETURN(y, builder.Reshape(y, shape));
  }
  return context.SetOutput(0, y);
}

Status EmitGemm(NodeContext& context) {
  ProgramBuilder& builder = context.builder();
  const Node& node = context.node();
  TENON_ASSIGN_OR_RETURN(const Operand a, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Operand b, context.Input(1));
  TENON_ASSIGN_OR_RETURN(const Shape shape, context.OutputShape(0));
  Parameters options;
  if (context.HasInput(2)) {
    TENON_ASSIGN_OR_RETURN(const Operand c, context.Input(2));
    options.push_back({"c", c});
  }
  options.push_back({"alpha", static_cast<double>(node.GetFloat("alpha", 1))});
  options.push_back({"beta", static_cast<double>(node.GetFloat("beta", 1))});
  options.push_back({"aTranspose", node.GetInt("transA", 0) != 0});
  options.push_back({"bTranspose", node.GetInt("transB", 0) != 0});
  TENON_ASSIGN_OR_RETURN(
      const Operand y,
      builder.Call("gemm", {{"a", a}, {"b", b}}, std::move(options), {builder.TypeOf(a), shape}));
  return context.SetOutput(0, y);
}

constexpr Row kRows[] = {
    {"Gemm", EmitGemm, "gemm"},
    {"MatMul", EmitMatMul, "matmul"},
};

}  // namespace

TENON_WEBNN_FAMILY(Matrix, kRows);

}  // namespace tenon::webnn
