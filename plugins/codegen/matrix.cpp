// MatMul and Gemm.

#include "operators.h"
#include "product.h"

namespace codegen {
namespace {

// The element of a matrix in a batch; `batch_strides` are those of the axes before the last two.
Product::Access MatrixAccess(KernelWriter& writer, const Tensor& matrix, const Shape& batch_shape,
                             const char* row, const char* column, const char* name) {
  const size_t rank = matrix.shape.size();
  Tensor batch;
  batch.shape.assign(matrix.shape.begin(), matrix.shape.end() - 2);
  batch.strides.assign(matrix.strides.begin(), matrix.strides.end() - 2);
  const Elements elements = writer.Input(matrix);
  const std::string offset =
      writer.Offset(batch_shape, BroadcastStrides(batch, batch_shape), "batch");
  const auto scaled = [&](const char* index, int64_t stride) {
    return stride == 1 ? std::string(index) : fmt::format("{} * {}", index, writer.Int(stride));
  };
  return {fmt::format("const int {} = {};", name, offset),
          elements.Read(fmt::format("{} + {} + {}", name, scaled(row, matrix.strides[rank - 2]),
                                    scaled(column, matrix.strides[rank - 1])))};
}

// The product of tensors of rank two or more, in memory.
Result<TensorRef> Multiply(Planner& planner, const TensorRef& a, const TensorRef& b) {
  PLUGIN_RETURN_IF_ERROR(planner.Store(a));
  PLUGIN_RETURN_IF_ERROR(planner.Store(b));
  const size_t ra = a->shape.size();
  const size_t rb = b->shape.size();
  if (a->shape[ra - 1] != b->shape[rb - 2]) {
    return Failure("input 1: expected {} rows to match input 0 {}, got {}", a->shape[ra - 1],
                   a->shape, b->shape);
  }
  PLUGIN_ASSIGN_OR_RETURN(const Shape batch,
                          BroadcastShape({a->shape.begin(), a->shape.end() - 2},
                                         {b->shape.begin(), b->shape.end() - 2}));
  Product product;
  product.batch = ElementCount(batch);
  product.m = a->shape[ra - 2];
  product.k = a->shape[ra - 1];
  product.n = b->shape[rb - 1];
  product.a = [a, batch](KernelWriter& writer) {
    return MatrixAccess(writer, *a, batch, "row", "depth", "batch_a");
  };
  product.b = [b, batch](KernelWriter& writer) {
    return MatrixAccess(writer, *b, batch, "depth", "col", "batch_b");
  };
  Shape shape = batch;
  shape.push_back(product.m);
  shape.push_back(product.n);
  return planner.FromRoot(a->type, std::move(shape),
                          [product, size = planner.max_group_size()](KernelWriter& writer) {
                            return WriteProduct(writer, product, size);
                          });
}

// A vector is a matrix of one row on the left, of one column on the right.
Status LowerMatMul(Planner& planner, const Node& node) {
  TensorRef a = planner.Input(node, 0);
  TensorRef b = planner.Input(node, 1);
  if (a->shape.empty() || b->shape.empty()) return Failure("expected no scalars");
  const bool a_is_vector = a->shape.size() == 1;
  const bool b_is_vector = b->shape.size() == 1;
  if (a_is_vector) {
    PLUGIN_ASSIGN_OR_RETURN(a, planner.Reshape(a, {1, a->shape[0]}));
  }
  if (b_is_vector) {
    PLUGIN_ASSIGN_OR_RETURN(b, planner.Reshape(b, {b->shape[0], 1}));
  }
  PLUGIN_ASSIGN_OR_RETURN(TensorRef result, Multiply(planner, a, b));
  if (a_is_vector || b_is_vector) {
    Shape shape = result->shape;
    if (b_is_vector) shape.pop_back();
    if (a_is_vector) shape.erase(shape.end() - (b_is_vector ? 1 : 2));
    PLUGIN_ASSIGN_OR_RETURN(result, planner.Reshape(result, std::move(shape)));
  }
  return planner.SetOutput(node, 0, result);
}

Result<TensorRef> Transposed(Planner& planner, const TensorRef& matrix, bool is_transposed) {
  if (matrix->shape.size() != 2) return Failure("expected a matrix, got shape {}", matrix->shape);
  if (!is_transposed) return matrix;
  PLUGIN_RETURN_IF_ERROR(planner.Store(matrix));
  return planner.View(matrix, {matrix->shape[1], matrix->shape[0]},
                      {matrix->strides[1], matrix->strides[0]}, 0);
}

Status LowerGemm(Planner& planner, const Node& node) {
  PLUGIN_ASSIGN_OR_RETURN(const TensorRef a,
                          Transposed(planner, planner.Input(node, 0), node.Int("transA", 0) != 0));
  PLUGIN_ASSIGN_OR_RETURN(const TensorRef b,
                          Transposed(planner, planner.Input(node, 1), node.Int("transB", 0) != 0));
  PLUGIN_ASSIGN_OR_RETURN(TensorRef result, Multiply(planner, a, b));
  const float alpha = node.Float("alpha", 1);
  const float beta = node.Float("beta", 1);
  if (alpha != 1) {
    result = planner.Expression(result->type, result->shape, fmt::format("$0 * ({:.9e}f)", alpha),
                                {result});
  }
  if (planner.HasInput(node, 2)) {
    result = planner.Expression(result->type, result->shape,
                                beta == 1 ? "$0 + $1" : fmt::format("$0 + $1 * ({:.9e}f)", beta),
                                {result, planner.Input(node, 2)});
  }
  return planner.SetOutput(node, 0, result);
}

}  // namespace

std::span<const Operator> MatrixOperators() {
  static constexpr Operator kRows[] = {
      {.type = "MatMul", .lower = LowerMatMul, .types = kFloats},
      {.type = "Gemm", .lower = LowerGemm, .types = kFloats, .since = 7},
  };
  return kRows;
}

}  // namespace codegen
